"""The terms of mixed chunk attention, and how sequences are cut for them."""

import keras
from keras import ops

from keras_gating._backend import in_place
from keras_gating.functional.attention_weights import attention_weights
from keras_gating.functional.attention_weights import weighted_values
from keras_gating.functional.gate import as_dtype
from keras_gating.functional.gate import to_float32
from keras_gating.functional.loops import scan
from keras_gating.functional.masks import hide
from keras_gating.functional.masks import intersection
from keras_gating.functional.relative_position import relative_position_bias
from keras_gating.functional.scores import scaled_query
from keras_gating.functional.sizes import known_size


def split_chunks(x, chunk_size):
    """`(B, chunks, chunk_size, …)` from `(B, T, …)`, zeros at the end."""
    shape = ops.shape(x)
    # Written so that JAX can tell, for unknown lengths, that the sizes fit.
    count = (shape[1] + chunk_size - 1) // chunk_size
    if not is_multiple(shape[1], chunk_size):
        missing = count * chunk_size - shape[1]
        zeros = ops.zeros((shape[0], missing, *shape[2:]), x.dtype)
        x = ops.concatenate([x, zeros], axis=1)
    return ops.reshape(x, (shape[0], count, chunk_size, *shape[2:]))


def merge_chunks(x):
    """`(B, chunks · C, …)` from `(B, chunks, C, …)`."""
    shape = ops.shape(x)
    return ops.reshape(x, (shape[0], shape[1] * shape[2], *shape[3:]))


def within_chunks(
    query,
    key,
    value,
    activation,
    divisor="visible",
    key_mask=None,
    rows=None,
    position_bias=None,
    across=None,
):
    """The quadratic term.

    Args:
        query: `(B, chunks, R, D)`.
        key: `(B, chunks, C, D)`.
        value: `(B, chunks, C, E)`.
        activation: see `mixed_chunk_attention`.
        divisor: the first of `divisors` there.
        key_mask: boolean `(B or 1, chunks, C)`.
        rows: positions `(R,)` of the queries in their chunk, in the causal
            case, of NumPy if they are known. Without, R is C and every key is
            shown.
        position_bias: see `mixed_chunk_attention`.
        across: `(B, chunks, R, E)`, what to add, which may be overwritten.
    """
    query = scaled_query(query)
    scores = to_float32(ops.einsum("bgrd,bgcd->bgrc", query, key))
    chunk_size = key.shape[2]
    if position_bias is not None:
        bias = relative_position_bias(
            position_bias,
            query.shape[2],
            chunk_size,
            0 if rows is None else rows[0],
            rows is not None,
        )
        scores = in_place.total(scores, as_dtype(bias, scores.dtype))
    visible = None if key_mask is None else ops.expand_dims(key_mask, 2)
    if rows is not None:
        columns = ops.arange(chunk_size, dtype="int32")
        seen = ops.expand_dims(rows, -1) >= columns
        visible = intersection(
            visible, ops.reshape(seen, (1, 1, -1, chunk_size))
        )
    if divisor == "visible":
        divisor = _visible_count(key_mask, rows, chunk_size)
    weights = attention_weights(scores, activation, visible)
    equation = "bgrc,bgce->bgre"
    return weighted_values(equation, weights, value, divisor, across)


def chunk_sums(key, value, key_mask=None):
    """`Σ kᵀ v` of each chunk in float32 at least, `(B, chunks, D, E)`.

    Args:
        key: `(B, chunks, C, D)`.
        value: `(B, chunks, C, E)`.
        key_mask: boolean `(B or 1, chunks, C)`.
    """
    if key_mask is not None:
        key = hide(key, ops.expand_dims(key_mask, -1))
    key, value = to_float32(key), to_float32(value)
    return ops.einsum("bgcd,bgce->bgde", key, value)


def chunk_counts(key, key_mask=None):
    """Number of keys in each chunk, `(B or 1, chunks)`; see `chunk_sums`."""
    if key_mask is not None:
        return ops.sum(ops.cast(key_mask, "int32"), axis=2)
    # Not the size itself, of which torch makes a constant in an export.
    return ops.sum(ops.ones((1, *ops.shape(key)[1:3]), "int32"), axis=2)


def as_divisor(counts):
    """Counts `(B or 1, chunks)` as a divisor of sums `(B, chunks, D, E)`."""
    counts = ops.maximum(counts, 1)
    return ops.expand_dims(ops.expand_dims(counts, -1), -1)


def running_sums(sums, start=None):
    """Sums over all earlier chunks.

    Args:
        sums: `(B, chunks, …)`, those of each chunk.
        start: `(B, …)`, what the first chunk gets. Defaults to zeros.

    Returns:
        A tensor like `sums`, and `(B, …)`, the sum over all.
    """
    if start is None:
        start = ops.zeros_like(sums[:, 0])
    if known_size(sums) is None:
        start = ops.expand_dims(start, 1)
        through = start + ops.cast(ops.cumsum(sums, axis=1), sums.dtype)
        before = ops.concatenate([start, through[:, :-1]], axis=1)
        return before, through[:, -1]
    # Where there can be a loop, not `ops.cumsum`: on JAX its time grows faster
    # than the length, on torch it makes float32 of float64.
    total, before = scan(
        lambda carry, x: (carry + x, carry), start, ops.moveaxis(sums, 1, 0)
    )
    return ops.moveaxis(before, 0, 1), total


def across_chunks(query, sums, divisor):
    """The linear term, from `Σ kᵀ v` over all that each chunk sees.

    Args:
        query: `(B, chunks, R, D)`.
        sums: `(B, chunks or 1, D, E)`.
        divisor: a number, or a tensor `(B or 1, chunks or 1, 1, 1)`.
    """
    if ops.is_tensor(divisor) or isinstance(divisor, keras.KerasTensor):
        divisor = ops.cast(divisor, sums.dtype)
    num_rows, width = known_size(query, 2), sums.shape[-1]
    if query.dtype == sums.dtype and num_rows is not None and num_rows < width:
        query, means = query / divisor, sums
    else:
        # The mean is of the size of one summand, which half precision holds.
        means = as_dtype(sums / divisor, query.dtype)
    if known_size(means) == 1:
        return ops.einsum("bgrd,bde->bgre", query, ops.squeeze(means, 1))
    return ops.einsum("bgrd,bgde->bgre", query, means)


def is_multiple(length, chunk_size):
    """Whether the length is known to be a multiple of the chunk's."""
    return isinstance(length, int) and length % chunk_size == 0


def _visible_count(key_mask, rows, chunk_size):
    """Number of keys that each row sees in its chunk."""
    if key_mask is None:
        if rows is None:
            return chunk_size
        return ops.reshape(rows + 1, (1, 1, -1, 1))
    count = ops.cast(key_mask, "int32")
    if rows is None:
        return ops.reshape(
            ops.sum(count, axis=2), (*ops.shape(count)[:2], 1, 1)
        )
    count = ops.cumsum(count, axis=2)
    if rows.shape[0] != chunk_size:
        count = ops.take(count, rows, axis=2)
    return ops.expand_dims(count, -1)
