"""Loops over the first axis whose gradients take time in proportion.

On torch Keras picks the entries one by one, and the gradient of each pick is
as large as the whole. Here all are taken apart in one operation.
"""

import keras
from keras import ops

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


def map_entries(function, xs):
    """`keras.ops.map` over a list of tensors.

    Args:
        function: `function(entries)`, which gets a list and returns a tensor.
        xs: list of tensors `(n, …)`.

    Returns:
        The outputs, `(n, …)`.
    """
    if keras.config.backend() != "torch":
        return ops.map(function, xs)
    return ops.stack([function(list(e)) for e in zip(*map(ops.unstack, xs))])
