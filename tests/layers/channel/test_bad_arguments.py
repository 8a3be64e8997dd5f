"""Faulty constructor arguments: errors that quote what came."""

import pytest

from keras_gating.layers import CBAM
from keras_gating.layers import ECA
from keras_gating.layers import ChannelGate
from keras_gating.layers import SpatialGate
from keras_gating.layers import SqueezeExcite
from tests.layers.channel.common import KINDS

GATE = {
    "activation": ({"gate_activation": "sigmoidal"}, "sigmoidal"),
    "scale-0": ({"gate_scale": 0}, "gate_scale.*0"),
    "scale-nan": ({"gate_scale": float("nan")}, "gate_scale.*nan"),
    "initializer": ({"gate_initializer": "onse"}, "onse"),
    "format": ({"data_format": "NCHW"}, "data_format.*channels_last.*NCHW"),
    "start": (
        {"gate_activation": "relu", "gate_initializer": "zeros"},
        "relu.*never train.*gate_initializer.*zeros",
    ),
    "unknown": ({"reduction_ratio": 4}, "reduction_ratio"),
}
BOTTLENECK = {
    "ratio-0": ({"ratio": 0}, "ratio.*0"),
    "ratio-negative": ({"ratio": -4}, "ratio.*-4"),
    # timm's `rd_ratio` is the inverse.
    "ratio-fraction": ({"ratio": 0.0625}, r"1/ratio.*ratio=16.*0\.0625"),
    "ratio-name": ({"ratio": "16"}, "ratio.*'16'"),
    "units-0": ({"units": 0}, "units.*0"),
    "units-float": ({"units": 2.5}, r"units.*2\.5"),
    "divisor-0": ({"divisor": 0}, "divisor.*0"),
    "units-ratio": ({"units": 4, "ratio": 8}, "ratio.*no effect.*ratio=8"),
    "units-divisor": ({"units": 4, "divisor": 8}, "divisor.*no effect.*8"),
    "mlp": ({"activation": "reluu"}, "reluu"),
}
SPATIAL = {
    "even": ({"kernel_size": 4}, "kernel_size.*odd.*4"),
    "size-0": ({"kernel_size": 0}, "kernel_size.*0"),
    "size-tuple": ({"kernel_size": (3, 3)}, r"kernel_size.*\(3, 3\)"),
    "order": ({"map_order": "max"}, "map_order.*mean_max.*'max'"),
    "light": (
        {"light": True, "map_order": "max_mean"},
        "one map.*map_order.*max_mean",
    ),
}
ECA_ONLY = {
    "even": ({"kernel_size": 4}, "kernel_size.*odd.*4"),
    "gamma-0": ({"gamma": 0}, "gamma.*0"),
    "b": ({"b": "1"}, "`b`.*'1'"),
    "padding": ({"padding": "same"}, "padding.*circular.*'same'"),
    "inert": ({"kernel_size": 3, "gamma": 4}, "no effect.*gamma=4"),
}
ROWS = [
    *((kind, name, *row) for kind in KINDS for name, row in GATE.items()),
    *(
        (kind, name, *row)
        for kind in (SqueezeExcite, ChannelGate, CBAM)
        for name, row in BOTTLENECK.items()
    ),
    *(
        (kind, name, *row)
        for kind in (SpatialGate, CBAM)
        for name, row in SPATIAL.items()
    ),
    *((ECA, name, *row) for name, row in ECA_ONLY.items()),
]


@pytest.mark.parametrize(
    ("kind", "arguments", "message"),
    [(kind, arguments, message) for kind, _, arguments, message in ROWS],
    ids=[f"{kind.__name__}-{name}" for kind, name, *_ in ROWS],
)
def test_bad_arguments(kind, arguments, message):
    with pytest.raises(ValueError, match=message):
        kind(**arguments)


@pytest.mark.parametrize("kind", [SqueezeExcite, ChannelGate])
def test_relu_gate_that_a_bias_opens(kind):
    kind(
        gate_activation="relu",
        gate_initializer="zeros",
        use_bias=True,
        bias_initializer="ones",
    )
