"""When a gate starts as the identity."""

import keras
from keras import ops

from keras_gating import _backend


def identity_scale(activation):
    """The factor with which a gate of zero logits multiplies by 1.

    `scale = 1 / activation(0)`

    Args:
        activation: name or callable.

    Returns:
        A Python float, 2.0 for a sigmoid.

    Raises:
        ValueError: for an activation that is 0 at 0 (no factor makes that 1),
            that is flat there (the gate would never train), or that looks at
            several logits at once.
    """
    activation = keras.activations.get(activation)
    name = keras.activations.serialize(activation)
    step = 1e-3
    points = ops.convert_to_tensor([0.0, step, -step], dtype="float32")
    at_zero, above, below = (
        float(x) for x in _backend.concrete(activation(points))
    )
    fewer = _backend.concrete(activation(points[:2]))
    if abs(float(fewer[0]) - at_zero) > 1e-6:
        raise ValueError(
            "The activation of a gate must act on each logit by itself. "
            f"Received: {name!r}"
        )
    if at_zero == 0.0:
        raise ValueError(
            "A gate whose last kernel is zero multiplies by "
            "`gate_scale · activation(0)`, and no `gate_scale` makes that 1 "
            f"where activation(0) = 0. Received: gate_activation={name!r}"
        )
    if above == below:
        raise ValueError(
            "The activation is flat at 0, so a gate whose last kernel is zero "
            f"would never train. Received: gate_activation={name!r}"
        )
    return 1.0 / at_zero
