"""Which arguments of our channel gates make them timm's.

A case builds one of our layers and names the layout of the peer's weights.
"""

import dataclasses
from collections.abc import Callable

from keras_gating.layers import CBAM
from keras_gating.layers import ECA
from keras_gating.layers import ChannelGate
from keras_gating.layers import SqueezeExcite

FILES = ("se", "eca", "cbam")

EXCEPTIONS = {
    "se/c32_maxpool": "squeezes ½ mean + ½ maximum, an experiment of timm",
    "se/ese_c32": "one full C × C map in place of the bottleneck",
}


@dataclasses.dataclass
class Case:
    """One case: the layer by dtype, and the layout of the peer's weights."""

    layer: Callable
    layout: str
    training: bool = False


def _layer(kind, data_format="channels_first", **arguments):
    return lambda dtype: kind(data_format=data_format, dtype=dtype, **arguments)


_TIMM = {"batch_norm": True, "map_order": "mean_max"}

CASES = {
    "se/default_c32": Case(_layer(SqueezeExcite, divisor=8), "timm_se"),
    "se/c64_rd8": Case(_layer(SqueezeExcite, ratio=4, divisor=8), "timm_se"),
    "se/c32_rdch5_nobias": Case(
        _layer(SqueezeExcite, units=5, use_bias=False), "timm_se"
    ),
    "se/c32_silu_hardsig": Case(
        _layer(
            SqueezeExcite,
            units=4,
            activation="silu",
            gate_activation="hard_sigmoid",
        ),
        "timm_se",
    ),
    "se/cl_c32": Case(
        _layer(SqueezeExcite, "channels_last", units=4), "timm_se"
    ),
    "eca/c64_k3": Case(_layer(ECA), "timm_eca"),
    "eca/c128_k5": Case(_layer(ECA), "timm_eca"),
    "eca/c32_fixed_k7": Case(_layer(ECA, kernel_size=7), "timm_eca"),
    "eca/ceca_c128_k5": Case(_layer(ECA, padding="circular"), "timm_eca"),
    "cbam/channel_only": Case(_layer(ChannelGate, ratio=4), "timm_cbam"),
    "cbam/eval_c32_k7": Case(_layer(CBAM, ratio=4, **_TIMM), "timm_cbam"),
    "cbam/eval_c64_k3_bias": Case(
        _layer(CBAM, ratio=8, kernel_size=3, use_bias=True, **_TIMM),
        "timm_cbam",
    ),
    "cbam/train_c32_k7": Case(
        _layer(CBAM, ratio=4, **_TIMM), "timm_cbam", training=True
    ),
    "cbam/light_eval_c32_k7": Case(
        _layer(CBAM, ratio=4, light=True, batch_norm=True), "timm_cbam"
    ),
}
