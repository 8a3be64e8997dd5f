"""What the chunked form of the gated attention unit carries while decoding.

Its size does not depend on how much has been decoded: a sum over all complete
chunks, and the chunk that is being filled.
"""

from keras import ops

from keras_gating import _backend
from keras_gating.functional import chunks
from keras_gating.functional.masks import hide
from keras_gating.functional.sizes import known_size
from keras_gating.functional.sizes import positions
from keras_gating.layers.attention import cache as kv_cache


def empty(batch_size, max_length, chunk_size, key_dim, value_dim, dtype):
    """The state before the first position.

    Sums over many positions are in float32 at least. Every tensor has the
    batch first, so that rows can be selected.
    """
    sum_dtype = "float64" if dtype == "float64" else "float32"
    shape = (batch_size, chunk_size)
    return {
        "sum": ops.zeros((batch_size, key_dim, value_dim), sum_dtype),
        "count": ops.zeros((batch_size,), "int32"),
        "chunk_sum": ops.zeros((batch_size, key_dim, value_dim), sum_dtype),
        "chunk_key": ops.zeros((*shape, key_dim), dtype),
        "chunk_value": ops.zeros((*shape, value_dim), dtype),
        "chunk_mask": ops.zeros(shape, "bool"),
        "position": ops.zeros((batch_size,), "int32"),
        # 0 where there is no end.
        "max_length": ops.full((batch_size,), max_length or 0, "int32"),
    }


def check(cache, index, layer, inputs_shape):
    """Raises unless the positions of this call follow those in the state."""
    batch_size, length = inputs_shape[:2]
    width = layer.hidden_dim
    chunk = (batch_size, layer.chunk_size)
    expected = {
        "sum": (batch_size, layer.key_dim, width),
        "count": (batch_size,),
        "chunk_sum": (batch_size, layer.key_dim, width),
        "chunk_key": (*chunk, layer.key_dim),
        "chunk_value": (*chunk, width),
        "chunk_mask": chunk,
        "position": (batch_size,),
        "max_length": (batch_size,),
    }
    floats = ("sum", "chunk_sum", "chunk_key", "chunk_value")
    kv_cache.check_nest(cache, index, expected, floats)
    kv_cache.check_shapes(cache, expected)
    position = kv_cache.position_of(index)
    start = _backend.concrete(cache["position"])
    end = _backend.concrete(cache["max_length"])
    if position is None or start is None:
        return
    if (position != start).any():
        raise ValueError(
            "The state of the chunked form can only go on where it is: "
            f"`cache_update_index` must be {start[0]}. Received: "
            f"cache_update_index={position}"
        )
    if length is not None and ((position + length > end) & (end > 0)).any():
        raise ValueError(
            f"The {length} positions of this call do not fit into a cache of "
            f"{end.min()}. Received: cache_update_index={position}"
        )


def step(
    cache,
    index,
    queries,
    keys,
    value,
    mask,
    activation,
    divisors,
    position_bias=None,
):
    """Attention of new positions, and the state after them.

    Args:
        cache: the state before; it is not modified.
        index: position of the first token, an integer or a scalar tensor.
        queries: see `functional.mixed_chunk_attention`.
        keys: the same.
        value: `(B, T, E)`.
        mask: boolean `(B, T)`, False at padding, or `None`.
        activation: see `functional.mixed_chunk_attention`.
        divisors: the same.
        position_bias: the same.

    Returns:
        The context `(B, T, E)` and the next state.
    """
    query, linear_query = queries
    key, linear_key = keys
    batch_size, length = ops.shape(value)[:2]
    size = cache["chunk_key"].shape[1]
    first = index % size
    is_single = known_size(value) == 1
    # The chunks that the new positions fall into, the open one first.
    count = 1 if is_single else (length + 2 * size - 2) // size
    window = {
        name: _extend(cache[f"chunk_{name}"], (count - 1) * size)
        for name in ("key", "value", "mask")
    }
    window = kv_cache.write_mask(window, first, mask, value)
    window = kv_cache.write(window, first, key, value)
    window = {name: chunks.split_chunks(x, size) for name, x in window.items()}
    if is_single:
        rows = ops.reshape(ops.convert_to_tensor(first, "int32"), (1,))
        place = _as_chunk
    else:
        rows = positions(size)

        def place(x):
            zeros = ops.zeros((batch_size, count * size, x.shape[2]), x.dtype)
            x = ops.slice_update(zeros, (0, first, 0), x)
            return chunks.split_chunks(x, size)

    if mask is not None:
        linear_key = hide(linear_key, ops.expand_dims(mask, -1))
    sums = chunks.chunk_sums(place(linear_key), place(value))
    open_sum = ops.expand_dims(cache["chunk_sum"], 1)
    sums = ops.concatenate([sums[:, :1] + open_sum, sums[:, 1:]], axis=1)
    counts = chunks.chunk_counts(window["key"], window["mask"])
    before, total = chunks.running_sums(sums, cache["sum"])
    counts_before, total_count = chunks.running_sums(counts, cache["count"])
    divisor = divisors[1]
    if divisor == "visible":
        divisor = chunks.as_divisor(counts_before)
    across = chunks.across_chunks(place(linear_query), before, divisor)
    context = chunks.within_chunks(
        place(query),
        window["key"],
        window["value"],
        activation,
        divisors[0],
        window["mask"],
        rows,
        position_bias,
        across,
    )
    context = chunks.merge_chunks(context)
    if not is_single:
        context = ops.slice(
            context, (0, first, 0), (batch_size, length, context.shape[2])
        )
    complete = ops.convert_to_tensor((first + length) // size, "int32")
    last = ops.minimum(complete, count - 1)
    is_open = complete < count

    def open_chunk(x, otherwise=None):
        x = ops.take(x, last, axis=1)
        otherwise = ops.zeros_like(x) if otherwise is None else otherwise
        return ops.where(is_open, x, otherwise)

    return context, {
        "sum": open_chunk(before, total),
        "count": open_chunk(counts_before, total_count),
        "chunk_sum": open_chunk(sums),
        **{f"chunk_{name}": open_chunk(x) for name, x in window.items()},
        "position": ops.full_like(cache["position"], index + length),
        "max_length": cache["max_length"],
    }


def _extend(x, slots):
    """Free slots after those of the open chunk."""
    if isinstance(slots, int) and slots == 0:
        return x
    shape = ops.shape(x)
    zeros = ops.zeros((shape[0], slots, *shape[2:]), x.dtype)
    return ops.concatenate([x, zeros], axis=1)


def _as_chunk(x):
    return ops.expand_dims(x, 1)
