"""The arms of the depth experiment: stacks of gated self-attention."""

import dataclasses

import keras
import numpy as np
from keras import ops

from keras_gating.experiments.selection import entries_by_name
from keras_gating.layers import GatedAttention
from keras_gating.layers import GatedAttentionBlock

TOKENS = 4
FEATURES = 4
DIM = 16
HEADS = 2
# Logit of a gate that starts open, 0.95, and of one that starts closed, 0.05.
OPEN = 3.0


@dataclasses.dataclass(frozen=True)
class Arm:
    """One kind of block.

    Args:
        name: key of the arm in the results.
        title: the arm in words.
        block: `"post"` and `"pre"`, a `GatedAttentionBlock` that normalizes
            the sum or the input; `"bare"`, the attention alone;
            `"residual"`, a sum without normalization; `"normalized"`,
            normalization without a sum.
        start: where gates start: `"half"` open, `"open"`, `"closed"`,
            `"identity"` (half open, times two) or `"none"` (no gates).
        context_normalization: whether each head's context is normalized
            before it is multiplied.
    """

    name: str
    title: str
    block: str
    start: str = "half"
    context_normalization: bool = False

    def arguments(self):
        """Arguments of the attention layer of a block."""
        arguments: dict = {"num_heads": HEADS, "key_dim": DIM // HEADS}
        if self.context_normalization:
            arguments["context_normalization"] = "rms"
        if self.start == "none":
            return {**arguments, "use_gate": False}
        arguments["gate_source"] = "query_context"
        if self.start == "identity":
            arguments["gate_scale"] = 2.0
        elif self.start != "half":
            sign = 1.0 if self.start == "open" else -1.0
            arguments["gate_bias_initializer"] = keras.initializers.Constant(
                sign * OPEN
            )
        return arguments

    def layer(self):
        """A new block, `(B, T, DIM)` to the same."""
        if self.block in ("post", "pre"):
            return GatedAttentionBlock(
                **self.arguments(), norm_first=self.block == "pre"
            )
        return PartialBlock(self)


ARMS = (
    Arm("bare", "product alone, half open", "bare"),
    Arm("bare_open", "product alone, open", "bare", "open"),
    Arm("bare_closed", "product alone, closed", "bare", "closed"),
    Arm("bare_identity", "product alone, 2σ", "bare", "identity"),
    Arm("bare_ungated", "no gate, attention alone", "bare", "none"),
    Arm(
        "bare_context",
        "normalized before the product",
        "bare",
        context_normalization=True,
    ),
    Arm("residual", "residual, not normalized", "residual"),
    Arm("normalized", "normalized, no residual", "normalized"),
    Arm("post", "post-norm block, half open", "post"),
    Arm("post_closed", "post-norm block, closed", "post", "closed"),
    Arm("post_ungated", "no gate, post-norm block", "post", "none"),
    Arm(
        "post_context",
        "post-norm, also before the product",
        "post",
        context_normalization=True,
    ),
    Arm("pre", "pre-norm block, half open", "pre"),
)
REFERENCE = "post"


class PartialBlock(keras.layers.Layer):
    """A gated block that lacks the residual, the normalization or both."""

    def __init__(self, arm, **kwargs):
        super().__init__(**kwargs)
        self.residual = arm.block == "residual"
        self.attention = GatedAttention(**arm.arguments())
        self.normalization = (
            keras.layers.LayerNormalization(epsilon=1e-6)
            if arm.block == "normalized"
            else None
        )

    def build(self, inputs_shape):
        self.attention.build(inputs_shape, inputs_shape)
        if self.normalization is not None:
            self.normalization.build(inputs_shape)

    def call(self, inputs):
        outputs = self.attention(inputs, inputs)
        if self.residual:
            outputs = inputs + outputs
        if self.normalization is not None:
            outputs = self.normalization(outputs)
        return outputs


class Stack(keras.layers.Layer):
    """An embedding, blocks and a readout of the mean: `(B, T, d)` to `(B,)`.

    Args:
        arm: the `Arm` that gives the blocks.
        depth: how many there are.
    """

    def __init__(self, arm, depth, **kwargs):
        super().__init__(**kwargs)
        self.embedding = keras.layers.Dense(DIM)
        self.blocks = [arm.layer() for _ in range(depth)]
        self.readout = keras.layers.Dense(1)

    def build(self, inputs_shape=(None, TOKENS, FEATURES)):
        self.embedding.build(inputs_shape)
        for block in self.blocks:
            block.build((None, TOKENS, DIM))
        self.readout.build((None, DIM))

    def call(self, inputs):
        x = self.embedding(inputs)
        for block in self.blocks:
            x = block(x)
        return self.readout(ops.mean(x, axis=1))[:, 0]

    def weights_of(self, block):
        """Places of a block's weights among `trainable_variables`."""
        own = {id(v) for v in self.blocks[block].trainable_variables}
        return [
            i for i, v in enumerate(self.trainable_variables) if id(v) in own
        ]


def sequences(rng, count):
    """Normal tokens, `(count, TOKENS, FEATURES)`."""
    return rng.normal(size=(count, TOKENS, FEATURES)).astype("float32")


def targets(inputs):
    """The product of two means over the tokens, of variance 1.

    One block with a gate on the context can compute it: whatever more depth
    brings is an obstacle to training alone.
    """
    sums = inputs.sum(axis=1)
    return np.float32(sums[:, 0] * sums[:, 1] / TOKENS)


def arms_by_name(names=None):
    """Returns the arms called `names`, all of them by default."""
    return entries_by_name(ARMS, names, "depth")
