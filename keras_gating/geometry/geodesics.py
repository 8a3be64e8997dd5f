"""Geodesics in the metric that a map carries."""

import math
import typing

import numpy as np
from keras import ops

from keras_gating.functional import checks
from keras_gating.geometry.collocation import reference
from keras_gating.geometry.evaluation import as_floats
from keras_gating.geometry.evaluation import as_numpy
from keras_gating.geometry.evaluation import as_points
from keras_gating.geometry.geodesic_equation import Field
from keras_gating.geometry.geodesic_problems import boundary_problem
from keras_gating.geometry.geodesic_problems import initial_problem


class Geodesic(typing.NamedTuple):
    """Geodesics at the parameters `0, 1/steps, …, 1`."""

    points: typing.Any  # (..., steps + 1, k)
    velocities: typing.Any  # (..., steps + 1, k)
    length: typing.Any  # (...,)


def geodesic(f, start, end=None, velocity=None, covariance=None, steps=32):
    """The geodesic from `start` to `end`, or from `start` with `velocity`.

    In the metric `g = Jᵀ Σ⁻¹ J` a geodesic satisfies

    `c'' = −Γ(c)(c', c') = −g⁻¹ Jᵀ Σ⁻¹ ∂²f(c', c')`:

    the image `f(c)` accelerates along its normals only, and `|c'|` is constant.
    The curve is a polynomial through Gauss nodes, found by Newton's method; as
    many nodes are taken as it needs.

    **Which geodesic.** With `velocity` there is one. Between two points there
    may be several. The one returned is reached while the end moves from `start`
    along the straight line of the chart, and the geodesic with it. On a
    surface it contains no conjugate point, and no curve near it is shorter; it
    is the only one where no two geodesics meet twice (curvature ≤ 0 on a chart
    that does not go around anything). Other geodesics are returned

    * where the moving end runs straight into a conjugate point, as along the
      equator of a sphere: that beyond it, though there are shorter ways;
    * where the chart goes around something, as the angles of a cylinder or a
      torus do: that which goes around the way the chart's line does, though
      the other way may be shorter;
    * with three coordinates or more: possibly one with conjugate points.

    Args:
        f: the map, a callable on `(…, k)` tensors, with two continuous
            derivatives.
        start: tensor `(..., k)`.
        end: tensor `(..., k)`. Exactly one of `end` and `velocity` is given.
            Leading axes of both are broadcast.
        velocity: tensor `(..., k)`, `c'(0)`; the curve ends at parameter 1.
        covariance: Σ, `(d, d)` or the diagonal `(d,)`; may be indefinite.
            Default: the identity.
        steps: number of equal parts of the parameter interval between the
            points that are returned. Accuracy does not depend on it.

    Returns:
        A named tuple of tensors: `points` and `velocities`,
        `(..., steps + 1, k)`, and `length`, `(...,)`, which is NaN for curves
        with `⟨c', c'⟩ < 0`. They cannot be differentiated, and the function
        does not run inside a compiled one.

    Raises:
        RuntimeError: where a geodesic is not found, or is no geodesic since
            `f` is not smooth. The message states the residual, that is the
            largest violation of the equation relative to the speed.
        ValueError: for points and functions that do not fit.

    Example:

    >>> import numpy as np
    >>> from keras import ops
    >>> from keras_gating import geometry
    >>> def cylinder(x):
    ...     return ops.stack(
    ...         [ops.cos(x[..., 0]), ops.sin(x[..., 0]), x[..., 1]], axis=-1
    ...     )
    >>> curve = geometry.geodesic(cylinder, [0.0, 0.0], end=[3.0, 4.0])
    >>> round(float(curve.length), 4)
    5.0
    """
    if (end is None) == (velocity is None):
        raise ValueError(
            "Exactly one of `end` and `velocity` is needed. Received: "
            f"end={end!r}, velocity={velocity!r}"
        )
    if velocity is None:
        start, other = broadcast(start=start, end=end)
    else:
        start, other = broadcast(start=start, velocity=velocity)
    checks.positive_integer("steps", steps)
    field = Field(f, ops.reshape(start, (-1, start.shape[-1])), covariance)
    origin, other = (as_numpy(a) for a in (start, other))
    outputs = solve(field, origin, other, steps, end is not None)
    return Geodesic(*(ops.convert_to_tensor(a, start.dtype) for a in outputs))


def solve(field, start, other, steps, is_boundary):
    """Points, velocities and lengths, from and to NumPy's arrays."""
    *leading, k = start.shape
    problem = boundary_problem if is_boundary else initial_problem
    # What is not finite is found and reported below.
    with np.errstate(all="ignore"):
        pieces, failures = problem(
            field, start.reshape(-1, k), other.reshape(-1, k)
        )
        _check_found(failures, leading, is_boundary)
        lengths = _lengths(pieces, leading, field.resolution)
    points, velocities = _sample(pieces, math.prod(leading), steps)
    return tuple(
        a.reshape((*leading, *a.shape[1:]))
        for a in (points, velocities, lengths)
    )


def broadcast(**points):
    """Points by their names, in the dtype and of the shape of all of them."""
    tensors, dtype = {}, None
    for name, x in points.items():
        x = as_points(x, name) if dtype is None else as_floats(x, name, dtype)
        dtype = x.dtype
        if not np.isfinite(ops.convert_to_numpy(x)).all():
            raise ValueError(
                f"`{name}` must be finite. Received NaN or infinity."
            )
        tensors[name] = x
    shapes = {name: tuple(x.shape) for name, x in tensors.items()}
    try:
        if len({shape[-1:] for shape in shapes.values()}) > 1:
            raise ValueError
        shape = np.broadcast_shapes(*shapes.values())
        if 0 in shape:
            raise ValueError
    except ValueError:
        raise ValueError(
            "Points must have the same number of coordinates, their last axis, "
            "and leading axes that can be broadcast, none of them empty. "
            f"Received the shapes: {shapes}"
        ) from None
    return [ops.broadcast_to(x, shape) for x in tensors.values()]


def _check_found(failures, leading, is_boundary):
    if not failures:
        return
    worst = max(failures, key=lambda failure: failure.residual)
    index = tuple(int(i) for i in np.unravel_index(worst.curve, leading))
    way = (
        "of the way to its end" if is_boundary else "of its parameter interval"
    )
    raise RuntimeError(
        f"{len(failures)} of {math.prod(leading)} geodesics were not found. "
        f"That at index {index} was followed over {100 * worst.reached:.4g} % "
        f"{way}; there the residual, |c'' + Γ(c', c')| relative to |c'|, is "
        f"{worst.residual:.2e}. It may leave the chart, meet a point where the "
        "map is degenerate, or pass a conjugate point."
    )


def _lengths(pieces, leading, tolerance):
    """Lengths `(n,)`; raises where the speed is not constant."""
    count = math.prod(leading)
    square, majorant = np.zeros(count), np.zeros(count)
    weights = reference().weights
    for piece in pieces:
        own = piece.indices
        square[own] += piece.stride * (piece.squares @ weights)
        majorant[own] = np.maximum(majorant[own], piece.majorants)
    for piece in pieces:
        drift = np.abs(piece.squares - square[piece.indices, None]).max(axis=1)
        drift = drift / np.where(majorant > 0.0, majorant, 1.0)[piece.indices]
        if (drift > tolerance).any():
            worst = int(np.argmax(drift))
            index = np.unravel_index(piece.indices[worst], leading)
            raise RuntimeError(
                "The speed along a geodesic is constant. Along that at index "
                f"{tuple(int(i) for i in index)} its square varies by the "
                f"share {drift[worst]:.2e}: `f` has no continuous second "
                "derivatives (as with relu), or they are too inexact."
            )
    return np.sqrt(square)


def _sample(pieces, count, steps):
    """Positions and velocities, `(n, steps + 1, k)`."""
    grid = np.arange(steps + 1) / steps
    k = pieces[0].start.shape[-1]
    points, velocities = np.empty((2, count, steps + 1, k))
    for piece in pieces:
        stride = piece.stride[:, None]
        tau = (grid - piece.time[:, None]) / stride
        row, column = np.nonzero((tau >= 0.0) & (tau <= 1.0))
        x, v = piece.at(tau)
        points[piece.indices[row], column] = x[row, column]
        velocities[piece.indices[row], column] = (v / stride[..., None])[
            row, column
        ]
    return points, velocities
