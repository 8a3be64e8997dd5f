"""Heads of a query that share keys and values, in groups of neighbours."""

from keras import ops

from keras_gating.functional.sizes import known_size


def divide(num_groups, num_heads):
    """Whether heads can share so many keys; `None` is an unknown number."""
    if None in (num_groups, num_heads):
        return True
    return num_groups > 0 and num_heads % num_groups == 0


def repeated(query, key, value):
    """Keys and values for each head of the query."""
    repeats = _repeats(query, key)
    if repeats == 1:
        return key, value
    return tuple(ops.repeat(x, repeats, axis=-2) for x in (key, value))


def _repeats(query, key):
    """How many heads share a key; 1 where a number of heads is unknown."""
    heads = query.shape[-2], key.shape[-2]
    if None in heads:
        return 1
    # Tensors, while torch traces.
    num_heads, num_groups = map(int, heads)
    return num_heads // num_groups


def fits(query, key, mask, is_causal):
    """Whether the heads of a group may stand where positions do.

    So it is for one query, whose heads all see the same keys: nothing is
    repeated then, which would take most of the time of a step of decoding.

    Args:
        query: `(B, T, heads, D)`.
        key: `(B, S, groups, D)`.
        mask: boolean `(B, heads, 1, S)`, sizes 1 broadcast, or `None`.
        is_causal: whether causality is not in the mask.
    """
    return (
        _repeats(query, key) > 1
        and known_size(query) == 1
        and not is_causal
        and (mask is None or mask.shape[1] == 1)
    )


def as_rows(query, num_groups):
    """`(B, 1, heads, D)` → `(B, heads / groups, groups, D)`."""
    num_heads, width = query.shape[2:]
    query = ops.reshape(query, (-1, num_groups, num_heads // num_groups, width))
    return ops.transpose(query, (0, 2, 1, 3))


def as_heads(context, num_heads):
    """`(B, heads / groups, groups, Dv)` → `(B, 1, heads, Dv)`."""
    context = ops.transpose(context, (0, 2, 1, 3))
    return ops.reshape(context, (-1, 1, num_heads, context.shape[-1]))
