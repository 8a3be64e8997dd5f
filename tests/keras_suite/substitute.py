"""Runs a test file of the installed Keras on another class.

Keras ships its tests in the wheel. A file is loaded under a name of its own and
the one global through which it reaches layers, `layers`, is replaced by a view
in which one class is exchanged. `keras.layers` itself stays as it is.
"""

import importlib.util
import pathlib
import types

import keras
import pytest

ATTENTION = pathlib.Path(keras.__file__).parent / "src/layers/attention"


class LayersView:
    """`keras.src.layers` with some classes exchanged."""

    def __init__(self, **classes):
        self.__dict__.update(classes)

    def __getattr__(self, name):
        from keras.src import layers

        return getattr(layers, name)


def load(file, **classes) -> types.ModuleType:
    """The module of a Keras test file, reading `classes` for Keras' own.

    Keras before 3.15 does not ship its tests: there is nothing to run.
    """
    path = ATTENTION / file
    version = tuple(map(int, keras.__version__.split(".")[:2]))
    if version < (3, 15) and not path.exists():
        pytest.skip(
            f"Keras {keras.__version__} does not ship {file}",
            allow_module_level=True,
        )
    name = f"{__package__}.keras_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.layers = LayersView(**classes)
    return module


def tests_of(case):
    """Names of the tests of a `unittest` class, as they are collected."""
    return [name for name in dir(case) if name.startswith("test_")]


def leave_out(case, reasons):
    """Skips the named tests of `case`, each with its reason.

    Their own code may warn, as it does under Keras: it is no error here.
    """
    for name, reason in reasons.items():
        skipped = pytest.mark.skip(reason=reason)(getattr(case, name))
        setattr(case, name, skipped)
    return pytest.mark.filterwarnings("default")(case)
