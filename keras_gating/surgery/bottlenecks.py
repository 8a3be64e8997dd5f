"""Bottlenecks of channel gates that learn from the first step.

A gate whose last kernel is zero learns by what its bottleneck puts out. ReLU
puts out 0 for negative numbers, so that a few of its units may be shut for all
data, and then none of the kernels has a gradient, at any step. Of two units
with the kernels `w` and `−w` one is open whenever `w · x` is not 0.
"""

import keras
import numpy as np

from keras_gating import _backend
from keras_gating.layers import CBAM
from keras_gating.layers.channel.bottleneck import DEFAULT_RATIO
from keras_gating.layers.channel.bottleneck import BottleneckGate


def wide_enough(template, channels):
    """Arguments in place of those of a template whose bottleneck is too narrow.

    Args:
        template: a gate on feature maps.
        channels: number of channels that it will gate.

    Returns:
        A dictionary, empty for gates that need none.
    """
    bottleneck = _bottleneck(template)
    if bottleneck is None or not _can_be_shut(bottleneck.activation):
        return {}
    if bottleneck.units == 1:
        name = keras.activations.serialize(bottleneck.activation)
        raise ValueError(
            f"One unit of {name!r} may be shut from the start, and then its "
            "gate never trains. Pass two `units` or more, or an activation "
            f'such as "silu". Received: {template.name!r} with units=1'
        )
    # Of an unknown number the gate itself complains.
    if channels is None or bottleneck.width(channels) > 1:
        return {}
    # With `units` the others have to be at their defaults.
    return {"units": 2, "ratio": DEFAULT_RATIO, "divisor": None}


def open_units(gate):
    """Gives the units of a built gate in pairs kernels of opposite sign."""
    bottleneck = _bottleneck(gate)
    if bottleneck is None or not _can_be_shut(bottleneck.activation):
        return
    kernel = bottleneck.reduction.kernel
    half = kernel.shape[1] // 2
    first, last = kernel[:, :half], kernel[:, 2 * half :]
    kernel.assign(keras.ops.concatenate([first, -first, last], axis=1))


def _bottleneck(gate):
    if isinstance(gate, CBAM):
        gate = gate.channel_gate
    return gate if isinstance(gate, BottleneckGate) else None


def _can_be_shut(activation):
    """Whether an activation is 0 for all negative numbers."""
    points = np.linspace(-8.0, -0.125, 64, dtype="float32")
    values = activation(keras.ops.convert_to_tensor(points))
    return not np.any(_backend.concrete(values))
