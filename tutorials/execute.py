"""Makes the notebooks from their scripts, with outputs.

`python tutorials/execute.py [01 xor …]` converts the scripts whose names hold
one of the words, all by default, runs them on JAX and writes them beside their
scripts.
"""

import argparse
import os
import time
from pathlib import Path

import jupytext
import nbformat

FOLDER = Path(__file__).parent
SECONDS = 180
METADATA = {
    "kernelspec": {
        "display_name": "Python 3",
        "language": "python",
        "name": "python3",
    },
    "language_info": {"name": "python"},
}
WIDGET = "application/vnd.jupyter.widget-view+json"


def scripts():
    """Paths of all tutorials, in order."""
    return sorted(FOLDER.glob("[0-9][0-9]_*.py"))


def converted(script):
    """The notebook of a script, without outputs.

    It depends on nothing but the script: numbers take the place of the random
    names of cells.
    """
    notebook = jupytext.read(script, fmt="py:percent")
    for number, cell in enumerate(notebook.cells, start=1):
        cell.id = f"cell-{number:02d}"
        cell.metadata = {}
    notebook.metadata = METADATA
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    return notebook


def execute(notebook, folder):
    """Runs all cells in a fresh kernel, in place."""
    # Only this needs a kernel; the tests read and compare notebooks.
    from nbclient import NotebookClient

    NotebookClient(
        notebook,
        timeout=SECONDS,
        resources={"metadata": {"path": str(folder)}},
        # Output of one cell comes in pieces, however they were sent.
        coalesce_streams=True,
        record_timing=False,
    ).execute()


def strip(notebook):
    """Takes out of an executed notebook what no reader sees, in place."""
    notebook.metadata = METADATA
    # What TensorFlow logs when Keras finds and imports it.
    setup = notebook.cells[1]
    setup.outputs = [o for o in setup.outputs if o.get("name") != "stderr"]
    for cell in notebook.cells:
        cell.metadata = {}
        for output in cell.get("outputs", ()):
            if "data" in output:
                output.data.pop(WIDGET, None)
                output.metadata = {}


def main(words=()):
    """Executes the tutorials whose names hold one of `words`, or all."""
    os.environ["KERAS_BACKEND"] = "jax"
    os.environ.pop("KERAS_GATING_QUICK", None)
    for script in scripts():
        if words and not any(word in script.stem for word in words):
            continue
        notebook = converted(script)
        start = time.perf_counter()
        execute(notebook, FOLDER)
        strip(notebook)
        nbformat.write(notebook, script.with_suffix(".ipynb"))
        print(f"{script.stem}: {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*", help="parts of names; all without")
    main(parser.parse_args().words)
