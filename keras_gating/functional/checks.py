"""Checks of arguments that several parts of the package share."""

import numbers

import numpy as np
from keras import initializers

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
    """Returns `value` if it is True or False, else raises.

    Anything else has a truth value too, and that of `"no"` is True.
    """
    if optional and value is None:
        return value
    if not isinstance(value, (bool, np.bool_)):
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
    return bool(abs(value) <= _LARGEST_NUMBER)


def float_dtype(name, value):
    """Returns `value` if it is `None` or names a float dtype, else raises."""
    choices = ("float16", "bfloat16", "float32", "float64")
    return None if value is None else one_of(name, value, choices)


def features(name, shape):
    """Raises unless the last of two or more sizes is known."""
    if len(shape) < 2 or shape[-1] is None:
        raise ValueError(
            f"`{name}` must have rank 2 or more and a known number of "
            f"features. Received: {name}.shape={tuple(shape)}"
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


def compatible(first, second):
    """Whether two shapes can be equal; unknown sizes fit every size."""
    return len(first) == len(second) and all(
        a == b or a is None or b is None for a, b in zip(first, second)
    )
