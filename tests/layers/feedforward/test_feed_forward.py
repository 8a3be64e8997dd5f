"""`FeedForward` and `GatedFeedForward` against compositions in NumPy."""

import keras
import numpy as np
import pytest

from keras_gating.layers import FeedForward
from keras_gating.layers import GatedFeedForward
from tests.reference import feed_forward as reference
from tests.utils import assert_close
from tests.utils import normal
from tests.utils import random_weights
from tests.utils import tensor
from tests.utils import to_numpy
from tests.utils import weights_by_path


def built(kind, shape, *arguments, **keywords):
    layer = kind(*arguments, **keywords)
    layer.build(shape)
    return random_weights(layer)


@pytest.mark.parametrize("use_bias", [False, True])
@pytest.mark.parametrize("shape", [(3, 5), (2, 4, 5), (2, 3, 4, 5)])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_feed_forward_is_two_dense_layers(activation, shape, use_bias):
    x = normal(*shape)
    layer = built(
        FeedForward, shape, 7, activation, output_dim=6, use_bias=use_bias
    )
    w = weights_by_path(layer)
    hidden = x @ w["hidden/kernel"] + w.get("hidden/bias", 0.0)
    hidden = getattr(reference, activation)(hidden)
    expected = hidden @ w["projection/kernel"] + w.get("projection/bias", 0.0)
    assert_close(layer(x), expected, 1e-6)


@pytest.mark.parametrize("use_bias", [False, True])
@pytest.mark.parametrize("shape", [(3, 5), (2, 4, 5), (2, 2, 4, 5)])
@pytest.mark.parametrize("variant", reference.ACTIVATIONS)
def test_gated_feed_forward_is_three_dense_layers(variant, shape, use_bias):
    x = normal(*shape)
    layer = built(GatedFeedForward, shape, 7, variant, use_bias=use_bias)
    w = weights_by_path(layer)
    bias = w.get("hidden/projection/bias", np.zeros((2, 7)))
    hidden = reference.glu(
        np.float64(x),
        w["hidden/projection/kernel"],
        bias,
        reference.ACTIVATIONS[variant],
    )
    expected = hidden @ w["projection/kernel"] + w.get("projection/bias", 0.0)
    assert expected.shape == shape
    assert_close(layer(x), expected, 1e-6)


def test_variants_differ():
    x = normal(2, 4, 5)
    outputs = [
        to_numpy(built(GatedFeedForward, x.shape, 7, variant)(x))
        for variant in reference.ACTIVATIONS
    ]
    for i, first in enumerate(outputs):
        for second in outputs[:i]:
            assert np.abs(first - second).max() > 1e-5


@pytest.mark.parametrize(
    ("hidden_dim", "width"),
    [(3072, 2048), (48, 32), (1, 1), (2, 1), (4, 3), (5, 3), (10, 7)],
)
def test_two_thirds_of_the_width(hidden_dim, width):
    layer = GatedFeedForward(hidden_dim, width_rule="two_thirds")
    assert layer.width == width
    assert GatedFeedForward(hidden_dim).width == hidden_dim
    layer.build((None, 4))
    assert tuple(layer.weights[0].shape) == (4, 2, width)


@pytest.mark.parametrize("use_bias", [False, True])
def test_parameters(use_bias):
    """Those of the `Dense` layers that they stand for."""

    def dense(*widths):
        pairs = zip(widths, widths[1:])
        return sum(a * b + use_bias * b for a, b in pairs)

    def count(kind, *arguments, **keywords):
        layer = kind(*arguments, use_bias=use_bias, **keywords)
        layer.build((None, 3, 16))
        return layer.count_params()

    assert count(FeedForward, 48) == dense(16, 48, 16)
    assert count(GatedFeedForward, 32) == dense(16, 64) + dense(32, 16)
    rule = {"width_rule": "two_thirds"}
    assert count(GatedFeedForward, 48, **rule) == count(GatedFeedForward, 32)
    if not use_bias:
        assert count(GatedFeedForward, 48, **rule) == count(FeedForward, 48)


def test_limit_and_order_reach_the_hidden_layer():
    x = 20 * normal(2, 3, 4)
    layer = built(GatedFeedForward, x.shape, 5, limit=0.5, gate_first=True)
    w = weights_by_path(layer)
    hidden = reference.glu(
        np.float64(x),
        w["hidden/projection/kernel"],
        np.zeros((2, 5)),
        reference.silu,
        gate_first=True,
        limit=0.5,
    )
    assert np.abs(hidden).max() <= 0.5**2
    assert_close(layer(x), hidden @ w["projection/kernel"], 1e-6)


@pytest.mark.parametrize("kind", [FeedForward, GatedFeedForward])
def test_dropout_is_on_the_hidden_features(kind):
    """What is dropped vanishes before the projection, the rest is doubled."""
    layer = kind(6, dropout=0.5, seed=3)
    x = tensor(normal(2, 3, 4))
    layer.build(x.shape)
    random_weights(layer)
    layer.projection.kernel.assign(np.eye(6, 4))
    plain, dropped = (to_numpy(layer(x, training=t)) for t in (False, True))
    kept = dropped != 0
    np.testing.assert_allclose(dropped[kept], 2 * plain[kept], rtol=1e-5)
    assert kept.any() and not kept[plain != 0].all()


@pytest.mark.parametrize("policy", ["float16", "mixed_float16"])
def test_product_in_float32(policy):
    """silu(255.875) · 261.75, made small again by the projection."""
    x = np.ones((1, 1), "float16")
    for product_dtype, expected in ((None, np.inf), ("float32", 66.975)):
        layer = GatedFeedForward(1, product_dtype=product_dtype, dtype=policy)
        layer.build(x.shape)
        layer.hidden.projection.kernel.assign([[[261.75], [255.875]]])
        layer.projection.kernel.assign([[1e-3]])
        output = layer(tensor(x))
        assert keras.backend.standardize_dtype(output.dtype) == "float16"
        assert float(to_numpy(output)[0, 0]) == pytest.approx(
            expected, rel=1e-3
        )


BAD = {
    "hidden-0": (FeedForward, {"hidden_dim": 0}, "hidden_dim.*0"),
    "hidden": (GatedFeedForward, {"hidden_dim": 1.5}, r"hidden_dim.*1\.5"),
    "output": (FeedForward, {"output_dim": -1}, "output_dim.*-1"),
    "dropout": (FeedForward, {"dropout": 1.0}, r"dropout.*1\.0"),
    "activation": (FeedForward, {"activation": "reluu"}, "reluu"),
    "variant": (GatedFeedForward, {"variant": "glug"}, "swiglu.*glug"),
    "rule": (GatedFeedForward, {"width_rule": 0.67}, r"two_thirds.*0\.67"),
    "limit": (GatedFeedForward, {"limit": -1}, "limit.*-1"),
    "product": (GatedFeedForward, {"product_dtype": "half"}, "product.*half"),
    "unknown": (GatedFeedForward, {"variants": "glu"}, "variants"),
}


@pytest.mark.parametrize("kind, arguments, message", BAD.values(), ids=BAD)
def test_bad_arguments(kind, arguments, message):
    with pytest.raises(ValueError, match=message):
        kind(**{"hidden_dim": 4, **arguments})


@pytest.mark.parametrize("kind", [FeedForward, GatedFeedForward])
def test_bad_inputs(kind):
    with pytest.raises(ValueError, match=r"rank 2.*\(4,\)"):
        kind(3).build((4,))
    layer = built(kind, (2, 3, 4), 5)
    with pytest.raises(ValueError, match="expected"):
        layer(tensor(normal(2, 3, 6)))
