"""The networks and targets of the products experiment."""

import dataclasses

import keras
import numpy as np

from keras_gating.experiments.selection import entries_by_name
from keras_gating.layers import GEGLU
from keras_gating.layers import BilinearGLU
from keras_gating.layers import SwiGLU


@dataclasses.dataclass(frozen=True)
class Arm:
    """One kind of hidden layer.

    Args:
        name: key of the arm in the results.
        title: the arm in words.
        gate: the gated layer, or `None`.
        activation: of the dense layer that stands in its place.
    """

    name: str
    title: str
    gate: type | None = None
    activation: object = None

    def hidden(self, units):
        """A new hidden layer of so many units."""
        if self.gate is not None:
            return self.gate(units)
        return keras.layers.Dense(units, activation=self.activation)


ARMS = (
    Arm("bilinear", "BilinearGLU", gate=BilinearGLU),
    Arm("swiglu", "SwiGLU", gate=SwiGLU),
    Arm("geglu", "GEGLU", gate=GEGLU),
    Arm("square", "square, no gate", activation=keras.ops.square),
    Arm("gelu", "GELU, no gate", activation="gelu"),
    Arm("relu", "ReLU, no gate", activation="relu"),
)


def conjunction(a, b):
    return np.float32((a > 0.0) & (b > 0.0))


def product(a, b):
    return a * b


def modulated(envelope, carrier):
    """Amplitude modulation with a constant part, `(1 + e) c`."""
    return (1.0 + envelope) * carrier


# Each one a function of two features.
TASKS = {
    "product": ("a · b", product),
    "and": ("a > 0 and b > 0", conjunction),
    "modulated": ("(1 + envelope) · carrier", modulated),
}


class Network(keras.layers.Layer):
    """Hidden layers of one kind and a linear readout: `(B, 2)` to `(B,)`.

    Args:
        arm: the `Arm` that gives the hidden layers.
        units: width of each of them.
        depth: how many there are.
    """

    def __init__(self, arm, units, depth=1, **kwargs):
        super().__init__(**kwargs)
        self.hidden = [arm.hidden(units) for _ in range(depth)]
        self.readout = keras.layers.Dense(1)

    def build(self, inputs_shape=(None, 2)):
        shape = inputs_shape
        for layer in (*self.hidden, self.readout):
            layer.build(shape)
            shape = layer.compute_output_shape(shape)

    def call(self, inputs):
        x = inputs
        for layer in self.hidden:
            x = layer(x)
        return self.readout(x)[:, 0]


def parameters(arm, units, depth=1):
    """Number of weights of a `Network`, in closed form."""
    maps = 1 if arm.gate is None else 2
    first = maps * 3 * units
    further = (depth - 1) * maps * (units + 1) * units
    return first + further + units + 1


def units_within(arm, budget, depth=1):
    """The greatest width whose network has no more parameters than that."""
    units = 1
    while parameters(arm, units + 1, depth) <= budget:
        units += 1
    return units


def arms_by_name(names=None):
    """Returns the arms called `names`, all of them by default."""
    return entries_by_name(ARMS, names, "products")
