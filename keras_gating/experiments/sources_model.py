"""The arms, sequences and targets of the sources experiment."""

import dataclasses

import keras
import numpy as np
from keras import ops

from keras_gating.experiments.selection import entries_by_name
from keras_gating.layers import GatedAttention

# Features of a token: a sign, two normal numbers and noise.
SIGN, FIRST, SECOND = range(3)
DIM = 6
TOKENS = 4
KEY_DIM = 8
# What a query gate on twelve value features costs; the other arms have as
# many value features as come nearest.
BUDGET = 358


@dataclasses.dataclass(frozen=True)
class Arm:
    """One attention layer.

    Args:
        name: key of the arm in the results.
        title: the arm in words.
        value_dim: size of the head's values; chosen by `BUDGET`.
        gate: arguments of `GatedAttention`.
        reach: for each task the greatest share of the variance that *any*
            weights explain where the attention is uniform and the query no
            part of the context.
    """

    name: str
    title: str
    value_dim: int
    gate: dict
    reach: dict


def _reach(query, context, tokens):
    return {"query": query, "context": context, "tokens": tokens}


# Under uniform attention a gate on the context sees the means of the features
# only, and a gate on the values each token only; the quarters are what the
# product of two means of four tokens shares with the mean of four products.
_PART = 1.0 / TOKENS
ARMS = (
    Arm("ungated", "no gate", 18, {"use_gate": False}, _reach(0, 0, 0)),
    Arm("query", "output gate, query", 12, {}, _reach(1, 0, 0)),
    Arm(
        "context",
        "output gate, context",
        10,
        {"gate_source": "context"},
        _reach(0, 1, _PART),
    ),
    Arm(
        "query_context",
        "output gate, query and context",
        8,
        {"gate_source": "query_context"},
        _reach(1, 1, _PART),
    ),
    Arm(
        "split",
        "halves of the context (GLU)",
        24,
        {"gate_source": "split"},
        _reach(0, 1, _PART),
    ),
    Arm(
        "key_output",
        "key and output gate, query",
        9,
        {"gate_site": ("key", "output")},
        _reach(1, 0, 0),
    ),
    Arm("value", "value gate", 12, {"gate_site": "value"}, _reach(0, _PART, 1)),
)


@dataclasses.dataclass(frozen=True)
class Setting:
    """Where the query comes from and whether attention is learnt.

    Args:
        name: key of the setting in the results.
        title: the setting in words.
        own_query: whether the query is the first token of the context
            (self-attention) or a token apart (cross-attention).
        uniform: whether all weights of attention are equal, frozen.
    """

    name: str
    title: str
    own_query: bool
    uniform: bool


SETTINGS = (
    Setting("cross_uniform", "cross-attention, uniform", False, True),
    Setting("cross_softmax", "cross-attention, softmax", False, False),
    Setting("self_uniform", "self-attention, uniform", True, True),
    Setting("self_softmax", "self-attention, softmax", True, False),
)


def _of_query(query, context):
    return query[:, SIGN] * context[..., FIRST].sum(axis=1) / TOKENS**0.5


def _of_context(query, context):
    sums = context.sum(axis=1)
    return sums[:, FIRST] * sums[:, SECOND] / TOKENS


def _of_tokens(query, context):
    products = context[..., FIRST] * context[..., SECOND]
    return products.sum(axis=1) / TOKENS**0.5


# Each one a product, of variance 1, and what the factors belong to.
TASKS = {
    "query": ("sign of the query × mean of x", _of_query),
    "context": ("mean of x × mean of y", _of_context),
    "tokens": ("mean of x × y", _of_tokens),
}


def sequences(rng, count, setting):
    """Random tokens `(count, 1 + TOKENS, DIM)`; the first one is the query."""
    tokens = rng.normal(size=(count, 1 + TOKENS, DIM))
    tokens[..., SIGN] = np.sign(tokens[..., SIGN])
    if setting.own_query:
        tokens[:, 0] = tokens[:, 1]
    return tokens.astype("float32")


class Reader(keras.layers.Layer):
    """One attention layer and a linear readout, `(B, 1 + TOKENS, d)` to `(B,)`.

    Args:
        arm: the `Arm` to be.
        uniform: whether query and key kernels are frozen at zero.
    """

    def __init__(self, arm, uniform, **kwargs):
        super().__init__(**kwargs)
        self.uniform = uniform
        self.attention = GatedAttention(
            num_heads=1,
            key_dim=KEY_DIM,
            value_dim=arm.value_dim,
            **arm.gate,
        )
        self.readout = keras.layers.Dense(1)

    def build(self, inputs_shape=(None, 1 + TOKENS, DIM)):
        self.attention.build((None, 1, DIM), (None, TOKENS, DIM))
        self.readout.build((None, DIM))
        if self.uniform:
            for dense in (self.attention.query_dense, self.attention.key_dense):
                dense.kernel.assign(np.zeros(dense.kernel.shape))
                dense.trainable = False

    def call(self, inputs):
        context = self.attention(inputs[:, :1], inputs[:, 1:])
        return ops.squeeze(self.readout(context), (1, 2))


def arms_by_name(names=None):
    """Returns the arms called `names`, all of them by default."""
    return entries_by_name(ARMS, names, "sources")
