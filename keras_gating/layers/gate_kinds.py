"""What a gate is, said once for all that looks for gates in a model."""

from keras_gating.layers.attention.gated_attention import GatedAttention
from keras_gating.layers.attention.gated_attention_unit import (
    GatedAttentionUnit,
)
from keras_gating.layers.channel.base import FeatureMapGate
from keras_gating.layers.channel.cbam import CBAM
from keras_gating.layers.feedforward.gated_feed_forward import GatedFeedForward
from keras_gating.layers.feedforward.gated_linear_unit import GatedLinearUnit
from keras_gating.layers.gate import Gate

_WHOLE = (CBAM, FeatureMapGate, Gate)
_PACKED = (GatedAttentionUnit, GatedLinearUnit)


def is_gate(layer):
    """Whether a layer does nothing but gate: all its weights are a gate's."""
    return isinstance(layer, _WHOLE)


def is_packed(layer):
    """Whether kernels of a layer hold value and gate side by side."""
    return isinstance(layer, _PACKED)


def has_gate(layer):
    """Whether a layer is known to apply gates, itself or by its children."""
    if isinstance(layer, GatedAttention):
        return layer.use_gate
    # A gated feed-forward layer has no unit before it is built.
    return (
        is_gate(layer)
        or is_packed(layer)
        or isinstance(layer, GatedFeedForward)
    )


def gate_weights(layer, packed=False):
    """The weights of a layer, not of those in it, that are a gate's.

    Args:
        layer: a built layer.
        packed: whether those that hold the value as well count.
    """
    if is_gate(layer):
        return layer.weights
    if not (packed and is_packed(layer)):
        return []
    if isinstance(layer, GatedLinearUnit):
        return layer.projection.weights
    return layer.hidden_dense.weights
