"""Operations that may store their result in the first operand.

New memory costs more than a sum or a product itself: an operating system hands
it out page by page. On PyTorch, where no gradients are kept, the result takes
the place of the operand, so pass only tensors that nobody else holds. Compilers
see to it by themselves, and other backends have no such operations.
"""

import contextlib

import keras
from keras import ops

from keras_gating._backend.on_torch import keeps_gradients


def product(x, factor):
    """`x * factor`, for a factor that broadcasts to `x`."""
    if _is_allowed(x, factor):
        # Some tensors refuse before anything is changed: those that were
        # expanded, or where `torch.vmap` maps over the factor alone.
        with contextlib.suppress(RuntimeError):
            return x.mul_(factor)
    return x * factor


def total(x, summand):
    """`x + summand`, for a summand that broadcasts to `x`."""
    if _is_allowed(x, summand):
        with contextlib.suppress(RuntimeError):
            return x.add_(summand)
    return x + summand


def relu(x):
    """`max(x, 0)`."""
    return x.relu_() if _is_allowed(x) else ops.relu(x)


def _is_allowed(*tensors):
    if keras.config.backend() != "torch":
        return False
    import torch

    # Of two dtypes the result has the wider one.
    is_one_dtype = len({x.dtype for x in tensors}) == 1
    return is_one_dtype and not (
        torch.compiler.is_compiling() or keeps_gradients(*tensors)
    )
