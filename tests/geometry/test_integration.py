"""Gauss–Bonnet, what integrals do not depend on, and what they drop."""

import math

import keras
import numpy as np
import pytest
from keras import ops

from keras_gating import geometry
from keras_gating.geometry import surfaces
from tests.geometry.maps import has_float64
from tests.geometry.maps import quadratic
from tests.marks import not_on_tensorflow
from tests.utils import tensor


@pytest.mark.float64
def test_gauss_bonnet():
    sphere, saddle = surfaces.sphere(2.0), surfaces.saddle()
    total = geometry.total_curvature(sphere, sphere.bounds, 64)
    assert abs(total.value - 4.0 * math.pi) < 1e-10
    assert total.dropped == 0.0
    value, dropped = geometry.total_curvature(saddle, saddle.bounds)
    assert abs(value + 2.0 * math.pi / 3.0) < 1e-10
    assert dropped == 0.0


@pytest.mark.float64
def test_torus():
    torus = surfaces.torus()
    signed = geometry.total_curvature(torus, torus.bounds, 64)
    assert abs(signed.value) < 1e-10
    total = geometry.total_curvature(torus, torus.bounds, 64, absolute=True)
    assert abs(total.value - 8.0 * math.pi) < 1e-2


@not_on_tensorflow
@pytest.mark.float64
def test_higher_dimensions():
    """On S³, ∫ |S|^(3/2) dV = 6^(3/2) vol, whatever the radius."""

    def spread(y):  # all of R³ from a cube
        return y / (1.0 - y * y)

    volume = 2.0 * math.pi**2
    for radius in (1.0, 5.0):
        sphere = surfaces.hypersphere(3, radius)

        def f(y):
            return sphere(spread(y))  # noqa: B023

        total = geometry.total_curvature(f, [(-1, 1)] * 3, 24, absolute=True)
        np.testing.assert_allclose(total.value, 6**1.5 * volume, rtol=1e-5)


@pytest.mark.float64
def test_bending():
    """On a sphere ‖II‖² = 2/r²; on a cylinder 1/r²; both times the area."""
    sphere, cylinder = surfaces.sphere(3.0), surfaces.cylinder(3.0)
    bent = geometry.total_bending(sphere, sphere.bounds)
    np.testing.assert_allclose(bent.value, 8.0 * math.pi, rtol=1e-10)
    bent = geometry.total_bending(cylinder, cylinder.bounds, 32)
    np.testing.assert_allclose(bent.value, 4.0 * math.pi / 3.0, rtol=1e-10)


def test_scale_and_chart_change_nothing():
    f = quadratic(2, 4)
    bounds = ((-1.0, 0.5), (0.0, 1.0))
    one = geometry.total_curvature(f, bounds, 24, absolute=True).value

    def large(x):
        return 100.0 * f(x)

    other = geometry.total_curvature(large, bounds, 24, absolute=True).value
    np.testing.assert_allclose(other, one, rtol=1e-3)
    # u ↦ u³ + u of the first coordinate, from (-1, 1/2) to (-2, 5/8).

    def chart(y):
        return ops.concatenate(
            [y[:, :1] * (y[:, :1] ** 2 + 1.0), y[:, 1:]], axis=-1
        )

    wide = ((-2.0, 0.625), (0.0, 1.0))
    one = geometry.total_curvature(f, wide, 24, absolute=True).value
    through = geometry.total_curvature(
        lambda y: f(chart(y)), bounds, 24, absolute=True
    )
    np.testing.assert_allclose(through.value, one, rtol=1e-2)


def test_in_batches():
    f, bounds = quadratic(2, 3), ((0.0, 1.0), (0.0, 1.0))
    whole = geometry.total_curvature(f, bounds, 7)
    parts = geometry.total_curvature(f, bounds, 7, batch_size=10)
    np.testing.assert_allclose(parts.value, whole.value, rtol=1e-5)


def test_degenerate_nodes_are_dropped():
    # One half of the patch is collapsed onto a line.
    saddle = surfaces.saddle()

    def half(x):
        return saddle(ops.concatenate([x[:, :1], ops.relu(x[:, 1:])], axis=-1))

    value, dropped = geometry.total_curvature(half, saddle.bounds, 32)
    assert dropped == 0.5
    whole = geometry.total_curvature(saddle, ((-1, 1), (0, 1)), 32)
    assert whole.dropped == 0.0
    np.testing.assert_allclose(value, whole.value, rtol=0.05)
    # Where the image shrinks to a millionth, curvature is rounding.

    def size(x):
        # Compared as it is, TensorFlow has no second derivative.
        side = ops.stop_gradient(x[:, :1])
        return 1e-08 + (1.0 - 1e-08) * ops.cast(side > 0, x.dtype)

    def shrunk(x):
        return size(x) * saddle(x)

    assert geometry.total_curvature(shrunk, saddle.bounds, 8).dropped == 0.5

    def line(x):
        return ops.concatenate([x[:, :1], x[:, :1]], -1)

    value, dropped = geometry.total_curvature(line, saddle.bounds, 4)
    assert math.isnan(value) and dropped == 1.0


def test_nodes_have_the_precision_that_the_map_takes():
    seen = []

    def f(x):
        seen.append(keras.backend.standardize_dtype(x.dtype))
        return ops.concatenate([x, x[:, :1] * x[:, 1:]], axis=-1)

    bounds = ((0.0, 1.0), (0.0, 1.0))
    geometry.total_curvature(f, bounds, 3)
    assert set(seen) == {"float64" if has_float64() else "float32"}
    del seen[:]
    geometry.total_curvature(f, bounds, 3, dtype="float32")
    assert set(seen) == {"float32"}

    def strict(x):
        if keras.backend.standardize_dtype(x.dtype) != "float32":
            raise TypeError("mixed dtypes")
        return f(x)

    assert geometry.total_curvature(strict, bounds, 3).value < 0


@pytest.mark.parametrize(
    "bounds",
    [
        None,
        1.0,
        (0.0, 1.0),
        ((0.0, 1.0),),
        ((0.0, 1.0), (1.0, 1.0)),
        ((0.0, 1.0), (2.0, 1.0)),
        ((0.0, 1.0), (0.0, math.inf)),
        ((0.0, 1.0, 2.0), (0.0, 1.0, 2.0)),
        "ab",
    ],
)
def test_bounds_that_are_none(bounds):
    with pytest.raises(ValueError, match="bounds"):
        geometry.total_curvature(surfaces.saddle(), bounds)


@pytest.mark.parametrize("resolution", [0, -1, 2.0, None, "3", True])
def test_resolution_that_is_none(resolution):
    with pytest.raises(ValueError, match="resolution"):
        geometry.total_curvature(
            surfaces.saddle(), surfaces.saddle().bounds, resolution
        )


def test_signed_integrals_are_those_of_surfaces():
    sphere = surfaces.hypersphere(3)
    with pytest.raises(ValueError, match="absolute=True"):
        geometry.total_curvature(sphere, sphere.bounds, 4)
    with pytest.raises(ValueError, match="dtype='int8'"):
        geometry.total_curvature(
            surfaces.saddle(), surfaces.saddle().bounds, 4, dtype="int8"
        )
    with pytest.raises(ValueError, match="covariance"):
        geometry.total_curvature(
            surfaces.saddle(),
            surfaces.saddle().bounds,
            4,
            covariance=tensor(np.ones((2, 2, 2)), "float32"),
        )
