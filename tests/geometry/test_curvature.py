"""Curvature against textbook formulas, and what leaves it unchanged."""

import functools

import numpy as np
import pytest
from keras import ops

from keras_gating import geometry
from keras_gating.geometry import surfaces
from tests.geometry.maps import numpy64
from tests.geometry.maps import points
from tests.geometry.maps import quadratic
from tests.reference import geometry as reference
from tests.utils import assert_close
from tests.utils import tensor

pytestmark = pytest.mark.float64

K, D, COUNT = 3, 6, 7
X = points(COUNT, K, dtype="float64", spread=0.5)
U, V = points(2, COUNT, K, seed=1, dtype="float64")
ROOT = points(D, D, seed=2, dtype="float64")
COVARIANCES = {
    "euclidean": None,
    "full": ROOT @ ROOT.T / D + np.eye(D),
    "diagonal": np.array([0.5, 1.0, 2.0, 4.0, 1.0, 0.1]),
    # Tangent spaces with directions of both signs, and oblique ones.
    "signature": np.array([1.0, 1.0, -1.0, 1.0, -1.0, 1.0]),
    "indefinite": ROOT + ROOT.T,
}
FUNCTIONS = {
    "christoffel_symbols": reference.christoffel,
    "second_fundamental_form": reference.second_fundamental_form,
    "riemann_tensor": reference.riemann,
    "ricci_curvature": reference.ricci,
    "scalar_curvature": reference.scalar,
    "mean_curvature": reference.mean,
}
PAIRS = [(name, "euclidean") for name in FUNCTIONS]
PAIRS += [("ricci_curvature", "full"), ("mean_curvature", "full")]
PAIRS += [
    ("riemann_tensor", "signature"),
    ("second_fundamental_form", "diagonal"),
]
PAIRS += [(name, "indefinite") for name in FUNCTIONS]


@functools.cache
def example(k=K):
    """A map, its points and its derivatives (constant second ones)."""
    f = quadratic(k, D, seed=5, dtype="float64")
    x = X[:, :k]
    j, h = geometry.jacobian(f, x), geometry.hessian(f, x)
    return f, x, numpy64(j), numpy64(h)


def inverse(form):
    covariance = COVARIANCES[form]
    if covariance is None:
        return np.eye(D)
    full = np.diag(covariance) if covariance.ndim == 1 else covariance
    return np.linalg.inv(full)


@pytest.mark.parametrize(("name", "form"), PAIRS)
def test_equals_the_textbook(name, form):
    f, x, j, h = example()
    actual = getattr(geometry, name)(f, x, covariance=COVARIANCES[form])
    assert_close(actual, FUNCTIONS[name](j, h, inverse(form)), 1e-9)


@pytest.mark.parametrize("form", ["euclidean", "full", "indefinite"])
def test_sectional_curvature_equals_the_textbook(form):
    f, x, j, h = example()
    covariance = COVARIANCES[form]
    actual = geometry.sectional_curvature(f, x, U, V, covariance=covariance)
    expected = reference.sectional(j, h, inverse(form), U, V)
    assert_close(actual, expected, 1e-9)
    # It belongs to the plane, not to the vectors that span it.
    other = geometry.sectional_curvature(
        f, x, 1e3 * (U + 2.0 * V), V - U, covariance=covariance
    )
    assert_close(other, expected, 1e-9)


@pytest.mark.parametrize("form", ["euclidean", "full", "indefinite"])
def test_gaussian_curvature_equals_the_textbook(form):
    f, x, j, h = example(2)
    actual = geometry.gaussian_curvature(f, x, COVARIANCES[form])
    assert_close(actual, reference.gaussian(j, h, inverse(form)), 1e-9)


@pytest.mark.parametrize("form", ["euclidean", "full"])
def test_curve_curvature_equals_the_textbook(form):
    f, x, j, h = example()
    actual = geometry.curve_curvature(f, x, U, covariance=COVARIANCES[form])
    assert_close(actual, reference.curve(j, h, inverse(form), U), 1e-9)
    same = geometry.curve_curvature(f, x, -3.0 * U, COVARIANCES[form])
    assert_close(same, actual, 1e-9)


def test_the_functions_agree_on_a_surface():
    f, x, _, _ = example(2)
    k = numpy64(geometry.gaussian_curvature(f, x))
    e = np.eye(2)
    sectional = geometry.sectional_curvature(f, x, e[0], e[1])
    assert_close(sectional, k, 1e-11)
    assert_close(geometry.scalar_curvature(f, x), 2.0 * k, 1e-11)
    ricci = k[:, None, None] * numpy64(geometry.metric(f, x))
    assert_close(geometry.ricci_curvature(f, x), ricci, 1e-11)


def test_symmetries_of_the_riemann_tensor():
    f, x, _, _ = example()
    r = numpy64(geometry.riemann_tensor(f, x))
    scale = np.abs(r).max()

    def same(a, b):
        np.testing.assert_allclose(a, b, rtol=0.0, atol=1e-12 * scale)

    same(r, -np.einsum("nijkl->njikl", r))
    same(r, -np.einsum("nijkl->nijlk", r))
    same(r, np.einsum("nijkl->nklij", r))
    cycle = np.einsum("nijkl->niklj", r) + np.einsum("nijkl->niljk", r)
    same(r + cycle, 0.0 * r)


def test_invariance_under_motions_scale_and_charts():
    f, x, _, _ = example(2)
    k = numpy64(geometry.gaussian_curvature(f, x))
    rotation, _ = np.linalg.qr(ROOT)
    rotation, shift = tensor(rotation), tensor(U[0].repeat(2))
    scale = 3.0

    def moved(x):
        return ops.einsum("ab,nb->na", rotation, f(x)) * scale + shift

    assert_close(geometry.gaussian_curvature(moved, x), k / scale**2, 1e-10)
    assert_close(
        geometry.gaussian_curvature(f, x, scale**-2 * np.ones(D)),
        k / scale**2,
        1e-10,
    )

    def chart(y):
        a, b = y[:, :1], y[:, 1:]
        return ops.concatenate([a + ops.exp(b) / 2.0, a * b - 2.0 * b], axis=1)

    y = points(COUNT, 2, seed=9, dtype="float64", spread=0.3)
    through = geometry.gaussian_curvature(lambda y: f(chart(y)), y)
    direct = geometry.gaussian_curvature(f, chart(tensor(y)))
    assert_close(through, direct, 1e-10)


def test_helicoid_and_catenoid_are_isometric():
    angle, height = points(2, 20, dtype="float64")
    on_catenoid = np.stack([angle, height], axis=-1)
    on_helicoid = np.stack([np.sinh(height), angle], axis=-1)
    catenoid, helicoid = surfaces.catenoid(), surfaces.helicoid()
    assert_close(
        geometry.gaussian_curvature(catenoid, on_catenoid),
        geometry.gaussian_curvature(helicoid, on_helicoid),
        1e-12,
    )
    # Both are minimal.
    for surface, x in ((catenoid, on_catenoid), (helicoid, on_helicoid)):
        mean = numpy64(geometry.mean_curvature(surface, x))
        np.testing.assert_allclose(mean, 0.0, atol=1e-14)


def test_sphere_in_the_signature_of_the_hyperboloid():
    """One map, two metrics: the gate (1 + κ|u|²)^(-1/2) of κ = −1."""

    def hyperboloid(u):
        square = ops.sum(u * u, axis=-1, keepdims=True)
        point = ops.concatenate([u, ops.ones_like(square)], axis=-1)
        return point / ops.sqrt(1.0 - square)

    x = points(9, 3, dtype="float64", spread=0.25)
    signature = np.diag([1.0, 1.0, 1.0, -1.0])
    minus = geometry.sectional_curvature(
        hyperboloid, x, [1.0, 0.5, 0.0], [0.0, 1.0, 2.0], covariance=signature
    )
    assert_close(minus, -np.ones(9), 1e-10)
    plus = numpy64(geometry.gaussian_curvature(hyperboloid, x[:, :2]))
    assert np.all(plus > 0)
    # De Sitter's space: tangent planes with a direction in time.

    def time(u):
        return ops.concatenate(
            [u, ops.ones_like(u[:, :1])], axis=-1
        ) / ops.sqrt(1.0 + u[:, :1] ** 2 - u[:, 1:] ** 2)

    ones = geometry.gaussian_curvature(time, x[:, :2], [1.0, -1.0, 1.0])
    assert_close(ones, np.ones(9), 1e-10)


def test_curves():

    def circle(t):
        return (
            ops.concatenate([1.0 - t * t, 2.0 * t], axis=-1)
            * 3.0
            / (1.0 + t * t)
        )

    t = points(8, 1, dtype="float64")
    kappa = geometry.curve_curvature(circle, t, [1.0])
    assert_close(kappa, np.full(8, 1 / 3), 1e-12)
    normal = numpy64(geometry.mean_curvature(circle, t))
    np.testing.assert_allclose(normal, -numpy64(circle(tensor(t))) / 9, 1e-11)

    def line(t):
        return ops.concatenate([ops.exp(t), ops.exp(t)], -1)

    straight = numpy64(geometry.curve_curvature(line, t, [1.0]))
    np.testing.assert_allclose(straight, 0.0, atol=1e-14)
    np.testing.assert_array_equal(geometry.scalar_curvature(circle, t), 0.0)


def test_mean_curvature_of_a_sphere_points_inwards():
    sphere = surfaces.hypersphere(3, radius=2.0)
    x = points(9, 3, dtype="float64")
    expected = -numpy64(sphere(x)) / 4.0
    assert_close(geometry.mean_curvature(sphere, x), expected, 1e-12)
    form = numpy64(geometry.second_fundamental_form(sphere, x))
    metric = numpy64(geometry.metric(sphere, x))
    assert_close(form, np.einsum("na,nij->naij", expected, metric), 1e-11)
