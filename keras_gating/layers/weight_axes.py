"""Tells what asks for a layout which axis of the weight may be split.

A layout map of Keras sees the path of a weight and no more. A path says
neither which kind of layer the weight belongs to, since users choose names,
nor whether its axis can be divided by the number of devices.
"""

import contextlib
import contextvars
from typing import NamedTuple

_weight: contextvars.ContextVar = contextvars.ContextVar(
    "keras_gating_weight", default=None
)


class Weight(NamedTuple):
    """Shape of a weight and the axis to split, `None` for none."""

    shape: tuple
    axis: int | None


@contextlib.contextmanager
def creating(shape, axis):
    """Makes `weight_in_creation` answer with this shape and axis."""
    token = _weight.set(Weight(tuple(shape), axis))
    try:
        yield
    finally:
        _weight.reset(token)


def weight_in_creation():
    """The `Weight` that a layer of the package is creating, or `None`."""
    return _weight.get()
