"""Gates for models that exist already, and weights from elsewhere."""

import importlib
import typing

# These register layers, which models that were saved are loaded with.
from keras_gating.surgery import inside  # noqa: F401
from keras_gating.surgery import keras_masks  # noqa: F401

if typing.TYPE_CHECKING:
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

_MODULES = {
    "copy_weights": "weights",
    "enable_lora": "low_rank",
    "freeze_all_but_gates": "freezing",
    "gate_attention": "attention",
    "gate_channels": "channel",
}


def __getattr__(name):
    # Imported when it is first asked for, as most programs never do.
    if name in _MODULES:
        module = importlib.import_module(f"{__name__}.{_MODULES[name]}")
        return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *__all__})
