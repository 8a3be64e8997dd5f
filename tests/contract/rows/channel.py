"""Rows of the gates on feature maps."""

from keras_gating import layers
from tests.contract import case as effects
from tests.contract.case import Argument
from tests.contract.case import Case
from tests.contract.case import Option
from tests.contract.case import Tensor

INITIAL, LOSSES = effects.INITIAL_OUTPUTS, effects.LOSSES
STEP = effects.WEIGHTS_AFTER_STEP
TRAINING = Option("training", {"training": False})

GATE = {
    "gate_activation": Argument("tanh"),
    "gate_scale": Argument(2.0),
    "gate_initializer": Argument("zeros", INITIAL),
    "kernel_regularizer": Argument("l2", LOSSES),
    "kernel_constraint": Argument("non_neg", STEP),
    "data_format": Argument("channels_first"),
}
BIASED = {"use_bias": True}
BOTTLENECK = {
    **GATE,
    "ratio": Argument(8),
    "units": Argument(3),
    "divisor": Argument(8),
    "activation": Argument("relu"),
    "kernel_initializer": Argument("ones", INITIAL),
    "bias_initializer": Argument("ones", INITIAL, BIASED),
    "bias_regularizer": Argument("l2", LOSSES, BIASED),
    "bias_constraint": Argument("non_neg", STEP, BIASED),
}
SPATIAL = {
    "kernel_size": Argument(3),
    "batch_norm": Argument(True),
    "map_order": Argument("max_mean"),
    "light": Argument(True),
}
# A bottleneck of two ReLUs may be shut, and then trains nothing.
SMOOTH = {"activation": "silu"}


def channel_case(layer, id, kwargs, weights, **fields):
    return Case(
        **{
            "id": id,
            "layer": layer,
            "registered_name": f"keras_gating>{layer.__name__}",
            "kwargs": kwargs,
            "inputs": {"inputs": Tensor((2, 5, 6, 32))},
            "lengths": (5, 6),
            "weights": weights,
            "masked": ("inputs",),
            "padded": True,
            **fields,
        }
    )


def kernels(*names):
    return tuple(f"{name}/kernel" for name in names)


def channel_cases():
    sequence = {"inputs": {"inputs": Tensor((2, 5, 32))}, "lengths": (5,)}
    volume = {
        "inputs": {"inputs": Tensor((2, 32, 5, 6, 7))},
        "lengths": (5, 6),
        "masked": (),
        "padded": False,
    }
    first = {"data_format": "channels_first"}
    mlp = (
        *("reduction/kernel", "reduction/bias"),
        *("expansion/kernel", "expansion/bias"),
    )
    yield channel_case(
        layers.SqueezeExcite,
        "squeeze_excite",
        SMOOTH,
        mlp,
        arguments={**BOTTLENECK, "use_bias": Argument(False)},
    )
    yield channel_case(
        layers.SqueezeExcite, "squeeze_excite_sequence", SMOOTH, mlp, **sequence
    )
    yield channel_case(
        layers.SqueezeExcite,
        "squeeze_excite_volume",
        {**SMOOTH, **first},
        mlp,
        **volume,
    )
    convolution = kernels("convolution")
    yield channel_case(
        layers.ECA,
        "eca",
        {},
        convolution,
        arguments={
            **GATE,
            "kernel_size": Argument(5),
            "gamma": Argument(1),
            "b": Argument(4),
            "padding": Argument("circular"),
        },
    )
    yield channel_case(
        layers.ECA,
        "eca_sequence",
        {"padding": "circular"},
        convolution,
        **sequence,
    )
    yield channel_case(
        layers.ChannelGate,
        "channel_gate",
        SMOOTH,
        kernels("reduction", "expansion"),
        arguments={
            **BOTTLENECK,
            "use_bias": Argument(True),
            "light": Argument(True),
        },
    )
    spatial_gate = kernels("convolution")
    yield channel_case(
        layers.SpatialGate,
        "spatial_gate",
        {},
        spatial_gate,
        arguments={**GATE, **SPATIAL},
        options=(TRAINING,),
    )
    yield channel_case(
        layers.SpatialGate,
        "spatial_gate_volume",
        {**first, "kernel_size": 3},
        spatial_gate,
        **volume,
    )
    cbam = (
        *kernels("channel_gate/reduction", "channel_gate/expansion"),
        *kernels("spatial_gate/convolution"),
    )
    yield channel_case(
        layers.CBAM,
        "cbam",
        SMOOTH,
        cbam,
        arguments={**BOTTLENECK, **SPATIAL, "use_bias": Argument(True)},
        options=(TRAINING,),
    )
    yield channel_case(
        layers.CBAM,
        "cbam_sequence",
        {**SMOOTH, "batch_norm": True, "light": True},
        (
            *cbam,
            *(
                f"spatial_gate/batch_norm/{name}"
                for name in ("gamma", "beta", "moving_mean", "moving_variance")
            ),
        ),
        **sequence,
    )
