"""Importing the package beside importing Keras alone.

    python benchmarks/imports.py [--backend NAME] [--quick] [--out DIR]

New processes in turns, by the time of the processor they took; the first of
each, which may write compiled files, is not counted.
"""

import os
import resource
import subprocess
import sys

import start

if __name__ == "__main__":
    arguments = start.begin(__doc__)

from keras_gating.diagnostics import timing

FULL = {"rounds": 15}
QUICK = {"rounds": 1}
GOAL = 1.03


def main():
    sizes = QUICK if arguments.quick else FULL
    calls = {
        name: lambda name=name: run(f"import {name}")
        for name in ("keras_gating", "keras")
    }
    rounds = sizes["rounds"]
    if not arguments.quick:
        for call in calls.values():
            call()
    seconds = timing.time_in_turns(calls, rounds, rounds, children_time)
    row = start.ratio_row(
        "import keras_gating over import keras",
        seconds["keras_gating"],
        seconds["keras"],
        GOAL,
    )
    start.finish(arguments, "imports", "Import", sizes, [row])


def run(code):
    """Runs code in a new process."""
    # With compiled files, as an installed package has them.
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


def children_time():
    """Seconds of the processor in processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
