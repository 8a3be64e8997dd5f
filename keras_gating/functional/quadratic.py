"""Attention of one head whose weights need not add up to 1."""

import functools
import math

from keras import ops

from keras_gating._backend import in_place
from keras_gating.functional import checks
from keras_gating.functional.attention_weights import ACTIVATIONS
from keras_gating.functional.attention_weights import attention_weights
from keras_gating.functional.attention_weights import weighted_values
from keras_gating.functional.blockwise import map_row_blocks
from keras_gating.functional.gate import as_dtype
from keras_gating.functional.gate import as_float
from keras_gating.functional.gate import to_float32
from keras_gating.functional.masks import as_boolean_mask
from keras_gating.functional.masks import intersection
from keras_gating.functional.relative_position import relative_position_bias
from keras_gating.functional.scores import scaled_query
from keras_gating.functional.sizes import known_size

# With causal weights, rows from this number on are computed in so many blocks
# that leave later keys out: of 4 blocks 3/8 of all weights.
SHORTEST_IN_PREFIXES = 512
NUM_PREFIXES = 4


def quadratic_attention(
    query,
    key,
    value,
    activation="relu2",
    divisor="visible",
    mask=None,
    key_mask=None,
    is_causal=False,
    offset=0,
    position_bias=None,
    block_size=None,
):
    """Attention over single-head tensors with a choice of weights.

    `context = activation(query keyᵀ / √D + b) value / divisor`

    Weights of hidden keys are zero, so a row without any visible key gets
    zeros. The query is scaled before the product and the weights are computed
    in float32 at least.

    Args:
        query: `(B, T, D)`.
        key: `(B, S, D)`.
        value: `(B, S, E)`.
        activation: `"relu2"`, `"laplace"` or `"softmax"`.
        divisor: `"visible"`, for each row the number of keys it sees, or a
            number. A softmax is not divided.
        mask: boolean or 0 and 1, `(B, T, S)`; sizes 1 broadcast.
        key_mask: the same, `(B, S)`.
        is_causal: hide later keys, in addition to the masks.
        offset: position of the first query, an integer or a scalar tensor;
            keys count from 0.
        position_bias: table `(num_buckets,)` of `relative_position_bias`.
        block_size: more rows than this are computed in blocks of at most so
            many, and computed again in the gradient: memory for
            `S · block_size` weights instead of `S · T`. Needs a known T.
            Defaults to `None`, all at once.

    Returns:
        A tensor `(B, T, E)`.

    Reference:
        Hua et al. 2022, arXiv 2202.10447.

    Example:

    >>> import numpy as np
    >>> from keras_gating import functional
    >>> x = np.ones((1, 3, 4), "float32")
    >>> context = functional.quadratic_attention(x, x, x, is_causal=True)
    >>> [float(y) for y in context[0, :, 0]]
    [4.0, 4.0, 4.0]
    """
    return finished_attention(
        query,
        key,
        value,
        activation=activation,
        divisor=divisor,
        mask=mask,
        key_mask=key_mask,
        is_causal=is_causal,
        offset=offset,
        position_bias=position_bias,
        block_size=block_size,
    )


def finished_attention(
    query,
    key,
    value,
    *,
    activation,
    divisor,
    mask,
    key_mask,
    is_causal,
    offset,
    position_bias,
    block_size,
    finish=None,
    further_rows=None,
    further=None,
):
    """What a function makes of the context, block by block if there are blocks.

    The first arguments are those of `quadratic_attention`.

    Args:
        finish: `finish(context, **further_rows, **further)` returns a tensor
            `(B, T, …)`; `None` returns the context. Where it is computed again
            for gradients, these reach no other tensors than its arguments.
        further_rows: tensors `(B, T, …)` by name, of which it gets the rows of
            the context.
        further: tensors by name that it gets whole.

    Returns:
        What `finish` returns for all rows, or the context `(B, T, E)`.
    """
    further_rows, further = further_rows or {}, further or {}
    checks.one_of("activation", activation, ACTIVATIONS)
    checks.divisor("divisor", divisor)
    checks.positive_integer("block_size", block_size, optional=True)
    checks.boolean("is_causal", is_causal)
    checks.whole("offset", offset)
    query, key = as_float(query, "query"), as_float(key, "key")
    value = as_float(value, "value")
    _check_shapes(query, key, value)
    query = scaled_query(query)
    if mask is not None:
        mask = as_boolean_mask(mask, "mask")
        pairs = (query.shape[0], query.shape[1], key.shape[1])
        if len(mask.shape) != 3:
            raise ValueError(
                f"`mask` must have the shape (B, T, S), {pairs}. Received: "
                f"mask.shape={tuple(mask.shape)}"
            )
        checks.broadcasts("mask", mask.shape, "the scores", pairs)
        sizes = (ops.shape(query)[1], ops.shape(key)[1])
        mask = ops.broadcast_to(mask, (ops.shape(mask)[0], *sizes))
    if key_mask is not None:
        key_mask = as_boolean_mask(key_mask, "key_mask")
        check_key_mask(key_mask, key)
    positions = ops.arange(ops.shape(query)[1], dtype="int32") + offset
    rows = {
        "query": query,
        "positions": ops.expand_dims(positions, 0),
        "mask": mask,
    }
    shared = {
        "key": key,
        "value": value,
        "key_mask": key_mask,
        "position_bias": position_bias,
    }
    count_rows = False
    if activation == "softmax":
        pass
    elif not isinstance(divisor, str):
        # A tensor, for it is among the arguments that blocks share.
        shared["divisor"] = ops.convert_to_tensor(divisor)
    elif mask is not None:
        count_rows = True
    elif is_causal:
        rows["divisor"] = _seen_count(key, key_mask, positions, offset)
    else:
        shared["divisor"] = _key_count(key, key_mask)
    rows = {name: x for name, x in rows.items() if x is not None}
    shared = {name: x for name, x in shared.items() if x is not None}
    own = (*rows, *shared)
    attend = functools.partial(_attend, activation, is_causal, count_rows)
    rows, shared = {**rows, **further_rows}, {**shared, **further}

    def function(*tensors):
        named = dict(zip((*rows, *shared), tensors))
        context = attend({name: named.pop(name) for name in own})
        return context if finish is None else finish(context, **named)

    length = known_size(query)
    if block_size is not None and length is not None and length > block_size:
        return map_row_blocks(
            function, list(rows.values()), list(shared.values()), block_size
        )
    if (
        is_causal
        and checks.is_integer(offset)
        and offset == 0
        and length is not None
        and length == known_size(key)
        and length >= SHORTEST_IN_PREFIXES
    ):
        return _attend_to_prefixes(function, rows, shared, length)
    return function(*rows.values(), *shared.values())


def _check_shapes(query, key, value):
    shapes = [tuple(x.shape) for x in (query, key, value)]
    if (
        any(len(shape) != 3 for shape in shapes)
        or not checks.compatible(shapes[0][::2], shapes[1][::2])
        or not checks.compatible(shapes[1][:2], shapes[2][:2])
    ):
        raise ValueError(
            "`query`, `key` and `value` must have the shapes (B, T, D), "
            f"(B, S, D) and (B, S, E). Received: query.shape={shapes[0]}, "
            f"key.shape={shapes[1]}, value.shape={shapes[2]}"
        )


def check_key_mask(key_mask, key):
    """Raises unless a mask of keys is `(B or 1, S)`."""
    shape, expected = tuple(key_mask.shape), tuple(key.shape)[:2]
    if len(shape) != 2 or not checks.compatible(shape[1:], expected[1:]):
        fits = False
    else:
        fits = shape[0] == 1 or checks.compatible(shape[:1], expected[:1])
    if not fits:
        raise ValueError(
            f"`key_mask` must have the shape (B, S), {expected}. Received: "
            f"key_mask.shape={shape}"
        )


def _attend_to_prefixes(function, rows, shared, length):
    """Blocks of rows, each with the keys up to its last row and no others."""
    size = math.ceil(length / NUM_PREFIXES)
    outputs = []
    for start in range(0, length, size):
        stop = start + size
        block = {name: x[:, start:stop] for name, x in rows.items()}
        if "mask" in block:
            block["mask"] = block["mask"][..., :stop]
        keys = {
            name: x[:, :stop] if name in ("key", "value", "key_mask") else x
            for name, x in shared.items()
        }
        outputs.append(function(*block.values(), *keys.values()))
    return ops.concatenate(outputs, axis=1)


def _key_count(key, key_mask):
    """Number of keys, `(B, 1, 1)` with a mask."""
    if key_mask is None:
        # Not the size itself, of which torch makes a constant in an export.
        return ops.sum(ops.ones((ops.shape(key)[1],), "int32"))
    count = ops.sum(ops.cast(key_mask, "int32"), axis=1)
    return ops.reshape(count, (-1, 1, 1))


def _seen_count(key, key_mask, positions, offset):
    """Number of keys up to each position, `(B or 1, T, 1)`."""
    last = ops.minimum(positions, _key_count(key, None) - 1)
    if key_mask is None:
        return ops.reshape(last + 1, (1, -1, 1))
    count = ops.cumsum(ops.cast(key_mask, "int32"), axis=1)
    if checks.is_integer(offset) and offset == 0:
        # Not by gathering, which OpenVINO lacks for models of torch.
        (num_queries,) = ops.shape(positions)
        shape = (ops.shape(count)[0], num_queries)
        beyond = ops.broadcast_to(count[:, -1:], shape)
        count = ops.concatenate([count, beyond], axis=1)[:, :num_queries]
        return ops.expand_dims(count, -1)
    return ops.expand_dims(ops.take(count, last, axis=1), -1)


def _attend(activation, is_causal, count_rows, x):
    """Attention of some rows, their divisor counted here or given."""
    query, key, positions = x["query"], x["key"], x["positions"][0]
    scores = to_float32(ops.einsum("btd,bsd->bts", query, key))
    num_queries, num_keys = ops.shape(query)[1], ops.shape(key)[1]
    if "position_bias" in x:
        bias = relative_position_bias(
            x["position_bias"], num_queries, num_keys, positions[0], is_causal
        )
        scores = in_place.total(scores, as_dtype(bias, scores.dtype))
    visible = x.get("mask")
    if "key_mask" in x:
        visible = intersection(visible, ops.expand_dims(x["key_mask"], 1))
    if is_causal:
        columns = ops.arange(num_keys, dtype="int32")
        seen = ops.expand_dims(positions, -1) >= columns
        visible = intersection(visible, ops.expand_dims(seen, 0))
    divisor = x.get("divisor")
    if count_rows:
        divisor = ops.sum(ops.cast(visible, "int32"), axis=-1, keepdims=True)
    weights = attention_weights(scores, activation, visible)
    return weighted_values("bts,bse->bte", weights, x["value"], divisor)
