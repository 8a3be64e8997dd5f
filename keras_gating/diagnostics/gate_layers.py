"""Which layers have gates, and how the values of each are arranged."""

import numpy as np

from keras_gating.layers import Gate
from keras_gating.layers import GatedAttention
from keras_gating.layers import GatedAttentionUnit
from keras_gating.layers.channel.base import FeatureMapGate
from keras_gating.layers.feedforward.gated_linear_unit import GatedLinearUnit


def sublayers(model):
    """The model itself and every layer inside of it, each once."""
    return list(model._flatten_layers())


def has_gate(layer):
    """Whether a layer is known to apply gates, itself or by its children."""
    if isinstance(layer, GatedAttention):
        return layer.use_gate
    return isinstance(
        layer, (Gate, GatedLinearUnit, GatedAttentionUnit, FeatureMapGate)
    )


def real_positions(owner, values, mask):
    """Values at real positions, `(positions, gated axes…)`.

    Args:
        owner: the layer that the gate belongs to, or `None`.
        values: array, as the layer made it.
        mask: array, the padding mask of the leading axes, or `None`.
    """
    axes = _position_axes(owner, values.ndim)
    moved = np.moveaxis(values, axes, range(len(axes)))
    positions = moved.shape[: len(axes)]
    if mask is None or not axes:
        seen = np.ones(positions, "bool")
    else:
        mask = mask.astype("bool")
        if mask.ndim == values.ndim:
            mask = np.moveaxis(mask, axes, range(len(axes)))
            mask = mask.reshape(mask.shape[: len(axes)])
        # Axes that the mask lacks are the last of the positions.
        missing = len(axes) - mask.ndim
        mask = mask.reshape(*mask.shape, *[1] * missing)
        seen = np.broadcast_to(mask, positions)
    # Without positions, a constant gate, this adds an axis of size 1.
    return moved[seen]


def by_head(owner, values):
    """`(positions, gated axes…)` → `(positions, heads, features)`.

    Heads are the axis before the last of a gate on two or more axes; other
    gates have one.
    """
    if values.ndim < 3:
        return values.reshape(len(values), 1, -1)
    if not isinstance(owner, (Gate, GatedAttention)):
        return values.reshape(len(values), 1, -1)
    heads = values.shape[-2]
    return np.moveaxis(values, -2, 1).reshape(len(values), heads, -1)


def _position_axes(owner, rank):
    if isinstance(owner, FeatureMapGate):
        channel = owner._channel_axis(rank)
        return tuple(axis for axis in range(rank) if axis != channel)
    gated = 1
    if isinstance(owner, Gate):
        gated = len(owner._gated_sizes)
    elif isinstance(owner, GatedAttention):
        gated = 2  # heads and half of the features of each
    return tuple(range(rank - gated))
