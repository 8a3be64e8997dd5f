"""Gates for Keras: attention adds, gates multiply."""

import importlib
import typing

# `_backend` comes first: it explains a missing backend before Keras fails.
from keras_gating import _backend  # noqa: F401
from keras_gating import functional
from keras_gating import layers
from keras_gating import surgery

if typing.TYPE_CHECKING:
    from keras_gating import diagnostics
    from keras_gating import distribution
    from keras_gating import geometry

__version__ = "0.1.0.dev0"

__all__ = [
    "diagnostics",
    "distribution",
    "functional",
    "geometry",
    "layers",
    "surgery",
]


def __getattr__(name):
    # What registers no layer is imported when it is first asked for.
    if name in __all__:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *__all__})
