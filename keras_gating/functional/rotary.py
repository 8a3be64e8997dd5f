"""Rotary position embedding, in its rotate-half form."""

from keras import ops

from keras_gating.functional import checks
from keras_gating.functional.gate import as_float
from keras_gating.functional.gate import to_float32


def apply_rotary(x, positions, max_wavelength=10_000.0, width=None, axis=1):
    """Rotates pairs of features by angles that grow with the position.

    For `i < width/2`, `θ_i = position · max_wavelength^(−2i/width)`:

    `y_i = x_i cos θ_i − x_(i+width/2) sin θ_i`
    `y_(i+width/2) = x_(i+width/2) cos θ_i + x_i sin θ_i`

    Features from `width` on pass unchanged. Inner products of two rotated
    vectors depend on the difference of their positions only.

    Args:
        x: tensor `(..., T, ..., D)`.
        positions: integer tensor `(T,)`, the positions along `axis`.
        max_wavelength: base of the geometric series of frequencies.
        width: even number of leading features to rotate. Default: all.
        axis: the axis of `x` that `positions` belong to.

    Returns:
        A tensor with the shape and dtype of `x`.

    Reference:
        Su et al. 2021, RoFormer, arXiv 2104.09864.

    Example:

    >>> import numpy as np
    >>> from keras_gating import functional
    >>> x = np.array([[[1.0, 0.0]]], "float32")
    >>> y = functional.apply_rotary(x, np.array([1]))
    >>> [round(float(v), 4) for v in y[0, 0]]
    [0.5403, 0.8415]
    """
    x = as_float(x)
    rank = len(x.shape)
    if not checks.is_integer(axis) or not -rank <= axis < rank or rank < 2:
        raise ValueError(
            "`axis` must be an axis of `x`, which has rank 2 or more. "
            f"Received: axis={axis!r}, x.shape={tuple(x.shape)}"
        )
    axis = axis % rank
    if width is None:
        # A tensor, while torch traces.
        width = int(x.shape[-1])
    if (
        not checks.is_integer(width)
        or width % 2
        or not 0 < width <= x.shape[-1]
    ):
        raise ValueError(
            "The number of rotated features must be even, positive and at "
            f"most the size of the last axis, {x.shape[-1]}. Received: "
            f"width={width!r}"
        )
    checks.positive_number("max_wavelength", max_wavelength)
    positions = checks.tensor("positions", positions)
    if not checks.compatible(tuple(positions.shape), (x.shape[axis],)):
        raise ValueError(
            f"`positions` must have the shape {(x.shape[axis],)}, the size of "
            f"axis {axis} of `x`. Received: positions.shape="
            f"{tuple(positions.shape)}, x.shape={tuple(x.shape)}"
        )
    half = width // 2
    first, second, rest = x[..., :half], x[..., half:width], x[..., width:]
    # Angles need float32 at least: bfloat16 cannot tell position 256 from 257.
    angle_dtype = to_float32(x).dtype
    frequencies = ops.convert_to_tensor(
        [float(max_wavelength) ** (-i / half) for i in range(half)],
        dtype=angle_dtype,
    )
    angles = ops.expand_dims(ops.cast(positions, angle_dtype), -1) * frequencies
    for _ in range(rank - axis - 2):
        angles = ops.expand_dims(angles, -2)
    cos = ops.cast(ops.cos(angles), x.dtype)
    sin = ops.cast(ops.sin(angles), x.dtype)
    return ops.concatenate(
        [first * cos - second * sin, second * cos + first * sin, rest],
        axis=-1,
    )
