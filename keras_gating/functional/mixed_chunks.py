"""Mixed chunk attention: quadratic in a chunk, linear across chunks."""

from keras import ops

from keras_gating.functional import checks
from keras_gating.functional.chunks import across_chunks
from keras_gating.functional.chunks import as_divisor
from keras_gating.functional.chunks import chunk_counts
from keras_gating.functional.chunks import chunk_sums
from keras_gating.functional.chunks import is_multiple
from keras_gating.functional.chunks import merge_chunks
from keras_gating.functional.chunks import running_sums
from keras_gating.functional.chunks import split_chunks
from keras_gating.functional.chunks import within_chunks
from keras_gating.functional.gate import as_float
from keras_gating.functional.masks import as_boolean_mask
from keras_gating.functional.quadratic import check_key_mask
from keras_gating.functional.sizes import known_size
from keras_gating.functional.sizes import positions


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
        checks.divisor("divisors", divisor)
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
    chunked_value = split_chunks(value, chunk_size)
    chunked_mask = _with_padding(key_mask, value, chunk_size)
    if is_causal:
        across = _across_earlier(
            split_chunks(linear_query, chunk_size),
            split_chunks(linear_key, chunk_size),
            chunked_value,
            chunked_mask,
            divisors[1],
        )
    else:
        across = _across_all(
            linear_query, linear_key, value, key_mask, divisors[1]
        )
        across = split_chunks(across, chunk_size)
    context = within_chunks(
        split_chunks(query, chunk_size),
        split_chunks(key, chunk_size),
        chunked_value,
        activation,
        divisors[0],
        chunked_mask,
        positions(chunk_size) if is_causal else None,
        position_bias,
        across,
    )
    context = merge_chunks(context)
    # A slice costs a copy in the gradient.
    return context if is_multiple(length, chunk_size) else context[:, :length]


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


def _across_earlier(query, key, value, key_mask, divisor):
    """The linear term in the causal case, from tensors in chunks."""
    sums, _ = running_sums(chunk_sums(key, value, key_mask))
    if divisor == "visible":
        counts, _ = running_sums(chunk_counts(key, key_mask))
        divisor = as_divisor(counts)
    return across_chunks(query, sums, divisor)


def _across_all(query, key, value, key_mask, divisor):
    """The linear term otherwise, `(B, T, E)`: all positions are one chunk."""
    query, key, value = (ops.expand_dims(x, 1) for x in (query, key, value))
    if key_mask is not None:
        key_mask = ops.expand_dims(key_mask, 1)
    sums = chunk_sums(key, value, key_mask)
    if divisor == "visible":
        divisor = as_divisor(chunk_counts(key, key_mask))
    # Not an index, whose gradient is written among zeros on torch.
    return ops.squeeze(across_chunks(query, sums, divisor), 1)


def _with_padding(key_mask, value, chunk_size):
    """Mask of `(B or 1, chunks, C)` that hides what fills the last chunk."""
    shape = ops.shape(value)
    if key_mask is None:
        if is_multiple(shape[1], chunk_size):
            return None
        key_mask = ops.ones((1, shape[1]), "bool")
    return split_chunks(key_mask, chunk_size)
