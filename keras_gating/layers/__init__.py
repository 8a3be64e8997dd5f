"""The layers of the package, each under its one public path."""

from keras_gating.layers.attention.gated_attention import GatedAttention
from keras_gating.layers.attention.gated_attention_block import (
    GatedAttentionBlock,
)
from keras_gating.layers.attention.gated_attention_unit import (
    GatedAttentionUnit,
)
from keras_gating.layers.channel.cbam import CBAM
from keras_gating.layers.channel.channel_gate import ChannelGate
from keras_gating.layers.channel.efficient_channel_attention import ECA
from keras_gating.layers.channel.spatial_gate import SpatialGate
from keras_gating.layers.channel.squeeze_excite import SqueezeExcite
from keras_gating.layers.curvature_gate import CurvatureGate
from keras_gating.layers.feedforward.feed_forward import FeedForward
from keras_gating.layers.feedforward.gated_feed_forward import GatedFeedForward
from keras_gating.layers.feedforward.gated_linear_unit import GLU
from keras_gating.layers.feedforward.variants import GEGLU
from keras_gating.layers.feedforward.variants import BilinearGLU
from keras_gating.layers.feedforward.variants import ReGLU
from keras_gating.layers.feedforward.variants import SwiGLU
from keras_gating.layers.gate import Gate

__all__ = [
    "CBAM",
    "ECA",
    "BilinearGLU",
    "ChannelGate",
    "CurvatureGate",
    "FeedForward",
    "GEGLU",
    "GLU",
    "Gate",
    "GatedAttention",
    "GatedAttentionBlock",
    "GatedAttentionUnit",
    "GatedFeedForward",
    "ReGLU",
    "SpatialGate",
    "SqueezeExcite",
    "SwiGLU",
]
