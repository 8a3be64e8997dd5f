"""Operations that may store their result in the first operand.

New memory costs more than a sum or a product itself: an operating system hands
it out page by page. On PyTorch, where no gradients are kept, the result takes
the place of the operand, so pass only tensors that nobody else holds. Compilers
see to it by themselves, and other backends have no such operations.
"""

import contextlib
import math
import operator

import keras
from keras import activations
from keras import ops

from keras_gating._backend import on_torch

# No dictionary: some callables have no hash.
_ACTIVATIONS = (
    (activations.relu, "relu_"),
    (activations.sigmoid, "sigmoid_"),
    (activations.silu, "silu_"),
    (activations.tanh, "tanh_"),
)


def product(x, factor):
    """`x * factor`, for a factor that broadcasts to `x`."""
    return _stored("mul_", operator.mul, x, factor)


def total(x, summand):
    """`x + summand`, for a summand that broadcasts to `x`."""
    return _stored("add_", operator.add, x, summand)


def quotient(x, divisor):
    """`x / divisor`, for a number or a tensor that broadcasts to `x`."""
    return _stored("div_", operator.truediv, x, divisor)


def hidden(x, visible):
    """`x` with zeros where `visible`, which broadcasts to it, is False."""
    # Into expanded tensors, with one number for many, it would write.
    if _is_allowed(x) and _is_eager_torch(visible) and x.is_contiguous():
        with contextlib.suppress(RuntimeError):
            return x.masked_fill_(visible.logical_not(), 0.0)
    return ops.where(visible, x, ops.zeros((), x.dtype))


def overwrite(x, index, new):
    """Writes `new` into `x` from `index` on along the second axis.

    On torch, and with gradients switched off: other tensors than these two may
    remember what they were computed from.

    Args:
        x: tensor, `(B, L, …)`.
        index: an integer or a scalar tensor.
        new: `(B, T, …)`.

    Returns:
        Whether it did. Elsewhere nothing is written.
    """
    if (
        not _is_allowed(x, new)
        or on_torch.is_grad_enabled()
        or not on_torch.is_writable(x)
    ):
        return False
    x.narrow(1, index, new.shape[1]).copy_(new)
    return True


def may_overlap(x, y):
    """Whether what is written into one tensor of torch may be in the other."""
    if keras.config.backend() != "torch":
        return False
    if not on_torch.needs_no_gradients(x, y):
        # Neither is overwritten.
        return False
    (first, end), (other_first, other_end) = map(on_torch.memory, (x, y))
    return first < other_end and other_first < end


def plus_product(x, a, b):
    """`x + a @ b`, on torch without a pass of its own for the sum."""
    if not _is_eager_torch(x, a, b) or not (
        x.dtype == a.dtype == b.dtype
        and x.shape[:-2] == a.shape[:-2] == b.shape[:-2]
    ):
        return x + ops.matmul(a, b)
    count = math.prod(x.shape[:-2])
    flat = [y.reshape(count, *y.shape[-2:]) for y in (x, a, b)]
    if _is_allowed(x, a, b) and x.is_contiguous():
        return flat[0].baddbmm_(*flat[1:]).reshape(x.shape)
    import torch

    return torch.baddbmm(*flat).reshape(x.shape)


def joined(blocks, count):
    """`count` blocks of one shape, joined along their second axis, on torch.

    Args:
        blocks: iterator that makes them. Each has its place before the next is
            made, so that not all of them are held twice.
        count: how many there are.
    """
    import torch

    first = next(blocks)
    if not _is_allowed(first):
        return torch.cat([first, *blocks], dim=1)
    size = first.shape[1]
    whole = first.new_empty(first.shape[0], count * size, *first.shape[2:])
    whole[:, :size] = first
    for index, block in enumerate(blocks, 1):
        whole[:, index * size : (index + 1) * size] = block
    return whole


def activated(function, x):
    """`function(x)`, in place for the most common activations."""
    names = [name for known, name in _ACTIVATIONS if known is function]
    if not names or not _is_allowed(x):
        return function(x)
    import torch

    return getattr(torch.ops.aten, names[0])(x)


def _stored(method, function, x, operand):
    """`x.method(operand)` where `x` may be overwritten, else the function."""
    is_number = isinstance(operand, (int, float))
    if _is_allowed(x) if is_number else _is_allowed(x, operand):
        # Tensors that were expanded refuse, before anything is changed.
        with contextlib.suppress(RuntimeError):
            return getattr(x, method)(operand)
    return function(x, operand)


def _is_eager_torch(*tensors):
    return keras.config.backend() == "torch" and on_torch.is_eager(*tensors)


def _is_allowed(*tensors):
    if keras.config.backend() != "torch":
        return False
    # Of two dtypes the result has the wider one; derivatives taken forward
    # are wrong once an operand is lost.
    is_one_dtype = len({x.dtype for x in tensors}) == 1
    return is_one_dtype and on_torch.needs_no_gradients(*tensors)
