"""The arms of the experiment that gates a trained network."""

import dataclasses

import keras
import numpy as np
from keras import ops

from keras_gating import diagnostics
from keras_gating import surgery
from keras_gating.experiments.selection import entries_by_name
from keras_gating.experiments.transformer import transformer
from keras_gating.layers import FeedForward

DIM = 32
HEADS = 4
LAYERS = 2
LENGTH = 64
HIDDEN = 4 * DIM
OPEN_BIAS = 4.0
RANDOM_SPREAD = 0.1
GATE_RATE = 10.0
# Share of the steps in which only gates train, where they come first.
FIRST_SHARE = 0.3


@dataclasses.dataclass(frozen=True)
class Arm:
    """One way to go on with a trained network.

    Args:
        name: key of the arm in the results.
        title: the arm in words.
        gate: arguments of `surgery.gate_attention`; `None` adds no gate.
        random: standard deviation of the gate's kernels; 0 leaves them at 0.
        rate: factor on the learning rate of `with_own_rate`.
        first: share of the steps in which nothing but the gates train.
    """

    name: str
    title: str
    gate: dict | None = None
    random: float = 0.0
    rate: float = 1.0
    first: float = 0.0


ARMS = (
    Arm("ungated", "no gate"),
    Arm("zero", "zero kernel", {}),
    Arm(
        "open",
        "open, bias 4",
        {
            "gate_scale": 1.0 + float(np.exp(-OPEN_BIAS)),
            "gate_bias_initializer": keras.initializers.Constant(OPEN_BIAS),
        },
    ),
    Arm("random", "random kernel", {}, random=RANDOM_SPREAD),
    Arm("rate", "10 × the rate", {}, rate=GATE_RATE),
    Arm(
        "first",
        "gates first",
        {},
        rate=GATE_RATE,
        first=FIRST_SHARE,
    ),
    # Whether it is the rate: as many weights, in the output projection.
    Arm("control", "no gate, 10 ×", rate=GATE_RATE),
)

PAIRS = tuple((arm.name, "ungated") for arm in ARMS[1:])
PAIRS += tuple((name, "zero") for name in ("open", "random", "rate", "first"))
PAIRS += (("rate", "control"),)


class GateRateAdam(keras.optimizers.Adam):
    """Adam with a learning rate of their own for some variables.

    Args:
        learning_rate: see `keras.optimizers.Adam`.
        variables: those with a rate of their own.
        rate: factor on theirs.
        wait: number of steps in which all others stay where they are.
        **kwargs: see `keras.optimizers.Adam`.
    """

    def __init__(self, learning_rate, variables, rate, wait=0, **kwargs):
        super().__init__(learning_rate, **kwargs)
        self._own = {id(variable) for variable in variables}
        self._rate = rate
        self._wait = wait
        self._places = frozenset()

    def build(self, variables):
        self._places = frozenset(
            i
            for i, variable in enumerate(variables)
            if id(variable) in self._own
        )
        super().build(variables)

    def update_step(self, gradient, variable, learning_rate):
        # Backends may pass their own variables, not those of Keras.
        if self._get_variable_index(variable) in self._places:
            factor = self._rate
        else:
            factor = ops.cast(self.iterations >= self._wait, "float32")
        super().update_step(gradient, variable, learning_rate * factor)


def build():
    """The ungated model: characters `(B, T)` to logits `(B, T, V)`."""
    return transformer(
        _attention, _feed_forward, DIM, LAYERS, LENGTH, name="ungated"
    )


def gated(arm, model, seed=0):
    """A copy of a trained model with the gates of an arm.

    Args:
        arm: an `Arm`.
        model: the ungated model.
        seed: of random kernels.
    """
    if arm.gate is None:
        copy = build()
        copy.set_weights(model.get_weights())
        return copy
    copy = surgery.gate_attention(model, **arm.gate)
    if arm.random:
        rng = np.random.default_rng(seed)
        for variable in diagnostics.gate_variables(copy):
            if len(variable.shape) > 1 and variable.name == "kernel":
                variable.assign(rng.normal(0.0, arm.random, variable.shape))
    return copy


def with_own_rate(arm, model):
    """The weights that an arm's `rate` is for.

    Gates, or without gates the output projections of the attention, which
    follow where gates would be and have as many weights.

    Args:
        arm: an `Arm`.
        model: a model of it.
    """
    if arm.gate is not None:
        return diagnostics.gate_variables(model)
    return [
        variable
        for variable in model.trainable_variables
        if "/attention_output/" in variable.path
    ]


def _attention(name):
    return keras.layers.MultiHeadAttention(HEADS, DIM // HEADS, name=name)


def _feed_forward():
    return FeedForward(HIDDEN, activation="gelu")


def arms_by_name(names=None):
    """Returns the arms called `names`, all of them by default."""
    return entries_by_name(ARMS, names, "retrofit")
