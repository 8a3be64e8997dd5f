"""From scores to attention weights: squared ReLU, Laplace, softmax."""

import math

import keras
from keras import activations
from keras import ops

from keras_gating._backend import in_place
from keras_gating._backend import on_torch
from keras_gating.functional import checks
from keras_gating.functional.gate import as_dtype
from keras_gating.functional.gate import as_float
from keras_gating.functional.scores import masked_softmax
from keras_gating.functional.sizes import known_size


def relu2(x):
    """Squared rectifier, `max(x, 0)²`.

    Args:
        x: tensor.

    Reference:
        So et al. 2021, Primer, arXiv 2109.08668.

    Example:

    >>> import numpy as np
    >>> from keras_gating import functional
    >>> [float(y) for y in functional.relu2(np.array([-2.0, 3.0], "float32"))]
    [0.0, 9.0]
    """
    return _squared(ops.relu(as_float(x)))


def _squared(rectified):
    # Its gradient on torch is quicker than that of `ops.square`.
    return in_place.product(rectified, rectified)


def _relu2_of_scores(scores):
    """`relu2` of what nobody else holds."""
    is_torch = keras.config.backend() == "torch"
    if is_torch and on_torch.keeps_plain_gradients(scores):
        return on_torch.relu2(scores)
    return _squared(in_place.activated(activations.relu, scores))


def laplace(x):
    """Bounded stand-in for `relu2`, a normal distribution function.

    `½ (1 + erf((x − μ) / (σ √2)))` with `μ = √½` and `σ = √(1/4π)`, for which
    value and slope at `μ` are those of `relu2`.

    Args:
        x: tensor.

    Reference:
        Ma et al. 2022, Mega, arXiv 2209.10655.

    Example:

    >>> import math
    >>> import numpy as np
    >>> from keras_gating import functional
    >>> float(functional.laplace(np.array(math.sqrt(0.5), "float32")))
    0.5
    """
    x = as_float(x)
    mean, deviation = math.sqrt(0.5), math.sqrt(1.0 / (4.0 * math.pi))
    z = (x - mean) * (1.0 / (deviation * math.sqrt(2.0)))
    return (ops.erf(z) + 1.0) * 0.5


# Where float16 ends. Squares of large scores are beyond it, and infinite
# weights would make NaN of values with both signs.
_LARGEST_FLOAT16 = 65504.0

ACTIVATIONS = ("relu2", "laplace", "softmax")


def attention_weights(scores, activation, visible=None):
    """Weights of the values, zero where a key is hidden.

    Args:
        scores: tensor `(…, S)`, in float32 at least, that may be overwritten.
        activation: `"relu2"`, `"laplace"` or `"softmax"`.
        visible: boolean, broadcasts against `scores`; `None` shows all.
    """
    if activation == "softmax":
        weights = masked_softmax(scores, visible)
    elif activation == "relu2":
        weights = _relu2_of_scores(scores)
    else:
        weights = laplace(scores)
    if visible is None:
        return weights
    return in_place.hidden(weights, visible)


def weighted_values(equation, weights, values, divisor=None, base=None):
    """Sum of the values by their weights, divided by `divisor`.

    Args:
        equation: einsum equation of the sum.
        weights: tensor, in float32 at least, that may be overwritten.
        values: tensor. The result has its dtype; in float16, weights and
            results beyond 65504 stop there.
        divisor: number, tensor that broadcasts against weights and result, or
            `None`. Where it is not positive, the sum is not divided.
        base: tensor like the result that is added to it and may be
            overwritten, or `None`. With it the equation is that of a product
            of matrices.
    """
    if divisor is not None:
        if checks.is_number(divisor):
            divisor = divisor if divisor > 0 else 1
        else:
            divisor = ops.where(divisor > 0, divisor, ops.ones_like(divisor))
            divisor = ops.cast(divisor, weights.dtype)
        is_half = weights.dtype != values.dtype
        num_keys, width = known_size(weights, -1), values.shape[-1]
        if is_half or (num_keys is not None and num_keys < width):
            # An undivided sum may exceed half precision; else it is a matter
            # of which is smaller.
            weights, divisor = in_place.quotient(weights, divisor), None
    is_float16 = keras.backend.standardize_dtype(values.dtype) == "float16"
    if is_float16:
        weights = ops.clip(weights, 0.0, _LARGEST_FLOAT16)
    weights = as_dtype(weights, values.dtype)
    if base is not None and divisor is None and not is_float16:
        return in_place.plus_product(base, weights, values)
    context = ops.einsum(equation, weights, values)
    if is_float16:
        context = ops.clip(context, -_LARGEST_FLOAT16, _LARGEST_FLOAT16)
    if divisor is not None:
        context = in_place.quotient(context, divisor)
    return context if base is None else in_place.total(base, context)
