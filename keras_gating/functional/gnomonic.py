"""The gate that lays flat space on a sphere or on a hyperboloid."""

from keras import ops

from keras_gating.functional import checks
from keras_gating.functional.gate import apply_gate
from keras_gating.functional.space_forms import inside
from keras_gating.functional.space_forms import length
from keras_gating.functional.space_forms import magnitude
from keras_gating.functional.space_forms import prepare
from keras_gating.functional.space_forms import squared


def gnomonic(inputs, curvature, lift=False, mask=None, owner=None):
    """A gate of constant curvature: `y = u ⊙ (1 + κ|u|²)^(−1/2)`.

    With the `lift`, `√|κ| |u|² / (q (1 + q))` where `q = √(1 + κ|u|²)`, as one
    more feature, `(y, lift)` has constant sectional curvature κ in any
    dimension: a hemisphere of radius `1/√κ` for κ > 0 and, **under the form
    diag(1, …, 1, −1)**, the hyperboloid for κ < 0. (Under the Euclidean metric
    the points of the hyperboloid have positive curvature.) Great circles and
    geodesics of the hyperboloid are straight in u.

    Computed in float32 at least. For κ < 0 vectors outside of the ball
    `|u| < 1/√−κ` are moved to its rim, at the distance from it that
    `functional.exp0` keeps.

    Args:
        inputs: u, `(…, d)`.
        curvature: κ, a number, or a tensor that broadcasts against `inputs`
            with a last axis of size 1. Gradients flow to it, also at 0, where
            the lift, which has a root of |κ|, counts as constant.
        lift: whether the height above the flat space is another feature.
        mask: padding mask of the leading axes, handed to recordings only.
        owner: the layer that the gate belongs to, for recordings.

    Returns:
        A tensor of the dtype of `inputs`, `(…, d)`, or `(…, d + 1)` with the
        lift.

    Example:

    >>> import numpy as np
    >>> from keras_gating import functional
    >>> u = np.array([[0.75, 0.0]], "float32")
    >>> for curvature in (1.0, -1.0):
    ...     y = functional.gnomonic(u, curvature, lift=True)[0]
    ...     print([round(float(a), 4) for a in y])
    [0.6, 0.0, 0.2]
    [1.1339, 0.0, 0.5119]

    The first is on the unit sphere around (0, 0, 1), up to a reflection, and
    its curvature is measured:

    >>> from keras_gating import geometry
    >>> def sphere(x):
    ...     return functional.gnomonic(x, 1.0, lift=True)
    >>> [round(float(k), 3) for k in geometry.gaussian_curvature(sphere, u)]
    [1.0]
    """
    checks.boolean("lift", lift)
    curvature, (u,), dtype = prepare(curvature, inputs=inputs)
    u, z = inside(u, curvature, dtype)
    gated = apply_gate(
        u, z, activation=_reciprocal_root, mask=mask, owner=owner
    )
    if lift:
        q = ops.sqrt(1.0 + z)
        # In an order that stays in range: `|u|²` by itself may leave it.
        scale = magnitude(u)
        height = length(ops.abs(curvature)) * squared(u / scale) * scale
        height = height / (q * (1.0 + q)) * scale
        gated = ops.concatenate([gated, height], axis=-1)
    return ops.cast(gated, dtype)


def _reciprocal_root(z):
    return 1.0 / ops.sqrt(1.0 + z)
