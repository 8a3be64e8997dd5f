"""The arms of the XOR experiment and the network that they share."""

import dataclasses

import keras
import numpy as np
from keras import ops

from keras_gating.experiments.selection import entries_by_name
from keras_gating.layers import GatedAttention

DIM = 8


@dataclasses.dataclass(frozen=True)
class Arm:
    """One way to read two bits.

    Args:
        name: key of the arm in the results.
        title: the arm in words.
        attention: `"uniform"` (the weights are ½ and ½, so the context is an
            affine function of the bits) or `"softmax"`.
        query: `"mean"` of both tokens or a learned `"constant"`.
        gate: granularity of an output gate, `"elementwise"` or `"headwise"`,
            `"additive"` for the control that adds in its place, or `None`.
        reads: what the gate reads, `"both"` bits (the query), `"one"` (the
            first token) or `"nothing"` (a learned constant).
        obstacle: why no weights at all solve XOR, or `None` where some do.
    """

    name: str
    title: str
    attention: str = "uniform"
    query: str = "mean"
    gate: str | None = None
    reads: str = "nothing"
    obstacle: str | None = None


# With f₀₁ for the output at (0, 1), each obstacle is an identity or an
# inequality that every setting of the weights obeys. XOR needs
# f₀₁, f₁₀ > ½ > f₀₀, f₁₁.
_ADDITIVE = "f₀₀ + f₁₁ = f₀₁ + f₁₀: a sum of functions of one bit each"
_WEIGHTED = (
    "a weighted mean of f₀₀, f₁₁ equals one of f₀₁, f₁₀: without a query, "
    "numerator and denominator of the one head are sums over the bits"
)
_ONE_SIGN = "f₀₁ − f₀₀ and f₁₁ − f₁₀ have one sign: a positive gate scales both"

ARMS = (
    Arm("affine", "affine", obstacle=_ADDITIVE),
    Arm(
        "affine_constant_gate",
        "affine, constant gate",
        gate="elementwise",
        obstacle=_ADDITIVE,
    ),
    Arm("softmax", "softmax, query = mean", attention="softmax"),
    Arm(
        "softmax_constant_query",
        "softmax, constant query",
        attention="softmax",
        query="constant",
        obstacle=_WEIGHTED,
    ),
    Arm(
        "headwise_both",
        "affine, headwise gate on both bits",
        gate="headwise",
        reads="both",
    ),
    Arm(
        "elementwise_both",
        "affine, elementwise gate on both bits",
        gate="elementwise",
        reads="both",
    ),
    Arm(
        "additive_both",
        "affine, additive SiLU on both bits",
        gate="additive",
        reads="both",
    ),
    Arm(
        "headwise_one",
        "affine, headwise gate on one bit",
        gate="headwise",
        reads="one",
        obstacle=_ONE_SIGN,
    ),
    Arm(
        "elementwise_one",
        "affine, elementwise gate on one bit",
        gate="elementwise",
        reads="one",
    ),
    Arm(
        "additive_one",
        "affine, additive SiLU on one bit",
        gate="additive",
        reads="one",
        obstacle=_ADDITIVE,
    ),
    Arm(
        "softmax_elementwise",
        "softmax, elementwise gate on both bits",
        attention="softmax",
        gate="elementwise",
        reads="both",
    ),
)

# What isolates multiplication: the same reading, multiplied and added.
DEMO_ARMS = ("affine", "additive_one", "elementwise_one")


def arms_by_name(names=None):
    """Returns the arms called `names`, all of them by default."""
    return entries_by_name(ARMS, names, "XOR")


def _normal():
    # A new one each time: an initializer repeats itself for equal shapes.
    return keras.initializers.RandomNormal(stddev=1.0)


class AdditiveGate(keras.layers.Layer):
    """The additive control of a gate: `inputs + SiLU(source · W + b)`.

    It has the weights of an elementwise gate and reads the same source.
    """

    def build(self, inputs_shape, source_shape):
        self.dense = keras.layers.Dense(inputs_shape[-1], activation="silu")
        self.dense.build(source_shape)

    def call(self, inputs, source):
        return inputs + self.dense(source)


class BitReader(keras.layers.Layer):
    """Reads two bits by attention: `(B, 2)` to `(B,)`.

    The bits become tokens `tᵢ = xᵢ · eᵢ + pᵢ` with learned `eᵢ` and `pᵢ`; one
    query attends to them with one head; the readout is linear. Each bit has a
    vector `eᵢ` of its own: with a common one the mean of the tokens would hold
    the sum of the bits only.

    Args:
        arm: the `Arm` to be.
    """

    def __init__(self, arm, **kwargs):
        super().__init__(**kwargs)
        self.arm = arm

    def build(self, inputs_shape=(None, 2)):
        arm = self.arm
        self.embeddings = self.add_weight(
            name="embeddings", shape=(2, DIM), initializer=_normal()
        )
        self.positions = self.add_weight(
            name="positions", shape=(2, DIM), initializer=_normal()
        )
        if arm.query == "constant":
            self.query = self.add_weight(
                name="query", shape=(1, 1, DIM), initializer=_normal()
            )
        self.attention = GatedAttention(
            num_heads=1, key_dim=DIM, name="attention", **self._gate_arguments()
        )
        self.attention.build((None, 1, DIM), (None, 2, DIM))
        if arm.attention == "uniform":
            self._make_uniform()
        self.additive = AdditiveGate() if arm.gate == "additive" else None
        if self.additive is not None:
            self.additive.build((None, 1, DIM), (None, 1, DIM))
        self.readout = keras.layers.Dense(1, name="readout")
        self.readout.build((None, 1, DIM))
        super().build(inputs_shape)

    def call(self, inputs):
        bits = ops.expand_dims(inputs, -1)
        tokens = bits * self.embeddings + self.positions
        query = ops.mean(tokens, axis=1, keepdims=True)
        # What a gate reads: the query, or in its place the first token.
        source = tokens[:, :1] if self.arm.reads == "one" else query
        if self.arm.query == "constant":
            query = ops.zeros_like(query) + self.query
        gate_input = None
        if self.attention.use_gate and self.arm.reads != "nothing":
            gate_input = source
        context = self.attention(query, tokens, gate_input=gate_input)
        if self.additive is not None:
            context = self.additive(context, source)
        return self.readout(context)[:, 0, 0]

    def _gate_arguments(self):
        arm = self.arm
        if arm.gate in (None, "additive"):
            return {"use_gate": False}
        return {
            "gate_site": "output",
            "gate_granularity": arm.gate,
            "gate_source": "constant" if arm.reads == "nothing" else "query",
        }

    def _make_uniform(self):
        for dense in (self.attention.query_dense, self.attention.key_dense):
            dense.kernel.assign(np.zeros(dense.kernel.shape))
            dense.trainable = False
