"""Which arguments of our unit make it the units of FLASH-pytorch.

The weights come in the layout `"flash_pytorch"`. The peer divides inside of
the square, so a `GAU` has the length as its divisor.
"""

import dataclasses

import keras
import numpy as np
from keras import ops

from keras_gating.layers import GatedAttentionUnit
from keras_gating.surgery import copy_weights
from tests.oracles import load
from tests.oracles import mapped_gradients
from tests.oracles import part

DIM, KEY_DIM, CHUNK = 16, 8, 8
LAYOUT = "flash_pytorch"
TABLE = "rel_pos_bias.relative_attention_bias.weight"
FREQUENCIES = "rotary_pos_emb.freqs"
BUFFERS = {TABLE, FREQUENCIES}
EXCEPTIONS = {
    "scalenorm_noncausal_nobias": "normalizes by ScaleNorm",
    "causal_shift_tokens": "moves half of the features by one position",
}


@dataclasses.dataclass
class Case:
    """One case: arguments of our layer, and how it is put together."""

    arrays: dict
    arguments: dict
    causal: bool = False
    kind: str = "unit"
    # On the query of the linear part, after the layout's own.
    factor: float = 1.0

    def layer(self, dtype):
        arguments = {
            "key_dim": KEY_DIM,
            "norm_first": True,
            "normalization_epsilon": 1e-5,
            **self.arguments,
        }
        if self.kind == "without residual":
            return WithoutResidual(arguments, dtype=dtype)
        if self.kind == "separate chunks":
            return SeparateChunks(arguments, dtype=dtype)
        return GatedAttentionUnit(**arguments, dtype=dtype)

    def assign(self, layer, peer):
        """Gives our layer the peer's weights."""
        inside, outside = self._parts(peer)
        unit = layer if self.kind == "unit" else layer.inner
        copy_weights(unit, inside, LAYOUT)
        for name, variable in self._outside(layer).items():
            variable.assign(outside[name])
        for variable in (unit.query_key_scale, unit.query_key_offset):
            variable.assign(variable * self._factors(variable))

    def gradients(self, layer, gradients, peer):
        """Gradients of the peer's weights as those of ours, by path."""
        (inside, outside), (weights, _) = map(self._parts, (gradients, peer))
        for name in BUFFERS & set(inside):
            if not np.any(weights[name]) or name == FREQUENCIES:
                del inside[name]
        unit = layer if self.kind == "unit" else layer.inner
        expected = mapped_gradients(unit, inside, weights, LAYOUT)
        for variable in (unit.query_key_scale, unit.query_key_offset):
            expected[variable.path] /= self._factors(variable)
        for name, variable in self._outside(layer).items():
            expected[variable.path] = outside[name]
        return expected

    def _parts(self, peer):
        """Arrays of the unit and of the normalization apart from it."""
        is_apart = self.kind == "without residual"
        outside = {
            name: array
            for name, array in peer.items()
            if is_apart and name.startswith("norm.")
        }
        inside = {n: array for n, array in peer.items() if n not in outside}
        return inside, outside

    def _outside(self, layer):
        if self.kind != "without residual":
            return {}
        return {
            "norm.weight": layer.normalization.gamma,
            "norm.bias": layer.normalization.beta,
        }

    def _factors(self, variable):
        factors = np.ones((variable.shape[0], 1), variable.dtype)
        factors[1] = self.factor
        return factors


class WithoutResidual(keras.layers.Layer):
    """A normalization and a unit without what `norm_first` adds."""

    def __init__(self, arguments, **kwargs):
        super().__init__(**kwargs)
        epsilon = arguments.pop("normalization_epsilon")
        self.normalization = keras.layers.LayerNormalization(
            epsilon=epsilon, dtype=self.dtype_policy, name="normalization"
        )
        self.inner = GatedAttentionUnit(
            **{**arguments, "norm_first": False},
            dtype=self.dtype_policy,
            name="inner",
        )

    def build(self, input_shape):
        self.normalization.build(input_shape)
        self.inner.build(input_shape)

    def call(self, inputs):
        return self.inner(self.normalization(inputs))


class SeparateChunks(keras.layers.Layer):
    """A unit on every chunk by itself, the linear part included."""

    def __init__(self, arguments, **kwargs):
        super().__init__(**kwargs)
        self.inner = GatedAttentionUnit(
            **arguments, dtype=self.dtype_policy, name="inner"
        )

    def build(self, input_shape):
        self.inner.build((None, CHUNK, input_shape[-1]))

    def call(self, inputs):
        batch, length, width = inputs.shape
        missing = -length % CHUNK
        chunks = ops.pad(inputs, [(0, 0), (0, missing), (0, 0)])
        chunks = ops.reshape(chunks, (-1, CHUNK, width))
        real = np.tile(np.arange(length + missing) < length, (batch, 1))
        mask = np.reshape(real, (-1, 1, CHUNK))
        outputs = self.inner(chunks, attention_mask=mask)
        return ops.reshape(outputs, (batch, -1, width))[:, :length]


def _unit_case(name, arrays):
    expansion = arrays["w/to_hidden.0.bias"].shape[0] / (2 * DIM)
    arguments = {
        "expansion_factor": expansion,
        "divisor": arrays["in/x"].shape[1],
    }
    if "laplace" in name:
        arguments["attention_activation"] = "laplace"
    if arrays[f"w/{TABLE}"].any():
        arguments["position"] = "t5"
    return Case(
        arrays,
        arguments,
        causal="noncausal" not in name and "causal" in name,
        kind="without residual" if name.endswith("nores") else "unit",
    )


def _chunked_case(name, arrays):
    causal = "noncausal" not in name
    # In the causal form both terms are divided by the chunk size.
    arguments = {"chunk_size": CHUNK, "divisor": CHUNK if causal else "length"}
    if "laplace" in name:
        arguments["attention_activation"] = "laplace"
    if arrays[f"w/{TABLE}"].any():
        rotary = name.endswith("rope")
        arguments["position"] = ("rope", "t5") if rotary else "t5"
    kind, factor = "unit", 1.0
    if name.endswith("no_reduce"):
        # Chunks of their own, but divided by the length of all.
        kind, factor = "separate chunks", CHUNK / arrays["in/x"].shape[1]
    return Case(arrays, arguments, causal, kind, factor)


ORACLES = {file: load(file)[0] for file in ("gau", "flash")}
DESCRIPTIONS = {file: load(file)[1] for file in ("gau", "flash")}
CASES = {
    f"{file}-{name}": make(name, arrays)
    for file, make in (("gau", _unit_case), ("flash", _chunked_case))
    for name, arrays in ORACLES[file].items()
    if name not in EXCEPTIONS
}


def peer_weights(case, kind="w"):
    return part(case.arrays, kind)
