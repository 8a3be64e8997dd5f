"""Which attention is flat, and how curved the rest of it is."""

import functools

import numpy as np
import pytest
from keras import ops

from keras_gating import geometry
from keras_gating import layers
from tests.geometry.maps import numpy64
from tests.geometry.maps import points
from tests.utils import random_weights
from tests.utils import tensor

SEEDS, POINTS = 2000, 20


class Population:
    """Random attention over fixed values, all seeds as one batched map.

    Weights, biases and points are standard normal. Medians of 2000 seeds
    differ by up to a tenth between draws.
    """

    def __init__(self, tokens, features, heads=1, seed=2):
        rng = np.random.default_rng(seed)

        def draw(*s):
            return tensor(rng.normal(size=(SEEDS, *s)))

        self.keys = draw(heads, 2, tokens)
        self.key_bias = draw(heads, 1, tokens)
        self.values = draw(heads, tokens, features)
        self.gate = draw(2, features)
        self.bias = draw(1, features)
        self.head_gate = draw(2, 1)
        self.head_bias = draw(1, 1)
        self.x = rng.normal(size=(SEEDS * POINTS, 2))

    def attention(self, x):
        x = ops.reshape(x, (SEEDS, POINTS, 2))
        scores = ops.einsum("spi,shit->shpt", x, self.keys)
        weights = ops.softmax(scores + self.key_bias, axis=-1)
        return ops.einsum("shpt,shtd->spd", weights, self.values)

    def logits(self, x, kernel, bias):
        x = ops.reshape(x, (SEEDS, POINTS, 2))
        return ops.einsum("spi,sid->spd", x, kernel) + bias

    def curvature(self, arm):
        """|K|, `(seeds, points)`."""

        def f(x):
            y = arm(self, x)
            return ops.reshape(y, (SEEDS * POINTS, y.shape[-1]))

        k = geometry.gaussian_curvature(f, self.x, batch_size=len(self.x))
        return np.abs(numpy64(k)).reshape(SEEDS, POINTS)


def ungated(p, x):
    return p.attention(x)


def constant(p, x):
    return p.attention(x) * ops.sigmoid(p.bias)


def headwise(p, x):
    return p.attention(x) * ops.sigmoid(p.logits(x, p.head_gate, p.head_bias))


def elementwise(p, x):
    return p.attention(x) * ops.sigmoid(p.logits(x, p.gate, p.bias))


def additive(p, x):
    return p.attention(x) + ops.silu(p.logits(x, p.gate, p.bias))


def activated(p, x):
    return ops.silu(p.attention(x))


def normalized(p, x):
    y = p.attention(x)
    # Not the mean, which Keras computes in float32 on torch.
    square = ops.sum(y * y, axis=-1, keepdims=True) / y.shape[-1]
    return y / ops.sqrt(square)


def bilinear(p, x):
    zero = 0.0 * p.bias
    second = p.values[:, 0, :2]
    return p.logits(x, p.gate, zero) * p.logits(x, second, zero)


population = functools.cache(Population)

CURVED = {
    "ungated, 4 tokens in R³": (ungated, (4, 3), 0.104),
    "ungated, 8 tokens in R¹⁶": (ungated, (8, 16), 0.154),
    "ungated, 2 heads of 3 tokens": (ungated, (3, 8, 2), 0.081),
    "headwise, 3 tokens in R³": (headwise, (3, 3), 0.249),
    "elementwise, 3 tokens in R³": (elementwise, (3, 3), 1.30),
    "additive SiLU, 3 tokens in R³": (additive, (3, 3), 0.070),
    "SiLU on the output, 3 tokens in R³": (activated, (3, 3), 0.105),
    "RMSNorm, 4 tokens in R¹⁶": (normalized, (4, 16), 0.0634),
}


@pytest.mark.float64
@pytest.mark.parametrize("name", CURVED)
def test_medians_of_random_attention(name):
    arm, sizes, expected = CURVED[name]
    k = population(*sizes).curvature(arm)
    median = np.median(np.nanmedian(k, axis=1))
    assert abs(median - expected) <= 0.15 * expected, median


FLAT = {
    "3 tokens": (ungated, (3, 16)),
    "3 tokens and a constant gate": (constant, (3, 16)),
    "8 tokens in the plane": (ungated, (8, 2)),
}


@pytest.mark.float64
@pytest.mark.parametrize("name", FLAT)
def test_flat_attention(name):
    """The affine hull of the image has the dimension of the input."""
    arm, sizes = FLAT[name]
    k = population(*sizes).curvature(arm)
    assert np.median(np.nanmedian(k, axis=1)) < 1e-24
    assert np.mean(k[np.isfinite(k)] < 1e-10) >= 0.999
    assert np.mean(np.isfinite(k)) > 0.99


@pytest.mark.float64
@pytest.mark.parametrize(("tokens", "features"), [(3, 16), (8, 3)])
def test_normalized_attention_is_a_sphere(tokens, features):
    k = population(tokens, features).curvature(normalized)
    regular = k[np.isfinite(k)]
    error = np.abs(regular - 1.0 / features)
    assert np.median(error) < 1e-12
    assert np.mean(error < 1e-8) >= 0.99


@pytest.mark.float64
def test_a_bilinear_gate_without_bias_is_a_cone():
    k = population(3, 16).curvature(bilinear)
    assert np.median(np.nanmedian(k, axis=1)) < 1e-14
    assert np.mean(k[np.isfinite(k)] < 1e-10) >= 0.999


@pytest.mark.float64
def test_two_tokens_span_a_line():
    assert np.isnan(population(2, 16).curvature(ungated)).all()


def layer_map(gate, tokens, dtype):
    """A GatedAttention layer of one head, as a map of its query."""
    layer = layers.GatedAttention(
        1, 4, value_dim=6, output_shape=6, dtype=dtype, **gate
    )
    context = points(1, tokens, 5, seed=3, dtype=dtype)
    query = np.zeros((1, 1, 2), dtype)
    layer(query, context)
    random_weights(layer)
    context = tensor(context)

    def f(x):
        keys = ops.broadcast_to(context, (ops.shape(x)[0], *context.shape[1:]))
        return layer(x[:, None, :], keys)[:, 0]

    return f


@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    [
        ("float32", 1e-6),
        pytest.param("float64", 1e-16, marks=pytest.mark.float64),
    ],
)
def test_the_layer(dtype, tolerance):
    x = points(30, 2, dtype=dtype)
    flat = layer_map({"use_gate": False}, 3, dtype)
    k = np.abs(numpy64(geometry.gaussian_curvature(flat, x)))
    scale = numpy64(geometry.curvature_scale(layer_map({}, 3, dtype), x))
    assert np.nanmax(k) <= tolerance * np.nanmedian(scale)
    curved = layer_map({"gate_site": "output"}, 3, dtype)
    k = np.abs(numpy64(geometry.gaussian_curvature(curved, x)))
    scale = numpy64(geometry.curvature_scale(curved, x))
    assert np.nanmedian(k) > 1e-3 * np.nanmedian(scale)
