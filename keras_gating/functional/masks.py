"""Which query may see which key: reading, checking and building masks."""

import math

import keras
from keras import ops

from keras_gating import _backend
from keras_gating.functional import checks


def as_boolean_mask(mask, name="attention_mask"):
    """Boolean mask from a mask of booleans, integers or floats 0 and 1.

    Args:
        mask: True or 1 where attention is allowed.
        name: the argument's name, for the message.

    Raises:
        ValueError: for negative values, which are those of an additive mask
            (0 to keep, −1e9 to hide). Only values that can be read are
            checked, that is, outside of compiled functions.

    Example:

    >>> import numpy as np
    >>> from keras_gating import functional
    >>> functional.as_boolean_mask(np.array([1.0, 0.0])).shape[0]
    2
    """
    mask = checks.tensor(name, mask)
    dtype = keras.backend.standardize_dtype(mask.dtype)
    if dtype == "bool":
        return mask
    if not dtype.startswith("uint"):
        values = _backend.concrete(mask)
        # Written so that NaN is refused as well.
        if values is not None and not (values >= 0).all():
            raise ValueError(
                f"`{name}` holds 1 (or True) where attention is allowed and 0 "
                "elsewhere. Received negative values or NaN (smallest: "
                f"{values.min()}), as in an additive mask. Pass "
                f"`{name} >= 0` for a mask of 0 and large negatives."
            )
    return ops.cast(mask, "bool")


def optional_boolean_mask(mask, name="attention_mask"):
    """What `as_boolean_mask` returns, and `None` for `None`."""
    return None if mask is None else as_boolean_mask(mask, name)


def check_attention_mask(mask_shape, scores_shape, num_axes=1):
    """Raises unless a mask of this shape applies to scores of that shape.

    The last `2 · num_axes` sizes are those of the queries and the keys. A mask
    without further axes must have exactly these sizes; one with further axes
    may have size 1 anywhere.

    Args:
        mask_shape: shape of the mask; `None` for unknown sizes.
        scores_shape: `(B, free…, heads, T…, S…)`; `None` for unknown sizes.
        num_axes: number of attention axes.
    """
    mask_shape, scores_shape = tuple(mask_shape), tuple(scores_shape)
    pair = 2 * num_axes
    # Without heads unless all axes are there.
    leading = scores_shape[:-pair]
    if len(mask_shape) < len(scores_shape):
        leading = leading[:-1][: max(len(mask_shape) - pair, 0)]
    expected = (*leading, *scores_shape[-pair:])
    broadcast = len(mask_shape) > pair
    if len(mask_shape) == len(expected) and all(
        size is None
        or other is None
        or size == other
        or (size == 1 and broadcast)
        for size, other in zip(mask_shape, expected)
    ):
        return
    raise ValueError(
        "`attention_mask` must have the shape (T, S), (B, T, S) or "
        "(B, heads, T, S), T being the number of queries and S that of keys "
        f"(sizes 1 broadcast in the last two forms); here {pair} trailing "
        f"sizes {scores_shape[-pair:]} of the scores {scores_shape}. A "
        "padding mask of shape (B, S) needs an axis for the queries: pass "
        f"`mask[:, None, :]`. Received: attention_mask.shape={mask_shape}"
    )


def causal_mask(target_shape, source_shape, offset=0):
    """`(T…, S…)`, True where the key does not come after the query.

    Positions over several axes are counted in row-major order.

    Args:
        target_shape: sizes of the queries' axes.
        source_shape: sizes of the keys' axes.
        offset: position of the first query.

    Example:

    >>> from keras import ops
    >>> from keras_gating import functional
    >>> ops.convert_to_numpy(functional.causal_mask((2,), (3,))).tolist()
    [[True, False, False], [True, True, False]]
    """
    for name, shape in (
        ("target_shape", target_shape),
        ("source_shape", source_shape),
    ):
        if not isinstance(shape, (list, tuple)):
            raise ValueError(
                f"`{name}` must be a tuple of sizes. Received: {name}={shape!r}"
            )
        for size in shape:
            checks.whole(name, size, smallest=0)
    rows, columns = _positions(target_shape, source_shape, offset)
    return ops.greater_equal(rows, columns)


def sliding_window_mask(target_length, source_length, window, offset=0):
    """`(T, S)`, True where query and key are less than `window` apart.

    Args:
        target_length: number of queries.
        source_length: number of keys.
        window: positive integer; 1 leaves a position only itself.
        offset: position of the first query.

    Example:

    >>> from keras import ops
    >>> from keras_gating import functional
    >>> mask = functional.sliding_window_mask(3, 3, window=2)
    >>> ops.convert_to_numpy(mask)[0].tolist()
    [True, True, False]
    """
    checks.whole("target_length", target_length, smallest=0)
    checks.whole("source_length", source_length, smallest=0)
    checks.whole("window", window, smallest=1)
    rows, columns = _positions((target_length,), (source_length,), offset)
    return ops.less(ops.abs(rows - columns), window)


def visibility(
    layout,
    query_shape,
    source_shape,
    query_mask=None,
    source_mask=None,
    attention_mask=None,
    is_causal=False,
    window=None,
    offset=0,
):
    """All masks of an attention call in one, `None` if there is none.

    Args:
        layout: the `AttentionLayout`.
        query_shape: shape of the query input.
        source_shape: shape of the key input, or of the cache.
        query_mask: boolean `(B, dims…)` of the queries.
        source_mask: boolean `(B, dims…)` of the keys.
        attention_mask: boolean, as `AttentionLayout` describes it.
        is_causal: whether keys may not come after the query.
        window: see `sliding_window_mask`; `None` shows all.
        offset: position of the first query.

    Returns:
        A boolean tensor of the rank of the scores if `attention_mask` has an
        axis for heads, else of that rank without heads; sizes 1 broadcast.
    """
    parts = [attention_mask]
    if query_mask is not None:
        parts.append(layout.query_mask(query_mask))
    if source_mask is not None:
        parts.append(layout.source_mask(source_mask))
    rows = tuple(query_shape[axis] for axis in layout.axes)
    columns = tuple(source_shape[axis] for axis in layout.axes)
    if is_causal:
        parts.append(causal_mask(rows, columns, offset))
    if window is not None:
        parts.append(sliding_window_mask(rows[0], columns[0], window, offset))
    parts = [part for part in parts if part is not None]
    per_head = any(len(part.shape) == layout.scores_rank for part in parts)
    expand = layout.with_heads if per_head else layout.without_heads
    return intersection(*map(expand, parts))


def intersection(*masks):
    """Logical and of the masks that are not `None`; `None` without any."""
    merged = None
    for mask in masks:
        if mask is not None:
            merged = mask if merged is None else ops.logical_and(merged, mask)
    return merged


def hide(x, visible, keep_finite=False):
    """Replaces hidden entries by zero, so that no NaN can leave them.

    Masking later is too late for what multiplies by zero: 0 · NaN is NaN in
    the weighted sum of values and in every gradient of a projection.

    Args:
        x: tensor.
        visible: boolean tensor that broadcasts against `x`.
        keep_finite: replace only NaN and infinities.
    """
    if keep_finite:
        visible = ops.logical_or(visible, ops.isfinite(x))
    return ops.where(visible, x, ops.zeros_like(x))


def _positions(target_shape, source_shape, offset):
    checks.whole("offset", offset)
    rows = ops.arange(math.prod(target_shape), dtype="int32") + offset
    columns = ops.arange(math.prod(source_shape), dtype="int32")
    ones = (1,) * len(target_shape)
    return (
        ops.reshape(rows, (*target_shape, *ones)),
        ops.reshape(columns, (*ones, *source_shape)),
    )


def with_rank(mask, rank):
    """A mask with axes of size 1 added behind, up to a rank."""
    for _ in range(rank - len(mask.shape)):
        mask = ops.expand_dims(mask, -1)
    return mask
