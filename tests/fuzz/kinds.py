"""Kinds of arguments: values that are right, and nonsense that is not."""

import dataclasses
from collections.abc import Callable

import numpy as np

NONSENSE = (
    *("nonsense", "yes", "", b"bytes", "3"),
    *(0, -1, 2.5, 10**30, -(10**30), 1e300, 1j, True),
    *(float("nan"), float("inf"), None, object(), len),
    *([], (), {}, {"a": 1}, [2], ["a"], [[2]], np.array([1.0, 2.0])),
)


def nothing(value):
    return False


@dataclasses.dataclass(frozen=True)
class Kind:
    """Some values of an argument.

    Args:
        valid: values of which each is right by itself.
        accepts: tells of a value in `NONSENSE` whether it is right as well.
    """

    valid: tuple
    accepts: Callable = nothing

    @property
    def bad(self):
        return [value for value in NONSENSE if not self.accepts(value)]


def optional(kind):
    return Kind(
        (None, *kind.valid), lambda v: v is None or bool(kind.accepts(v))
    )


def one_of(*names):
    return Kind(names)


def is_finite(value):
    """Whether this is a number that float32 holds."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and abs(value) < 1e38


def among(*values):
    """Accepts what is equal to one of these and of the same type."""
    return lambda v: any(type(v) is type(one) and v == one for one in values)


SIZE = Kind((1, 2, 3, 4))
BOOLEAN = Kind((True, False), among(True, 0))
FACTOR = Kind((1.0, 2.0, -0.5, 3), lambda v: is_finite(v) and v != 0)
POSITIVE = Kind((1.0, 0.5, 3), lambda v: is_finite(v) and v > 0)
NUMBER = Kind((0.0, -0.5, 1), is_finite)
PROBABILITY = Kind((0.0, 0.3), lambda v: is_finite(v) and v == 0)
SEED = Kind((None, 0, 7), among(None, 0))
# What Keras takes for an object of its own, is for Keras to say.
ACTIVATION = Kind(
    ("sigmoid", "tanh", "silu", "relu", "linear", None),
    lambda v: v is None or callable(v),
)
INITIALIZER = Kind(
    ("ones", "glorot_uniform", "he_normal"),
    lambda v: v is None or callable(v) or isinstance(v, np.ndarray),
)
REGULARIZER = Kind((None, "l2"), lambda v: v is None or callable(v))
CONSTRAINT = Kind((None, "non_neg"), lambda v: v is None or callable(v))
