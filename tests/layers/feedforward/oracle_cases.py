"""Which arguments of our gated linear units make them the peers'.

A case builds one of our layers and names the layout of the peer's weights.
What has no layer of its own here is put together from ours as its user would;
the layout is then that of the part that is ours.
"""

import dataclasses
from collections.abc import Callable

import keras

from keras_gating import functional
from keras_gating.layers import GLU
from keras_gating.layers import GatedFeedForward

# Every stored case is within reach.
EXCEPTIONS: dict[str, str] = {}


@dataclasses.dataclass
class Case:
    """One case: the layer by dtype, and the layout of the peer's weights."""

    layer: Callable
    layout: str | None = None
    # The layout's names for those of the peer, where they differ.
    names: dict = dataclasses.field(default_factory=dict)
    # The part that has the layout, of what is put together.
    inner: Callable = lambda layer: layer
    # Weights (and gradients) of the peer outside of that part, by our path.
    outside: dict = dataclasses.field(default_factory=dict)

    def inside(self, peer):
        """The peer's weights of the part that has the layout."""
        named = {name: peer[name] for name in peer if name not in self.outside}
        return {self.names.get(k, k): array for k, array in named.items()}

    def rest(self, layer, peer):
        """Those of the rest, by path; kernels are transposed."""
        return {
            f"{layer.path}/{path}": peer[name].T
            for name, path in self.outside.items()
        }


class HalvesOf(keras.layers.Layer):
    """`functional.glu` along an axis."""

    def __init__(self, axis, **kwargs):
        super().__init__(**kwargs)
        self.axis = axis

    def call(self, inputs):
        return functional.glu(inputs, axis=self.axis)


class Composed(keras.layers.Layer):
    """A `GLU`, what follows its product, and a projection back."""

    def __init__(
        self, hidden, units, normalize=False, multiply=False, **kwargs
    ):
        super().__init__(**kwargs)
        self.hidden, self.units = hidden, units
        self.normalize, self.multiply = normalize, multiply

    def build(self, input_shape):
        self.hidden.build(input_shape)
        shape = self.hidden.compute_output_shape(input_shape)
        if self.normalize:
            self.normalization = keras.layers.LayerNormalization(
                epsilon=1e-5, dtype=self.dtype_policy, name="normalization"
            )
            self.normalization.build(shape)
        if self.multiply:
            self.factor = self.add_weight(shape=(shape[-1],), name="factor")
        self.projection = keras.layers.Dense(
            self.units, dtype=self.dtype_policy, name="projection"
        )
        self.projection.build(shape)

    def call(self, inputs):
        hidden = self.hidden(inputs)
        if self.normalize:
            hidden = self.normalization(hidden)
        if self.multiply:
            hidden = hidden * self.factor
        return self.projection(hidden)


class ChannelsFirst(keras.layers.Layer):
    """A layer on the features of `(B, C, H, W)`."""

    def __init__(self, inner, **kwargs):
        super().__init__(**kwargs)
        self.inner = inner

    def build(self, input_shape):
        batch, channels, *positions = input_shape
        self.inner.build((batch, *positions, channels))

    def call(self, inputs):
        last = keras.ops.transpose(inputs, (0, 2, 3, 1))
        return keras.ops.transpose(self.inner(last), (0, 3, 1, 2))


def soft_clamp(x, bound):
    """`bound · tanh(x / bound)`, in operations that keep float64 on JAX."""
    return bound * (2 * keras.ops.sigmoid(2 * x / bound) - 1)


class SoftClampedGLU(GLU):
    """A SwiGLU whose value and gate are bounded softly, at 2 and at 1.5."""

    def call(self, inputs):
        value, gate = keras.ops.unstack(self.projection(inputs), 2, -2)
        return functional.apply_gate(
            soft_clamp(value, 2.0),
            gate,
            lambda x: soft_clamp(x, 1.5) * keras.ops.sigmoid(x),
        )


def _feed_forward(variant, output_dim=12, hidden_dim=10, **arguments):
    arguments = {"use_bias": True, **arguments}
    return lambda dtype: GatedFeedForward(
        hidden_dim, variant, output_dim=output_dim, dtype=dtype, **arguments
    )


def _composed(activation, hidden_dim=10, output_dim=12, **arguments):
    def layer(dtype):
        hidden = GLU(hidden_dim, activation, dtype=dtype, name="hidden")
        return Composed(hidden, output_dim, dtype=dtype, **arguments)

    return layer


def _soft_clamped(dtype):
    return Composed(
        SoftClampedGLU(12, dtype=dtype, name="hidden"), 12, dtype=dtype
    )


def _composed_case(layer, layout, names=None, output="fc2", **outside):
    return Case(
        layer,
        layout,
        names or {},
        lambda layer: layer.hidden,
        {
            f"{output}.weight": "projection/kernel",
            f"{output}.bias": "projection/bias",
            **outside,
        },
    )


# x-transformers names the parts by their place.
_XT_HIDDEN = {"ff.0.proj.weight": "fc1.weight", "ff.0.proj.bias": "fc1.bias"}
_XT = {**_XT_HIDDEN, "ff.2.weight": "fc2.weight", "ff.2.bias": "fc2.bias"}
_NINE = {"output_dim": 9}

CASES = {
    "torch_F_glu_last": Case(lambda dtype: HalvesOf(-1, dtype=dtype)),
    "torch_F_glu_dim1": Case(lambda dtype: HalvesOf(1, dtype=dtype)),
    **{
        f"timm_GluMlp_{variant}": Case(
            _feed_forward(variant, **_NINE), "timm_glu_mlp"
        )
        for variant in (
            "glu",
            "bilinear",
            "reglu",
            "geglu",
            "geglu_tanh",
            "swiglu",
        )
    },
    "timm_GluMlp_tanhglu": _composed_case(
        _composed("tanh", **_NINE), "timm_glu_mlp"
    ),
    "timm_SwiGLUPacked": Case(
        _feed_forward("swiglu", gate_first=True), "timm_swiglu_packed"
    ),
    "timm_SwiGLU": Case(_feed_forward("swiglu"), "timm_swiglu"),
    "timm_SwiGLU_norm": _composed_case(
        _composed("silu", normalize=True),
        "timm_swiglu",
        **{
            "norm.weight": "normalization/gamma",
            "norm.bias": "normalization/beta",
        },
    ),
    "timm_GluMlp_conv": Case(
        lambda dtype: ChannelsFirst(
            _feed_forward("swiglu", 8, 6, name="inner")(dtype), dtype=dtype
        ),
        "timm_glu_mlp",
        inner=lambda layer: layer.inner,
    ),
    "hf_LlamaMLP_silu": Case(
        _feed_forward("swiglu", use_bias=False), "llama_mlp"
    ),
    "hf_LlamaMLP_bias": Case(_feed_forward("swiglu"), "llama_mlp"),
    "hf_GemmaMLP_gelu_tanh": Case(
        _feed_forward("geglu_tanh", use_bias=False), "llama_mlp"
    ),
    "hf_T5Gated_gelu_new": Case(
        _feed_forward("geglu_tanh", use_bias=False), "t5_mlp"
    ),
    "xt_FF_geglu": Case(
        _feed_forward("geglu", hidden_dim=12), "timm_glu_mlp", _XT
    ),
    "xt_FF_swiglu_multbias": _composed_case(
        _composed("silu", 12, multiply=True),
        "timm_glu_mlp",
        _XT_HIDDEN,
        output="ff.2",
        **{"ff.0.mult_bias": "factor"},
    ),
    "xt_FF_swiglu_softclamp": _composed_case(
        _soft_clamped, "timm_glu_mlp", _XT_HIDDEN, output="ff.2"
    ),
}
