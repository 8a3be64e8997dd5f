"""Tells what asks for a layout which axis of the weight may be split.

A layout map of Keras sees the path of a weight and no more. A path says
neither which kind of layer the weight belongs to, since users choose names,
nor whether its axis can be divided by the number of devices.
"""

import contextvars
from typing import NamedTuple

from keras_gating import _keras

_weight: contextvars.ContextVar = contextvars.ContextVar(
    "keras_gating_weight", default=None
)


class Weight(NamedTuple):
    """Shape of a weight and the axis to split, `None` for none."""

    shape: tuple
    axis: int | None


def splittable(add_weight, shape, axis, *args, **kwargs):
    """A new weight, for whose layout `weight_in_creation` gives the axis.

    Args:
        add_weight: the method that adds the weight to its layer.
        shape: shape of the weight.
        axis: the axis to split, `None` for none.
        *args: further arguments of `add_weight`.
        **kwargs: the same.
    """
    token = _weight.set(Weight(tuple(shape), axis))
    try:
        variable = add_weight(shape, *args, **kwargs)
        _keras.settle_layout(variable)
    finally:
        _weight.reset(token)
    return variable


def weight_in_creation():
    """The `Weight` that a layer of the package is creating, or `None`."""
    return _weight.get()
