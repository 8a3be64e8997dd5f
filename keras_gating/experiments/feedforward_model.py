"""The arms of the feed-forward experiment: one small causal transformer."""

import dataclasses

from keras_gating.experiments.selection import entries_by_name
from keras_gating.experiments.transformer import transformer
from keras_gating.layers import FeedForward
from keras_gating.layers import GatedAttention
from keras_gating.layers import GatedFeedForward

DIM = 48
HEADS = 4
LAYERS = 2
LENGTH = 64
HIDDEN = 4 * DIM


@dataclasses.dataclass(frozen=True)
class Arm:
    """One kind of feed-forward layer.

    Args:
        name: key of the arm in the results.
        title: the arm in words.
        variant: of `GatedFeedForward`, or `None`.
        activation: of the `FeedForward` that stands in its place.
        published: log-perplexity of T5-base on C4 after 65k and 524k steps
            (Shazeer 2020, arXiv 2002.05202, table 1).
    """

    name: str
    title: str
    published: tuple
    variant: str | None = None
    activation: str | None = None

    def layer(self, hidden=HIDDEN):
        """A new layer; all arms have the same number of weights."""
        if self.variant is None:
            return FeedForward(hidden, activation=self.activation)
        return GatedFeedForward(
            hidden, variant=self.variant, width_rule="two_thirds"
        )


ARMS = (
    Arm("relu", "ReLU", (1.997, 1.677), activation="relu"),
    Arm("gelu", "GELU", (1.983, 1.679), activation="gelu"),
    Arm("swish", "Swish", (1.994, 1.683), activation="silu"),
    Arm("glu", "GLU", (1.982, 1.663), variant="glu"),
    Arm("bilinear", "Bilinear", (1.960, 1.648), variant="bilinear"),
    Arm("reglu", "ReGLU", (1.953, 1.645), variant="reglu"),
    Arm("geglu", "GEGLU", (1.942, 1.633), variant="geglu"),
    Arm("swiglu", "SwiGLU", (1.944, 1.636), variant="swiglu"),
)

# All against the plain baseline, and each gate against its own activation.
PAIRS = tuple((arm.name, "relu") for arm in ARMS[1:]) + (
    ("geglu", "gelu"),
    ("swiglu", "swish"),
)


def build(arm):
    """A model of `arm`: characters `(B, T)` to logits `(B, T, VOCABULARY)`."""
    return transformer(
        _attention, arm.layer, DIM, LAYERS, LENGTH, name=arm.name
    )


def _attention(name):
    return GatedAttention(
        num_heads=HEADS, key_dim=DIM // HEADS, use_gate=False, name=name
    )


def arms_by_name(names=None):
    """Returns the arms called `names`, all of them by default."""
    return entries_by_name(ARMS, names, "feed-forward")
