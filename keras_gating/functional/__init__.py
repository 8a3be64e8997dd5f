"""Pure functions on tensors that the layers wrap."""

from keras_gating.functional.attention import dot_product_attention
from keras_gating.functional.attention import explicit_attention
from keras_gating.functional.gate import apply_gate
from keras_gating.functional.gate import vanishes_at_zero
from keras_gating.functional.glu import glu
from keras_gating.functional.layout import AttentionLayout
from keras_gating.functional.masks import as_boolean_mask
from keras_gating.functional.masks import causal_mask
from keras_gating.functional.masks import sliding_window_mask
from keras_gating.functional.recording import record_into
from keras_gating.functional.rotary import apply_rotary

__all__ = [
    "AttentionLayout",
    "apply_gate",
    "apply_rotary",
    "as_boolean_mask",
    "causal_mask",
    "dot_product_attention",
    "explicit_attention",
    "glu",
    "record_into",
    "sliding_window_mask",
    "vanishes_at_zero",
]
