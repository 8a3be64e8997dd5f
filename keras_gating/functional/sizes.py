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


def positions(size, first=0):
    """`size` whole numbers from `first` on, of NumPy where it may be."""
    numbers = module_for(size, first).arange(size, dtype="int32")
    starts_at_zero = checks.is_integer(first) and first == 0
    return numbers if starts_at_zero else numbers + first
