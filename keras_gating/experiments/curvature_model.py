"""The arms of the curvature experiment and the network that they share."""

import dataclasses

import keras
from keras import ops

from keras_gating.layers import Gate

FEATURES = 8
EPSILON = 1e-6


@dataclasses.dataclass(frozen=True)
class Arm:
    """One kind of attention.

    Args:
        name: key of the arm in the results.
        title: the arm in words.
        tokens: number of learned tokens, n.
        features: width of the context, D.
        gate: granularity of an output gate, `"constant"`, `"additive"` for
            the control that adds in its place, `"silu"` and `"rms"` for an
            activation or a normalization of the output without a gate, or
            `None`.
        flat: whether the image cannot be curved, whatever the weights.
        group: number of tokens of the arms that it is compared with.
    """

    name: str
    title: str
    tokens: int
    features: int = FEATURES
    gate: str | None = None
    flat: bool = False
    group: int | None = None

    @property
    def parameters(self):
        """Number of weights, the readout included."""
        n, d = self.tokens, self.features
        gate = {
            "constant": d,
            "headwise": 3,
            "elementwise": 3 * d,
            "additive": 3 * d,
        }.get(self.gate, 0)
        return 3 * n + n * d + gate + d + 1


def arms_of(tokens):
    """The arms with `tokens` tokens, and the controls beside them."""
    # The image lies in the plane of three values: its hull is two-dimensional.
    flat = tokens == 3
    target = Arm("", "", tokens, gate="elementwise").parameters

    def smallest(sizes):
        return next(a for a in sizes if a.parameters >= target)

    more = smallest(Arm("", "", n) for n in range(tokens, 99)).tokens
    wide = smallest(
        Arm("", "", tokens, d) for d in range(FEATURES, 99)
    ).features
    kinds = (
        ("ungated", "no gate", None),
        ("constant", "constant gate", "constant"),
        ("headwise", "headwise gate", "headwise"),
        ("elementwise", "elementwise gate", "elementwise"),
        ("additive", "additive SiLU", "additive"),
        ("silu", "SiLU on the output", "silu"),
        ("rms", "RMSNorm on the output", "rms"),
    )
    return (
        *(
            Arm(
                name,
                title,
                tokens,
                gate=gate,
                flat=flat and gate in (None, "constant"),
                group=tokens,
            )
            for name, title, gate in kinds
        ),
        Arm("more_tokens", f"no gate, {more} tokens", more, group=tokens),
        Arm(
            "wide",
            f"no gate, wide D = {wide}",
            tokens,
            features=wide,
            flat=flat,
            group=tokens,
        ),
    )


# Flat for any weights, since the plane has no room to bend in.
PLANAR_ARMS = (
    Arm("planar_8", "no gate, D = 2, 8 tokens", 8, features=2, flat=True),
    Arm("planar_24", "no gate, D = 2, 24 tokens", 24, features=2, flat=True),
)


def _normal():
    # A new one each time: an initializer repeats itself for equal shapes.
    return keras.initializers.RandomNormal(stddev=1.0)


class Context(keras.layers.Layer):
    """One head of attention to learned tokens, gated: `(B, 2)` to `(B, D)`.

    With keys and values that do not depend on the input x, logits are affine
    in x, one row for each token, and `softmax(x K + b) V` is all that
    attention is.

    Args:
        arm: the `Arm` to be.
    """

    def __init__(self, arm, **kwargs):
        super().__init__(**kwargs)
        self.arm = arm
        self.gate = None
        if arm.gate == "additive":
            self.gate = keras.layers.EinsumDense(
                "ni,id->nd",
                output_shape=arm.features,
                bias_axes="d",
                activation="silu",
                dtype=self.dtype_policy,
            )
        elif arm.gate == "constant":
            self.gate = Gate(source="constant", dtype=self.dtype_policy)
        elif arm.gate in ("headwise", "elementwise"):
            self.gate = Gate(granularity=arm.gate, dtype=self.dtype_policy)

    def build(self, inputs_shape=(None, 2)):
        arm = self.arm
        self.keys = self.add_weight(
            name="keys", shape=(2, arm.tokens), initializer=_normal()
        )
        self.bias = self.add_weight(
            name="bias", shape=(arm.tokens,), initializer="zeros"
        )
        self.values = self.add_weight(
            name="values",
            shape=(arm.tokens, arm.features),
            initializer=_normal(),
        )
        if isinstance(self.gate, Gate):
            self.gate.build((None, arm.features), inputs_shape)
        elif self.gate is not None:
            self.gate.build(inputs_shape)

    def call(self, inputs):
        context = self.attend(inputs)
        if isinstance(self.gate, Gate):
            return self.gate(context, source=inputs)
        if self.gate is not None:
            return context + self.gate(inputs)
        if self.arm.gate == "silu":
            return ops.silu(context)
        if self.arm.gate == "rms":
            square = ops.sum(context * context, axis=-1, keepdims=True)
            return context / ops.sqrt(square / self.arm.features + EPSILON)
        return context

    def attend(self, inputs):
        """What there is before the gate."""
        logits = ops.einsum("ni,it->nt", inputs, self.keys) + self.bias
        return ops.einsum(
            "nt,td->nd", ops.softmax(logits, axis=-1), self.values
        )


class Network(keras.layers.Layer):
    """A context and a linear readout of it: `(B, 2)` to logits `(B,)`.

    Args:
        arm: the `Arm` of the context.
    """

    def __init__(self, arm, **kwargs):
        super().__init__(**kwargs)
        self.context = Context(arm, dtype=self.dtype_policy)
        self.readout = keras.layers.Dense(1, dtype=self.dtype_policy)

    def build(self, inputs_shape=(None, 2)):
        self.context.build(inputs_shape)
        self.readout.build((None, self.context.arm.features))

    def call(self, inputs):
        return self.readout(self.context(inputs))[:, 0]
