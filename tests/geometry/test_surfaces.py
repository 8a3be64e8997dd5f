"""Closed forms, in both precisions."""

import math

import numpy as np
import pytest

from keras_gating import geometry
from keras_gating.geometry import surfaces
from tests.geometry.maps import numpy64
from tests.marks import not_on_tensorflow
from tests.utils import assert_close
from tests.utils import tensor

SURFACES = [
    surfaces.sphere(0.5),
    surfaces.ellipsoid(),
    surfaces.cylinder(2.0),
    surfaces.cone(0.7),
    surfaces.torus(),
    surfaces.flat_torus(1.0, 2.0),
    surfaces.saddle(),
    surfaces.monkey_saddle(),
    surfaces.catenoid(1.5),
    surfaces.helicoid(0.5),
    surfaces.pseudosphere(2.0),
    surfaces.veronese(),
]
by_name = pytest.mark.parametrize(
    "surface", SURFACES, ids=lambda surface: surface.name
)


def patch(surface, count, dtype):
    """Random points, a little off the edges, where some degenerate."""
    rng = np.random.default_rng(0)
    low, high = np.array(surface.bounds).T
    share = rng.uniform(0.02, 0.98, (count, len(low)))
    return (low + (high - low) * share).astype(dtype)


def differences(surface, x, step=1e-2):
    """The Jacobian, as well as float32 and differences have it."""
    columns = [
        numpy64(surface(x + step * e)) - numpy64(surface(x - step * e))
        for e in np.eye(x.shape[-1], dtype="float32")
    ]
    return np.stack(columns, axis=-1) / (2.0 * step)


@pytest.mark.float64
@by_name
def test_closed_form_in_float64(surface):
    x = patch(surface, 300, "float64")
    k = numpy64(geometry.gaussian_curvature(surface, x))
    expected = numpy64(surface.gaussian_curvature(x))
    scale = numpy64(geometry.curvature_scale(surface, x))
    # Where nothing bends at all the scale itself is rounding.
    assert np.all(np.abs(k - expected) <= 1e-8 * scale + 1e-26)


@by_name
def test_closed_form_in_float32(surface):
    x = patch(surface, 2000, "float32")
    k = numpy64(geometry.gaussian_curvature(surface, x))
    expected = numpy64(surface.gaussian_curvature(x))
    scale = numpy64(geometry.curvature_scale(surface, x))
    fair = np.linalg.cond(differences(surface, x)) < 30
    assert np.mean(fair) > 0.5
    close = np.abs(k - expected) <= 1e-3 * scale + 1e-9
    assert np.mean(close[fair]) >= 0.98


@not_on_tensorflow
@pytest.mark.float64
@pytest.mark.parametrize("dimension", [2, 4])
def test_hypersphere(dimension):
    sphere = surfaces.hypersphere(dimension, radius=2.0)
    x = patch(sphere, 30, "float64")
    assert_close(
        geometry.scalar_curvature(sphere, x),
        np.full(30, dimension * (dimension - 1) / 4),
        1e-12,
    )
    assert_close(sphere.sectional_curvature(x), np.full(30, 0.25), 1e-12)
    assert_close(
        sphere.scalar_curvature(x), geometry.scalar_curvature(sphere, x), 1e-12
    )
    rng = np.random.default_rng(1)
    u, v = rng.normal(size=(2, 30, dimension))
    k = geometry.sectional_curvature(sphere, x, u, v)
    assert_close(k, np.full(30, 0.25), 1e-11)


@pytest.mark.float64
def test_points_lie_on_the_surface():
    x = patch(surfaces.sphere(), 50, "float64")
    square = np.sum(numpy64(surfaces.sphere(3.0)(x)) ** 2, axis=-1)
    np.testing.assert_allclose(square, 9.0, rtol=1e-14)
    theta, phi = x.T
    expected = np.stack(
        [
            3 * np.sin(theta) * np.cos(phi),
            2 * np.sin(theta) * np.sin(phi),
            np.cos(theta),
        ],
        axis=-1,
    )
    assert_close(surfaces.ellipsoid()(x), expected, 1e-14)
    # The chart goes on beyond its bounds.
    far = x + np.array([0.0, 40.0 * math.pi])
    assert_close(surfaces.ellipsoid()(far), expected, 1e-12)


@pytest.mark.parametrize(
    ("surface", "x"),
    [
        (surfaces.sphere(), [0.0, 1.0]),
        (surfaces.cone(), [0.0, 1.0]),
        (surfaces.pseudosphere(), [0.0, 1.0]),
    ],
    ids=["pole", "apex", "rim"],
)
def test_degenerate_points_are_nan(surface, x):
    k = geometry.gaussian_curvature(surface, tensor([x], "float32"))
    assert np.isnan(numpy64(k)).all()


@pytest.mark.parametrize("value", [0.0, -1.0, math.inf, math.nan, "1", True])
def test_sizes_are_positive(value):
    with pytest.raises(ValueError, match="radius"):
        surfaces.sphere(value)


def test_what_does_not_fit():
    with pytest.raises(ValueError, match=r"\(\.\.\., 2\)"):
        surfaces.torus()(np.zeros((4, 3), "float32"))
    with pytest.raises(ValueError, match="dimension=0"):
        surfaces.hypersphere(0)
    with pytest.raises(ValueError, match="surfaces"):
        surfaces.hypersphere(3).gaussian_curvature(np.zeros((4, 3)))
