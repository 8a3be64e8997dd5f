"""Random maps whose curvature the curvature experiment measures.

Depth is a number here and no structure: each layer is multiplied by 1 or 0
beside a copy of its input, so that one compiled program serves all depths.
"""

import dataclasses

import keras
import numpy as np
from keras import ops

from keras_gating.geometry.evaluation import as_numpy
from keras_gating.geometry.trigonometry import tanh

WIDTH = 8


@dataclasses.dataclass(frozen=True)
class Head:
    """Random attention of one query to fixed values.

    Args:
        name: key in the results.
        title: in words.
        tokens: n, of each head.
        features: D.
        heads: H; their contexts are added up, as an output projection does.
        rank: of the values, or `None` for as much as they can have.
        gate: `"constant"`, `"headwise"`, `"elementwise"`, `"additive"` (the
            control that adds) or `None`.
    """

    name: str
    title: str
    tokens: int
    features: int = 16
    heads: int = 1
    rank: int | None = None
    gate: str | None = None

    @property
    def hull(self):
        """Dimension of the affine hull of the contexts."""
        rank = self.features if self.rank is None else self.rank
        return min(self.heads * (self.tokens - 1), self.features, rank)

    @property
    def must_be_flat(self):
        """Whether theory says K = 0: a plane, or no gate out of one."""
        stays = self.gate in (None, "constant") and self.hull == 2
        return stays or self.features == 2


HEADS = (
    Head("tokens_2", "2 tokens", 2),
    Head("tokens_3", "3 tokens", 3),
    Head("constant", "3 tokens, constant gate", 3, gate="constant"),
    Head("planar", "8 tokens, D = 2", 8, features=2),
    Head("rank_2", "8 tokens, values of rank 2", 8, rank=2),
    Head("planar_gated", "8 tokens, D = 2, gated", 8, 2, gate="elementwise"),
    Head("tokens_4", "4 tokens, D = 3", 4, features=3),
    Head("tokens_8", "8 tokens", 8),
    Head("heads_2", "2 heads of 3 tokens", 3, heads=2),
    Head("headwise", "3 tokens, headwise gate", 3, gate="headwise"),
    Head("elementwise", "3 tokens, elementwise gate", 3, gate="elementwise"),
    Head("additive", "3 tokens, additive SiLU", 3, gate="additive"),
)


class RandomHead(keras.layers.Layer):
    """The map of a `Head`, `(B, 2)` to `(B, D)`."""

    def __init__(self, head, **kwargs):
        super().__init__(**kwargs)
        self.head = head

    def build(self, inputs_shape=(None, 2)):
        head = self.head
        shape = head.heads, head.tokens
        self.keys = self.add_weight(name="keys", shape=(2, *shape))
        self.bias = self.add_weight(name="bias", shape=shape)
        self.values = self.add_weight(
            name="values", shape=(*shape, head.features)
        )
        self.gate = self.add_weight(name="gate", shape=(3, head.features))

    def call(self, inputs):
        logits = ops.einsum("ni,iht->nht", inputs, self.keys) + self.bias
        attention = ops.softmax(logits, axis=-1)
        context = ops.einsum("nht,htd->nd", attention, self.values)
        if self.head.gate is None:
            return context
        kernel, bias = self.gate[:2], self.gate[2]
        if self.head.gate == "headwise":
            kernel, bias = kernel[:, :1], bias[:1]
        logits = ops.einsum("ni,id->nd", inputs, kernel) + bias
        if self.head.gate == "constant":
            logits = 0.0 * logits + bias
        if self.head.gate == "additive":
            return context + ops.silu(logits)
        return context * ops.sigmoid(logits)

    def draw(self, seed):
        """Standard normal weights."""
        rng = np.random.default_rng(seed)
        values = rng.normal(size=self.values.shape)
        if self.head.rank is not None:
            values = values[..., : self.head.rank] @ rng.normal(
                size=(self.head.rank, self.head.features)
            )
        self.values.assign(values)
        for variable in (self.keys, self.bias, self.gate):
            variable.assign(rng.normal(size=variable.shape))

    def hull(self):
        """A point and a basis `(D, hull)` of the affine hull of contexts.

        A constant gate scales the hull with its features.
        """
        values = as_numpy(self.values)
        if self.head.gate == "constant":
            bias = as_numpy(self.gate)[2]
            values = values / (1.0 + np.exp(-bias))
        origin = values[:, 0].sum(axis=0)
        spanning = (values[:, 1:] - values[:, :1]).reshape(-1, values.shape[-1])
        basis, sizes, _ = np.linalg.svd(spanning.T, full_matrices=False)
        return origin, basis[:, sizes > 1e-5 * sizes[0]]


class Stack(keras.layers.Layer):
    """An embedding and up to `layers` random layers, `(B, 2)` to `(B, WIDTH)`.

    Args:
        layers: how many layers there are at most.
    """

    def __init__(self, layers, **kwargs):
        super().__init__(**kwargs)
        self.layers = layers

    def build(self, inputs_shape=(None, 2)):
        self.embedding = self.add_weight(name="embedding", shape=(2, WIDTH))
        # Factors of each layer and of what is passed by it.
        self.switches = self.add_weight(name="switches", shape=(self.layers, 2))
        self.build_layers()

    def call(self, inputs):
        x = ops.einsum("ni,id->nd", inputs, self.embedding)
        for i in range(self.layers):
            on, past = self.switches[i, 0], self.switches[i, 1]
            x = on * self.layer(i, x) + past * x
        return x

    def switch(self, depth, residual=False):
        """Makes the map one of `depth` layers."""
        there = np.arange(self.layers) < depth
        self.switches.assign(
            np.stack([there, ~there | residual], axis=1).astype("float64")
        )

    def draw(self, seed):
        """Normal weights; kernels keep the variance of what they read."""
        rng = np.random.default_rng(seed)
        scales = {"embedding": np.sqrt(0.5), **self.scales}
        for variable in self.weights:
            if variable.name != "switches":
                scale = scales.get(variable.name, 1.0)
                variable.assign(scale * rng.normal(size=variable.shape))


class Perceptron(Stack):
    """Dense layers with an activation.

    Args:
        activation: a name of `ACTIVATIONS`.
        layers: how many layers there are at most.
    """

    scales = {"kernels": 2.0 / np.sqrt(WIDTH), "biases": 0.5}

    def __init__(self, activation, layers, **kwargs):
        super().__init__(layers, **kwargs)
        self.activation = ACTIVATIONS[activation]

    def build_layers(self):
        self.kernels = self.add_weight(
            name="kernels", shape=(self.layers, WIDTH, WIDTH)
        )
        self.biases = self.add_weight(name="biases", shape=(self.layers, WIDTH))

    def layer(self, i, x):
        x = ops.einsum("ni,id->nd", x, self.kernels[i]) + self.biases[i]
        return self.activation(x)


class SoftplusPerceptron(Perceptron):
    """Dense layers with `softplus(βx)/β`, which goes to ReLU as β grows."""

    # Smaller ones, since β times the slope has to fit the grid.
    scales = {"kernels": 1.0 / np.sqrt(WIDTH), "biases": 0.5}

    def __init__(self, layers, **kwargs):
        super().__init__("identity", layers, **kwargs)

    def build_layers(self):
        super().build_layers()
        self.sharpness = self.add_weight(name="sharpness", shape=())

    def layer(self, i, x):
        x = super().layer(i, x) * self.sharpness
        return ops.softplus(x) / self.sharpness


class AttentionStack(Stack):
    """Layers of attention to random tokens, with or without a gate.

    Args:
        tokens: n, of every layer.
        gated: whether an elementwise sigmoid gate reads the layer's input.
        layers: how many layers there are at most.
    """

    # As if weights were standard normal for an input in the plane.
    scales = {
        "keys": np.sqrt(2.0 / WIDTH),
        "gates": np.sqrt(2.0 / WIDTH),
    }

    def __init__(self, tokens, gated, layers, **kwargs):
        super().__init__(layers, **kwargs)
        self.tokens = tokens
        self.gated = gated

    def build_layers(self):
        shapes = {
            "keys": (WIDTH, self.tokens),
            "key_biases": (self.tokens,),
            "values": (self.tokens, WIDTH),
            "gates": (WIDTH, WIDTH),
            "gate_biases": (WIDTH,),
        }
        for name, shape in shapes.items():
            weight = self.add_weight(name=name, shape=(self.layers, *shape))
            setattr(self, name, weight)

    def layer(self, i, x):
        logits = ops.einsum("ni,it->nt", x, self.keys[i]) + self.key_biases[i]
        context = ops.einsum(
            "nt,td->nd", ops.softmax(logits, axis=-1), self.values[i]
        )
        if not self.gated:
            return context
        logits = ops.einsum("ni,id->nd", x, self.gates[i]) + self.gate_biases[i]
        return context * ops.sigmoid(logits)


def _gelu(x):
    return ops.gelu(x, approximate=False)


# By name; all of them keep float64 on every backend.
ACTIVATIONS = {
    "identity": keras.activations.linear,
    "sigmoid": ops.sigmoid,
    "tanh": tanh,
    "GELU": _gelu,
    "ReLU": ops.relu,
}
