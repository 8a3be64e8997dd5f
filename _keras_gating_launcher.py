"""Chooses Keras' backend, then starts the command line of keras_gating.

Importing keras_gating imports Keras, which fixes the backend, so this cannot
be part of the package.
"""

import importlib.util
import json
import os
import sys
from pathlib import Path

_BACKENDS = ("jax", "tensorflow", "torch")
# Curvature is measured in float64, which JAX has only if it is told so before
# it is imported. Networks train in float32 all the same.
_IN_FLOAT64 = ("demo", "triangle", "curvature", "functions", "trees")


def _argument(argv):
    """Returns the last value of `--backend`, the one that argparse takes."""
    value = None
    for position, argument in enumerate(argv):
        if argument.startswith("--backend="):
            value = argument.partition("=")[2]
        elif argument == "--backend" and position + 1 < len(argv):
            value = argv[position + 1]
    return value


def _configured():
    """Returns the backend in Keras' configuration file, or `None`."""
    home = Path(os.environ.get("KERAS_HOME", "~/.keras")).expanduser()
    try:
        configuration = json.loads((home / "keras.json").read_text())
    except (OSError, ValueError):
        return None
    if not isinstance(configuration, dict):
        return None
    return configuration.get("backend")


def _choose(argv):
    """Returns the backend to use; a `ValueError` says what is wrong."""
    installed = [name for name in _BACKENDS if importlib.util.find_spec(name)]
    if not installed:
        raise ValueError(
            f"none of Keras' backends {', '.join(_BACKENDS)} is installed; "
            "install one with: pip install 'keras-gating[jax]'"
        )
    requested, origin = _argument(argv), "--backend"
    if requested is None:
        # Keras too takes an empty variable for none.
        requested = os.environ.get("KERAS_BACKEND") or None
        origin = "KERAS_BACKEND"
    if requested is None:
        configured = _configured()
        return configured if configured in installed else installed[0]
    if requested not in _BACKENDS:
        raise ValueError(
            f"unknown backend {requested!r} in {origin}; "
            f"expected one of: {', '.join(_BACKENDS)}"
        )
    if requested not in installed:
        raise ValueError(
            f"the backend {requested!r} in {origin} is not installed; "
            f"installed: {', '.join(installed)}"
        )
    return requested


def main(argv=None):
    """Runs the command line and returns its exit code."""
    argv = sys.argv[1:] if argv is None else list(argv)
    try:
        os.environ["KERAS_BACKEND"] = _choose(argv)
    except ValueError as error:
        print(f"keras-gating: {error}", file=sys.stderr)
        return 2
    if any(name in argv for name in _IN_FLOAT64):
        os.environ.setdefault("JAX_ENABLE_X64", "1")
    # TensorFlow reports on its build and on XLA amid the progress bars.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    from keras_gating.cli import main as run

    return run(argv)


if __name__ == "__main__":
    sys.exit(main())
