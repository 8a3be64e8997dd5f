"""Row by row functions in blocks of rows, in memory for one block."""

import math

import keras
from keras import ops

from keras_gating.functional.loops import map_blocks


def map_row_blocks(function, rows, shared, block_size):
    """Applies a function to blocks of rows, one after the other.

    `function(*rows, *shared)` must treat every row by itself. In a gradient
    each block is computed again, so that nothing but its inputs is kept.

    Args:
        function: a function of tensors that returns one tensor `(B, T, …)`.
        rows: list of tensors `(B, T, …)` or `(1, T, …)` with a known T, cut
            along their second axis.
        shared: list of tensors that every block gets whole. Gradients reach
            only tensors that are passed, not such as `function` closes over.
        block_size: largest number of rows in a block.

    Returns:
        A tensor `(B, T, …)`.
    """
    length = rows[0].shape[1]
    count = math.ceil(length / block_size)
    # Blocks of equal size with as few rows too many as there can be.
    size = math.ceil(length / count)
    blocks = [_cut(x, count, size) for x in rows]
    outputs = map_blocks(
        lambda block: _recomputed(function, [*block, *shared]), blocks
    )
    return outputs[:, :length]


def _recomputed(function, tensors):
    """`function(*tensors)`, which in a gradient is computed again."""
    floats = [
        index
        for index, x in enumerate(tensors)
        if keras.backend.is_float_dtype(x.dtype)
    ]

    def of_floats(*values):
        # TensorFlow would watch whatever is passed, integers too, and cannot
        # do that with booleans.
        filled = dict(enumerate(tensors)) | dict(zip(floats, values))
        return function(*filled.values())

    # Cast to a plain tensor, since TensorFlow would count a variable twice: as
    # it is passed and as it is read.
    values = [ops.cast(tensors[i], tensors[i].dtype) for i in floats]
    return keras.remat(of_floats)(*values)


def _cut(x, count, size):
    """`(count, B, size, …)` from `(B, T, …)`."""
    shape = ops.shape(x)
    missing = count * size - x.shape[1]
    if missing:
        pads = [(0, 0), (0, missing), *[(0, 0)] * (len(shape) - 2)]
        x = ops.pad(x, pads)
    x = ops.reshape(x, (shape[0], count, size, *shape[2:]))
    return ops.moveaxis(x, 1, 0)
