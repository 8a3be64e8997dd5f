"""Mixed chunk attention: quadratic in a chunk, linear across chunks."""

import numpy as np
from keras import ops

from keras_gating._backend import in_place
from keras_gating.functional import checks
from keras_gating.functional.attention_weights import attention_weights
from keras_gating.functional.attention_weights import weighted_values
from keras_gating.functional.gate import as_dtype
from keras_gating.functional.gate import as_float
from keras_gating.functional.gate import to_float32
from keras_gating.functional.loops import scan
from keras_gating.functional.masks import as_boolean_mask
from keras_gating.functional.masks import hide
from keras_gating.functional.masks import intersection
from keras_gating.functional.quadratic import check_key_mask
from keras_gating.functional.relative_position import relative_position_bias
from keras_gating.functional.scores import scaled_query
from keras_gating.functional.sizes import known_size


def mixed_chunk_attention(
    queries,
    keys,
    value,
    chunk_size,
    activation="relu2",
    divisors=("visible", "visible"),
    key_mask=None,
    is_causal=False,
    position_bias=None,
):
    """Attention in time and memory that are linear in the length.

    `context = activation(q kᵀ / √D + b) v / n + q' (k'ᵀ v) / n'`

    The first term is among the positions of a chunk. The second, linear one
    ranges over all positions, or, when causal, over those of earlier chunks;
    it costs a product with one `(D, E)` matrix a chunk.

    Args:
        queries: pair of tensors `(B, T, D)`, q and q'.
        keys: pair of tensors `(B, T, D)`, k and k'.
        value: `(B, T, E)`.
        chunk_size: number of positions in a chunk, a positive integer. The
            last chunk may be shorter.
        activation: `"relu2"` or `"laplace"`.
        divisors: n and n', each a number or `"visible"`, for each row the
            number of keys that the term shows to it.
        key_mask: boolean or 0 and 1, `(B, T)`.
        is_causal: hide later keys.
        position_bias: table `(num_buckets,)` of `relative_position_bias`, for
            the first term.

    Returns:
        A tensor `(B, T, E)`.

    Reference:
        Hua et al. 2022, FLASH, arXiv 2202.10447.

    Example:

    >>> import numpy as np
    >>> from keras_gating import functional
    >>> x = np.ones((1, 5, 4), "float32")
    >>> context = functional.mixed_chunk_attention(
    ...     (x, x), (x, x), x, chunk_size=2, is_causal=True)
    >>> [float(y) for y in context[0, :, 0]]
    [4.0, 4.0, 8.0, 8.0, 8.0]
    """
    checks.positive_integer("chunk_size", chunk_size)
    checks.one_of("activation", activation, ("relu2", "laplace"))
    for divisor in divisors:
        if isinstance(divisor, str):
            checks.one_of("divisors", divisor, ("visible",))
    checks.boolean("is_causal", is_causal)
    value = as_float(value, "value")
    queries = _as_pair("queries", queries, value)
    keys = _as_pair("keys", keys, value)
    length = ops.shape(value)[1]
    if known_size(value) is not None:
        chunk_size = min(chunk_size, max(known_size(value), 1))
    if key_mask is not None:
        key_mask = as_boolean_mask(key_mask, "key_mask")
        check_key_mask(key_mask, value)
    (query, linear_query), (key, linear_key) = queries, keys
    chunks = {
        "value": split_chunks(value, chunk_size),
        "key_mask": _with_padding(key_mask, value, chunk_size),
    }
    context = within_chunks(
        split_chunks(query, chunk_size),
        split_chunks(key, chunk_size),
        activation=activation,
        divisor=divisors[0],
        rows=np.arange(chunk_size, dtype="int32") if is_causal else None,
        position_bias=position_bias,
        **chunks,
    )
    divisor = divisors[1]
    if is_causal:
        linear_key = split_chunks(linear_key, chunk_size)
        sums, _ = running_sums(chunk_sums(linear_key, **chunks))
        linear_query = split_chunks(linear_query, chunk_size)
        if divisor == "visible":
            divisor, _ = running_sums(chunk_counts(linear_key, chunks["key_mask"]))
    else:
        # All positions are one chunk.
        linear_key, value = _as_one(linear_key), _as_one(value)
        key_mask = None if key_mask is None else _as_one(key_mask)
        sums = chunk_sums(linear_key, value, key_mask)
        linear_query = _as_one(linear_query)
        if divisor == "visible":
            divisor = chunk_counts(linear_key, key_mask)
    across = across_chunks(linear_query, sums, divisor)
    context, across = (merge_chunks(x, length) for x in (context, across))
    return in_place.total(context, across)


def _as_pair(name, pair, value):
    """Two tensors with the leading axes of the value."""
    if not isinstance(pair, (list, tuple)) or len(pair) != 2:
        raise ValueError(
            f"`{name}` must be a pair of tensors. Received: {name}={pair!r}"
        )
    pair = [as_float(x, name) for x in pair]
    shapes = [tuple(x.shape) for x in pair]
    leading = tuple(value.shape)[:-1]
    if len(leading) != 2 or not all(
        len(shape) == 3
        and checks.compatible(shape[:2], leading)
        and checks.compatible(shape[2:], shapes[0][2:])
        for shape in shapes
    ):
        raise ValueError(
            f"`{name}` must be two tensors (B, T, D), and `value` a tensor "
            f"(B, T, E). Received: shapes {shapes} and value.shape="
            f"{tuple(value.shape)}"
        )
    return pair


def split_chunks(x, chunk_size):
    """`(B, chunks, chunk_size, …)` from `(B, T, …)`, zeros at the end."""
    shape = ops.shape(x)
    # Written so that JAX can tell, for unknown lengths, that the sizes fit.
    count = (shape[1] + chunk_size - 1) // chunk_size
    if not _is_multiple(shape[1], chunk_size):
        missing = count * chunk_size - shape[1]
        zeros = ops.zeros((shape[0], missing, *shape[2:]), x.dtype)
        x = ops.concatenate([x, zeros], axis=1)
    return ops.reshape(x, (shape[0], count, chunk_size, *shape[2:]))


def merge_chunks(x, length=None):
    """`(B, T, …)` from `(B, chunks, C, …)`: `length` positions, or all."""
    shape = ops.shape(x)
    x = ops.reshape(x, (shape[0], shape[1] * shape[2], *shape[3:]))
    if length is None or _is_multiple(length, shape[2]):
        # A slice costs a copy in the gradient.
        return x
    return x[:, :length]


def within_chunks(
    query,
    key,
    value,
    activation,
    divisor="visible",
    key_mask=None,
    rows=None,
    position_bias=None,
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
            case, better in NumPy if known. Without, R is C and every key is shown.
        position_bias: see `mixed_chunk_attention`.
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
    return weighted_values("bgrc,bgce->bgre", weights, value, divisor)


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
    return ops.full((1, ops.shape(key)[1]), ops.shape(key)[2], "int32")


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
        divisor: a number, or `(B or 1, chunks or 1)`, the numbers of keys in
            the sums.
    """
    if not checks.is_number(divisor):
        divisor = ops.cast(ops.maximum(divisor, 1), sums.dtype)
        divisor = ops.expand_dims(ops.expand_dims(divisor, -1), -1)
    # The mean is of the size of one summand, which half precision can hold.
    means = as_dtype(sums / divisor, query.dtype)
    if known_size(means) == 1:
        return ops.einsum("bgrd,bde->bgre", query, means[:, 0])
    return ops.einsum("bgrd,bgde->bgre", query, means)


def _is_multiple(length, chunk_size):
    """Whether the length is known to be a multiple of the chunk's."""
    return isinstance(length, int) and length % chunk_size == 0


def _as_one(x):
    """`(B, 1, T, …)`: all positions in one chunk."""
    return ops.expand_dims(x, 1)


def _with_padding(key_mask, value, chunk_size):
    """Mask of `(B or 1, chunks, C)` that hides what fills the last chunk."""
    shape = ops.shape(value)
    if key_mask is None:
        if _is_multiple(shape[1], chunk_size):
            return None
        key_mask = ops.ones((1, shape[1]), "bool")
    return split_chunks(key_mask, chunk_size)


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
