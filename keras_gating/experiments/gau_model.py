"""The arms of the gated attention unit's experiment, with equal parameters."""

import dataclasses
import functools
from collections.abc import Callable

import keras
from keras import ops

from keras_gating import functional
from keras_gating.experiments.characters import VOCABULARY
from keras_gating.experiments.selection import entries_by_name
from keras_gating.layers import FeedForward
from keras_gating.layers import GatedAttention
from keras_gating.layers import GatedAttentionUnit

DIM = 48
HIDDEN = 2 * DIM
KEY_DIM = 24
HEADS = 4
# Blocks of attention and feed-forward layer; two units stand for one.
BLOCKS = 2
LENGTH = 64
CHUNK = 16
# Squares of small scores: a unit starts close to the identity, and its first
# gradients are far below the usual epsilon, which holds it back there.
ADAM_EPSILON = 1e-10
USUAL_EPSILON = 1e-7


def unit_weights(dim, hidden, key_dim, gates=1, attends=True):
    """Number of weights of a unit with normalization.

    Args:
        dim: d, number of features.
        hidden: e, width of value and gate.
        key_dim: s.
        gates: number of gates, 1 or 0.
        attends: whether it has queries and keys.
    """
    shared = (dim + 1) * key_dim + 4 * key_dim if attends else 0
    projections = (1 + gates) * (dim + 1) * hidden + (hidden + 1) * dim
    return 2 * dim + projections + shared


def matched_hidden(gates=1, attends=True):
    """Width with which a reduced unit has the weights of a whole one."""
    whole = unit_weights(DIM, HIDDEN, KEY_DIM)
    fixed = unit_weights(DIM, 0, KEY_DIM, gates, attends)
    slope = unit_weights(DIM, 1, KEY_DIM, gates, attends) - fixed
    return round((whole - fixed) / slope)


def matched_feed_forward(dim, hidden, key_dim):
    """Width with which attention and feed-forward layer weigh two units."""
    attention = 4 * (dim + 1) * dim
    normalizations = 4 * dim
    left = 2 * unit_weights(dim, hidden, key_dim) - attention - normalizations
    return round(left / (2 * dim))


class ReducedUnit(keras.layers.Layer):
    """A causal gated attention unit of which one part is taken out.

    `outputs = x + (U ⊙ A V) W_o`, see `GatedAttentionUnit`.

    Args:
        hidden_dim: width of value and gate.
        weights: what A is: `"relu2"`, as in the whole unit; `"mean"`, equal
            weights of all positions up to the row's; or `"identity"`.
        use_gate: whether there is a gate, or U = 1.
    """

    def __init__(self, hidden_dim, weights="relu2", use_gate=True, **kwargs):
        super().__init__(**kwargs)
        dense = keras.layers.Dense
        self.attention = weights
        self.normalization = keras.layers.LayerNormalization(
            epsilon=1e-6, name="normalization"
        )
        self.value_dense = dense(hidden_dim, "silu", name="value")
        self.gate_dense = (
            dense(hidden_dim, "silu", name="gate") if use_gate else None
        )
        self.shared_dense = (
            dense(KEY_DIM, "silu", name="shared")
            if weights == "relu2"
            else None
        )
        self.output_dense = dense(DIM, name="output")
        self.scale = self.offset = None

    def build(self, inputs_shape):
        for child in (
            self.normalization,
            self.value_dense,
            self.gate_dense,
            self.shared_dense,
        ):
            if child is not None:
                child.build(inputs_shape)
        hidden = self.value_dense.units
        self.output_dense.build((*inputs_shape[:-1], hidden))
        if self.shared_dense is not None:
            self.scale = self.add_weight(
                name="scale",
                shape=(2, KEY_DIM),
                initializer=keras.initializers.RandomNormal(stddev=0.02),
            )
            self.offset = self.add_weight(
                name="offset", shape=(2, KEY_DIM), initializer="zeros"
            )

    def call(self, inputs):
        x = self.normalization(inputs)
        context = self._attend(x, self.value_dense(x))
        if self.gate_dense is not None:
            context = context * self.gate_dense(x)
        return inputs + self.output_dense(context)

    def _attend(self, x, value):
        if self.attention == "identity":
            return value
        positions = ops.arange(ops.shape(x)[1], dtype="int32")
        if self.attention == "mean":
            count = ops.cast(positions + 1, value.dtype)
            return ops.cumsum(value, axis=1) / ops.expand_dims(count, -1)
        query, key = (
            functional.apply_rotary(head, positions)
            for head in functional.offset_scale(
                self.shared_dense(x), self.scale, self.offset
            )
        )
        return functional.quadratic_attention(query, key, value, is_causal=True)


@dataclasses.dataclass(frozen=True)
class Arm:
    """One kind of block.

    Args:
        name: key of the arm in the results.
        title: the arm in words.
        unit: function that makes one of two units that stand for a block, or
            `None` for attention and a feed-forward layer.
        epsilon: of Adam.
    """

    name: str
    title: str
    unit: Callable | None = None
    epsilon: float = ADAM_EPSILON


def whole_unit(key_dim=KEY_DIM, **arguments):
    """A pre-norm `GatedAttentionUnit` with rotary embedding."""
    return GatedAttentionUnit(
        key_dim=key_dim, norm_first=True, position="rope", **arguments
    )


def _without_gate():
    return ReducedUnit(matched_hidden(gates=0), use_gate=False)


def _fixed(weights):
    return ReducedUnit(matched_hidden(attends=False), weights)


ARMS = (
    Arm("attention", "attention, feed-forward"),
    Arm("unit", "unit, squared ReLU", whole_unit),
    Arm(
        "softmax",
        "unit, softmax",
        functools.partial(whole_unit, attention_activation="softmax"),
    ),
    Arm(
        "chunked",
        f"unit, chunks of {CHUNK}",
        functools.partial(whole_unit, chunk_size=CHUNK),
    ),
    Arm("no_gate", "U = 1: no gate", _without_gate),
    Arm("mean", "A fixed: mean so far", functools.partial(_fixed, "mean")),
    Arm(
        "identity",
        "A fixed: identity",
        functools.partial(_fixed, "identity"),
    ),
    # Whether the choice of epsilon favours one of the two.
    Arm("attention_usual", "attention, ε = 1e-7", epsilon=USUAL_EPSILON),
    Arm("unit_usual", "unit, ε = 1e-7", whole_unit, USUAL_EPSILON),
)

# Whole units against the baseline, and each change against the plain unit.
PAIRS = tuple((name, "attention") for name in ("unit", "softmax", "chunked"))
PAIRS += tuple(
    (name, "unit")
    for name in ("softmax", "chunked", "no_gate", "mean", "identity")
)
PAIRS += (
    ("attention_usual", "attention"),
    ("unit_usual", "unit"),
    ("unit_usual", "attention_usual"),
)


def attention_and_feed_forward(x, heads, hidden, name):
    """Causal pre-norm attention with rotary embedding, and what follows it."""
    layers = keras.layers
    dim = x.shape[-1]
    y = layers.LayerNormalization(epsilon=1e-6, name=f"{name}_norm_0")(x)
    y = GatedAttention(
        num_heads=heads,
        key_dim=dim // heads,
        use_gate=False,
        rope_max_wavelength=10000.0,
        name=f"{name}_attention",
    )(y, y, use_causal_mask=True)
    x = layers.Add(name=f"{name}_add_0")([x, y])
    y = layers.LayerNormalization(epsilon=1e-6, name=f"{name}_norm_1")(x)
    y = FeedForward(hidden, activation="gelu", name=f"{name}_feed_forward")(y)
    return layers.Add(name=f"{name}_add_1")([x, y])


def two_units(x, make):
    """Two causal units, which `make` makes, one after the other."""
    return apply(make(), apply(make(), x))


def apply(unit, x):
    """What a unit, whole or reduced, gives when it is causal."""
    if isinstance(unit, GatedAttentionUnit):
        return unit(x, use_causal_mask=True)
    return unit(x)


def build(arm):
    """A model of `arm`: characters `(B, T)` to logits `(B, T, VOCABULARY)`."""
    layers = keras.layers
    inputs = keras.Input((LENGTH,), dtype="int32")
    x = layers.Embedding(VOCABULARY, DIM, name="embedding")(inputs)
    for i in range(BLOCKS):
        if arm.unit is None:
            hidden = matched_feed_forward(DIM, HIDDEN, KEY_DIM)
            x = attention_and_feed_forward(x, HEADS, hidden, f"block_{i}")
        else:
            x = two_units(x, arm.unit)
    x = layers.LayerNormalization(name="norm")(x)
    outputs = layers.Dense(VOCABULARY, name="readout")(x)
    return keras.Model(inputs, outputs, name=arm.name)


def arms_by_name(names=None):
    """Returns the arms called `names`, all of them by default."""
    return entries_by_name(ARMS, names, "gated attention unit's")
