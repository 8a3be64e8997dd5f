"""Sizes that a computation may depend on."""

import keras
import numpy as np
from keras import ops

from keras_gating._backend import on_torch
from keras_gating.functional import checks


def known_size(x, axis=1):
    """The size of an axis where it is a number, else `None`.

    It is none in a symbolic tensor, and while a model is traced for all sizes:
    there a comparison fails or holds the exported model to one size.
    """
    size = x.shape[axis]
    return size if isinstance(size, int) else None


def module_for(*sizes):
    """What to compute with from sizes alone: NumPy if all are numbers.

    What it makes is a constant, in a tenth of the time. Else it is `keras.ops`,
    and where torch makes a graph, which NumPy breaks.
    """
    if keras.config.backend() == "torch" and on_torch.is_traced():
        return ops
    return np if all(map(checks.is_integer, sizes)) else ops


def positions(size):
    """The numbers from 0 to before `size`, of NumPy where it may be."""
    return module_for(size).arange(size, dtype="int32")
