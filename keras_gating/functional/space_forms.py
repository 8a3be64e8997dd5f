"""Tangents and arctangents of any curvature, and where they end.

`T(z) = tan √z / √z`, which is `tanh √−z / √−z` for negative z, and its inverse
`A(z) = arctan √z / √z`, with `T(0) = A(0) = 1`. Both are analytic at 0, so
that nothing special happens where a curvature passes through it.
"""

import math

import keras
from keras import ops

from keras_gating.functional import checks
from keras_gating.functional.gate import as_float
from keras_gating.functional.gate import to_float32

# A space of negative curvature fills a ball, and float numbers end before its
# rim does: points stay at this share of the radius away from it. Below it
# lengths are good to about 1e-5 (1e-12) in float32 (float64), and rounding to
# half precision cannot put a point on the rim.
MARGINS = {
    "float16": 2e-2,
    "bfloat16": 2e-2,
    "float32": 1e-3,
    "float64": 1e-5,
}
# What is left of a sum by chance only, in all dtypes.
_TINY = 1e-20
# The squares of vectors up to this are in range.
_LONG = 1e15
# Enough for the rounding of float64 on -1 ≤ z < π²/4, by a wide margin for
# smaller z; and for |z| < 0.04.
_LEVELS = 11
_TERMS = 11
_HALVINGS = 3


def prepare(curvature, **tensors):
    """Points and curvature in float32 or float64, and what they came in.

    Args:
        curvature: a number, or a tensor that broadcasts against the points
            with a last axis of size 1.
        **tensors: points, `(…, d)`, by name; all have the same d, and their
            other axes broadcast.

    Returns:
        The curvature, a list of the points, and the dtype of the first one.
    """
    points = [as_float(x, name) for name, x in tensors.items()]
    dtype = keras.backend.standardize_dtype(points[0].dtype)
    points = [to_float32(ops.cast(x, dtype)) for x in points]
    # A cast would take a plain number through float32 on TensorFlow.
    working = keras.backend.standardize_dtype(points[0].dtype)
    if checks.is_number(curvature):
        curvature = ops.convert_to_tensor(curvature, dtype=working)
    else:
        curvature = ops.cast(as_float(curvature, "curvature"), working)
    shape = tuple(curvature.shape)
    if shape and shape[-1] not in (1, None):
        raise ValueError(
            "`curvature` must be a number, or have a last axis of size 1, such "
            "as (heads, 1): a vector has one curvature. Received: "
            f"curvature.shape={shape}"
        )
    _check_shapes(curvature, dict(zip(tensors, points)))
    return curvature, points, dtype


def _check_shapes(curvature, points):
    """Vectors of one size, of shapes that broadcast with the curvature's."""
    shapes = {"curvature": (*curvature.shape[:-1], 1)}
    shapes |= {name: tuple(x.shape) for name, x in points.items()}
    widths = [shape[-1:] for shape in list(shapes.values())[1:]]
    fits = all(
        width and checks.compatible(width, widths[0]) for width in widths
    )
    for axis in range(1, max(map(len, shapes.values())) + 1):
        sizes = [
            shape[-axis] for shape in shapes.values() if len(shape) >= axis
        ]
        longer = [size for size in sizes if size is not None and size != 1]
        fits = fits and all(size == longer[0] for size in longer)
    if not fits:
        received = ", ".join(f"{x}.shape={tuple(shapes[x])}" for x in points)
        raise ValueError(
            "Points must be vectors of one size, (…, d), whose other axes "
            "broadcast, also with the curvature. Received: "
            f"{received}, curvature.shape={tuple(curvature.shape)}"
        )


def squared(x):
    """`|x|²` over the last axis, which stays: `(…, 1)`."""
    return ops.sum(ops.square(x), axis=-1, keepdims=True)


def length(squares):
    """The root of squares, whose slope is 0 at 0 rather than infinite."""
    positive = _fixed(squares) > 0.0
    root = ops.sqrt(ops.where(positive, squares, 1.0))
    return ops.where(positive, root, 0.0)


def inside(x, curvature, dtype):
    """Points `x` within the rim, and `κ|x|²`, `(…, d)` and `(…, 1)`.

    Points outside of the ball of a negative curvature, and those nearer to
    its rim than the margin of `dtype`, move along their radius. So do points
    of a positive curvature that are at infinity as far as floats can tell.
    """
    limit = (1.0 - MARGINS[dtype]) ** 2
    infinite = 1e30 if dtype == "float64" else 1e15
    return _limited(x, curvature, limit, infinite)


def within_reach(v, curvature, dtype):
    """The same for tangent vectors at the origin, which `T` takes to points.

    Of a positive curvature they end short of `π / (2 √κ)`, where the point
    opposite to the origin is, at infinity in this chart.
    """
    near = 1.0 - MARGINS[dtype]
    return _limited(
        v, curvature, math.atanh(near) ** 2, (near * math.pi / 2.0) ** 2
    )


def out_of_reach(z, share, dtype):
    """Whether points are too near to infinity, and how to bring them back.

    Their squared lengths, times a positive curvature, are `z / share`. Near
    infinity a sum of vectors that has this length cancels.

    Returns:
        A boolean tensor, and what a vector with `κ|v|² = z` has to be
        multiplied by to be as far as `within_reach` allows.
    """
    reach = math.tan((1.0 - MARGINS[dtype]) * math.pi / 2.0)
    far = _fixed(z) > reach**2 * _fixed(share)
    return far, reach / ops.sqrt(ops.where(far, z, 1.0))


def tangent(z):
    """`T(z)`, for `z < π²/4`.

    Above −1 by Lambert's continued fraction, `1/(1 − z/(3 − z/(5 − …)))`,
    below by exponentials: floats of 64 bits stay what they are on all
    backends, as they do not in `ops.tan`.
    """
    far = _fixed(z) < -1.0
    s = ops.sqrt(ops.where(far, -z, 1.0))
    e = ops.exp(-2.0 * s)
    beyond = (1.0 - e) / ((1.0 + e) * s)
    z = ops.where(far, 0.0, z)
    denominator = 2.0 * _LEVELS - 1.0
    for k in range(_LEVELS - 1, 0, -1):
        denominator = (2.0 * k - 1.0) - z / denominator
    return ops.where(far, beyond, 1.0 / denominator)


def arctangent(z, complement):
    """`A(z)`, for `z > −1`.

    Angles are halved until a series is exact; near −1 it is the logarithm
    `log((1 + s)² / (1 − s²)) / 2s` with `s² = −z`.

    Args:
        z: tensor.
        complement: `1 + z`, from what it can be computed without cancelling.
    """
    near_rim = _fixed(z) < -0.25
    s = ops.sqrt(ops.where(near_rim, -z, 0.25))
    rest = ops.where(near_rim, complement, 1.0)
    at_rim = ops.log(ops.square(1.0 + s) / rest) / (2.0 * s)
    z = ops.where(near_rim, 0.0, z)
    complement = ops.where(near_rim, 1.0, complement)
    factor = 1.0
    for _ in range(_HALVINGS):
        half = 1.0 + ops.sqrt(complement)
        factor = factor * (2.0 / half)
        z = z / half / half
        complement = 1.0 + z
    series = 1.0 / (2.0 * _TERMS - 1.0)
    for k in range(_TERMS - 2, -1, -1):
        series = 1.0 / (2.0 * k + 1.0) - z * series
    return ops.where(near_rim, at_rim, factor * series)


def away_from_zero(x, terms):
    """A denominator that vanishes for opposite points, as a small number.

    Args:
        x: what its terms leave.
        terms: the size of them, so that quotients stay in range.
    """
    least = _TINY * _fixed(terms)
    return ops.where(_fixed(x) > least, x, least)


def curved_square(x, curvature):
    """`κ|x|²`, also where `|x|²` by itself leaves the range of floats.

    Returns:
        Three tensors `(…, 1)`: `κ|x|²`, which is infinite where it is out of
        range itself; `κ|x/s|²`, which never is; and s.
    """
    scale = magnitude(x)
    part = curvature * squared(x / scale)
    return part * scale * scale, part, scale


def magnitude(x):
    """1, or for long vectors about their length, `(…, 1)`."""
    total = ops.sum(ops.abs(_fixed(x)), axis=-1, keepdims=True)
    # NaN and infinity are not to be hidden here.
    is_long = ops.logical_and(total > _LONG, ops.isfinite(total))
    return ops.where(is_long, total, 1.0)


def _limited(x, curvature, below, above):
    z, part, scale = curved_square(x, curvature)
    # Plain numbers alone would become float32 on TensorFlow, whatever z is;
    # and its second derivatives do not go through `full_like`.
    bound = ops.convert_to_tensor(
        -below, dtype=keras.backend.standardize_dtype(z.dtype)
    )
    fixed = _fixed(z)
    outside = fixed < -below
    bound = ops.where(fixed < 0.0, bound, above)
    outside = ops.logical_or(outside, fixed > above)
    # Both branches are differentiated, so neither may divide by zero.
    wanted = ops.sqrt(ops.abs(ops.where(outside, bound, 1.0)))
    own = ops.sqrt(ops.abs(ops.where(outside, part, 1.0)))
    return (
        x / ops.where(outside, scale, 1.0) * (wanted / own),
        ops.where(outside, bound, z),
    )


def _fixed(x):
    """What is compared and not differentiated.

    TensorFlow's second derivatives fail at comparisons.
    """
    return ops.stop_gradient(x)
