"""Gates for models that exist already."""

from keras_gating.surgery.attention import gate_attention
from keras_gating.surgery.channel import gate_channels
from keras_gating.surgery.freezing import freeze_all_but_gates

__all__ = ["freeze_all_but_gates", "gate_attention", "gate_channels"]
