"""Checks of arguments that several parts of the package share."""

import numbers
import typing

import keras
import numpy as np
from keras import initializers
from keras import ops

# Sizes beyond it are a mistake, and overflow the backends' integers.
LARGEST_SIZE = 2**31 - 1
_LARGEST_NUMBER = float(np.finfo("float32").max)


def one_of(name, value, choices):
    """Returns `value` if it is among `choices`, else raises."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(
            f"`{name}` must be one of {', '.join(map(repr, choices))}. "
            f"Received: {name}={value!r}"
        )
    return value


def boolean(name, value, optional=False):
    """Returns `value` as a boolean if it is one, or 0 or 1, else raises.

    Anything else has a truth value too, and that of `"no"` is True.
    """
    if optional and value is None:
        return value
    is_bit = is_integer(value) and value in (0, 1)
    if not is_bit and not isinstance(value, (bool, np.bool_)):
        raise ValueError(
            f"`{name}` must be True{',' if optional else ' or'} False"
            f"{' or None' if optional else ''}. Received: {name}={value!r}"
        )
    return bool(value)


def seed(value):
    """Returns `value` if it is a seed of all backends or `None`, else raises.

    Keras takes others, which fail once a random number is needed.
    """
    if value is None:
        return value
    if not is_integer(value) or not 0 <= value <= LARGEST_SIZE:
        raise ValueError(
            "`seed` must be `None` or an integer from 0 to "
            f"{LARGEST_SIZE}. Received: seed={value!r}"
        )
    return int(value)


def positive_integer(name, value, optional=False):
    """Returns `value` if it is an integer of 1 or more, else raises."""
    if optional and value is None:
        return value
    if not is_integer(value) or not 0 < value <= LARGEST_SIZE:
        raise ValueError(
            f"Received an invalid value for argument `{name}`, expected a "
            f"positive integer{' or `None`' if optional else ''}, at most "
            f"{LARGEST_SIZE}. Received: "
            f"{name}={value!r}"
        )
    return int(value)


def whole(name, value, smallest=-LARGEST_SIZE):
    """Raises unless `value` is an integer or a scalar tensor of integers.

    Args:
        name: the argument's name, for the message.
        value: an integer, a tensor, or a size that is traced.
        smallest: smallest integer; what cannot be read is not compared.
    """
    if hasattr(value, "dtype"):
        dtype = keras.backend.standardize_dtype(value.dtype)
        fits = "int" in dtype and len(value.shape) == 0
    elif isinstance(value, int):
        fits = is_integer(value) and smallest <= value <= LARGEST_SIZE
    else:
        # Sizes that JAX and torch trace are no numbers, but count like them.
        fits = hasattr(value, "__floordiv__")
        fits = fits and not isinstance(value, numbers.Number)
    if not fits:
        raise ValueError(
            f"`{name}` must be an integer, at least {smallest} and at most "
            f"{LARGEST_SIZE}, or a scalar tensor of integers. Received: "
            f"{name}={value!r}"
        )


def probability(name, value):
    """Returns `value` if it is in [0, 1), else raises."""
    if not is_number(value) or not 0.0 <= value < 1.0:
        raise ValueError(
            f"`{name}` is a probability, at least 0 and below 1. Received: "
            f"{name}={value!r}"
        )
    return value


def positive_number(name, value):
    """Returns `value` if it is a finite number above 0, else raises."""
    if not is_number(value) or value <= 0:
        raise ValueError(
            f"`{name}` must be a positive, finite number (in float32). "
            f"Received: {name}={value!r}"
        )
    return value


def factor(name, value):
    """Returns `value` if it is a finite number other than 0, else raises."""
    if not is_number(value) or value == 0:
        raise ValueError(
            f"`{name}` must be a finite number other than 0 (in float32). "
            f"Received: {name}={value!r}"
        )
    return value


def is_integer(value):
    """Whether `value` is an integer (booleans are not)."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def is_number(value):
    """Whether `value` is a real number, finite in float32 (no boolean is)."""
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        return False
    size: typing.Any = abs(value)
    return bool(size <= _LARGEST_NUMBER)


def divisor(name, value):
    """Raises unless `value` is `"visible"` or one number."""
    if isinstance(value, numbers.Real):
        is_one = is_number(value)
    elif isinstance(value, (str, list, tuple, type(None))):
        is_one = value == "visible"
    else:
        # A tensor, or a size that torch does not know, which has no shape.
        is_one = len(getattr(value, "shape", ())) == 0
    if not is_one:
        raise ValueError(
            f"`{name}` must be 'visible' or one number. Received: "
            f"{name}={value!r}"
        )


def float_dtype(name, value):
    """Returns `value` if it is `None` or names a float dtype, else raises."""
    choices = ("float16", "bfloat16", "float32", "float64")
    return None if value is None else one_of(name, value, choices)


def features(name, shape):
    """Raises unless the last of two or more sizes is known."""
    if len(shape) < 2 or not shape[-1]:
        raise ValueError(
            f"`{name}` must have rank 2 or more and a known number of "
            f"features, 1 or more. Received: {name}.shape={tuple(shape)}"
        )


def odd_size(name, value, optional=False):
    """Returns `value` if it is an odd, positive integer, else raises."""
    value = positive_integer(name, value, optional)
    if value is not None and value % 2 == 0:
        raise ValueError(f"`{name}` must be odd. Received: {name}={value}")
    return value


def bias_arguments(layer):
    """Raises if `layer` has no bias and yet arguments that concern one."""
    if layer.use_bias:
        return
    is_zero = isinstance(layer.bias_initializer, initializers.Zeros)
    for name, given in (
        ("bias_initializer", not is_zero),
        ("bias_regularizer", layer.bias_regularizer is not None),
        ("bias_constraint", layer.bias_constraint is not None),
    ):
        if given:
            raise ValueError(
                f"`{name}` has no effect without a bias. Received: "
                f"use_bias={layer.use_bias}, {name}={getattr(layer, name)!r}"
            )


def tensor(name, x):
    """Returns `x` as a tensor of real numbers, else raises."""
    x = converted(name, x)
    is_float(name, x)
    return x


def converted(name, x):
    """Returns `x` as a tensor, whatever it holds, else raises."""
    # What is a tensor needs no `try`, which compiled functions go without.
    if ops.is_tensor(x) or isinstance(x, keras.Variable):
        return ops.convert_to_tensor(x)
    try:
        return ops.convert_to_tensor(x)
    except Exception as error:
        # Every backend has errors of its own.
        raise ValueError(
            f"`{name}` must be a tensor or numbers. Received: {name}={x!r}"
        ) from error


def is_float(name, x):
    """Whether a tensor of real numbers has a float dtype; others raise."""
    if isinstance(x, np.ndarray) and x.dtype.kind in "cmMOSU":
        dtype = str(x.dtype)
    else:
        dtype = keras.backend.standardize_dtype(x.dtype)
        if keras.backend.is_float_dtype(dtype):
            return True
    if dtype != "bool" and "int" not in dtype:
        raise ValueError(
            f"`{name}` must hold real numbers. Received: {name}.dtype={dtype}"
        )
    return False


def shape_of(name, x):
    """The shape of an array or tensor, `None` if there is none."""
    if x is None:
        return None
    if not hasattr(x, "shape"):
        raise ValueError(
            f"`{name}` must be an array or a tensor. Received: {name}={x!r}"
        )
    return tuple(x.shape)


def broadcasts(name, shape, other, other_shape, mutually=False):
    """Raises unless a shape broadcasts to the other one, or each to one."""
    shape, other_shape = tuple(shape), tuple(other_shape)
    fits = (mutually or len(shape) <= len(other_shape)) and all(
        a == b or a == 1 or (mutually and b == 1) or a is None or b is None
        for a, b in zip(reversed(shape), reversed(other_shape))
    )
    if not fits:
        against = "against" if mutually else "to the shape of"
        raise ValueError(
            f"`{name}` must broadcast {against} `{other}`, {other_shape}. "
            f"Received: {name}.shape={shape}"
        )


def padding_mask(name, mask, shape, of="inputs"):
    """Raises unless a mask has leading axes of a shape, the batch at least."""
    mask_shape, shape = shape_of(name, mask), tuple(shape)
    if not 0 < len(mask_shape) < len(shape) or not compatible(
        mask_shape, shape[: len(mask_shape)]
    ):
        raise ValueError(
            f"`{name}` must have the shape of `{of}` without its features, "
            f"{shape[:-1]}. Received: {name}.shape={mask_shape}"
        )


def compatible(first, second):
    """Whether two shapes can be equal; unknown sizes fit every size."""
    return len(first) == len(second) and all(
        a == b or a is None or b is None for a, b in zip(first, second)
    )
