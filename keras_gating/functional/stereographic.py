"""Vectors in a space of constant curvature, in the stereographic model.

Points of the space are vectors x with the metric `4 |dx|² / (1 + κ|x|²)²`. For
κ = 0 that is flat space, for κ > 0 a sphere of radius `1/√κ` projected from
the point opposite to the origin, for κ < 0 Poincaré's ball `|x| < 1/√−κ`. All
of it is one family of formulas, smooth in κ.
"""

import keras
from keras import ops

from keras_gating.functional import checks
from keras_gating.functional.gate import as_float
from keras_gating.functional.space_forms import arctangent
from keras_gating.functional.space_forms import away_from_zero
from keras_gating.functional.space_forms import curved_square
from keras_gating.functional.space_forms import inside
from keras_gating.functional.space_forms import length
from keras_gating.functional.space_forms import out_of_reach
from keras_gating.functional.space_forms import prepare
from keras_gating.functional.space_forms import squared
from keras_gating.functional.space_forms import tangent
from keras_gating.functional.space_forms import within_reach


def exp0(v, curvature):
    """Exponential map at the origin: `exp₀ v = v T(κ|v|²)`.

    `T(z) = tan √z / √z`, or `tanh √−z / √−z` for negative z. The point is
    `2|v|` away from the origin, in the direction of v.

    Computed in float32 at least. Vectors are shortened where the point would
    be infinitely far or numbers could not hold it: for κ < 0 points keep a
    distance from the rim of the ball of 1e-3 of its radius in float32, 1e-5 in
    float64 and 0.02 in half precision; for κ > 0 `2|v|` falls short of half
    the way around, `π/√κ`, by the same share.

    Args:
        v: tangent vectors, `(…, d)`.
        curvature: κ, a number, or a tensor that broadcasts against `v` with a
            last axis of size 1. Gradients flow to it, also at 0.

    Returns:
        Points, of the shape and dtype of `v`.

    References:
        Bachmann et al. 2020, arXiv 1911.05076; Ganea et al. 2018,
        arXiv 1805.09112.

    Example:

    >>> import numpy as np
    >>> from keras_gating import functional
    >>> v = np.array([3.0, 4.0], "float32")
    >>> for curvature in (-1.0, 0.0, 0.01):
    ...     point = functional.exp0(v, curvature)
    ...     print([round(float(x), 3) for x in point])
    [0.599, 0.799]
    [3.0, 4.0]
    [3.278, 4.37]
    """
    curvature, (v,), dtype = prepare(curvature, v=v)
    v, z = within_reach(v, curvature, dtype)
    return ops.cast(v * tangent(z), dtype)


def log0(x, curvature):
    """Logarithm at the origin, the inverse of `exp0`: `log₀ x = x A(κ|x|²)`.

    `A(z) = arctan √z / √z`, or `artanh √−z / √−z` for negative z. Points
    outside of the ball of a negative curvature are moved to its rim first, to
    the distance from it that `exp0` keeps.

    Args:
        x: points, `(…, d)`.
        curvature: κ, a number, or a tensor that broadcasts against `x` with a
            last axis of size 1. Gradients flow to it, also at 0.

    Returns:
        Tangent vectors, of the shape and dtype of `x`.

    References:
        Bachmann et al. 2020, arXiv 1911.05076.

    Example:

    >>> import numpy as np
    >>> from keras_gating import functional
    >>> v = np.array([0.3, -0.4], "float32")
    >>> x = functional.exp0(v, -2.0)
    >>> [round(float(a), 4) for a in functional.log0(x, -2.0)]
    [0.3, -0.4]
    """
    curvature, (x,), dtype = prepare(curvature, x=x)
    x, z = inside(x, curvature, dtype)
    return ops.cast(x * arctangent(z, 1.0 + z), dtype)


def mobius_scale(gate, x, curvature):
    """The product of a gate and a point: `g ⊗ x = exp₀(g · log₀ x)`.

    For κ = 0 it is `g · x`. A gate of one number a point moves it along the
    geodesic through the origin, to g times the distance: `1 ⊗ x = x`,
    `0 ⊗ x = 0`, `a ⊗ (b ⊗ x) = ab ⊗ x`.

    Args:
        gate: tensor that broadcasts against `x`.
        x: points, `(…, d)`.
        curvature: κ, a number, or a tensor that broadcasts against `x` with a
            last axis of size 1.

    Returns:
        Points, of the dtype of `x` and of the shape that both broadcast to.

    References:
        Ganea et al. 2018, arXiv 1805.09112.

    Example:

    >>> import numpy as np
    >>> from keras_gating import functional
    >>> x = np.array([0.6, 0.0], "float32")
    >>> half = functional.mobius_scale(0.5, x, -1.0)
    >>> [round(float(a), 4) for a in half]
    [0.3333, 0.0]
    """
    v = log0(x, curvature)
    dtype = keras.backend.standardize_dtype(v.dtype)
    gate = ops.cast(as_float(gate, "gate"), dtype)
    checks.broadcasts("gate", gate.shape, "x", v.shape, mutually=True)
    return exp0(v * gate, curvature)


def mobius_add(x, y, curvature):
    """Möbius addition, `x ⊕ y`: the step y, taken from the point x.

    `((1 − 2κ⟨x,y⟩ − κ|y|²) x + (1 + κ|x|²) y)
    / (1 − 2κ⟨x,y⟩ + κ²|x|²|y|²)`

    For κ = 0 it is the sum. `0` and `−x` are what they should be,
    `(−x) ⊕ (x ⊕ y) = y`, but the order of three or two points matters. Where
    κ < 0, points outside of the ball are moved to its rim, as in `log0`.

    Args:
        x: points, `(…, d)`.
        y: points, `(…, d)`.
        curvature: κ, a number, or a tensor that broadcasts against the points
            with a last axis of size 1.

    Returns:
        Points, `(…, d)`, in the dtype of `x`. Where κ > 0, sums near the point
        opposite to the origin, which is at infinity, stop short of it by the
        share of the way that `exp0` keeps.

    References:
        Ungar 2008, A gyrovector space approach to hyperbolic geometry;
        Bachmann et al. 2020, arXiv 1911.05076.

    Example:

    >>> import numpy as np
    >>> from keras_gating import functional
    >>> x = np.array([0.5, 0.0], "float32")
    >>> total = functional.mobius_add(x, x, -1.0)
    >>> [round(float(a), 4) for a in total]
    [0.8, 0.0]
    """
    curvature, (x, y), dtype = prepare(curvature, x=x, y=y)
    x, zx = inside(x, curvature, dtype)
    y, zy = inside(y, curvature, dtype)
    step = curved_square(x + y, curvature)[0]
    # 1 − 2κ⟨x,y⟩ is what these leave, and for κ < 0 they do not cancel.
    denominator = (1.0 + zx) * (1.0 + zy) - step
    along = 1.0 + zx - step
    far, limit = out_of_reach(step, denominator, dtype)
    total = along * x + (1.0 + zx) * y
    total = total / ops.where(far, 1.0, denominator)
    total = ops.where(far, limit * (x + y), total)
    return ops.cast(inside(total, curvature, dtype)[0], dtype)


def stereographic_distance(x, y, curvature):
    """Length of the geodesic between points: `2 |w| A(κ|w|²)`, `w = −x ⊕ y`.

    For κ = 0 it is `2 |x − y|`: the metric at the origin is four times that of
    the coordinates. Where κ > 0 no two points are further apart than `π/√κ`;
    where κ < 0, points outside of the ball are moved to its rim, as in `log0`.

    Args:
        x: points, `(…, d)`.
        y: points, `(…, d)`.
        curvature: κ, a number, or a tensor that broadcasts against the points
            with a last axis of size 1.

    Returns:
        Tensor `(…,)` in the dtype of `x`. Its slope where points coincide is
        given as 0.

    References:
        Bachmann et al. 2020, arXiv 1911.05076.

    Example:

    >>> import numpy as np
    >>> from keras_gating import functional
    >>> x, y = np.array([[0.0, 0.0], [0.5, 0.0]], "float32")
    >>> for curvature in (-1.0, 0.0, 1.0):
    ...     distance = functional.stereographic_distance(x, y, curvature)
    ...     print(round(float(distance), 4))
    1.0986
    1.0
    0.9273

    Distances between all of some points, for
    `geometry.gromov_hyperbolicity(distances=…)`:

    >>> x = np.random.default_rng(0).uniform(-0.5, 0.5, (5, 2))
    >>> functional.stereographic_distance(x[:, None], x, -1.0).shape[0]
    5
    """
    curvature, (x, y), dtype = prepare(curvature, x=x, y=y)
    x, zx = inside(x, curvature, dtype)
    y, zy = inside(y, curvature, dtype)
    apart, _, scale = curved_square(x - y, curvature)
    both = (1.0 + zx) * (1.0 + zy)
    denominator = away_from_zero(both - apart, both)
    squares = squared((x - y) / scale) / denominator
    angle = arctangent(apart / denominator, both / denominator)
    distance = 2.0 * scale * length(squares) * angle
    return ops.cast(ops.squeeze(distance, axis=-1), dtype)
