"""Checks of arguments that several parts of the package share."""

import math
import numbers

from keras import initializers


def one_of(name, value, choices):
    """Returns `value` if it is among `choices`, else raises."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(
            f"`{name}` must be one of {', '.join(map(repr, choices))}. "
            f"Received: {name}={value!r}"
        )
    return value


def positive_integer(name, value, optional=False):
    """Returns `value` if it is an integer of 1 or more, else raises."""
    if optional and value is None:
        return value
    if not is_integer(value) or value <= 0:
        raise ValueError(
            f"Received an invalid value for argument `{name}`, expected a "
            f"positive integer{' or `None`' if optional else ''}. Received: "
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
            f"`{name}` must be a positive, finite number. Received: "
            f"{name}={value!r}"
        )
    return value


def is_integer(value):
    """Whether `value` is an integer (booleans are not)."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def is_number(value):
    """Whether `value` is a finite real number (booleans are not)."""
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        # An integer beyond all floats.
        return False


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
