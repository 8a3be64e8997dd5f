"""First and second derivatives: right, batched, and never stale."""

import itertools

import keras
import numpy as np
import pytest
from keras import ops

from keras_gating import _backend
from keras_gating import geometry
from tests.geometry.maps import gated_attention
from tests.geometry.maps import numpy64
from tests.geometry.maps import points
from tests.geometry.maps import quadratic
from tests.utils import assert_close
from tests.utils import tensor


def product(x):
    return x[:, :1] * x[:, 1:]


def cube(x):
    return (x * x) * x


ORDERS = list(itertools.permutations(["product", "cube", "product"]))


@pytest.mark.parametrize("order", sorted(set(ORDERS)))
def test_nested_forward_mode_in_any_order_of_calls(order):
    # Both are wrong on TensorFlow outside a compiled function.
    for name in order:
        if name == "product":
            h = geometry.hessian(product, tensor([[0.3, 0.7]], "float32"))
            np.testing.assert_array_equal(
                numpy64(h)[0, 0], [[0.0, 1.0], [1.0, 0.0]]
            )
        else:
            h = geometry.hessian(cube, tensor([[0.3]], "float32"))
            np.testing.assert_allclose(numpy64(h), 1.8, rtol=1e-6)


def reverse_over_forward(f, x):
    """Hessians by the backend's own reverse mode over forward mode."""
    backend = keras.config.backend()
    if backend == "jax":
        import jax

        def single(p):
            return f(p[None])[0]

        return jax.vmap(jax.jacrev(jax.jacfwd(single)))(x)
    if backend == "torch":
        import torch

        def single(p):
            return f(p[None])[0]

        jacobian = torch.func.jacfwd(single)
        return torch.func.vmap(torch.func.jacrev(jacobian))(x)
    import tensorflow as tf

    rows = []
    for direction in np.eye(x.shape[-1]):
        tangent = tf.zeros_like(x) + tf.constant(direction, x.dtype)
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            with tf.autodiff.ForwardAccumulator(x, tangent) as forward:
                y = f(x)
            first = forward.jvp(y)
        rows.append(tape.batch_jacobian(first, x))
    return tf.stack(rows, axis=2)


@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    [
        ("float32", 1e-5),
        pytest.param("float64", 1e-13, marks=pytest.mark.float64),
    ],
)
def test_equals_reverse_over_forward_on_gated_maps(dtype, tolerance):
    f = gated_attention(1, dtype)
    x = tensor(points(50, 2, dtype=dtype))
    expected = reverse_over_forward(f, x)
    assert_close(geometry.hessian(f, x), expected, tolerance)


def test_shapes_and_values_of_a_quadratic_map():
    f = quadratic(3, 4)
    x = points(2, 5, 3)
    jacobian, hessian = geometry.jacobian(f, x), geometry.hessian(f, x)
    assert tuple(jacobian.shape) == (2, 5, 4, 3)
    assert tuple(hessian.shape) == (2, 5, 4, 3, 3)
    at_zero = geometry.jacobian(f, 0 * x)
    expected = numpy64(at_zero) + np.einsum(
        "...aij,...j->...ai", numpy64(hessian), x
    )
    assert_close(jacobian, expected, 1e-5)
    assert_close(hessian, np.broadcast_to(hessian[0, 0], hessian.shape), 1e-6)
    single = geometry.jacobian(f, x[0, 0])
    assert_close(single, jacobian[0, 0], 1e-6)


def test_maps_that_do_not_depend_on_all_of_the_input():
    x = points(3, 2)

    def constant(x):
        return ops.ones_like(x)

    assert_close(geometry.jacobian(constant, x), np.zeros((3, 2, 2)), 0.0)
    assert_close(geometry.hessian(constant, x), np.zeros((3, 2, 2, 2)), 0.0)

    def first(x):
        return 2.0 * x[:, :1]

    expected = np.broadcast_to([[2.0, 0.0]], (3, 1, 2))
    assert_close(geometry.jacobian(first, x), expected, 0.0)
    assert_close(geometry.hessian(first, x), np.zeros((3, 1, 2, 2)), 0.0)


def test_slices_and_splits_inside_the_map():
    """As rotary embeddings and packed kernels have them."""

    def f(x):
        left, right = ops.split(
            ops.exp(ops.concatenate([x, x * x], axis=-1)), 2, axis=-1
        )
        return ops.concatenate([left[:, :1] * right, left], axis=-1)

    x = points(4, 2, spread=0.5)
    a, b = numpy64(x).T
    hessian = numpy64(geometry.hessian(f, x))
    expected = np.exp(a + b * b)
    np.testing.assert_allclose(hessian[:, 1, 0, 1], 2 * b * expected, 1e-4)
    np.testing.assert_allclose(hessian[:, 2, 0, 0], np.exp(a), 1e-4)


@pytest.mark.parametrize("batch_size", [1, 4, 6, 100])
def test_batches_change_nothing(batch_size):
    f = quadratic(2, 4)
    x = points(11, 2)
    whole = geometry.metric(f, x)
    batched = geometry.metric(f, x, batch_size=batch_size)
    assert_close(batched, whole, 1e-6)


def test_no_points_at_all():
    x = np.zeros((0, 2), "float32")
    assert tuple(geometry.hessian(quadratic(2, 4), x).shape) == (0, 4, 2, 2)


def test_the_automatic_batch_is_bounded(monkeypatch):
    seen = []
    f = quadratic(2, 3)

    def compiled(function, xla=True):
        def call(values, x):
            seen.append(x.shape[0])
            return function(values, x)

        return call

    if keras.config.backend() == "tensorflow":
        pytest.skip("needs the map uncompiled, which is wrong there")
    monkeypatch.setattr(_backend, "compiled", compiled)
    count = 40_000
    out = geometry.jacobian(lambda x: 2.0 * f(x), points(count, 2))
    assert out.shape[0] == count
    assert len(seen) == 3 and len(set(seen)) == 1 and seen[0] < 14_000
    del seen[:]

    def wide(x):
        return ops.repeat(x, 50000, axis=-1)

    assert geometry.jacobian(wide, points(20, 2)).shape[0] == 20
    assert max(seen) < 20


def test_covariance_of_the_metric():
    f = quadratic(2, 3)
    x = points(5, 2)
    j = numpy64(geometry.jacobian(f, x))
    root = points(3, 3, seed=3)
    for covariance in (
        root @ root.T + np.eye(3, dtype="float32"),
        np.array([1.0, 4.0, 0.25], "float32"),
        np.diag([1.0, 1.0, -1.0]).astype("float32"),
    ):
        full = np.diag(covariance) if covariance.ndim == 1 else covariance
        inverse = np.linalg.inv(np.float64(full))
        expected = np.einsum("nai,ab,nbj->nij", j, inverse, j)
        assert_close(geometry.metric(f, x, covariance), expected, 1e-5)
        assert_close(geometry.metric(f, x, tensor(covariance)), expected, 1e-5)
