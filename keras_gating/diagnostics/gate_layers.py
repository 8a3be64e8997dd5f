"""How the values of the gate of a layer are arranged."""

import math

import numpy as np

from keras_gating.layers import Gate
from keras_gating.layers import GatedAttention
from keras_gating.layers.channel.base import FeatureMapGate
from keras_gating.layers.gate_kinds import has_gate


def real_positions(owner, values, mask):
    """Values at real positions, `(positions, gated axes…)`.

    Args:
        owner: the layer that the gate belongs to, or `None`.
        values: array, as the layer made it.
        mask: array, the padding mask of the leading axes, or `None`.
    """
    axes = _position_axes(owner, values.ndim, mask)
    moved = np.moveaxis(values, axes, range(len(axes)))
    positions = moved.shape[: len(axes)]
    if mask is None or not axes:
        seen = np.ones(positions, "bool")
    else:
        mask = mask.astype("bool")
        if mask.ndim == values.ndim:
            mask = np.moveaxis(mask, axes, range(len(axes)))
            mask = mask.reshape(mask.shape[: len(axes)])
        if mask.ndim > len(axes):
            # The gate covers axes of the mask, so it is of all they show.
            mask = mask.any(axis=tuple(range(len(axes), mask.ndim)))
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
    heads = 1
    if values.ndim >= 3 and isinstance(owner, (Gate, GatedAttention)):
        heads = values.shape[-2]
        values = np.moveaxis(values, -2, 1)
    # Not -1, which no size is for a batch of nothing but padding.
    features = math.prod(values.shape[1:]) // heads
    return values.reshape(len(values), heads, features)


def check_widths(path, shapes):
    """Raises unless all shapes, without positions, are the same."""
    shapes = list(dict.fromkeys(tuple(shape) for shape in shapes))
    if len(shapes) > 1:
        raise ValueError(
            "Gates of several widths cannot be counted as one: a layer that "
            "applies some gives each a name, by `path` of "
            f"`functional.apply_gate`. Received: values of the shapes "
            f"{', '.join(map(str, shapes))} under {path!r}"
        )


def _position_axes(owner, rank, mask):
    if isinstance(owner, FeatureMapGate):
        channel = owner._channel_axis(rank)
        return tuple(axis for axis in range(rank) if axis != channel)
    gated = 1
    if isinstance(owner, Gate):
        gated = len(owner._gated_sizes)
    elif isinstance(owner, GatedAttention):
        gated = 2  # heads and half of the features of each
    elif mask is not None and not has_gate(owner):
        gated = rank - mask.ndim
    return tuple(range(rank - gated))
