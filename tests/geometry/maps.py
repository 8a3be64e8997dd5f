"""Maps of random weights that the tests of geometry share."""

import keras
import numpy as np
from keras import ops

from tests.utils import tensor
from tests.utils import to_numpy


def numpy64(x):
    return np.float64(to_numpy(x))


def points(*shape, seed=0, dtype="float32", spread=1.0):
    rng = np.random.default_rng(seed)
    return (spread * rng.normal(size=shape)).astype(dtype)


def quadratic(k, d, seed=0, dtype="float32"):
    """`f_a = A_ai x_i + ½ B_aij x_i x_j`: cheap, and curved at every point."""
    rng = np.random.default_rng(seed)
    linear = tensor(rng.normal(size=(d, k)), dtype)
    second = rng.normal(size=(d, k, k)) / 2
    second = tensor(second + second.swapaxes(1, 2), dtype)

    def f(x):
        bent = ops.einsum("aij,nj->nai", second, x)
        return ops.einsum("nai,ni->na", linear + bent / 2.0, x)

    return f


def gated_attention(seed=0, dtype="float32", tokens=8, features=16):
    """One head with fixed values and an elementwise gate."""
    rng = np.random.default_rng(seed)
    keys, values, gate = (
        tensor(rng.normal(size=shape), dtype)
        for shape in ((2, tokens), (tokens, features), (2, features))
    )

    def f(x):
        weights = ops.softmax(ops.einsum("ni,it->nt", x, keys), axis=-1)
        context = ops.einsum("nt,td->nd", weights, values)
        return context * ops.sigmoid(ops.einsum("ni,id->nd", x, gate))

    return f


def has_float64():
    """Whether tensors of 64 bits exist in this process."""
    x = ops.convert_to_tensor(np.zeros(1))
    return keras.backend.standardize_dtype(x.dtype) == "float64"
