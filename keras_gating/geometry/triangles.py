"""Triangles whose sides are geodesics."""

import math
import typing

import numpy as np
from keras import ops

from keras_gating.functional import checks
from keras_gating.geometry.evaluation import as_numpy
from keras_gating.geometry.geodesic_equation import Field
from keras_gating.geometry.geodesics import broadcast
from keras_gating.geometry.geodesics import solve


class GeodesicTriangle(typing.NamedTuple):
    """Triangles with the vertices a, b and c."""

    sides: typing.Any  # lengths from a to b, b to c and c to a, (..., 3)
    angles: typing.Any  # at a, b and c, in radians, (..., 3)
    excess: typing.Any  # sum of the angles less π, (...,)
    points: typing.Any  # on the sides, (..., 3, steps + 1, k)


def geodesic_triangle(f, a, b, c, covariance=None, steps=32):
    """Sides, angles and angle excess of the triangle of geodesics.

    By the theorem of Gauss and Bonnet the excess is the integral of the
    curvature over the triangle,

    `α + β + γ − π = ∫ K dA`:

    zero on a plane, a cylinder or a cone, positive on a sphere and negative on
    a saddle. It holds where the sides bound a piece of the surface: no hole or
    singular point, such as the apex of a cone, lies inside.

    The sides are those geodesics that `geodesic` finds, from a to b, b to c and
    c to a. Angles are taken from half the angle's tangent, so that they have
    full precision also near 0 and π.

    Args:
        f: the map, a callable on `(…, k)` tensors, with two continuous
            derivatives.
        a: tensor `(..., k)`. Leading axes of the vertices are broadcast.
        b: tensor `(..., k)`.
        c: tensor `(..., k)`.
        covariance: as in `geodesic`.
        steps: number of equal parts of each side between the points that are
            returned. Accuracy does not depend on it.

    Returns:
        A named tuple of tensors: `sides` and `angles`, `(..., 3)`, `excess`,
        `(...,)`, and `points`, `(..., 3, steps + 1, k)`. Angles are NaN where
        vertices coincide, and where the metric is not positive.

    Raises:
        RuntimeError: where a side is not found; see `geodesic`.
        ValueError: for points and functions that do not fit.

    Example:

    >>> from keras_gating import geometry
    >>> saddle = geometry.surfaces.saddle()
    >>> triangle = geometry.geodesic_triangle(
    ...     saddle, [-1.0, -1.0], [1.0, -1.0], [0.0, 1.0]
    ... )
    >>> tuple(triangle.sides.shape), bool(triangle.excess < 0)
    ((3,), True)
    """
    checks.positive_integer("steps", steps)
    vertices = broadcast(a=a, b=b, c=c)
    first = vertices[0]
    field = Field(f, ops.reshape(first, (-1, first.shape[-1])), covariance)
    vertices = np.stack([as_numpy(x) for x in vertices], axis=-2)
    points, velocities, sides = solve(
        field, vertices, np.roll(vertices, -1, axis=-2), steps, True
    )
    leaving = velocities[..., 0, :]
    arriving = np.roll(velocities[..., -1, :], 1, axis=-2)
    angles = _angles(field, vertices, leaving, -arriving)
    excess = angles.sum(axis=-1) - math.pi
    return GeodesicTriangle(
        *(
            ops.convert_to_tensor(y, first.dtype)
            for y in (sides, angles, excess, points)
        )
    )


def _angles(field, x, u, v):
    _, upper, gram = field(x, u)

    def length(w):
        return np.sqrt(np.einsum("...i,...ij,...j->...", w, gram, w))[..., None]

    with np.errstate(all="ignore"):
        u, v = (np.einsum("...ij,...j->...i", upper, w) for w in (u, v))
        u, v = u / length(u), v / length(v)
        return 2.0 * np.arctan2(length(u - v), length(u + v))[..., 0]
