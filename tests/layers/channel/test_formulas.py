"""Channel gates against NumPy, and the arithmetic of their widths."""

import numpy as np
import pytest

from keras_gating import functional
from keras_gating.layers import CBAM
from keras_gating.layers import ECA
from keras_gating.layers import ChannelGate
from keras_gating.layers import SpatialGate
from keras_gating.layers import SqueezeExcite
from tests.layers.channel.common import KINDS
from tests.layers.channel.common import SHAPES
from tests.layers.channel.common import built
from tests.layers.channel.common import weights
from tests.reference import channel as reference
from tests.utils import assert_close
from tests.utils import normal
from tests.utils import tensor
from tests.utils import to_numpy

ranks = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)


@ranks
@pytest.mark.parametrize("ratio", [1, 2, 16])
def test_squeeze_excite(shape, ratio):
    x = normal(*shape)
    layer = built(SqueezeExcite, shape, ratio=ratio)
    expected = reference.squeeze_excite(np.float64(x), weights(layer))
    assert_close(layer(x), expected, 1e-6)


@ranks
@pytest.mark.parametrize("circular", [False, True])
@pytest.mark.parametrize("size", [1, 3, 7])
def test_eca(shape, size, circular):
    """A kernel may be longer than the channels are many, 7 to 5."""
    x = normal(*shape)
    padding = "circular" if circular else "zero"
    layer = built(ECA, shape, kernel_size=size, padding=padding)
    (kernel,) = weights(layer)
    expected = reference.eca(np.float64(x), kernel[:, 0, 0], circular)
    assert_close(layer(x), expected, 1e-6)


@ranks
def test_channel_gate(shape):
    """The bias of the last map counts twice, once for each pooling."""
    x = normal(*shape)
    layer = built(ChannelGate, shape, ratio=2, use_bias=True)
    expected = reference.channel_gate(np.float64(x), weights(layer))
    assert_close(layer(x), expected, 1e-6)


@ranks
@pytest.mark.parametrize("size", [1, 3, 5])
def test_spatial_gate(shape, size):
    x = normal(*shape)
    layer = built(SpatialGate, shape, kernel_size=size)
    (kernel,) = weights(layer)
    expected = reference.spatial_gate(np.float64(x), kernel)
    assert_close(layer(x), expected, 1e-6)
    other = built(SpatialGate, shape, kernel_size=size, map_order="max_mean")
    swapped = reference.spatial_gate(np.float64(x), kernel[..., ::-1, :])
    assert_close(other(x), swapped, 1e-6)


@ranks
def test_cbam(shape):
    x = normal(*shape)
    layer = built(CBAM, shape, ratio=2, kernel_size=3, use_bias=True)
    *mlp, kernel = weights(layer)
    expected = reference.cbam(np.float64(x), mlp, kernel)
    assert_close(layer(x), expected, 1e-6)


@pytest.mark.parametrize("ratio", [4, 16, 32])
@pytest.mark.parametrize("channels", [1, 3, 5, 8, 128])
@pytest.mark.parametrize("kind", [SqueezeExcite, ChannelGate, CBAM])
def test_widths(kind, channels, ratio):
    """C → max(1, C // ratio) → C, and it runs."""
    layer = built(kind, (2, 3, 4, channels), ratio=ratio)
    width = max(1, channels // ratio)
    kernels = [w.shape for w in weights(layer) if w.ndim == 2]
    assert kernels == [(channels, width), (width, channels)]
    output = layer(normal(2, 3, 4, channels))
    assert output.shape == (2, 3, 4, channels)
    assert np.isfinite(to_numpy(output)).all()


@pytest.mark.parametrize(
    ("channels", "ratio", "divisor", "width"),
    [
        (32, 16, 8, 8),
        (64, 4, 8, 16),
        (96, 16, 8, 8),
        (192, 16, 8, 16),
        (200, 16, 8, 16),
        (1, 16, 8, 8),
        (100, 2.5, None, 40),
        (100, 3, 4, 32),
    ],
)
def test_rounded_widths(channels, ratio, divisor, width):
    layer = SqueezeExcite(ratio=ratio, divisor=divisor)
    assert layer.width(channels) == width


@pytest.mark.parametrize(
    ("channels", "size"),
    [(1, 1), (2, 1), (3, 1), (8, 3), (16, 3), (32, 3), (64, 3)]
    + [(128, 5), (256, 5), (512, 5), (1024, 5), (2048, 7)],
)
def test_eca_kernel_sizes(channels, size):
    layer = built(ECA, (1, 2, channels))
    (kernel,) = weights(layer)
    assert kernel.shape == (size, 1, 1)
    assert layer.size(channels) == size


def test_eca_parameters_of_a_resnet_50():
    """3 blocks of 256, 4 of 512, 6 of 1024 and 3 of 2048 channels."""
    blocks = {256: 3, 512: 4, 1024: 6, 2048: 3}
    total = sum(n * ECA().size(channels) for channels, n in blocks.items())
    assert total == (3 + 4 + 6) * 5 + 3 * 7


def test_numbers_of_weights():
    shape = (2, 3, 4, 32)
    counts = {
        SqueezeExcite: (4, 32 * 2 + 2 + 2 * 32 + 32),
        ECA: (1, 3),
        ChannelGate: (2, 32 * 2 + 2 * 32),
        SpatialGate: (1, 7 * 7 * 2),
        CBAM: (3, 32 * 2 + 2 * 32 + 7 * 7 * 2),
    }
    for kind, (number, parameters) in counts.items():
        layer = built(kind, shape)
        assert len(layer.weights) == number
        assert layer.count_params() == parameters


def test_both_gates_of_cbam_are_sigmoids():
    layer = built(CBAM, (2, 3, 4, 32))
    gates = {}
    with functional.record_into(
        lambda path, gate, mask: gates.update({path: to_numpy(gate)})
    ):
        layer(tensor(100 * normal(2, 3, 4, 32)))
    assert [path.rpartition("/")[2] for path in gates] == [
        "channel_gate",
        "spatial_gate",
    ]
    for gate in gates.values():
        assert gate.min() >= 0 and gate.max() <= 1


@pytest.mark.parametrize("kind", KINDS)
def test_neutral_start(kind):
    """Zero last kernels and twice a sigmoid: the identity."""
    x = normal(2, 3, 4, 32)
    layer = kind(
        gate_scale=2.0, gate_initializer="zeros", data_format="channels_last"
    )
    assert_close(layer(x), x, 0.0)


def test_hard_sigmoid_is_a_sixth_and_a_half():
    """Keras 2 had x/5 + ½: 0.9 at 2, where this is 0.8333."""
    layer = SqueezeExcite(
        gate_activation="hard_sigmoid",
        gate_initializer="zeros",
        bias_initializer=lambda shape, dtype=None: np.full(shape, 2.0, dtype),
        data_format="channels_last",
    )
    x = np.ones((1, 2, 3), "float32")
    np.testing.assert_allclose(to_numpy(layer(x)), 2 / 6 + 0.5, rtol=1e-6)
