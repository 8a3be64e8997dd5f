"""What a row of `tests/cases.py` is made of."""

import dataclasses
from collections.abc import Callable

# What an argument of a constructor may change. Everything but "raises" is
# measured on two layers that differ in that argument alone.
OUTPUTS = "outputs"
INITIAL_OUTPUTS = "initial outputs"
TRAINING_OUTPUTS = "training outputs"
LOSSES = "losses"
WEIGHTS_AFTER_STEP = "weights after a step"
WEIGHT_NAMES = "weight names"
RAISES = "raises"


@dataclasses.dataclass(frozen=True)
class Tensor:
    """A tensor to be drawn, by its shape (the batch first) and dtype."""

    shape: tuple
    dtype: str = "float32"


@dataclasses.dataclass(frozen=True)
class Same:
    """The tensor of another call argument."""

    name: str


@dataclasses.dataclass(frozen=True)
class Argument:
    """A non-default value of a constructor argument and what it changes.

    `companions` are constructor arguments of both layers, `call` are call
    arguments of both. With `RAISES` the companions alone must be valid.
    """

    value: object
    changes: str = OUTPUTS
    companions: dict = dataclasses.field(default_factory=dict)
    call: dict = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Option:
    """Optional call arguments.

    `arguments` maps names to a `Tensor`, a `Same`, an array or a value; or is
    a function of the built layer that returns such a mapping.
    """

    id: str
    arguments: dict | Callable

    def specification(self, layer):
        if callable(self.arguments):
            return self.arguments(layer)
        return self.arguments


@dataclasses.dataclass(frozen=True)
class Case:
    """One layer with its arguments and all that is pinned about it.

    Args:
        id: name of the test case.
        layer: the class.
        kwargs: the smallest valid constructor arguments.
        inputs: required call arguments in their order, as `Tensor` or `Same`.
            All sizes are distinct, the batch is 2.
        weights: paths of all weights below the layer, in order.
        registered_name: the name under which saved files know the class.
        lengths: sizes in `inputs` and `options` that may be unknown and vary.
        options: optional call arguments, one or more together.
        arguments: one `Argument` for every constructor argument; it is enough
            that one case of a class has them.
        private: arguments that are no public attribute.
        masked: names of the inputs whose Keras mask (their first two axes) is
            honoured; the mask of the first one is the output's.
        attention_mask: whether `attention_mask` is a call argument.
        cache: whether `cache` is a call argument.
        causal: whether `use_causal_mask` is a call argument.
        padded: whether valid rows must not depend on the padding.
        idle_weights: paths of the weights that one training step leaves alone,
            with the reason.
        float32_weights: paths of the weights that half precision leaves in
            float32.
    """

    id: str
    layer: type
    kwargs: dict
    inputs: dict
    weights: tuple
    registered_name: str
    lengths: tuple = ()
    options: tuple = ()
    arguments: dict = dataclasses.field(default_factory=dict)
    private: tuple = ()
    masked: tuple = ()
    attention_mask: bool = False
    cache: bool = False
    causal: bool = False
    padded: bool = False
    idle_weights: dict = dataclasses.field(default_factory=dict)
    float32_weights: tuple = ()

    @property
    def single_input(self):
        return len(self.inputs) == 1

    @property
    def options_with_none(self):
        return (Option("no_options", {}), *self.options)
