"""Processes in which chosen packages look as if they were not installed."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]

# Imported by Python as it starts. A finder that answers None, rather than one
# that raises, so that `importlib.util.find_spec` sees nothing either.
_SITECUSTOMIZE = """
import importlib.machinery
import os
import sys

HIDDEN = os.environ["HIDDEN_PACKAGES"].split(",")
SHOWN = os.environ["SHOWN_PACKAGES"].split(",")
real = importlib.machinery.PathFinder


class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name in SHOWN:
            return importlib.machinery.ModuleSpec(name, None)
        if name.partition(".")[0] in HIDDEN:
            return None
        return real.find_spec(name, path, target)


sys.meta_path = [Finder if f is real else f for f in sys.meta_path]
"""


class World:
    """Runs Python where some packages are hidden.

    Args:
        folder: an empty folder for this world's files.
        hidden: packages that cannot be found.
        shown: packages that are found, whether they are there or not; they
            cannot be used.
    """

    def __init__(self, folder, hidden=(), shown=()):
        (folder / "site").mkdir()
        (folder / "site" / "sitecustomize.py").write_text(_SITECUSTOMIZE)
        self.keras_home = folder / "keras"
        self.keras_home.mkdir()
        self._environment = {
            name: value
            for name, value in os.environ.items()
            if name not in ("KERAS_BACKEND", "PYTHONPATH")
        } | {
            "HIDDEN_PACKAGES": ",".join(hidden),
            "KERAS_HOME": str(self.keras_home),
            "PYTHONPATH": os.pathsep.join([str(folder / "site"), str(ROOT)]),
            "SHOWN_PACKAGES": ",".join(shown),
            "TF_CPP_MIN_LOG_LEVEL": "3",
        }

    def run(self, *arguments, **environment):
        """Runs Python with these arguments; returns the finished process."""
        return subprocess.run(
            [sys.executable, *arguments],
            env=self._environment | environment,
            cwd=self.keras_home,
            capture_output=True,
            text=True,
            timeout=300,
        )
