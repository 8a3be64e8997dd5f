"""The cache of keys and values that decoding carries from step to step."""

import keras
from keras import ops

from keras_gating import _backend
from keras_gating._backend import in_place
from keras_gating.functional import checks


def empty(batch_size, max_length, num_heads, key_dim, value_dim, dtype):
    """A cache without any entry; its mask tells real positions."""
    return {
        "key": ops.zeros((batch_size, max_length, num_heads, key_dim), dtype),
        "value": ops.zeros(
            (batch_size, max_length, num_heads, value_dim), dtype
        ),
        "mask": ops.zeros((batch_size, max_length), "bool"),
    }


def check(cache, index, layer, query_shape):
    """Raises unless the positions of this call can be written at `index`."""
    batch_size, length = query_shape[:2]
    check_nest(cache, index, ("key", "value", "mask"))
    sizes = tuple(cache["mask"].shape)
    max_length = sizes[1] if len(sizes) == 2 else None
    check_shapes(
        cache,
        {
            "key": (batch_size, max_length, layer.num_groups, layer.key_dim),
            "value": (
                batch_size,
                max_length,
                layer.num_groups,
                layer.value_dim,
            ),
            "mask": (batch_size, max_length),
        },
    )
    position = position_of(index)
    if position is None or length is None or max_length is None:
        return
    if not 0 <= position <= max_length - length:
        raise ValueError(
            "`cache_update_index` must be at least 0 and leave room for the "
            f"{length} positions of this call in a cache of {max_length}. "
            f"Received: cache_update_index={position}"
        )


def check_companions(cache, index, donate_cache):
    """Raises for what has a meaning beside a cache alone."""
    checks.boolean("donate_cache", donate_cache)
    if cache is not None:
        return
    for name, given in (
        ("cache_update_index", index),
        ("donate_cache", donate_cache or None),
    ):
        if given is not None:
            raise ValueError(
                f"`{name}` has no effect without `cache`. Received: "
                f"{name}={given}"
            )


def check_nest(cache, index, names, floats=("key", "value")):
    """Raises unless there is an index, and a cache of these tensors.

    Args:
        cache: what came.
        index: `cache_update_index`.
        names: names of all tensors.
        floats: those of floating point; the others are counts and masks.
    """
    if index is None:
        raise ValueError(
            "`cache` needs `cache_update_index`, the position of the first "
            "token. Received: cache_update_index=None"
        )
    if not isinstance(cache, dict) or set(cache) != set(names):
        raise ValueError(
            "`cache` must be what `init_cache` or an earlier call returned. "
            f"Received: {type(cache).__name__}"
        )
    for name in names:
        x = cache[name]
        is_tensor = hasattr(x, "shape") and hasattr(x, "dtype")
        if not is_tensor or checks.is_float(name, x) != (name in floats):
            raise ValueError(
                "`cache` must hold the tensors that `init_cache` or an earlier "
                f"call returned. Received: cache[{name!r}] "
                + (f"of {x.dtype}" if is_tensor else f"= {x!r}")
            )


def check_shapes(cache, expected):
    """Raises unless the tensors have these shapes, `None` for any size."""
    for name, shape in expected.items():
        received = tuple(cache[name].shape)
        if not checks.compatible(received, shape):
            raise ValueError(
                f"`cache` does not fit this call: its {name} must have the "
                f"shape {shape}. Received: {received}"
            )


def position_of(index):
    """The index as an integer, `None` while its value is unknown."""
    if checks.is_integer(index):
        return int(index)
    if isinstance(index, keras.Variable):
        index = index.value
    if hasattr(index, "dtype"):
        dtype = keras.backend.standardize_dtype(index.dtype)
        if "int" in dtype and len(index.shape) == 0:
            value = _backend.concrete(index)
            return None if value is None else int(value)
    raise ValueError(
        "`cache_update_index` must be an integer or a scalar tensor of "
        f"integers. Received: cache_update_index={index!r}"
    )


def as_offset(index):
    """The index as a Python integer or as a tensor of int32.

    TensorFlow neither compares nor slices with integers of other widths.
    """
    if checks.is_integer(index):
        return int(index)
    return ops.cast(ops.convert_to_tensor(index), "int32")


def write_mask(cache, index, mask, query, is_donated=False):
    """A new cache that remembers which of the new positions are padding.

    Args:
        cache: the cache before; not modified unless it is donated.
        index: first position to write, an integer or a scalar tensor.
        mask: boolean `(B, T)`, False at padding, or `None`.
        query: `(B, T, d)`, for its shape.
        is_donated: whether the new one may take the memory of the one before.
    """
    if mask is None:
        mask = ops.ones(ops.shape(query)[:2], "bool")
    return {**cache, "mask": _write(cache["mask"], index, mask, is_donated)}


def write(cache, index, key, value, is_donated=False):
    """A new cache with these keys and values written at `index`."""
    # In a cache made by hand one tensor of zeros may stand for both.
    if is_donated and in_place.may_overlap(cache["key"], cache["value"]):
        is_donated = False
    return {
        **cache,
        "key": _write(cache["key"], index, key, is_donated),
        "value": _write(cache["value"], index, value, is_donated),
    }


def written(cache, index, query):
    """`(1, max_length)`: slots before the end of this call."""
    slots = ops.arange(ops.shape(cache["mask"])[1], dtype="int32")
    return ops.expand_dims(slots < index + ops.shape(query)[1], 0)


def new_slots(visible, index, query):
    """Of `(B or 1, max_length, 1)` the slots of this call, one axis more."""
    count, length = ops.shape(visible)[0], ops.shape(query)[1]
    start = (0, index, 0)
    return ops.expand_dims(ops.slice(visible, start, (count, length, 1)), -1)


def _write(old, index, new, is_donated):
    new = ops.cast(new, old.dtype)
    if is_donated and in_place.overwrite(old, index, new):
        return old
    if keras.backend.backend() == "numpy":
        old = ops.copy(old)  # its `slice_update` works in place
    start = (0, index, *[0] * (len(old.shape) - 2))
    return ops.slice_update(old, start, new)
