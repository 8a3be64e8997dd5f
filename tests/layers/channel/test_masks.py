"""Padded sequences, NaN in padding and half precision."""

import keras
import numpy as np
import pytest

from keras_gating import functional
from keras_gating.functional.pooling import position_max
from keras_gating.functional.pooling import position_mean
from keras_gating.layers import CBAM
from keras_gating.layers import SpatialGate
from keras_gating.layers import SqueezeExcite
from tests.gradients import finite
from tests.gradients import gradients
from tests.layers.channel.common import KINDS
from tests.layers.channel.common import built
from tests.utils import assert_close
from tests.utils import normal
from tests.utils import tensor
from tests.utils import to_numpy

LENGTHS = (6, 3)


def padded(filling=0.0, width=5):
    x = normal(2, 6, width)
    mask = np.arange(6) < np.array(LENGTHS)[:, None]
    x[~mask] = filling
    return x, mask


@pytest.mark.parametrize("filling", [0.0, -50.0, 1e4, np.nan, np.inf])
@pytest.mark.parametrize("kind", KINDS)
def test_each_sequence_is_as_it_is_alone(kind, filling):
    x, mask = padded(filling)
    layer = built(kind, x.shape)
    result = to_numpy(layer(tensor(x), mask=tensor(mask)))
    for row, length in enumerate(LENGTHS):
        alone = layer(tensor(x[row : row + 1, :length]))
        assert_close(result[row : row + 1, :length], alone, 1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_channels_first_sequences(kind):
    x, mask = padded(7.0)
    last = built(kind, x.shape)
    first = built(
        kind, np.moveaxis(x, -1, 1).shape, data_format="channels_first"
    )
    expected = to_numpy(last(tensor(x), mask=tensor(mask)))
    result = to_numpy(first(tensor(np.moveaxis(x, -1, 1)), mask=tensor(mask)))
    assert_close(np.moveaxis(result, 1, -1), expected, 1e-6)


@pytest.mark.parametrize("filling", [np.nan, np.inf])
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_of_valid_rows_do_not_see_padding(kind, filling):
    x, mask = padded()
    cotangent = normal(2, 6, 5, seed=1) * mask[..., None]
    layer = built(kind, x.shape)
    call = {"mask": tensor(mask)}
    _, (expected,), weights = gradients(layer, [x], cotangent, **call)
    spoiled, _ = padded(filling)
    _, (result,), spoiled_weights = gradients(
        layer, [spoiled], cotangent, **call
    )
    assert finite(spoiled_weights)
    for path, value in weights.items():
        assert_close(spoiled_weights[path], value, 1e-5)
    assert_close(result * mask[..., None], expected * mask[..., None], 1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_sequence_is_finite(kind):
    x = normal(2, 6, 5)
    mask = np.array([[True] * 6, [False] * 6])
    layer = built(kind, x.shape)
    output, (for_input,), for_weights = gradients(
        layer, [x], np.ones_like(x), mask=tensor(mask)
    )
    assert finite([output, for_input]) and finite(for_weights)


@pytest.mark.parametrize("kind", KINDS)
def test_masks_of_images(kind):
    """By row, or by pixel."""
    x = normal(2, 4, 5, 3)
    rows = np.array([[1, 1, 1, 1], [1, 1, 0, 0]], bool)
    pixels = np.repeat(rows[..., None], 5, axis=2)
    layer = built(kind, x.shape)
    by_row = to_numpy(layer(tensor(x), mask=tensor(rows)))
    assert_close(layer(tensor(x), mask=tensor(pixels)), by_row, 1e-6)
    alone = layer(tensor(x[1:, :2]))
    assert_close(by_row[1:, :2], alone, 1e-5)
    pixels[1, :, 3:] = False
    narrow = to_numpy(layer(tensor(x), mask=tensor(pixels)))
    alone = layer(tensor(x[1:, :2, :3]))
    assert_close(narrow[1:, :2, :3], alone, 1e-5)


@pytest.mark.parametrize("shape", [(2,), (2, 5), (2, 6, 5), (3, 6)], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_masks_of_a_wrong_shape(kind, shape):
    layer = built(kind, (2, 6, 5))
    with pytest.raises(ValueError, match=r"`mask` must.*\(2, 6\).*mask.shape"):
        layer(tensor(normal(2, 6, 5)), mask=tensor(np.ones(shape, bool)))


def test_batch_normalization_leaves_padding_out():
    """The statistics of the logits are those of real positions."""
    x, mask = padded(3.0)
    arguments = {"batch_norm": True, "kernel_size": 1}
    layer = built(SpatialGate, x.shape, **arguments)
    other = built(SpatialGate, (1, 9, 5), **arguments)
    flat = x[mask][None]
    result = layer(tensor(x), mask=tensor(mask), training=True)
    expected = to_numpy(other(tensor(flat), training=True))
    assert_close(to_numpy(result)[mask][None], expected, 1e-5)
    for a, b in zip(
        layer.normalization.non_trainable_weights,
        other.normalization.non_trainable_weights,
    ):
        assert_close(a, b, 1e-5)


@pytest.mark.parametrize("data_format", ["channels_last", "channels_first"])
def test_recorded_gates_come_with_their_padding(data_format):
    x, mask = padded()
    x = x if data_format == "channels_last" else np.moveaxis(x, 2, 1)
    layer = built(SpatialGate, x.shape, data_format=data_format)
    seen = []
    with functional.record_into(lambda *values: seen.append(values)):
        layer(tensor(x), mask=tensor(mask))
    ((_, gate, recorded),) = seen
    assert gate.shape == recorded.shape
    np.testing.assert_array_equal(np.squeeze(to_numpy(recorded)), mask)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_mean_of_a_large_map_of_tens(dtype, masked):
    """The sum, 655360, is beyond float16; the gate's input is 10.0."""
    x = np.full((1, 256, 256, 2), 10.0)
    mask = np.ones((1, 256, 256), bool)
    mask[:, 250:] = not masked
    x[:, 250:] = 10.0 if not masked else -1000.0
    layer = SqueezeExcite(
        units=2,
        activation="linear",
        gate_activation="linear",
        use_bias=False,
        data_format="channels_last",
        dtype=dtype,
    )
    layer.build(x.shape)
    for weight in layer.weights:
        weight.assign(np.eye(2))
    call = {"mask": tensor(mask)} if masked else {}
    # The gate is the mean itself.
    output = layer(keras.ops.cast(tensor(x, "float32"), dtype), **call)
    result = to_numpy(keras.ops.cast(output, "float32"))
    np.testing.assert_array_equal(result[0, :250], 100.0)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_mean_of_channels_in_half_precision(dtype):
    """Each of 8192 channels is 10: the sum overflows float16."""
    x = keras.ops.cast(tensor(np.full((1, 3, 8192), 10.0, "float32")), dtype)
    layer = SpatialGate(
        1,
        gate_activation="linear",
        data_format="channels_last",
        dtype=dtype,
    )
    layer.build(x.shape)
    layer.weights[0].assign(np.array([1.0, 0.0]).reshape(1, 2, 1))
    result = to_numpy(keras.ops.cast(layer(x), "float32"))
    np.testing.assert_array_equal(result, 100.0)


@pytest.mark.skipif(
    keras.config.backend() == "tensorflow",
    reason="its convolution has a wrong gradient, see masks-and-dtypes.md",
)
@pytest.mark.parametrize("data_format", ["channels_first", "channels_last"])
def test_bfloat16_on_volumes_smaller_than_the_kernel(data_format):
    x = normal(2, 4, 3, 4, 2)
    if data_format == "channels_last":
        x = np.moveaxis(x, 1, -1)
    kernels = []
    for dtype in ("float32", "bfloat16"):
        layer = built(
            SpatialGate, x.shape, dtype=dtype, data_format=data_format
        )
        _, _, for_weights = gradients(layer, [x], np.ones_like(x))
        kernels.extend(np.float64(x) for x in for_weights.values())
    expected, actual = kernels
    difference = np.linalg.norm(actual - expected)
    assert difference < 0.02 * np.linalg.norm(expected)


def test_pooling_functions():
    x = normal(2, 3, 4)
    mask = np.array([[1, 0, 1], [0, 0, 0]], bool)[..., None]
    mean = to_numpy(position_mean(tensor(x), (1,), tensor(mask)))
    maximum = to_numpy(position_max(tensor(x), (1,), tensor(mask)))
    seen = x[0, [0, 2]]
    assert_close(mean[0], seen.mean(0), 1e-6)
    assert_close(maximum[0], seen.max(0), 0.0)
    assert not mean[1].any() and not maximum[1].any()


def test_keras_mask_reaches_both_gates_of_cbam():
    ids = np.array([[1, 2, 3, 4], [5, 6, 0, 0]])
    embedding = keras.layers.Embedding(7, 8, mask_zero=True)
    layer = CBAM(ratio=2, kernel_size=3, data_format="channels_last")
    model = keras.Sequential([keras.Input((None,), dtype="int32")])
    model.add(embedding)
    model.add(layer)
    result = model.predict_on_batch(ids)
    alone = model.predict_on_batch(ids[1:, :2])
    assert_close(result[1:, :2], alone, 1e-6)


@pytest.mark.parametrize("axes", [(1, 2), (-3, -2)])
def test_equal_maxima_have_one_gradient(axes):
    """It goes to the first, and sums to that of the maximum."""

    class Maximum(keras.layers.Layer):
        def call(self, inputs):
            return position_max(inputs, axes)

    x = np.zeros((1, 2, 3, 2), "float32")
    x[0, 1, 1, 1] = x[0, 1, 2, 1] = 5.0
    layer = Maximum()
    layer.build(x.shape)
    cotangent = np.ones((1, 2), "float32")
    output, (gradient,), _ = gradients(layer, [x], cotangent)
    np.testing.assert_array_equal(to_numpy(output)[0], [0.0, 5.0])
    expected = np.zeros_like(x)
    expected[0, 0, 0, 0] = expected[0, 1, 1, 1] = 1.0
    np.testing.assert_array_equal(gradient, expected)


@pytest.mark.skipif(
    keras.config.backend() != "torch", reason="torch.compile is torch's own"
)
# The compiler makes an instance of every function with a gradient of its own.
@pytest.mark.filterwarnings("ignore:.*Function.* should not be instantiated")
@pytest.mark.parametrize("axes", [(1, 2), (3,), (1,), (-2, -1)])
def test_equal_maxima_have_the_same_gradient_compiled(axes):
    import torch

    torch._dynamo.reset()
    x = np.random.default_rng(0).integers(0, 3, (2, 3, 4, 5))

    def gradient(function):
        inputs = torch.tensor(x, dtype=torch.float32, requires_grad=True)
        (function(inputs) ** 2).sum().backward()
        return to_numpy(inputs.grad)

    def maximum(inputs):
        return position_max(inputs, axes)

    compiled = torch.compile(maximum, backend="aot_eager", fullgraph=True)
    expected = gradient(maximum)
    is_maximum = x == x.max(axes, keepdims=True)
    assert np.count_nonzero(expected) < np.count_nonzero(is_maximum)
    np.testing.assert_array_equal(gradient(compiled), expected)
