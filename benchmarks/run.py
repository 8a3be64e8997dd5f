"""Runs the benchmarks, each in a process of its own.

    python benchmarks/run.py [--quick] [--out DIR] [--backends NAMES] [NAMES]

Without names, all that are in this folder. Those that compare on every backend
run once on each. The tables are printed as they come, and at the end how many
of the goals were met. On a machine with an accelerator they run there, except
for those that are fixed to one backend and to the processor.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

from start import BACKENDS

HERE = Path(__file__).parent


def main():
    programs = {
        path.stem: path.read_text()
        for path in sorted(HERE.glob("*.py"))
        if path.name != Path(__file__).name
    }
    programs = {
        name: text for name, text in programs.items() if "def main():" in text
    }
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    # Not `choices`: argparse would hold an empty list against them.
    parser.add_argument("names", nargs="*", help=", ".join(programs))
    parser.add_argument("--backends", nargs="+", choices=BACKENDS)
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--out", type=Path, default=Path("results"))
    arguments = parser.parse_args()
    unknown = set(arguments.names) - set(programs)
    if unknown:
        parser.error(
            f"There is no benchmark {', '.join(sorted(unknown))}. Choose from: "
            f"{', '.join(programs)}"
        )
    failed = []
    for name in arguments.names or programs:
        command = [sys.executable, HERE / f"{name}.py"]
        command += ["--out", arguments.out, *["--quick"] * arguments.quick]
        runs = [[]]
        if "start.begin(__doc__)" in programs[name]:
            backends = arguments.backends or BACKENDS
            runs = [["--backend", backend] for backend in backends]
        for options in runs:
            done = subprocess.run([*command, *options])
            if done.returncode:
                failed.append(" ".join([name, *options[1:]]))
    summarize(arguments.out)
    if failed:
        sys.exit(f"Failed: {', '.join(failed)}")


def summarize(folder):
    """Says for every file in the folder how many goals were met."""
    for path in sorted(folder.glob("benchmark_*.json")):
        rows = json.loads(path.read_text())["rows"]
        met = sum(row["ratio"] <= row["goal"] for row in rows)
        print(f"{path.name}: {met} of {len(rows)} goals met")


if __name__ == "__main__":
    main()
