"""What the gates of attention multiply, in numbers that fit in one's head."""

import math

import numpy as np
import pytest

from keras_gating.layers import GatedAttention
from tests.gradients import finite
from tests.gradients import gradients
from tests.layers.attention.common import attention
from tests.utils import assert_close
from tests.utils import normal
from tests.utils import random_weights
from tests.utils import to_numpy

SITES = ("output", "value", "key", "query", "projection")


def zero(*variables):
    for variable in variables:
        variable.assign(np.zeros(variable.shape, variable.dtype))


def logit(gate):
    return math.log(gate / (1.0 - gate))


def same_but_gates(layer, *shapes, **arguments):
    """Ungated attention with the other weights of `layer`."""
    plain = GatedAttention(**arguments, use_gate=False)
    plain.build(*shapes)
    for name in ("query", "key", "value", "output"):
        mine = getattr(layer, f"{name}_dense")
        getattr(plain, f"{name}_dense").set_weights(mine.get_weights())
    return plain


# T differs from the number of heads (and S from T), then all are equal.
@pytest.mark.parametrize("length, source", [(8, 4), (4, 4), (2, 3)])
@pytest.mark.parametrize("granularity", ["elementwise", "headwise"])
def test_gate_is_per_token_and_head(granularity, length, source):
    """Golden numbers: context h + 0.1 d, gates that count tokens and heads."""
    heads, width = 4, 3
    query, value = np.zeros((2, length, 16)), normal(2, source, 12)
    query[:, np.arange(length), np.arange(length)] = 1.0  # token t reads e_t
    layer = GatedAttention(
        num_heads=heads,
        key_dim=5,
        value_dim=width,
        output_shape=heads * width,
        gate_granularity=granularity,
    )
    layer.build(query.shape, value.shape)
    zero(layer.value_dense.kernel, layer.output_dense.bias)
    h, d = np.indices((heads, width))
    layer.value_dense.bias.assign(h + 0.1 * d)
    layer.output_dense.kernel.assign(
        np.eye(heads * width).reshape(heads, width, -1)
    )
    last = width if granularity == "elementwise" else 1
    kernel, bias = layer.output_gate.weights
    assert tuple(kernel.shape) == (16, heads, last)
    assert tuple(bias.shape) == (heads, last)
    # Gate 1 / (2 + t + h + d) for token t, head h, feature d.
    t, h, d = np.indices((16, heads, last))
    kernel.assign(np.vectorize(logit)(1.0 / (2.0 + t + h + d)))
    zero(bias)

    gate = layer.output_gate(np.ones((2, length, heads, width)), query)
    assert tuple(gate.shape) == (2, length, heads, width)
    output = to_numpy(layer(query.astype("float32"), value))
    output = output.reshape(2, length, heads, width)
    # By hand: (1 + 0.1 * 2) / (2 + 1 + 1 + 2) and (3 + 0) / (2 + 0 + 3).
    if granularity == "elementwise":
        np.testing.assert_allclose(output[1, 1, 1, 2], 1.2 / 6, rtol=1e-5)
    else:
        np.testing.assert_allclose(output[1, 1, 1, 2], 1.2 / 4, rtol=1e-5)
    np.testing.assert_allclose(output[0, 0, 3, 0], 3.0 / 5, rtol=1e-5)
    t, h, d = np.indices((length, heads, width))
    step = d if granularity == "elementwise" else 0
    expected = (h + 0.1 * d) / (2.0 + t + h + step)
    assert_close(output, np.stack([expected, expected]), 1e-5)


@pytest.mark.parametrize(
    "site, elementwise",
    [
        ("output", (16, 4, 3)),
        ("value", (12, 2, 3)),
        ("key", (10, 2, 5)),
        ("query", (16, 4, 5)),
    ],
)
def test_shapes_of_kernels(site, elementwise):
    """Value and key gates act on the two grouped heads."""
    width, heads, last = elementwise
    for granularity, expected in {
        "elementwise": (width, heads, last),
        "headwise": (width, heads, 1),
        "shared": (width, 1, last),
    }.items():
        layer = GatedAttention(
            num_heads=4,
            key_dim=5,
            value_dim=3,
            num_key_value_heads=2,
            gate_site=site,
            gate_granularity=granularity,
        )
        layer.build((2, 8, 16), (2, 4, 12), (2, 4, 10))
        gate = getattr(layer, f"{site}_gate")
        kernel, bias = gate.weights
        assert tuple(kernel.shape) == expected
        assert tuple(bias.shape) == expected[1:]


def test_kernel_of_the_projection_gate():
    layer = GatedAttention(4, 5, gate_site="projection", output_shape=(6, 7))
    layer.build((2, 8, 16), (2, 4, 12))
    kernel, bias = layer.projection_gate.weights
    assert tuple(kernel.shape) == (16, 6, 7)
    assert tuple(bias.shape) == (6, 7)


@pytest.mark.parametrize("granularity", ["elementwise", "headwise", "shared"])
@pytest.mark.parametrize("site", SITES)
def test_open_gate_is_no_gate(site, granularity):
    if site == "projection" and granularity != "elementwise":
        pytest.skip("the projection gate is elementwise")
    x, y = normal(2, 5, 8, seed=1), normal(2, 3, 6, seed=2)
    sizes = {"num_heads": 4, "key_dim": 4}
    layer = attention(
        x, y, **sizes, gate_site=site, gate_granularity=granularity
    )
    kernel, bias = getattr(layer, f"{site}_gate").weights
    zero(kernel)
    bias.assign(np.full(bias.shape, 40.0))
    plain = same_but_gates(layer, x.shape, y.shape, **sizes)
    assert_close(layer(x, y), plain(x, y), 1e-6)


@pytest.mark.parametrize("site", SITES)
def test_a_fresh_gate_of_scale_two_is_no_gate(site):
    x = normal(2, 5, 8)
    sizes = {"num_heads": 4, "key_dim": 4}
    layer = GatedAttention(**sizes, gate_site=site, gate_scale=2.0)
    layer.build(x.shape, x.shape)
    plain = same_but_gates(layer, x.shape, x.shape, **sizes)
    assert_close(layer(x, x), plain(x, x), 1e-6)


@pytest.mark.parametrize("site", ["output", "value"])
def test_closed_gate_leaves_the_output_bias(site):
    x = normal(2, 5, 8)
    layer = attention(x, x, gate_site=site)
    kernel, bias = getattr(layer, f"{site}_gate").weights
    zero(kernel)
    bias.assign(np.full(bias.shape, -40.0))
    expected = np.broadcast_to(to_numpy(layer.output_dense.bias), (2, 5, 8))
    np.testing.assert_allclose(to_numpy(layer(x, x)), expected, atol=1e-6)


@pytest.mark.parametrize("logits", [1e4, -1e4])
@pytest.mark.parametrize("site", SITES)
def test_extreme_logits_stay_finite(site, logits):
    x = normal(2, 5, 8)
    layer = attention(x, x, gate_site=site)
    kernel, bias = getattr(layer, f"{site}_gate").weights
    kernel.assign(np.full(kernel.shape, 1e-3))
    bias.assign(np.full(bias.shape, logits))
    output, for_inputs, for_weights = gradients(
        layer, [x, x], np.ones((2, 5, 8))
    )
    assert np.isfinite(output).all()
    assert finite(for_inputs) and finite(for_weights)


@pytest.mark.parametrize("path", ["fused", "explicit"])
def test_grouped_heads_repeat_in_order(path):
    """Four query heads read h0, h0, h1, h1: values 10 and 20."""
    x = normal(1, 3, 8)
    layer = GatedAttention(
        4, 2, num_key_value_heads=2, output_shape=8, use_gate=False
    )
    layer.build(x.shape, x.shape)
    random_weights(layer)
    zero(layer.value_dense.kernel, layer.output_dense.bias)
    layer.value_dense.bias.assign([[10.0, 11.0], [20.0, 21.0]])
    layer.output_dense.kernel.assign(np.eye(8).reshape(4, 2, 8))
    output = layer(x, x, return_attention_scores=path == "explicit")
    output = output[0] if path == "explicit" else output
    expected = [10.0, 11.0, 10.0, 11.0, 20.0, 21.0, 20.0, 21.0]
    np.testing.assert_allclose(
        to_numpy(output)[0], np.tile(expected, (3, 1)), rtol=1e-5
    )


def test_grouped_kernels_have_fewer_heads():
    layer = GatedAttention(4, 3, num_key_value_heads=2, value_dim=5)
    layer.build((1, 3, 8), (1, 3, 8))
    assert tuple(layer.query_dense.kernel.shape) == (8, 4, 3)
    assert tuple(layer.key_dense.kernel.shape) == (8, 2, 3)
    assert tuple(layer.value_dense.kernel.shape) == (8, 2, 5)
    assert tuple(layer.output_dense.kernel.shape) == (4, 5, 8)


def test_as_many_groups_as_heads_is_ungrouped():
    x = normal(2, 5, 8)
    layer = attention(x, x, num_heads=4, num_key_value_heads=4)
    plain = attention(x, x, num_heads=4)
    plain.set_weights(layer.get_weights())
    assert_close(layer(x, x), plain(x, x), 1e-6)


@pytest.mark.parametrize("activation", ["relu", "relu6", "tanh_shrink"])
@pytest.mark.parametrize("site", SITES)
def test_gates_that_zero_would_freeze_start_elsewhere(site, activation):
    """Zero value and zero slope at 0: a zero kernel would never train."""
    x = normal(2, 5, 8)
    layer = GatedAttention(2, 4, gate_site=site, gate_activation=activation)
    layer.build(x.shape, x.shape)
    _, _, for_weights = gradients(layer, [x, x], normal(2, 5, 8, seed=1))
    kernel = getattr(layer, f"{site}_gate").weights[0]
    assert np.any(for_weights[kernel.path])
    with pytest.raises(ValueError, match=activation):
        GatedAttention(
            2,
            4,
            gate_site=site,
            gate_activation=activation,
            gate_initializer="zeros",
        ).build(x.shape, x.shape)


@pytest.mark.parametrize("site", SITES)
def test_low_rank_gates_train_from_the_start(site):
    x = normal(2, 5, 8)
    layer = GatedAttention(2, 4, gate_site=site, gate_rank=3, gate_scale=2.0)
    layer.build(x.shape, x.shape)
    _, _, for_weights = gradients(layer, [x, x], normal(2, 5, 8, seed=1))
    first, last, _ = getattr(layer, f"{site}_gate").weights
    assert np.any(to_numpy(first)) and not np.any(to_numpy(last))
    assert np.any(for_weights[last.path])
