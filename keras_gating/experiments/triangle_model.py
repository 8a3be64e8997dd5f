"""The surfaces of the triangle experiment, and what is measured on them."""

import dataclasses
import math
import typing

import numpy as np

from keras_gating import geometry
from keras_gating.experiments.extras import require
from keras_gating.experiments.selection import entries_by_name
from keras_gating.geometry import surfaces
from keras_gating.geometry.evaluation import as_numpy

# Of geodesics: 2ⁿ equal parts, for Romberg's rule.
STEPS = 32
# Gauss–Legendre nodes from the first vertex of a triangle to a side.
NODES = 24
# Half the distance of neighbouring geodesics. Their distance has an error of
# its square; rounding is divided by it.
APART = {"float64": 1e-5, "float32": 3e-3}


@dataclasses.dataclass(frozen=True)
class Case:
    """One surface.

    Args:
        name: key of the surface in the results.
        title: the surface in words.
        sign: of its curvature.
        surface: the map from the plane to space, with its curvature.
        centre: of the triangles, in the chart; the geodesics of the
            deviation start here.
        size: how far from it vertices and points are.
        direction: in which the geodesics of the deviation leave.
        length: how far they go.
        separation: their distance after the arc length s over that at the
            start, in closed form.
        separation_text: the same in words.
    """

    name: str
    title: str
    sign: int
    surface: surfaces.Surface
    centre: tuple
    size: float
    direction: tuple
    length: float
    separation: typing.Callable
    separation_text: str


# In skew coordinates, so that the metric is not the identity.
_PLANE = surfaces.Surface(
    "plane",
    ((-1.0, 1.0), (-1.0, 1.0)),
    lambda u, v: (u, 0.5 * u + v, 0.0 * u),
    lambda u, v: 0.0,
)


CASES = (
    Case(
        "plane",
        "plane",
        0,
        _PLANE,
        centre=(0.0, 0.0),
        size=1.0,
        direction=(1.0, 0.0),
        length=2.5,
        separation=np.ones_like,
        separation_text="1",
    ),
    Case(
        "cylinder",
        "cylinder",
        0,
        surfaces.cylinder(),
        centre=(0.0, 0.0),
        size=1.0,
        direction=(1.0, 0.5),
        length=2.5,
        separation=np.ones_like,
        separation_text="1",
    ),
    Case(
        "sphere",
        "sphere",
        1,
        surfaces.sphere(),
        centre=(math.pi / 2.0, 0.0),
        size=0.8,
        direction=(0.0, 1.0),
        length=2.5,
        separation=np.cos,
        separation_text="cos s",
    ),
    Case(
        "saddle",
        "saddle",
        -1,
        surfaces.saddle(),
        centre=(0.0, 0.0),
        size=1.0,
        # The x-axis is a straight line on the surface; along it
        # K = −1/(1 + s²)², and J'' = −K J has this solution.
        direction=(1.0, 0.0),
        length=2.5,
        separation=lambda s: np.sqrt(1.0 + s * s),
        separation_text="√(1 + s²)",
    ),
    Case(
        "pseudosphere",
        "pseudosphere",
        -1,
        surfaces.pseudosphere(),
        centre=(1.5, 0.0),
        size=0.8,
        direction=(1.0, 0.0),
        length=2.5,
        separation=np.cosh,
        separation_text="cosh s",
    ),
)


def cases_by_name(names=None):
    """Returns the surfaces called `names`, all of them by default."""
    return entries_by_name(CASES, names, "triangle", kind="surfaces")


def vertices(case, seeds):
    """One triangle for each seed, `(seeds, 3, 2)`, none of them thin."""
    corners = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        turn = rng.uniform(0.0, 2.0 * math.pi)
        angles = turn + 2.0 * math.pi / 3.0 * np.arange(3)
        angles = angles + rng.uniform(-0.4, 0.4, size=3)
        radii = case.size * rng.uniform(0.5, 1.0, size=3)
        corners.append(
            radii[:, None] * np.stack([np.cos(angles), np.sin(angles)], -1)
        )
    return np.array(case.centre) + np.array(corners)


def integral_over_triangles(f, corners, dtype):
    """`∫ K dA` over geodesic triangles, `(n,)`.

    In the chart each triangle is the sum, with signs, of the cones from its
    first vertex to its sides.

    Args:
        f: the chart.
        corners: `(n, 3, 2)`.
        dtype: of the computation.
    """
    starts = corners.astype(dtype)
    sides = geometry.geodesic(
        f, starts, np.roll(starts, -1, axis=1), steps=STEPS
    )
    points, velocities = as_numpy(sides.points), as_numpy(sides.velocities)
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    nodes, weights = (nodes + 1.0) / 2.0, weights / 2.0
    origin = points[:, :1, :1]
    rays = points - origin
    x = origin[..., None, :] + nodes[:, None] * rays[..., None, :]
    along = (density(f, x, dtype) * nodes) @ weights
    return (
        require("scipy.integrate")
        .romb(along * _cross(rays, velocities), dx=1.0 / STEPS)
        .sum(axis=-1)
    )


def density(f, x, dtype):
    """`K √det g`, curvature for an area of the chart, `(…,)`."""
    x = x.astype(dtype)
    k = as_numpy(geometry.gaussian_curvature(f, x))
    return k * np.sqrt(np.linalg.det(as_numpy(geometry.metric(f, x))))


def deviation(case, dtype):
    """How neighbouring geodesics separate that start in parallel.

    Both leave at right angles from the geodesic that joins their starts.

    Returns:
        The arc length, `(STEPS + 1,)`, and the distance along the normal of
        the geodesic between them, over that at the start; negative once they
        have crossed.
    """
    f = case.surface

    def metric_at(x):
        return as_numpy(geometry.metric(f, x.astype(dtype)))

    def shoot(x, v):
        curve = geometry.geodesic(
            f, x.astype(dtype), velocity=v.astype(dtype), steps=STEPS
        )
        return as_numpy(curve.points), as_numpy(curve.velocities)

    start = np.array([case.centre])
    metric = metric_at(start)
    along = _unit(np.array([case.direction]), metric)
    across = _turned(along, metric)
    # One to each side; the second leaves backwards, so it turns the other way.
    apart = APART[dtype] * np.array([[1.0], [-1.0]])
    points, velocities = shoot(np.repeat(start, 2, axis=0), apart * across)
    ends, tangents = points[:, -1], velocities[:, -1] / apart
    metrics = metric_at(ends)
    leaving = -_turned(_unit(tangents, metrics), metrics)
    middle, tangent = shoot(start, case.length * along)
    sides, _ = shoot(ends, case.length * leaving)
    metric = metric_at(middle[0])
    difference = (sides[0] - sides[1]) / (2.0 * APART[dtype])
    normal = _turned(_unit(tangent[0], metric), metric)
    distance = np.einsum("si,sij,sj->s", normal, metric, difference)
    return np.linspace(0.0, case.length, STEPS + 1), distance


def _unit(vectors, metrics):
    square = np.einsum("ni,nij,nj->n", vectors, metrics, vectors)
    return vectors / np.sqrt(square)[:, None]


def _turned(vectors, metrics):
    """Unit vectors turned by a right angle, in the metric."""
    lowered = np.einsum("nij,nj->ni", metrics, vectors)
    turned = np.stack([-lowered[:, 1], lowered[:, 0]], axis=-1)
    return turned / np.sqrt(np.linalg.det(metrics))[:, None]


def _cross(a, b):
    return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
