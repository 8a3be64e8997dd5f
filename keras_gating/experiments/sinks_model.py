"""The arms of the experiment on attention sinks."""

import dataclasses

from keras import ops

from keras_gating import functional
from keras_gating.experiments.selection import entries_by_name
from keras_gating.experiments.transformer import transformer
from keras_gating.layers import FeedForward
from keras_gating.layers import GatedAttention

DIM = 32
HEADS = 4
LAYERS = 2
LENGTH = 64
HIDDEN = 4 * DIM


class SinkAttention(GatedAttention):
    """Attention with a learned sink: one more score that has no value.

    With scores s and a number z for each head, learned from 0,

    `context = Σ_s exp(s) v / (exp(z) + Σ_s exp(s))`,

    which is softmax attention times the gate `σ(logsumexp(s) − z)`.
    """

    def __init__(self, **kwargs):
        super().__init__(use_gate=False, **kwargs)

    def build(
        self, query_shape, value_shape, key_shape=None, gate_input_shape=None
    ):
        super().build(query_shape, value_shape, key_shape, gate_input_shape)
        self.sink = self.add_weight(
            name="sink", shape=(self.num_heads,), initializer="zeros"
        )

    def _compute_attention(
        self,
        query,
        key,
        value,
        attention_mask=None,
        *_,
        **__,
    ):
        # The mask holds causality too; the arms have no dropout.
        query = query / self.key_dim**0.5
        scores = ops.einsum("btnd,bsnd->bnts", query, key)
        if attention_mask is not None:
            visible = self.layout.with_heads(attention_mask)
            scores = ops.where(visible, scores, -1e38)
        total = ops.logsumexp(scores, axis=-1, keepdims=True)
        weights = ops.exp(scores - total)
        context = ops.einsum("bnts,bsnd->btnd", weights, value)
        logits = ops.transpose(total, (0, 2, 1, 3)) - self.sink[:, None]
        return functional.apply_gate(context, logits, owner=self), weights


@dataclasses.dataclass(frozen=True)
class Published:
    """Figures of a 15B mixture of experts (Qiu et al. 2025, arXiv 2505.06708).

    Args:
        share: of the attention that goes to the first token.
        largest: activation.
        gate: its mean.
    """

    share: float
    largest: float
    gate: float | None = None


@dataclasses.dataclass(frozen=True)
class Arm:
    """One kind of attention.

    Args:
        name: key of the arm in the results.
        title: the arm in words.
        arguments: of `GatedAttention`; `None` for `SinkAttention`.
        published: `Published`, or `None`.
    """

    name: str
    title: str
    arguments: dict | None
    published: Published | None = None

    def attention(self, name):
        """A new layer."""
        sizes = {"num_heads": HEADS, "key_dim": DIM // HEADS, "name": name}
        if self.arguments is None:
            return SinkAttention(**sizes)
        return GatedAttention(**sizes, **self.arguments)


ARMS = (
    Arm("none", "no gate", {"use_gate": False}, Published(0.467, 1053)),
    Arm("elementwise", "elementwise", {}, Published(0.048, 94, 0.116)),
    Arm(
        "headwise",
        "headwise",
        {"gate_granularity": "headwise"},
        Published(0.073, 98, 0.172),
    ),
    Arm(
        "constant",
        "constant",
        {"gate_source": "constant"},
        Published(0.364, 471, 0.335),
    ),
    Arm("sink", "learned sink", None),
)

# All against the baseline; a constant gate tells what reading the input adds.
PAIRS = tuple((arm.name, "none") for arm in ARMS[1:])
PAIRS += (("elementwise", "constant"), ("headwise", "constant"))


def build(arm):
    """A model of `arm`: characters `(B, T)` to logits `(B, T, VOCABULARY)`."""
    return transformer(
        arm.attention, _feed_forward, DIM, LAYERS, LENGTH, name=arm.name
    )


def _feed_forward():
    return FeedForward(HIDDEN, activation="gelu")


def arms_by_name(names=None):
    """Returns the arms called `names`, all of them by default."""
    return entries_by_name(ARMS, names, "sinks")
