"""Angle excess is the integral of curvature, on every kind of surface."""

import numpy as np
import pytest
from scipy.integrate import romb

from keras_gating import geometry
from tests.geometry.geodesic_maps import CYLINDER
from tests.geometry.geodesic_maps import PSEUDOSPHERE
from tests.geometry.geodesic_maps import SADDLE
from tests.geometry.geodesic_maps import hyperboloid
from tests.geometry.geodesic_maps import sphere
from tests.geometry.geodesic_maps import sphere_point
from tests.geometry.maps import numpy64
from tests.utils import assert_close

CATENOID = geometry.surfaces.catenoid()

DTYPES = [
    pytest.param("float32", 1e-5, id="float32"),
    pytest.param("float64", 1e-8, id="float64", marks=pytest.mark.float64),
]

# Curvature times area of the chart, and vertices of triangles.
SURFACES = {
    "sphere": (
        sphere,
        lambda x, y: 4 / (1 + x**2 + y**2) ** 2,
        [[-0.5, -0.3], [0.8, -0.4], [0.2, 1.1]],
    ),
    "saddle": (
        SADDLE,
        lambda x, y: -((1 + x**2 + y**2) ** -1.5),
        [[-1.0, -1.0], [1.0, -0.8], [0.3, 1.0]],
    ),
    "catenoid": (
        CATENOID,
        lambda u, v: -(np.cosh(v) ** -2),
        [[0.0, -1.0], [1.5, -0.7], [0.6, 1.2]],
    ),
    "pseudosphere": (
        PSEUDOSPHERE,
        lambda u, v: -np.tanh(u) / np.cosh(u),
        [[0.6, 0.0], [2.0, 0.9], [0.7, 1.5]],
    ),
}


def integral(density, points, velocities):
    """Over what the sides enclose: in cones from the first vertex, with signs.

    Args:
        density: function of the chart's coordinates.
        points: of the three sides, (3, 2ⁿ + 1, 2).
        velocities: the same.
    """
    nodes, weights = np.polynomial.legendre.leggauss(40)
    nodes, weights = (nodes + 1) / 2, weights / 2
    origin = points[0, 0]
    rays = points - origin
    x = origin + nodes[:, None] * rays[..., None, :]
    along = (density(x[..., 0], x[..., 1]) * nodes) @ weights
    cross = (
        rays[..., 0] * velocities[..., 1] - rays[..., 1] * velocities[..., 0]
    )
    return romb(along * cross, dx=1 / (points.shape[1] - 1)).sum()


@pytest.mark.parametrize("dtype, tolerance", DTYPES)
@pytest.mark.parametrize("name", SURFACES)
def test_excess_is_the_integral_of_the_curvature(name, dtype, tolerance):
    f, density, vertices = SURFACES[name]
    vertices = np.array(vertices, dtype)
    triangle = geometry.geodesic_triangle(f, *vertices, steps=64)
    sides = geometry.geodesic(
        f, vertices, np.roll(vertices, -1, axis=0), steps=64
    )
    expected = integral(
        density, numpy64(sides.points), numpy64(sides.velocities)
    )
    assert abs(expected) > 0.3
    excess = float(triangle.excess)
    assert abs(excess - expected) < tolerance
    assert abs(numpy64(triangle.angles).sum() - np.pi - excess) < tolerance
    assert_close(triangle.sides, sides.length, tolerance)
    assert_close(triangle.points, sides.points, tolerance)


@pytest.mark.parametrize("dtype, tolerance", DTYPES)
def test_spherical_trigonometry(dtype, tolerance):
    rng = np.random.default_rng(0)
    a, b, c = rng.uniform(-0.7, 0.7, size=(3, 4, 2)).astype(dtype)
    triangle = geometry.geodesic_triangle(sphere, a, b, c)
    a, b, c = (sphere_point(np.float64(x)) for x in (a, b, c))

    def at(p, q, r):
        """The angle at p between the great circles to q and r."""
        volume = np.abs(np.sum(p * np.cross(q, r), axis=-1))
        product = np.sum(np.cross(p, q) * np.cross(p, r), axis=-1)
        return np.arctan2(volume, product)

    angles = np.stack([at(a, b, c), at(b, c, a), at(c, a, b)], axis=-1)
    assert np.abs(numpy64(triangle.angles) - angles).max() < tolerance
    excess = angles.sum(axis=-1) - np.pi
    assert np.abs(numpy64(triangle.excess) - excess).max() < tolerance
    # L'Huilier's formula knows the sides only.
    s = numpy64(triangle.sides)
    half = s.sum(axis=-1, keepdims=True) / 2
    product = np.tan(half[..., 0] / 2) * np.tan((half - s) / 2).prod(axis=-1)
    from_sides = 4 * np.arctan(np.sqrt(product))
    assert np.abs(from_sides - excess).max() < 5 * tolerance


@pytest.mark.parametrize("dtype, tolerance", DTYPES)
def test_hyperbolic_trigonometry(dtype, tolerance):
    vertices = np.array([[0.0, 0.0], [0.6, 0.1], [-0.2, 0.7]], dtype)
    triangle = geometry.geodesic_triangle(
        hyperboloid, *vertices, covariance=np.array([1.0, 1.0, -1.0])
    )
    s, angles = numpy64(triangle.sides), numpy64(triangle.angles)
    # The side opposite to the first vertex is the second.
    opposite, left, right = s[1], s[0], s[2]
    cosine = (np.cosh(left) * np.cosh(right) - np.cosh(opposite)) / (
        np.sinh(left) * np.sinh(right)
    )
    assert abs(np.arccos(cosine) - angles[0]) < tolerance
    # The projection keeps the angle at the origin.
    b, c = np.float64(vertices[1:])
    expected = np.arctan2(b[0] * c[1] - b[1] * c[0], b @ c)
    assert abs(angles[0] - expected) < tolerance
    assert float(triangle.excess) < 0


def test_flat_surfaces_have_no_excess():
    a, b, c = np.random.default_rng(1).normal(size=(3, 10, 2))
    triangle = geometry.geodesic_triangle(
        CYLINDER, *(x.astype("float32") for x in (a, b, c))
    )
    assert np.abs(numpy64(triangle.excess)).max() < 1e-5
    assert_close(triangle.sides[:, 0], np.linalg.norm(b - a, axis=-1), 1e-6)


def test_excess_is_additive_and_ignores_the_orientation():
    a, b, c = np.array(SURFACES["saddle"][2], "float32")
    whole = geometry.geodesic_triangle(SADDLE, a, b, c, steps=2)
    middle = numpy64(whole.points)[1, 1].astype("float32")
    first = geometry.geodesic_triangle(SADDLE, a, b, middle)
    second = geometry.geodesic_triangle(SADDLE, a, middle, c)
    parts = float(first.excess) + float(second.excess)
    assert abs(float(whole.excess) - parts) < 1e-5
    mirrored = geometry.geodesic_triangle(SADDLE, a, c, b)
    assert abs(float(whole.excess) - float(mirrored.excess)) < 1e-6
    assert_close(mirrored.angles, numpy64(whole.angles)[[0, 2, 1]], 1e-6)


def test_batches_and_broadcasting():
    vertices = np.array(SURFACES["saddle"][2], "float32")
    batch = np.stack([vertices, vertices[::-1] * 0.7])
    many = geometry.geodesic_triangle(
        SADDLE, batch[:, 0], batch[:, 1], batch[0, 2], steps=4
    )
    assert tuple(many.sides.shape) == (2, 3)
    assert tuple(many.angles.shape) == (2, 3)
    assert tuple(many.excess.shape) == (2,)
    assert tuple(many.points.shape) == (2, 3, 5, 2)
    one = geometry.geodesic_triangle(
        SADDLE, batch[1, 0], batch[1, 1], batch[0, 2]
    )
    assert_close(many.angles[1], one.angles, 1e-6)
    assert tuple(one.excess.shape) == ()


def test_coinciding_vertices_have_no_angle():
    a, b, _ = np.array(SURFACES["saddle"][2], "float32")
    triangle = geometry.geodesic_triangle(SADDLE, a, a, b)
    assert np.isnan(numpy64(triangle.angles)[:2]).all()
    assert np.isnan(float(triangle.excess))
    assert float(triangle.sides[0]) == 0.0


def test_bad_arguments():
    a, b, c = np.zeros((3, 2), "float32")
    with pytest.raises(ValueError, match=r"'c': \(3,\)"):
        geometry.geodesic_triangle(SADDLE, a, b, np.zeros(3))
    with pytest.raises(ValueError, match="`b` must be finite"):
        geometry.geodesic_triangle(SADDLE, a, b + np.nan, c)
    with pytest.raises(ValueError, match="steps=-1"):
        geometry.geodesic_triangle(SADDLE, a, b, c, steps=-1)
