"""How the cases of the reference libraries map to our gated linear units.

A case builds one of our layers and maps the peer's weights to those of the
layer, by path below it. The map is linear, so it carries gradients too. What
has no layer of its own here is put together from ours as its user would.
"""

import dataclasses
from collections.abc import Callable

import keras
import numpy as np

from keras_gating import functional
from keras_gating.layers import GLU
from keras_gating.layers import GatedFeedForward

# Every stored case is within reach.
EXCEPTIONS: dict[str, str] = {}


@dataclasses.dataclass
class Case:
    """One case: the layer by dtype, and the peer's weights as ours."""

    layer: Callable
    weights: Callable = lambda w: {}


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


class SoftClampedGLU(keras.layers.Layer):
    """A SwiGLU whose value and gate are bounded softly, at 2 and at 1.5."""

    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.units = units

    def build(self, input_shape):
        self.projection = keras.layers.EinsumDense(
            "abc,cde->abde",
            (None, 2, self.units),
            bias_axes="de",
            dtype=self.dtype_policy,
            name="projection",
        )
        self.projection.build(input_shape)

    def compute_output_shape(self, input_shape):
        return (*input_shape[:-1], self.units)

    def call(self, inputs):
        value, gate = keras.ops.unstack(self.projection(inputs), 2, -2)
        return functional.apply_gate(
            soft_clamp(value, 2.0),
            gate,
            lambda x: soft_clamp(x, 1.5) * keras.ops.sigmoid(x),
        )


def halves(packed):
    """A packed `(2 · units, d)` weight as a kernel `(d, 2, units)`."""
    if packed.ndim == 4:
        packed = packed[:, :, 0, 0]
    if packed.ndim == 1:
        return packed.reshape(2, -1)
    return packed.reshape(2, -1, packed.shape[1]).transpose(2, 0, 1)


def stacked(first, second):
    """Two `(units, d)` weights as a kernel `(d, 2, units)`."""
    if first.ndim == 1:
        return np.stack([first, second])
    return np.stack([first.T, second.T], axis=1)


def _packed(w, first="fc1", second="fc2", inside=""):
    mapped = {}
    for name, array in w.items():
        layer, _, kind = name.rpartition(".")
        if layer == first:
            path = "kernel" if kind == "weight" else "bias"
            mapped[f"{inside}hidden/projection/{path}"] = halves(array)
        elif layer == second and kind == "weight":
            array = array.reshape(array.shape[:2])
            mapped[f"{inside}projection/kernel"] = array.T
        elif layer == second:
            mapped[f"{inside}projection/bias"] = array
        elif layer == "norm":
            path = "gamma" if kind == "weight" else "beta"
            mapped[f"{inside}normalization/{path}"] = array
        elif kind == "mult_bias":
            mapped[f"{inside}factor"] = array
        else:
            raise AssertionError(name)
    return mapped


def _separate(value, gate, output):
    """Two projections of their own, the value to be slice 0."""

    def weights(w):
        mapped = {}
        for kind in ("weight", "bias"):
            if f"{value}.{kind}" in w:
                joined = stacked(w[f"{value}.{kind}"], w[f"{gate}.{kind}"])
                mapped[f"packed.{kind}"] = joined
        rest = {
            name: array
            for name, array in w.items()
            if name.rpartition(".")[0] not in (value, gate)
        }
        result = _packed(rest, second=output)
        for kind, path in (("weight", "kernel"), ("bias", "bias")):
            if f"packed.{kind}" in mapped:
                result[f"hidden/projection/{path}"] = mapped[f"packed.{kind}"]
        return result

    return weights


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


_XT = {"first": "ff.0.proj", "second": "ff.2"}
_NINE = {"output_dim": 9}

CASES = {
    "torch_F_glu_last": Case(lambda dtype: HalvesOf(-1, dtype=dtype)),
    "torch_F_glu_dim1": Case(lambda dtype: HalvesOf(1, dtype=dtype)),
    "timm_GluMlp_glu": Case(_feed_forward("glu", **_NINE), _packed),
    "timm_GluMlp_bilinear": Case(_feed_forward("bilinear", **_NINE), _packed),
    "timm_GluMlp_reglu": Case(_feed_forward("reglu", **_NINE), _packed),
    "timm_GluMlp_geglu": Case(_feed_forward("geglu", **_NINE), _packed),
    "timm_GluMlp_geglu_tanh": Case(
        _feed_forward("geglu_tanh", **_NINE), _packed
    ),
    "timm_GluMlp_swiglu": Case(_feed_forward("swiglu", **_NINE), _packed),
    "timm_GluMlp_tanhglu": Case(_composed("tanh", **_NINE), _packed),
    "timm_SwiGLUPacked": Case(
        _feed_forward("swiglu", gate_first=True), _packed
    ),
    "timm_SwiGLU": Case(
        _feed_forward("swiglu"), _separate("fc1_x", "fc1_g", "fc2")
    ),
    "timm_SwiGLU_norm": Case(
        _composed("silu", normalize=True), _separate("fc1_x", "fc1_g", "fc2")
    ),
    "timm_GluMlp_conv": Case(
        lambda dtype: ChannelsFirst(
            _feed_forward("swiglu", 8, 6, name="inner")(dtype), dtype=dtype
        ),
        lambda w: _packed(w, inside="inner/"),
    ),
    "hf_LlamaMLP_silu": Case(
        _feed_forward("swiglu", use_bias=False),
        _separate("up_proj", "gate_proj", "down_proj"),
    ),
    "hf_LlamaMLP_bias": Case(
        _feed_forward("swiglu"), _separate("up_proj", "gate_proj", "down_proj")
    ),
    "hf_GemmaMLP_gelu_tanh": Case(
        _feed_forward("geglu_tanh", use_bias=False),
        _separate("up_proj", "gate_proj", "down_proj"),
    ),
    "hf_T5Gated_gelu_new": Case(
        _feed_forward("geglu_tanh", use_bias=False),
        _separate("wi_1", "wi_0", "wo"),
    ),
    "xt_FF_geglu": Case(
        _feed_forward("geglu", hidden_dim=12),
        lambda w: _packed(w, **_XT),
    ),
    "xt_FF_swiglu_multbias": Case(
        _composed("silu", 12, multiply=True), lambda w: _packed(w, **_XT)
    ),
    "xt_FF_swiglu_softclamp": Case(_soft_clamped, lambda w: _packed(w, **_XT)),
}
