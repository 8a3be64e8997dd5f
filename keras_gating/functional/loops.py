"""Loops over the first axis whose gradients take time in proportion.

On torch Keras picks the entries one by one, and the gradient of each pick is
as large as the whole. Here all are taken apart in one operation.
"""

import keras
from keras import ops

from keras_gating._backend import in_place

# So few entries are written out on every backend: LiteRT has no loop that keeps
# the output of each.
UNROLLED = 16


def scan(function, start, x):
    """`keras.ops.scan` over a tensor.

    Args:
        function: `function(carry, entry)`, which returns the next carry and an
            output.
        start: the first carry.
        x: tensor `(n, …)`, n known.

    Returns:
        The last carry, and the outputs `(n, …)`.
    """
    is_short = 0 < x.shape[0] <= UNROLLED
    if keras.config.backend() != "torch" and not is_short:
        return ops.scan(function, start, x)
    carry, outputs = start, []
    for entry in ops.unstack(x):
        carry, output = function(carry, entry)
        outputs.append(output)
    return carry, ops.stack(outputs)


def map_blocks(function, xs):
    """`keras.ops.map` over blocks, the results joined along their second axis.

    Args:
        function: `function(blocks)`, which gets a list of tensors `(B, C, …)`
            and returns one.
        xs: list of tensors `(n, B, C, …)`, n known.

    Returns:
        A tensor `(B, n · C, …)`.
    """
    if keras.config.backend() != "torch":
        outputs = ops.moveaxis(ops.map(function, xs), 0, 1)
        shape = ops.shape(outputs)
        return ops.reshape(outputs, (shape[0], shape[1] * shape[2], *shape[3:]))
    blocks = list(zip(*map(ops.unstack, xs)))
    return in_place.joined(map(function, map(list, blocks)), len(blocks))
