"""The arms of the digits experiment: one small encoder, equal parameters."""

import dataclasses

import keras

from keras_gating.layers import GatedAttention

IMAGE = 8
PATCH = 2
TOKENS = (IMAGE // PATCH) ** 2
CLASSES = 10

DIM = 32
HEADS = 4
HEAD_DIM = 8
HIDDEN = 64
# Given, so that dropout draws none where it is made, which would shift the
# initial weights; and torch obeys a seed only if it is given.
DROPOUT_SEED = 0


@dataclasses.dataclass(frozen=True)
class Arm:
    """One encoder.

    Args:
        name: key of the arm in the results.
        title: the arm in words.
        use_gate: whether attention has an output gate.
        heads: attention heads.
        hidden: width of the feed-forward layer.
        gate_dropout: probability of dropping a gate value.
        output_dropout: that of dropping a feature of attention's output.
    """

    name: str
    title: str
    use_gate: bool = False
    heads: int = HEADS
    hidden: int = HIDDEN
    gate_dropout: float = 0.0
    output_dropout: float = 0.0


def matched_arms():
    """The gated arm and two ungated ones with as many parameters.

    What a gate costs is spent on a wider feed-forward layer in one control and
    on more heads in the other, in whole units, so that the totals agree to
    within half a unit a layer.
    """
    gate = (DIM + 1) * HEADS * HEAD_DIM
    hidden_unit = 2 * DIM + 1
    head = 3 * (DIM + 1) * HEAD_DIM + HEAD_DIM * DIM
    return (
        Arm("gated", "gated", use_gate=True),
        Arm(
            "wider_feed_forward",
            "ungated, wider feed-forward",
            hidden=HIDDEN + round(gate / hidden_unit),
        ),
        Arm(
            "more_heads",
            "ungated, more heads",
            heads=HEADS + round(gate / head),
        ),
    )


def patches(images):
    """Cuts `(B, 8, 8)` into `(B, 16, 4)`: 2 × 2 patches, row by row."""
    side = IMAGE // PATCH
    cut = images.reshape(-1, side, PATCH, side, PATCH)
    return cut.transpose(0, 1, 3, 2, 4).reshape(-1, TOKENS, PATCH * PATCH)


def build(arm):
    """A model of `arm`: patches `(B, 16, 4)` to class logits `(B, 10)`."""
    layers = keras.layers
    inputs = keras.Input((TOKENS, PATCH * PATCH))
    x = layers.Dense(DIM, name="embedding")(inputs)
    x = Positions(name="positions")(x)
    y = layers.LayerNormalization(name="attention_norm")(x)
    y = GatedAttention(
        num_heads=arm.heads,
        key_dim=HEAD_DIM,
        use_gate=arm.use_gate,
        gate_site="output",
        gate_granularity="elementwise",
        gate_dropout=arm.gate_dropout,
        seed=DROPOUT_SEED,
        name="attention",
    )(y, y)
    if arm.output_dropout > 0.0:
        y = layers.Dropout(
            arm.output_dropout, seed=DROPOUT_SEED, name="attention_dropout"
        )(y)
    x = layers.Add(name="attention_add")([x, y])
    y = layers.LayerNormalization(name="feed_forward_norm")(x)
    y = layers.Dense(arm.hidden, activation="gelu", name="hidden")(y)
    y = layers.Dense(DIM, name="feed_forward")(y)
    x = layers.Add(name="feed_forward_add")([x, y])
    x = layers.LayerNormalization(name="norm")(x)
    x = layers.GlobalAveragePooling1D(name="pool")(x)
    outputs = layers.Dense(CLASSES, name="readout")(x)
    return keras.Model(inputs, outputs, name=arm.name)


class Positions(keras.layers.Layer):
    """Adds a learned vector to each position."""

    def build(self, inputs_shape):
        self.vectors = self.add_weight(
            name="vectors",
            shape=tuple(inputs_shape[1:]),
            initializer=keras.initializers.RandomNormal(stddev=0.1),
        )

    def call(self, inputs):
        return inputs + self.vectors
