"""Training, recorded gates, precision, kernels of the unit."""

import keras
import numpy as np
import pytest

from keras_gating import functional
from keras_gating.layers import GatedAttentionUnit
from tests.layers.attention_unit.common import unit
from tests.utils import assert_close
from tests.utils import normal
from tests.utils import random_weights
from tests.utils import tensor
from tests.utils import to_numpy

X = normal(2, 7, 6)
FORMS = {
    "relu2": {},
    "laplace-t5": {"attention_activation": "laplace", "position": "t5"},
    "softmax": {"attention_activation": "softmax"},
    "chunked": {"chunk_size": 3},
}
by_form = pytest.mark.parametrize("form", FORMS)


@by_form
def test_every_weight_moves_from_its_start(form):
    """With Adam, which the flat start of the squared ReLU needs."""
    layer = GatedAttentionUnit(key_dim=16, norm_first=True, **FORMS[form])
    model = keras.Sequential([keras.Input(X.shape[1:]), layer])
    before = [to_numpy(weight) for weight in model.weights]
    model.compile(keras.optimizers.Adam(1e-2, epsilon=1e-12), "mse")
    target = normal(*X.shape, seed=1)
    losses = [float(model.train_on_batch(X, target)) for _ in range(8)]
    assert losses[-1] < losses[0]
    for weight, old in zip(model.weights, before):
        assert np.abs(to_numpy(weight) - old).max() > 1e-3, weight.path


class Slope(keras.layers.Layer):
    """Swish with a weight."""

    def build(self, shape):
        self.slope = self.add_weight(shape=(), initializer="ones")

    def call(self, inputs):
        return inputs * keras.ops.sigmoid(self.slope * inputs)


def test_activation_with_a_weight_in_blocks():
    """In a compiled step it moves as without blocks."""
    slopes = []
    for block_size in (None, 3):
        slope = Slope()
        slope.build(())
        layer = GatedAttentionUnit(
            key_dim=4, block_size=block_size, activation=slope
        )
        model = keras.Sequential([keras.Input(X.shape[1:]), layer])
        random_weights(layer)
        before = float(to_numpy(slope.slope))
        model.compile(keras.optimizers.SGD(0.1), "mse")
        model.train_on_batch(X, normal(*X.shape, seed=1))
        slopes.append(float(to_numpy(slope.slope)))
        assert abs(slopes[-1] - before) > 1e-3
    assert abs(slopes[1] - slopes[0]) < 1e-5


def test_initial_weights():
    layer = GatedAttentionUnit(key_dim=512, position="t5", chunk_size=4)
    layer.build(X.shape)
    scale = to_numpy(layer.query_key_scale)
    assert scale.shape == (4, 512)
    assert abs(scale.std() - 0.02) < 2e-3 and abs(scale.mean()) < 2e-3
    assert not to_numpy(layer.query_key_offset).any()
    assert not to_numpy(layer.position_bias).any()
    value, gate = np.moveaxis(to_numpy(layer.hidden_dense.kernel), 1, 0)
    assert np.abs(value - gate).max() > 0.1


def test_two_units_have_the_parameters_of_attention_and_feed_forward():
    """12 d² of either, but for the shared projection and vectors."""
    width, key_dim = 64, 16
    layer = GatedAttentionUnit(key_dim=key_dim)
    layer.build((None, None, width))
    kernels = [
        layer.hidden_dense.kernel,
        layer.shared_dense.kernel,
        layer.output_dense.kernel,
    ]
    sizes = [np.prod(kernel.shape) for kernel in kernels]
    assert 2 * sum(sizes) == 12 * width**2 + 2 * width * key_dim


@by_form
def test_recording_sees_the_gate(form):
    layer = unit(X, **FORMS[form])
    seen = []
    real = np.arange(7) < np.array([[7], [4]])
    with functional.record_into(lambda *values: seen.append(values)):
        layer(X, mask=real)
    ((path, gate, mask),) = seen
    assert path == layer.path
    np.testing.assert_array_equal(to_numpy(mask), real)
    kernel = to_numpy(layer.hidden_dense.kernel)[:, 1]
    bias = to_numpy(layer.hidden_dense.bias)[1]
    logits = X @ kernel + bias
    expected = logits / (1 + np.exp(-logits))
    assert_close(to_numpy(gate)[real], expected[real], 1e-5)


@by_form
def test_closed_gate_leaves_the_bias(form):
    layer = unit(X, **FORMS[form], activation="sigmoid")
    bias = to_numpy(layer.hidden_dense.bias)
    bias[1] = -1e4
    layer.hidden_dense.bias.assign(bias)
    expected = np.tile(to_numpy(layer.output_dense.bias), (2, 7, 1))
    np.testing.assert_array_equal(to_numpy(layer(X)), expected)


@pytest.mark.parametrize("chunk_size", [None, 300])
def test_half_precision_does_not_overflow(chunk_size):
    """64 · 48 · 48 exceeds 65504, over √64 it fits; so do means, not sums."""
    x = np.ones((1, 300, 4), "float16")
    layer = GatedAttentionUnit(
        key_dim=64,
        attention_activation="laplace",
        chunk_size=chunk_size,
        activation="linear",
        kernel_initializer="zeros",
        bias_initializer="ones",
        dtype="float16",
    )
    layer.build(x.shape)
    first, linear = np.full(64, 48.0), np.full(64, 8.0)
    scale = [first, first] if chunk_size is None else [first, linear] * 2
    layer.query_key_scale.assign(np.stack(scale))
    layer.output_dense.kernel.assign(np.eye(8, 4))
    # The bias, a weight of 1, and 64 · 8 · 8 from the linear term.
    expected = 2.0 if chunk_size is None else 2.0 + 4096.0
    output = np.float32(to_numpy(layer(x)))
    np.testing.assert_allclose(output, expected, rtol=1e-2)


only_torch = pytest.mark.skipif(
    keras.config.backend() != "torch", reason="needs torch"
)
CHUNKED = {"chunk_size": 3, "position": "t5"}


@only_torch
@pytest.mark.parametrize(
    ("arguments", "dynamic"),
    [({}, False), ({"position": "rope"}, True), (CHUNKED, False)],
)
@pytest.mark.parametrize("is_causal", [False, True])
def test_one_graph_under_torch_compile(arguments, dynamic, is_causal):
    """One for all lengths if it is `dynamic`."""
    import torch

    layer = unit(X, **arguments)

    def f(x):
        return layer(x, use_causal_mask=is_causal)

    torch._dynamo.reset()
    compiled = torch.compile(
        f, fullgraph=True, dynamic=dynamic, backend="eager"
    )
    for length in (7, 9) if dynamic else (7,):
        x = tensor(normal(2, length, 6))
        assert_close(compiled(x), f(x), 1e-6)


@only_torch
@pytest.mark.parametrize("is_causal", [False, True])
def test_exported_chunks_count_what_they_see(is_causal):
    """Of a length that is open, in whole chunks."""
    import torch

    layer = unit(X, **CHUNKED)

    class Call(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = layer

        def forward(self, x):
            return self.layer(x, use_causal_mask=is_causal)

    chunks = torch.export.Dim("chunks", min=3)
    program = torch.export.export(
        Call(),
        (tensor(normal(2, 9, 6)),),
        dynamic_shapes=({1: 3 * chunks},),
        strict=False,
    )
    x = tensor(normal(2, 15, 6))
    expected = layer(x, use_causal_mask=is_causal)
    assert_close(program.module()(x), expected, 1e-6)


@only_torch
def test_masks_that_are_mapped():
    """A mapped function in which most tensors are as usual."""
    import torch

    layer = unit(X)
    x, masks = tensor(X), torch.ones(3, 2, 7, dtype=torch.bool)
    masks[1, :, 4:] = masks[2, :, :2] = False
    mapped = torch.vmap(lambda mask: layer(x, mask=mask))(masks)
    for outputs, mask in zip(mapped, masks):
        assert_close(outputs, layer(x, mask=mask), 1e-6)
