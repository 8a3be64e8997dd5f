"""The layers of the package, each under its one public path."""

from keras_gating.layers.attention.gated_attention import GatedAttention
from keras_gating.layers.gate import Gate

__all__ = ["Gate", "GatedAttention"]
