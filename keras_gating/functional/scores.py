"""What all forms of attention do with queries and scores."""

import math

from keras import ops


def scaled_query(query, scale=None):
    """`scale · query`, `1/√D` by default.

    Scaled before the product with the keys, float16 does not overflow where
    the scaled scores fit.
    """
    if scale is None:
        scale = 1.0 / math.sqrt(query.shape[-1])
    # A Python float that is cast passes through float32 on TensorFlow.
    return query * ops.convert_to_tensor(scale, dtype=query.dtype)


def visible_scores(scores, visible):
    """Scores with the lowest number where `visible`, unless `None`, hides."""
    if visible is None:
        return scores
    return ops.where(visible, scores, ops.cast(-1e38, scores.dtype))


def masked_softmax(scores, visible=None, num_axes=1):
    """Softmax over the last `num_axes` axes together.

    Hidden scores get no weight beside visible ones; where all are hidden,
    the weights are equal.

    Args:
        scores: tensor, in float32 at least.
        visible: boolean, broadcasts against `scores`; `None` shows all.
        num_axes: number of axes.
    """
    scores = visible_scores(scores, visible)
    if num_axes == 1 and scores.shape[-1] == 1:
        # Of a single key Keras warns that its weight is always 1.
        return ops.ones_like(scores)
    if num_axes == 1 and len(scores.shape) <= 5:
        return ops.softmax(scores, axis=-1)
    # TensorFlow has no softmax beyond rank 5 on the CPU.
    shape = ops.shape(scores)
    rows = ops.reshape(scores, (-1, math.prod(shape[-num_axes:])))
    return ops.reshape(ops.softmax(rows, axis=-1), shape)
