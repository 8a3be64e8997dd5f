"""Several cheap views of one projection: a scale and an offset each."""

from keras import ops

from keras_gating._backend import in_place
from keras_gating.functional import checks
from keras_gating.functional.gate import as_dtype
from keras_gating.functional.gate import as_float


def offset_scale(inputs, scale, offset):
    """Derives several tensors from one by a scale and an offset for each.

    `outputs[i] = inputs ⊙ scale[i] + offset[i]`

    Queries and keys that share a projection differ by these alone.

    Args:
        inputs: tensor `(…, D)`.
        scale: tensor `(n, D)`.
        offset: tensor `(n, D)`.

    Returns:
        A list of n tensors with the shape and dtype of `inputs`. On PyTorch
        they are views of one tensor.

    Raises:
        ValueError: for shapes that do not fit.

    Reference:
        Hua et al. 2022, arXiv 2202.10447.

    Example:

    >>> import numpy as np
    >>> from keras_gating import functional
    >>> x = np.array([[1.0, 2.0]], "float32")
    >>> scale = np.array([[1.0, 1.0], [3.0, 0.0]], "float32")
    >>> offset = np.array([[0.0, 0.0], [0.0, 5.0]], "float32")
    >>> query, key = functional.offset_scale(x, scale, offset)
    >>> [float(y) for y in key[0]]
    [3.0, 5.0]
    """
    inputs = as_float(inputs, "inputs")
    scale, offset = as_float(scale, "scale"), as_float(offset, "offset")
    width = tuple(inputs.shape)[-1:]
    count = tuple(scale.shape)[:1]
    for name, x in (("scale", scale), ("offset", offset)):
        fits = checks.compatible(tuple(x.shape), (*count, *width))
        if len(x.shape) != 2 or not fits:
            raise ValueError(
                "`scale` and `offset` must have the shape (n, D), where D is "
                f"the size of the last axis of `inputs`. Received: {name}.shape"
                f"={tuple(x.shape)}, inputs.shape={tuple(inputs.shape)}"
            )
    axes = (*scale.shape[:1], *[1] * (len(inputs.shape) - 1), scale.shape[1])
    scale, offset = (
        ops.reshape(as_dtype(x, inputs.dtype), axes) for x in (scale, offset)
    )
    # One after the other in memory, for the products to come.
    outputs = in_place.total(inputs * scale, offset)
    return list(ops.unstack(outputs, scale.shape[0], axis=0))
