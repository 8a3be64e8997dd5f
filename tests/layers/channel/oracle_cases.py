"""How timm's channel gates map to ours.

A case builds one of our layers and maps the peer's weights to those of the
layer, by path below it. The map is linear, so it carries gradients too.
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
    """One case: the layer by dtype, and the peer's weights as ours."""

    layer: Callable
    weights: Callable
    training: bool = False


def _layer(kind, data_format="channels_first", **arguments):
    return lambda dtype: kind(data_format=data_format, dtype=dtype, **arguments)


def _mlp(w, prefix="", inside=""):
    """`fc1` and `fc2`, linear or as 1×1 convolutions."""
    names = {"fc1": "reduction", "fc2": "expansion"}
    mapped = {}
    for peer, ours in names.items():
        weight = w[f"{prefix}{peer}.weight"]
        mapped[f"{inside}{ours}/kernel"] = weight.reshape(weight.shape[:2]).T
        if f"{prefix}{peer}.bias" in w:
            mapped[f"{inside}{ours}/bias"] = w[f"{prefix}{peer}.bias"]
    return mapped


def _eca(w):
    return {"convolution/kernel": w["conv.weight"].reshape(-1, 1, 1)}


def _cbam(w):
    mapped = _mlp(w, "channel.", "channel_gate/")
    kernel = w["spatial.conv.conv.weight"].transpose(2, 3, 1, 0)
    mapped["spatial_gate/convolution/kernel"] = kernel
    for peer, ours in (
        ("weight", "gamma"),
        ("bias", "beta"),
        ("running_mean", "moving_mean"),
        ("running_var", "moving_variance"),
    ):
        if f"spatial.conv.bn.{peer}" in w:
            path = f"spatial_gate/batch_norm/{ours}"
            mapped[path] = w[f"spatial.conv.bn.{peer}"]
    return mapped


_TIMM = {"batch_norm": True, "map_order": "mean_max"}

CASES = {
    "se/default_c32": Case(_layer(SqueezeExcite, divisor=8), _mlp),
    "se/c64_rd8": Case(_layer(SqueezeExcite, ratio=4, divisor=8), _mlp),
    "se/c32_rdch5_nobias": Case(
        _layer(SqueezeExcite, units=5, use_bias=False), _mlp
    ),
    "se/c32_silu_hardsig": Case(
        _layer(
            SqueezeExcite,
            units=4,
            activation="silu",
            gate_activation="hard_sigmoid",
        ),
        _mlp,
    ),
    "se/cl_c32": Case(_layer(SqueezeExcite, "channels_last", units=4), _mlp),
    "eca/c64_k3": Case(_layer(ECA), _eca),
    "eca/c128_k5": Case(_layer(ECA), _eca),
    "eca/c32_fixed_k7": Case(_layer(ECA, kernel_size=7), _eca),
    "eca/ceca_c128_k5": Case(_layer(ECA, padding="circular"), _eca),
    "cbam/channel_only": Case(_layer(ChannelGate, ratio=4), _mlp),
    "cbam/eval_c32_k7": Case(_layer(CBAM, ratio=4, **_TIMM), _cbam),
    "cbam/eval_c64_k3_bias": Case(
        _layer(CBAM, ratio=8, kernel_size=3, use_bias=True, **_TIMM), _cbam
    ),
    "cbam/train_c32_k7": Case(
        _layer(CBAM, ratio=4, **_TIMM), _cbam, training=True
    ),
    "cbam/light_eval_c32_k7": Case(
        _layer(CBAM, ratio=4, light=True, batch_norm=True), _cbam
    ),
}
