"""Means and maxima over positions, aware of padding and of float16."""

import math

import keras
from keras import ops

from keras_gating import _backend
from keras_gating._backend import on_torch
from keras_gating.functional.gate import as_dtype
from keras_gating.functional.gate import to_float32


def position_mean(x, axes, mask=None):
    """Mean over `axes`, in float32 under half precision.

    Args:
        x: tensor. The result has the dtype of `x`.
        axes: axes to average over.
        mask: boolean, broadcasts against `x`; False positions do not count.
            The mean of no position is 0.
    """
    values = to_float32(x)
    if mask is None:
        mean = _mean(values, axes)
    else:
        visible = ops.cast(mask, values.dtype)
        values = ops.where(mask, values, ops.zeros_like(values))
        # A quotient of means, since sums leave the range of the dtype first.
        share = ops.mean(visible, axis=axes)
        mean = _mean(values, axes) / ops.where(
            share > 0, share, ops.ones_like(share)
        )
    return as_dtype(mean, x.dtype)


def _mean(x, axes):
    if keras.config.backend() == "torch":
        return on_torch.mean(x, axes)
    return ops.mean(x, axis=axes)


def position_max(x, axes, mask=None):
    """Maximum over `axes`.

    Of equal maxima the first has the gradient. `ops.max` is not used for it:
    on JAX its gradient compares `x` with the maximum and divides by the number
    of hits, which is 0 / 0 where the compiler computes `x` twice and rounds
    differently.

    Args:
        x: tensor.
        axes: neighbouring axes to take the maximum over, in order.
        mask: boolean, broadcasts against `x`; False positions do not count.
            The maximum of no position is 0.
    """
    axes = tuple(axis % len(x.shape) for axis in axes)
    if mask is not None:
        x = ops.where(mask, x, ops.cast(float("-inf"), x.dtype))
    if keras.config.backend() == "torch":
        maximum = on_torch.first_maximum(x, axes)
    else:
        maximum = _first_maximum(x, axes)
    if mask is None:
        return maximum
    return ops.where(ops.any(mask, axis=axes), maximum, ops.zeros_like(maximum))


def _first_maximum(x, axes):
    axis, after = axes[0], axes[-1] + 1
    shape = ops.shape(x)
    leading, trailing = shape[:axis], shape[after:]
    # Not -1, which no size is for an empty batch.
    count = math.prod(shape[axis:after])
    merged = ops.reshape(x, (*leading, count, *trailing))
    places = ops.arange(ops.shape(merged)[axis], dtype="int32")
    places = ops.reshape(places, (-1, *[1] * len(trailing)))
    first = ops.expand_dims(_backend.argmax(merged, axis), axis)
    is_first = ops.equal(places, first)
    merged = ops.where(is_first, merged, ops.zeros_like(merged))
    return ops.sum(merged, axis=axis)
