"""Half precision, mixed dtypes, dropout, and what float32 is good for."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_gating import geometry
from keras_gating import layers
from tests.geometry.maps import gated_attention
from tests.geometry.maps import has_float64
from tests.geometry.maps import numpy64
from tests.geometry.maps import points
from tests.geometry.maps import quadratic
from tests.utils import assert_close
from tests.utils import tensor

X = points(5, 2)


def model(**arguments):
    return keras.Sequential(
        [
            keras.Input((2,)),
            keras.layers.Dense(8, activation="tanh", **arguments),
            keras.layers.Dense(4),
        ]
    )


@pytest.mark.parametrize(
    "policy", ["float16", "bfloat16", "mixed_float16", "mixed_bfloat16"]
)
def test_models_in_half_precision_are_refused(policy):
    whole = keras.layers.Dense(4, dtype=policy)
    part = model(dtype=policy)  # its output is float32
    for f in (whole, part, lambda x: part(x)):
        with pytest.raises(ValueError, match="float32 or float64") as error:
            geometry.gaussian_curvature(f, X)
        assert "dense" in str(error.value) or "float16" in str(error.value)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_points_in_half_precision_are_computed_in_float32(dtype):
    f = quadratic(2, 4)
    half = ops.cast(tensor(X), dtype)
    k = geometry.gaussian_curvature(f, half)
    assert keras.backend.standardize_dtype(k.dtype) == "float32"
    assert_close(
        k, geometry.gaussian_curvature(f, numpy64(half).astype("float32")), 1e-6
    )


def test_integers_and_lists_are_points():
    f = quadratic(2, 3)
    k = geometry.gaussian_curvature(f, [[1, 2], [0, 1]])
    expected = geometry.gaussian_curvature(f, [[1.0, 2.0], [0.0, 1.0]])
    assert_close(k, expected, 1e-6)


@pytest.mark.float64
def test_a_float32_layer_at_float64_points():
    """It computes in float32, and its rounding sets the rule."""
    layer = model()
    x = points(5, 2, dtype="float64")
    k = geometry.gaussian_curvature(layer, x)
    assert keras.backend.standardize_dtype(k.dtype) == "float32"
    assert_close(
        k, geometry.gaussian_curvature(layer, x.astype("float32")), 1e-3
    )
    u, v = points(2, 5, 2, seed=1, dtype="float64")
    s = geometry.sectional_curvature(layer, x, u, v, np.ones(4))
    assert_close(s, k, 1e-3)


def dropping(rate):
    inputs = keras.Input((2,))
    x = keras.layers.Dense(6, activation="gelu")(inputs)
    x = keras.layers.Dropout(rate)(x)
    x = layers.Gate(dropout=rate)(x)
    return keras.Model(inputs, keras.layers.GaussianNoise(rate)(x))


def test_dropout_is_off():
    noisy, plain = dropping(0.5), dropping(0.0)
    plain.set_weights(
        [w for w in noisy.get_weights() if w.dtype.kind == "f"]
        + plain.get_weights()[len(noisy.trainable_variables) :]
    )
    assert_close(
        geometry.gaussian_curvature(noisy, X),
        geometry.gaussian_curvature(plain, X),
        1e-4,
    )


def test_a_call_in_training_leaves_no_trace():
    noisy = dropping(0.5)

    def f(x):
        return noisy(x, training=True)

    geometry.jacobian(f, X)
    geometry.jacobian(f, X)
    for variable in noisy.variables:
        assert np.isfinite(ops.convert_to_numpy(variable)).all()
    noisy(X, training=True)


def test_trainable_weights_do_not_cost_memory():
    """Results are numbers: nothing is kept for a backward pass."""
    k = geometry.gaussian_curvature(model(), X)
    assert not getattr(k, "requires_grad", False)


@pytest.mark.float64
def test_float32_against_float64():
    """98 % of points with σ₁/σ₂ < 30 are within 1e-3 of the error scale."""
    rng = np.random.default_rng(0)
    x = 3.0 * rng.normal(size=(4000, 2))
    low = gated_attention(1, "float32", tokens=4, features=3)
    high = gated_attention(1, "float64", tokens=4, features=3)
    k = numpy64(geometry.gaussian_curvature(low, x.astype("float32")))
    x = np.float64(x.astype("float32"))
    expected = numpy64(geometry.gaussian_curvature(high, x))
    scale = numpy64(geometry.curvature_scale(high, x))
    condition = np.linalg.cond(numpy64(geometry.jacobian(high, x)))
    close = np.abs(k - expected) <= 1e-3 * scale
    assert np.mean(close[condition < 30]) >= 0.98
    poor = (condition > 100) & (condition < 1000)
    assert np.mean(poor) > 0.01
    assert np.mean(close[poor]) >= 0.8


@pytest.mark.skipif(
    keras.config.backend() != "jax", reason="only JAX has no 64 bits"
)
def test_float64_points_without_64_bits():
    if not has_float64():
        k = geometry.gaussian_curvature(quadratic(2, 3), np.float64(X))
        assert keras.backend.standardize_dtype(k.dtype) == "float32"
