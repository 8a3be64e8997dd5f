"""Gates of a chosen curvature, measured: sectional curvature is what it says.

Planes are random, so that all of them are seen; several curvatures of one sign
share a call, each on points of its own.
"""

import numpy as np
import pytest
from keras import ops

from keras_gating import functional
from keras_gating import geometry
from keras_gating.layers import CurvatureGate
from tests.geometry.maps import numpy64
from tests.geometry.maps import points
from tests.marks import not_on_tensorflow
from tests.utils import assert_close
from tests.utils import tensor

pytestmark = pytest.mark.float64


def planes(*shape):
    return points(2, *shape, seed=1, dtype="float64")


@not_on_tensorflow
@pytest.mark.parametrize("dimension", [2, 3, 5])
@pytest.mark.parametrize("curvatures", [(-1.0, -0.3), (0.5, 2.0)])
def test_lifted_gnomonic_gates_have_constant_curvature(curvatures, dimension):
    k = np.repeat(curvatures, 8)
    x = points(len(k), dimension, dtype="float64")
    x *= 0.8 / np.linalg.norm(x, axis=-1, keepdims=True)
    x *= np.random.default_rng(2).uniform(size=(len(k), 1))
    sign = np.sign(k[0])

    def f(x):
        return functional.gnomonic(x, tensor(k[:, None]), lift=True)

    measured = geometry.sectional_curvature(
        f,
        x,
        *planes(len(k), dimension),
        covariance=np.append(np.ones(dimension), sign),
        batch_size=len(k),
    )
    assert_close(measured, k, 1e-10)


def test_the_layer_is_a_map_of_geometry():
    """The hyperboloid: −1 under its form, positive under the Euclidean one."""
    layer = CurvatureGate(-1.0, lift=True, dtype="float64")
    x = 0.2 * points(6, 2, dtype="float64")
    k = geometry.gaussian_curvature(layer, x, covariance=[1.0, 1.0, -1.0])
    assert_close(k, -np.ones(6), 1e-10)
    assert np.all(numpy64(geometry.gaussian_curvature(layer, x)) > 0.1)


@not_on_tensorflow
@pytest.mark.parametrize("dimension", [2, 3, 4])
def test_an_exponential_gate_has_constant_negative_euclidean_curvature(
    dimension,
):
    """`a (e^(−t) cos sᵢ, e^(−t) sin sᵢ, artanh q − q)`, `K = −1/a²`.

    An exponential gate on rotary features, which are rational here:
    `(1 − w², 2w)/(1 + w²)`. Curvature does not depend on the chart.
    """
    a = 1.5

    def f(x):
        t, w = x[:, :1], x[:, 1:]
        rotary = ops.concatenate([1.0 - w * w, 2.0 * w], axis=-1)
        rotary = rotary / ops.tile(1.0 + w * w, (1, 2))
        gated = functional.apply_gate(rotary, -t, activation="exponential")
        q = ops.sqrt(1.0 - (dimension - 1.0) * ops.exp(-2.0 * t))
        height = 0.5 * (ops.log(1.0 + q) - ops.log(1.0 - q)) - q
        return a * ops.concatenate([gated, height], axis=-1)

    x = points(8, dimension, dtype="float64")
    # Where q is a number.
    x[:, 0] = 0.8 + np.abs(x[:, 0])
    k = geometry.sectional_curvature(f, x, *planes(8, dimension))
    assert_close(k, np.full(8, -1.0 / a**2), 1e-10)


@not_on_tensorflow
def test_distances_and_the_metric_of_the_model():
    """`4 |dx|² / (1 + κ|x|²)²`, from distances of neighbours to the origin.

    And geometry takes distances in it: a tree's are those of a tree.
    """
    x = 0.3 * points(6, 3, dtype="float64")

    def moved(x):
        # The chart around 0.5 x₀, in the coordinates of its tangent space.
        return functional.mobius_add(tensor(0.1 * np.ones(3)), x, -1.0)

    j = numpy64(geometry.jacobian(moved, x))
    y = numpy64(moved(tensor(x)))

    def factor(x):
        return 4.0 / (1.0 - np.sum(x * x, axis=-1)) ** 2

    # Moving points about is an isometry.
    pulled = np.einsum("nai,naj->nij", j, j) * factor(y)[:, None, None]
    assert_close(pulled, np.eye(3) * factor(x)[:, None, None], 1e-10)
    distances = functional.stereographic_distance(
        tensor(x)[:, None], tensor(x), -1e4
    )
    delta = geometry.gromov_hyperbolicity(distances=distances, relative=True)
    flat = geometry.gromov_hyperbolicity(x, relative=True)
    assert float(delta) < 0.2 * float(flat)
