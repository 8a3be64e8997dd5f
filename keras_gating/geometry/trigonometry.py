"""Functions that keep float64 where those of Keras compute in float32.

On the JAX backend `keras.ops.sin`, `cos`, `cosh` and `tanh` return float32.
"""

import math

from keras import ops

# Of sin(t)/t and cos(t) in t²; on |t| ≤ π/4 second derivatives are exact to
# the last digits of float64.
_SINE = [(-1) ** i / math.factorial(2 * i + 1) for i in range(11)]
_COSINE = [(-1) ** i / math.factorial(2 * i) for i in range(11)]


def cos_and_sin(angle):
    """`(cos(angle), sin(angle))` in the dtype of `angle`."""
    cos, sin = ops.cos(angle), ops.sin(angle)
    if cos.dtype == angle.dtype:
        return cos, sin
    turns = ops.stop_gradient(ops.round(angle / (2.0 * math.pi)))
    quarter = (angle - turns * (2.0 * math.pi)) / 4.0
    square = quarter * quarter
    c, s = _polynomial(_COSINE, square), quarter * _polynomial(_SINE, square)
    for _ in range(2):
        c, s = (c - s) * (c + s), 2.0 * c * s
    return c, s


def cosh(x):
    return (ops.exp(x) + ops.exp(-x)) / 2.0


def tanh(x):
    # A quotient of exponentials has no derivative where these overflow.
    return 2.0 * ops.sigmoid(2.0 * x) - 1.0


def _polynomial(coefficients, x):
    value = coefficients[-1] + 0.0 * x
    for coefficient in coefficients[-2::-1]:
        value = value * x + coefficient
    return value
