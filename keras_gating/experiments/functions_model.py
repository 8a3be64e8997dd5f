"""The maps of the functions experiment: random gates on random values."""

import dataclasses

import keras
import numpy as np
from keras import ops

from keras_gating.geometry.trigonometry import tanh
from keras_gating.layers import Gate

FEATURES = 8
TOKENS = 3


def _gelu(x):
    return ops.gelu(x, approximate=False)


# φ by name; all of them keep float64 on every backend.
FUNCTIONS = {
    "sigmoid": ops.sigmoid,
    "tanh": tanh,
    "GELU": _gelu,
    "SiLU": ops.silu,
    "softplus": ops.softplus,
    "identity": keras.activations.linear,
    "exp": ops.exp,
    "ReLU": ops.relu,
}


@dataclasses.dataclass(frozen=True)
class Setting:
    """What is gated, and how.

    Args:
        name: key of the setting in the results.
        title: the setting in words.
        value: `"linear"` (in the input) or `"softmax"`, attention to three
            tokens.
        granularity: of the gate.
    """

    name: str
    title: str
    value: str
    granularity: str


SETTINGS = (
    Setting(
        "softmax_elementwise",
        "softmax value, elementwise gate",
        "softmax",
        "elementwise",
    ),
    Setting(
        "softmax_headwise",
        "softmax value, headwise gate",
        "softmax",
        "headwise",
    ),
    Setting(
        "linear_elementwise",
        "linear value, elementwise gate",
        "linear",
        "elementwise",
    ),
    Setting(
        "linear_headwise", "linear value, headwise gate", "linear", "headwise"
    ),
)


class GatedMap(keras.layers.Layer):
    """`v(x) ⊙ φ(G x + g)`, from the plane to `FEATURES` dimensions.

    Args:
        setting: the `Setting`.
        function: φ.
    """

    def __init__(self, setting, function, **kwargs):
        super().__init__(**kwargs)
        self.setting = setting
        self.gate = Gate(
            activation=function,
            granularity=setting.granularity,
            dtype=self.dtype_policy,
        )

    def build(self, inputs_shape=(None, 2)):
        width = FEATURES if self.setting.value == "linear" else TOKENS
        self.kernel = self.add_weight(shape=(2, width), name="kernel")
        self.bias = self.add_weight(shape=(width,), name="bias")
        if self.setting.value == "softmax":
            self.values = self.add_weight(
                shape=(TOKENS, FEATURES), name="values"
            )
        self.gate.build((None, FEATURES), inputs_shape)

    def call(self, inputs):
        value = ops.einsum("ni,id->nd", inputs, self.kernel) + self.bias
        if self.setting.value == "softmax":
            attention = ops.softmax(value, axis=-1)
            value = ops.einsum("nt,td->nd", attention, self.values)
        return self.gate(value, source=inputs)

    def draw(self, seed):
        """Standard normal weights, the same ones for every φ."""
        rng = np.random.default_rng(seed)
        for variable in self.weights:
            variable.assign(rng.normal(size=variable.shape))
