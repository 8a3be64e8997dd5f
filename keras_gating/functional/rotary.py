"""Rotary position embedding, in its rotate-half form."""

import keras
import numpy as np
from keras import ops

from keras_gating.functional import checks
from keras_gating.functional.gate import as_dtype
from keras_gating.functional.gate import as_float
from keras_gating.functional.sizes import module_for


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
    cos, sin = table(positions, max_wavelength, width, rank - axis - 2, x.dtype)
    return rotated(x, cos, sin)


def table(positions, max_wavelength, width, num_axes, dtype):
    """Cosines and sines `(T, …, width/2)`, for `rotated`.

    Args:
        positions: integers `(T,)`, a tensor or an array.
        max_wavelength: see `apply_rotary`.
        width: the same.
        num_axes: number of axes between that of the positions and the last.
        dtype: dtype of what is to be rotated.
    """
    half = width // 2
    # Angles need float32 at least: bfloat16 cannot tell position 256 from 257.
    is_double = keras.backend.standardize_dtype(dtype) == "float64"
    angle_dtype = "float64" if is_double else "float32"
    # Arrays of NumPy become constants, which takes a fifth of the time.
    numbers = [float(max_wavelength) ** (-i / half) for i in range(half)]
    is_array = module_for(half) is np
    frequencies = np.array(numbers, angle_dtype) if is_array else numbers
    shape = (-1, *[1] * (num_axes + 1))
    if isinstance(positions, np.ndarray):
        positions = positions.astype(angle_dtype).reshape(shape)
        positions = ops.convert_to_tensor(positions)
    else:
        positions = ops.reshape(ops.cast(positions, angle_dtype), shape)
    angles = positions * ops.convert_to_tensor(frequencies, angle_dtype)
    return as_dtype(ops.cos(angles), dtype), as_dtype(ops.sin(angles), dtype)


def rotated(x, cos, sin):
    """Turns the pairs of as many features as the table is for."""
    half = cos.shape[-1]
    first, second = x[..., :half], x[..., half : 2 * half]
    parts = [first * cos - second * sin, second * cos + first * sin]
    if 2 * half < x.shape[-1]:
        parts.append(x[..., 2 * half :])
    return ops.concatenate(parts, axis=-1)
