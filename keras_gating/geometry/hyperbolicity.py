"""Gromov's hyperbolicity: how far a metric space is from a tree."""

import functools
import operator

import keras
import numpy as np
from keras import ops

from keras_gating import _backend
from keras_gating.functional import checks
from keras_gating.geometry.evaluation import as_floats

# Elements of the largest temporary tensor, unless one base point needs more.
_BLOCK_SIZE = 2**22


def gromov_hyperbolicity(
    points=None, distances=None, base_point=None, relative=False
):
    """Gromov's δ of a finite metric space: 0 for a tree, large for a cycle.

    With the Gromov products at a base point w,

    `A_ij = ½ (d(w, i) + d(w, j) − d(i, j))`,

    `δ_w = max_ij (max_k min(A_ik, A_kj) − A_ij)`, and `δ = max_w δ_w`.

    This δ is that of the four-point condition: the two largest of the three
    sums of opposite distances of four points differ by at most 2δ. It scales
    with the distances; `δ_rel = 2δ / diameter`, between 0 and 1, does not.

    Args:
        points: tensor `(..., n, d)`, whose Euclidean distances are taken.
        distances: tensor `(..., n, n)` instead, symmetric, with the triangle
            inequality. Exactly one of the two is given.
        base_point: `None` for the exact δ, or the index of one base point,
            for its δ_w, with `δ_w ≤ δ ≤ 2 δ_w`. One base point takes n³
            operations and all of them n⁴; memory grows with n² in both cases.
        relative: whether to return `δ_rel`. It is NaN where all points
            coincide.

    Returns:
        A tensor with the leading axes of the argument.

    Raises:
        ValueError: for values that are no distances: negative, not symmetric,
            not zero between a point and itself, against the triangle
            inequality (checked for the triangles with a base point) or not
            finite.

    References:
        Gromov 1987, Hyperbolic groups; Fournier et al. 2015, Computing the
        Gromov hyperbolicity of a discrete metric space.

    Example:

    >>> import numpy as np
    >>> from keras_gating import geometry
    >>> path = np.abs(np.arange(5.0)[:, None] - np.arange(5.0))
    >>> cycle = np.minimum(path, 5.0 - path)
    >>> for distances in (path, cycle):
    ...     print(float(geometry.gromov_hyperbolicity(distances=distances)))
    0.0
    0.5
    """
    checks.boolean("relative", relative)
    if (points is None) == (distances is None):
        raise ValueError(
            "Exactly one of `points` and `distances` is needed. Received: "
            f"points={points!r}, distances={distances!r}"
        )
    if distances is None:
        points = _as_tables(points, "points")
        distances = _compiled(_pairwise_distances)(points)
    else:
        distances = _as_tables(distances, "distances")
    shape = tuple(distances.shape)
    tolerance = _check_distances(distances)
    diameter = ops.max(distances, axis=(-2, -1))
    delta = ops.stack(
        [
            _delta(matrix, _base_points(base_point, shape[-1]), tolerance)
            for matrix in ops.reshape(distances, (-1, *shape[-2:]))
        ]
    )
    delta = ops.reshape(delta, shape[:-2])
    return 2.0 * delta / diameter if relative else delta


def _as_tables(x, name):
    x = as_floats(x, name)
    shape = tuple(x.shape)
    if len(shape) < 2 or 0 in shape:
        raise ValueError(
            f"`{name}` must have two axes at least, none of them empty. "
            f"Received: {name}.shape={shape}"
        )
    return x


def _pairwise_distances(points):
    # Feature by feature, in the memory of the result.
    def add_feature(k, total):
        feature = ops.take(points, k, axis=-1)
        difference = feature[..., :, None] - feature[..., None, :]
        return total + difference * difference

    first = points[..., 0]
    zeros = ops.zeros_like(first[..., :, None] - first[..., None, :])
    return ops.sqrt(ops.fori_loop(0, points.shape[-1], add_feature, zeros))


def _products(distances, from_bases):
    """The largest δ_w and the largest violation of the triangle inequality.

    Shapes: `(n, n)` and `(b, n)`, the distances from b base points.
    """
    products = 0.5 * (
        from_bases[:, :, None] + from_bases[:, None, :] - distances
    )

    def pairs_of(i, delta):
        row = ops.take(products, i, axis=1)
        smaller = _minimum(row[:, None, :], products)
        larger = ops.max(ops.max(smaller, axis=-1) - row)
        return ops.where(larger > delta, larger, delta)

    zero = ops.zeros_like(products[0, 0, 0])
    delta = ops.fori_loop(0, products.shape[-1], pairs_of, zero)
    excess = products - from_bases[:, :, None]
    return delta, ops.max(ops.stack([-products, excess]))


def _minimum(first, second):
    # On torch the minimum has 32 bits, and `where` takes three times as long.
    if keras.backend.standardize_dtype(second.dtype) == "float32":
        return ops.minimum(first, second)
    return ops.where(first < second, first, second)


@functools.cache
def _compiled(function):
    return _backend.compiled(function)


def _check_distances(distances):
    """Raises for what is no table of distances; returns the rounding error."""
    values = ops.convert_to_numpy(distances)
    if values.shape[-1] != values.shape[-2]:
        raise ValueError(
            "`distances` must be square in its last two axes, (..., n, n). "
            f"Received: distances.shape={values.shape}"
        )
    if not np.isfinite(values).all():
        raise ValueError("Distances must be finite. Received NaN or infinity.")
    if values.min() < 0:
        raise ValueError(
            f"Distances must not be negative. Received: {values.min()}"
        )
    tolerance = 8 * np.finfo(values.dtype).eps * values.max()
    asymmetry = np.abs(values - np.swapaxes(values, -1, -2)).max()
    if asymmetry > tolerance:
        raise ValueError(
            "`distances` must be symmetric. Received entries that differ from "
            f"their mirror image by up to {asymmetry}"
        )
    diagonal = np.diagonal(values, axis1=-2, axis2=-1).max()
    if diagonal > tolerance:
        raise ValueError(
            "The distance of a point from itself must be zero. Received: "
            f"{diagonal} on the diagonal of `distances`"
        )
    return tolerance


def _base_points(base_point, n):
    if base_point is None:
        return np.arange(n)
    try:
        index = operator.index(base_point)
    except TypeError:
        index = n
    if not -n <= index < n:
        raise ValueError(
            f"`base_point` must be None or the index of one of the {n} "
            f"points. Received: base_point={base_point!r}"
        )
    return np.array([index % n])


def _delta(distances, base_points, tolerance):
    """The largest δ_w of one matrix `(n, n)` over the base points."""
    n = distances.shape[0]
    block = min(max(1, _BLOCK_SIZE // n**2), len(base_points))
    # Every block has the same size, so that one compilation does: the last one
    # repeats a base point.
    padding = -len(base_points) % block
    base_points = np.pad(base_points, (0, padding), mode="edge")
    deltas = []
    for indices in base_points.reshape(-1, block):
        from_bases = ops.take(distances, indices, axis=0)
        delta, violation = _compiled(_products)(distances, from_bases)
        violation = float(violation)
        if violation > tolerance:
            raise ValueError(
                "`distances` must satisfy the triangle inequality. Received "
                f"distances that violate it by up to {2 * violation}"
            )
        deltas.append(delta)
    return ops.max(ops.stack(deltas))
