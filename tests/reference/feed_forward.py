"""Gated linear units and feed-forward layers in NumPy, from their formulas."""

import math

import numpy as np


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def silu(x):
    return x * sigmoid(x)


def relu(x):
    return np.maximum(x, 0.0)


def gelu(x):
    """With the distribution function of the normal distribution."""
    return x * 0.5 * (1.0 + np.vectorize(math.erf)(x / math.sqrt(2.0)))


def gelu_tanh(x):
    inner = math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3)
    return 0.5 * x * (1.0 + np.tanh(inner))


def identity(x):
    return x


ACTIVATIONS = {
    "swiglu": silu,
    "geglu": gelu,
    "geglu_tanh": gelu_tanh,
    "reglu": relu,
    "glu": sigmoid,
    "bilinear": identity,
}


def glu(x, kernel, bias, activation, gate_first=False, limit=None):
    """`(x W + b) ⊙ activation(x V + c)`, kernel `(d, 2, units)`."""
    value, gate = (x @ kernel[:, i] + bias[i] for i in (0, 1))
    if gate_first:
        value, gate = gate, value
    if limit is not None:
        value = np.minimum(np.maximum(value, -limit), limit)
        gate = np.minimum(gate, limit)
    return value * activation(gate)
