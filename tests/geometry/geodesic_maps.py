"""Maps whose geodesics have closed forms; one object each, compiled once."""

import numpy as np
import pytest
from keras import ops

from keras_gating import geometry

SADDLE = geometry.surfaces.saddle()
CYLINDER = geometry.surfaces.cylinder()
PSEUDOSPHERE = geometry.surfaces.pseudosphere()

# The largest error relative to the lengths involved.
DTYPES = [
    pytest.param("float32", 3e-6, id="float32"),
    pytest.param("float64", 1e-11, id="float64", marks=pytest.mark.float64),
]


def sphere(x):
    """The unit sphere by stereographic projection."""
    u, v = x[..., 0], x[..., 1]
    square = u * u + v * v
    y = ops.stack([2.0 * u, 2.0 * v, square - 1.0], axis=-1)
    return y / (1.0 + square)[..., None]


def sphere_point(x):
    square = np.sum(x * x, axis=-1, keepdims=True)
    return np.concatenate([2 * x, square - 1], axis=-1) / (1 + square)


def hyperboloid(x):
    """`⟨X, X⟩ = −1` under diag(1, 1, −1), by central projection."""
    u, v = x[..., 0], x[..., 1]
    height = 1.0 / ops.sqrt(1.0 - u * u - v * v)
    return ops.stack([u * height, v * height, height], axis=-1)


def hyperbolic_distance(a, b):
    def square(x):
        return 1 - np.sum(x * x, axis=-1)

    cosh = (1 - np.sum(a * b, axis=-1)) / np.sqrt(square(a) * square(b))
    return np.arccosh(cosh)


def pseudosphere_distance(a, b):
    """In the upper half-plane `(v, cosh u)`."""
    square = (a[..., 1] - b[..., 1]) ** 2
    a, b = np.cosh(a[..., 0]), np.cosh(b[..., 0])
    return np.arccosh(1 + (square + (a - b) ** 2) / (2 * a * b))


def angle(a, b):
    """Between unit vectors."""
    cross = np.linalg.norm(np.cross(a, b), axis=-1)
    return np.arctan2(cross, np.sum(a * b, axis=-1))
