"""Every function inside of a function that the user compiles."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_gating import geometry
from keras_gating.geometry import surfaces
from tests.geometry.maps import points
from tests.utils import normal
from tests.utils import tensor
from tests.utils import to_numpy

BACKEND = keras.config.backend()
SCORES, VALUES, GATE = (
    normal(*shape, seed=seed)
    for seed, shape in enumerate([(2, 3), (3, 4), (2, 4)])
)
X = np.float32(points(5, 2))
U, V = np.float32([1.0, 0.5]), np.float32([-0.5, 2.0])


def gated(x):
    weights = ops.softmax(ops.matmul(x, SCORES), axis=-1)
    return ops.matmul(weights, VALUES) * ops.sigmoid(ops.matmul(x, GATE))


def everything(f, x):
    return {
        "jacobian": geometry.jacobian(f, x),
        "hessian": geometry.hessian(f, x),
        "metric": geometry.metric(f, x),
        "christoffel": geometry.christoffel_symbols(f, x),
        "second form": geometry.second_fundamental_form(f, x),
        "gaussian": geometry.gaussian_curvature(f, x),
        "sectional": geometry.sectional_curvature(f, x, U, V),
        "ricci": geometry.ricci_curvature(f, x),
        "scalar": geometry.scalar_curvature(f, x),
        "riemann": geometry.riemann_tensor(f, x),
        "mean": geometry.mean_curvature(f, x),
        "curve": geometry.curve_curvature(f, x, U),
    }


def with_xla(function):
    if BACKEND == "jax":
        import jax

        return jax.jit(function)
    import tensorflow as tf

    return tf.function(function, jit_compile=True)


@pytest.mark.skipif(BACKEND == "torch", reason="has no XLA")
@pytest.mark.parametrize(
    "f", [gated, surfaces.saddle()], ids=["gated", "saddle"]
)
def test_compiles_with_xla(f):
    expected = everything(f, X)
    actual = with_xla(lambda x: everything(f, x))(tensor(X))
    for name, value in expected.items():
        np.testing.assert_allclose(
            to_numpy(actual[name]),
            to_numpy(value),
            rtol=1e-4,
            atol=1e-5,
            err_msg=name,
        )
