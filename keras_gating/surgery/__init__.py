"""Gates for models that exist already, and weights from elsewhere."""

from keras_gating.surgery.attention import gate_attention
from keras_gating.surgery.channel import gate_channels
from keras_gating.surgery.freezing import freeze_all_but_gates
from keras_gating.surgery.low_rank import enable_lora
from keras_gating.surgery.weights import copy_weights

__all__ = [
    "copy_weights",
    "enable_lora",
    "freeze_all_but_gates",
    "gate_attention",
    "gate_channels",
]
