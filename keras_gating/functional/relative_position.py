"""Relative position bias in the manner of T5: one number a bucket."""

import math

from keras import ops

from keras_gating.functional import checks
from keras_gating.functional.gate import as_float
from keras_gating.functional.sizes import module_for

# More rows than these are made in so many blocks: each needs `t · (t + S)`
# numbers, all at once need `T · (T + S)`.
MANY_ROWS = 512
NUM_BLOCKS = 8


def relative_position_bucket(
    distance, num_buckets=32, max_distance=128, is_causal=False
):
    """Bucket of a distance: exact when small, logarithmic beyond.

    Half of the buckets are for keys after the query; with `is_causal`, which
    hides these, all are for keys up to the query. Half of the buckets on one
    side stand for one distance each, the others for ranges that grow to
    `max_distance`, and the last one for all that is farther.

    Args:
        distance: integer tensor, position of the key minus that of the query.
        num_buckets: number of buckets.
        max_distance: from this distance on all share a bucket.
        is_causal: whether the buckets are for keys up to the query only.

    Returns:
        A tensor of int32.

    Reference:
        Raffel et al. 2019, T5, arXiv 1910.10683.

    Example:

    >>> import numpy as np
    >>> from keras_gating import functional
    >>> distance = np.array([0, -1, 1, -200], "int32")
    >>> buckets = functional.relative_position_bucket(distance)
    >>> [int(bucket) for bucket in buckets]
    [0, 1, 17, 15]
    """
    _check_buckets(num_buckets, max_distance, is_causal)
    distance = checks.converted("distance", distance)
    if checks.is_float("distance", distance):
        raise ValueError(
            "`distance` must hold integers. Received: distance.dtype="
            f"{distance.dtype}"
        )
    distance = ops.cast(distance, "int32")
    return _bucket(distance, num_buckets, max_distance, is_causal, ops)


def _check_buckets(num_buckets, max_distance, is_causal):
    checks.positive_integer("num_buckets", num_buckets)
    checks.positive_integer("max_distance", max_distance)
    checks.boolean("is_causal", is_causal)
    if num_buckets < (2 if is_causal else 4):
        raise ValueError(
            "`num_buckets` must be 2 or more on each side. Received: "
            f"num_buckets={num_buckets}, is_causal={is_causal}"
        )


def _bucket(distance, num_buckets, max_distance, is_causal, xp):
    """The bucket, with functions of `xp`, which is `keras.ops` or NumPy."""
    first = 0
    if is_causal:
        distance = xp.where(distance < 0, -distance, 0)
    else:
        num_buckets //= 2
        first = xp.where(distance > 0, num_buckets, 0)
        # Not `ops.abs`, which may do nothing to integers on OpenVINO.
        distance = xp.where(distance < 0, -distance, distance)
    exact = num_buckets // 2
    bucket = xp.where(distance < exact, distance, exact)
    for start in _range_starts(exact, num_buckets, max_distance):
        bucket = bucket + xp.where(distance >= start, 1, 0)
    return ops.cast(bucket + first, "int32")


def _range_starts(exact, num_buckets, max_distance):
    """First distance of each bucket after the first logarithmic one.

    As integers, so that no rounding of a logarithm decides.
    """
    ranges = num_buckets - exact
    ratio = max_distance / exact
    return [
        math.ceil(exact * ratio ** (step / ranges) - 1e-9)
        for step in range(1, ranges)
    ]


def relative_position_bias(
    table, num_queries, num_keys, offset=0, is_causal=False, max_distance=128
):
    """`(T, S)`, for each query and key the table's entry for their distance.

    Args:
        table: tensor `(num_buckets,)`.
        num_queries: T.
        num_keys: S. The first key has position 0.
        offset: position of the first query.
        is_causal: see `relative_position_bucket`.
        max_distance: see `relative_position_bucket`.

    Example:

    >>> import numpy as np
    >>> from keras import ops
    >>> from keras_gating import functional
    >>> table = np.arange(32, dtype="float32")
    >>> bias = functional.relative_position_bias(table, 2, 3)
    >>> ops.convert_to_numpy(bias).tolist()
    [[0.0, 17.0, 18.0], [1.0, 0.0, 17.0]]
    """
    checks.whole("num_queries", num_queries, smallest=0)
    checks.whole("num_keys", num_keys, smallest=0)
    checks.whole("offset", offset)
    table = as_float(table, "table")
    if len(table.shape) != 1:
        raise ValueError(
            "`table` must have the shape (num_buckets,). Received: "
            f"table.shape={tuple(table.shape)}"
        )
    _check_buckets(table.shape[0], max_distance, is_causal)
    if isinstance(num_queries, int) and num_queries > MANY_ROWS:
        size = math.ceil(num_queries / NUM_BLOCKS)
        blocks = [
            _bias(
                table,
                min(size, num_queries - start),
                num_keys,
                offset + start,
                is_causal,
                max_distance,
            )
            for start in range(0, num_queries, size)
        ]
        return ops.concatenate(blocks, axis=0)
    return _bias(table, num_queries, num_keys, offset, is_causal, max_distance)


def _bias(table, num_queries, num_keys, offset, is_causal, max_distance):
    """The bias, by way of `T · (T + S)` numbers."""
    xp = module_for(num_queries, num_keys, offset)
    after = xp.arange(num_keys, dtype="int32")
    before = xp.arange(num_queries, dtype="int32") - num_queries
    # Distances of the first row, then, from the end, what each further row
    # has in front of them.
    distances = xp.concatenate([after, before], axis=0) - offset
    buckets = _bucket(distances, table.shape[0], max_distance, is_causal, xp)
    # A product, whose gradient is one too; that of gathering adds up numbers
    # one by one.
    one_hot = ops.one_hot(buckets, table.shape[0], dtype=table.dtype)
    row = ops.einsum("pb,b->p", one_hot, table)
    # Rows of a length that is one less than the period: each is the row above
    # moved by one. Gathering T · S numbers, and adding as many gradients into
    # the table, takes far longer.
    period = num_queries + num_keys
    rows = ops.broadcast_to(row, (num_queries, period))
    rows = ops.reshape(rows, (-1,))[: num_queries * (period - 1)]
    return ops.reshape(rows, (num_queries, period - 1))[:, :num_keys]
