"""Gates for Keras: attention adds, gates multiply."""

# `_backend` comes first: it explains a missing backend before Keras fails.
from keras_gating import _backend  # noqa: F401
from keras_gating import diagnostics
from keras_gating import distribution
from keras_gating import functional
from keras_gating import geometry
from keras_gating import layers
from keras_gating import surgery

__version__ = "0.1.0.dev0"

__all__ = [
    "diagnostics",
    "distribution",
    "functional",
    "geometry",
    "layers",
    "surgery",
]
