"""How a weight of a layer is made from arrays of another library."""

import dataclasses
from collections.abc import Callable

import keras
import numpy as np


@dataclasses.dataclass(frozen=True)
class Rule:
    """What one weight of a layer is made of.

    Args:
        variable: the weight.
        sources: shapes of the arrays that it is made of, by name.
        convert: makes the weight's value from these arrays.
        is_pointwise: whether an array may also be the kernel of a convolution
            of size 1, with two more axes of size 1.
    """

    variable: keras.Variable
    sources: dict[str, tuple]
    convert: Callable
    is_pointwise: bool = False


@dataclasses.dataclass(frozen=True)
class Plan:
    """All that a layout says of one layer.

    Args:
        rules: one for every weight of the layer.
        buffers: names that no weight is made of but that may be there, with
            what checks the array, or `None` where any will do.
        required: those of the buffers that must be there.
    """

    rules: list[Rule]
    buffers: dict[str, Callable | None] = dataclasses.field(
        default_factory=dict
    )
    required: tuple = ()

    def below(self, prefix):
        """The same for names that have a prefix."""
        rules = [
            dataclasses.replace(
                rule,
                sources={
                    prefix + name: shape for name, shape in rule.sources.items()
                },
            )
            for rule in self.rules
        ]
        buffers = {prefix + name: self.buffers[name] for name in self.buffers}
        required = tuple(prefix + name for name in self.required)
        return Plan(rules, buffers, required)

    def names(self):
        """What must be there, in order."""
        names = [name for rule in self.rules for name in rule.sources]
        return list(dict.fromkeys([*names, *self.required]))


def same(variable, name):
    """The array as it is."""
    return Rule(variable, {name: tuple(variable.shape)}, lambda array: array)


def scaled(variable, name, factor, order=slice(None)):
    """The array with its last axis put in order, times a factor."""
    return Rule(
        variable,
        {name: tuple(variable.shape)},
        lambda array: array[..., order] * factor,
    )


def linear(variable, name, factor=1.0, order=slice(None), is_pointwise=False):
    """A kernel `(in, out)` from the weight `(out, in)` of a linear map."""
    return Rule(
        variable,
        {name: tuple(variable.shape)[::-1]},
        lambda array: array.T[:, order] * factor,
        is_pointwise,
    )


def to_heads(variable, name):
    """A kernel `(in, heads, size)` from `(heads · size, in)`, or a bias."""
    if len(variable.shape) == 2:
        return Rule(variable, {name: (_size(variable),)}, _reshape(variable))
    width, count, size = variable.shape
    return Rule(
        variable,
        {name: (count * size, width)},
        lambda array: array.T.reshape(width, count, size),
    )


def from_heads(variable, name):
    """A kernel `(heads, size, out)` from `(out, heads · size)`."""
    count, size, width = variable.shape
    return Rule(
        variable,
        {name: (width, count * size)},
        lambda array: array.T.reshape(count, size, width),
    )


def halves(variable, name, is_swapped=False):
    """A kernel `(in, 2, units)` from `(2 · units, in)`, or a bias."""
    step = -1 if is_swapped else 1
    if len(variable.shape) == 2:
        reshape = _reshape(variable)
        return Rule(
            variable,
            {name: (_size(variable),)},
            lambda array: reshape(array)[::step],
        )
    width, _, units = variable.shape
    return Rule(
        variable,
        {name: (2 * units, width)},
        lambda array: array.T.reshape(width, 2, units)[:, ::step],
        is_pointwise=True,
    )


def stacked(variable, first, second):
    """A kernel `(in, 2, units)` from two of `(units, in)`, or a bias."""
    *width, _, units = variable.shape
    return Rule(
        variable,
        {first: (units, *width), second: (units, *width)},
        lambda *arrays: np.stack([array.T for array in arrays], axis=-2),
    )


def convolution(variable, name, is_flipped=False):
    """A kernel `(size…, in, out)` from `(out, in, size…)`.

    Args:
        variable: the kernel.
        name: name of the array.
        is_flipped: whether the input channels are in reverse order.
    """
    *sizes, inputs, outputs = variable.shape
    step = -1 if is_flipped else 1
    return Rule(
        variable,
        {name: (outputs, inputs, *sizes)},
        lambda array: np.moveaxis(array[:, ::step], (0, 1), (-1, -2)),
    )


def projection(dense, name, kernel=linear, bias=same):
    """Rules for the kernel of a projection and for its bias, if any."""
    rules = [kernel(dense.kernel, f"{name}.weight")]
    if dense.bias is not None:
        rules.append(bias(dense.bias, f"{name}.bias"))
    return rules


def _size(variable):
    return int(np.prod(variable.shape))


def _reshape(variable):
    shape = tuple(variable.shape)
    return lambda array: array.reshape(shape)
