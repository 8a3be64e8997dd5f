"""What can be said of a gate from its activation alone."""

import functools
import types

import keras
import numpy as np
from keras import ops

from keras_gating import _backend


def is_bounded(activation, rank):
    """Whether an activation only takes values between 0 and 1.

    It is evaluated from -10⁶ to 10⁶, densely around 0, so that the answer does
    not depend on the values that happened to be seen.

    Args:
        activation: name or callable.
        rank: rank of the tensors that it takes.
    """
    activation = keras.activations.get(activation)
    if isinstance(activation, types.FunctionType):
        return _is_bounded_function(activation, rank)
    # A layer may have weights, with which the answer changes.
    return _is_bounded(activation, rank)


def _is_bounded(activation, rank):
    far = np.geomspace(10.0, 1e6, 101)
    points = np.concatenate([-far, np.linspace(-10.0, 10.0, 4001), far])
    points = points.astype("float32").reshape(*[1] * max(1, rank - 1), -1)
    values = _backend.concrete(activation(ops.convert_to_tensor(points)))
    # A quotient of two exponentials is no number far out, infinities are no
    # gate between 0 and 1.
    values = values[~np.isnan(values)]
    rounding = 1e-6
    return bool(
        values.size
        and values.min() >= -rounding
        and values.max() <= 1.0 + rounding
    )


# A monitor asks again at every look.
_is_bounded_function = functools.lru_cache(maxsize=64)(_is_bounded)
