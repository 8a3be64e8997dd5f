"""Pure functions on tensors that the layers wrap."""

from keras_gating.functional.attention import dot_product_attention
from keras_gating.functional.attention import explicit_attention
from keras_gating.functional.attention_weights import laplace
from keras_gating.functional.attention_weights import relu2
from keras_gating.functional.gate import apply_gate
from keras_gating.functional.gate import vanishes_at_zero
from keras_gating.functional.glu import glu
from keras_gating.functional.gnomonic import gnomonic
from keras_gating.functional.layout import AttentionLayout
from keras_gating.functional.masks import as_boolean_mask
from keras_gating.functional.masks import causal_mask
from keras_gating.functional.masks import sliding_window_mask
from keras_gating.functional.mixed_chunks import mixed_chunk_attention
from keras_gating.functional.offset_scale import offset_scale
from keras_gating.functional.quadratic import quadratic_attention
from keras_gating.functional.recording import record_into
from keras_gating.functional.relative_position import relative_position_bias
from keras_gating.functional.relative_position import relative_position_bucket
from keras_gating.functional.rotary import apply_rotary
from keras_gating.functional.stereographic import exp0
from keras_gating.functional.stereographic import log0
from keras_gating.functional.stereographic import mobius_add
from keras_gating.functional.stereographic import mobius_scale
from keras_gating.functional.stereographic import stereographic_distance

__all__ = [
    "AttentionLayout",
    "apply_gate",
    "apply_rotary",
    "as_boolean_mask",
    "causal_mask",
    "dot_product_attention",
    "exp0",
    "explicit_attention",
    "glu",
    "gnomonic",
    "laplace",
    "log0",
    "mixed_chunk_attention",
    "mobius_add",
    "mobius_scale",
    "offset_scale",
    "quadratic_attention",
    "record_into",
    "relative_position_bias",
    "relative_position_bucket",
    "relu2",
    "sliding_window_mask",
    "stereographic_distance",
    "vanishes_at_zero",
]
