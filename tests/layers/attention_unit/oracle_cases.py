"""How the units of FLASH-pytorch map to ours.

A map takes the peer's weights to those of our layer, by path below it. The
peer divides inside of the square, by n: relu²((qk + b) / n), where ours has
relu²(q'k / √s + b') / n. The two are equal for q' = q √(s/n), b' = b / √n. In
`Case.scales` stand such factors, by what they act on; gradients carry their
inverse.
"""

import dataclasses

import keras
import numpy as np
from keras import ops

from keras_gating.layers import GatedAttentionUnit
from tests.layers.feedforward.oracle_cases import halves
from tests.oracles import load
from tests.oracles import part

DIM, KEY_DIM, CHUNK = 16, 8, 8
EXCEPTIONS = {
    "scalenorm_noncausal_nobias": "normalizes by ScaleNorm",
    "causal_shift_tokens": "moves half of the features by one position",
}


@dataclasses.dataclass
class Case:
    """One case: arguments of our layer and what its weights are scaled by."""

    arrays: dict
    arguments: dict
    scales: dict
    causal: bool = False
    interleaved: bool = False
    kind: str = "unit"

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

    def weights(self, peer):
        """The peer's weights as ours."""
        return self._map(peer, self.scales)

    def gradients(self, peer):
        """Gradients of the peer's weights as those of ours."""
        inverse = {name: 1.0 / np.array(x) for name, x in self.scales.items()}
        return self._map(peer, inverse)

    def _map(self, peer, scales):
        order = np.arange(KEY_DIM)
        if self.interleaved:
            # The peer rotates neighbours, ours the two halves.
            order = np.concatenate([order[::2], order[1::2]])
        start = "" if "offsetscale.gamma" in peer else "qk_"
        middle = "offset_scale" if start else "offsetscale"
        output = "to_out.0" if not start else "to_out"
        heads = np.array(scales["heads"])[:, None]
        mapped = {
            "normalization/gamma": peer["norm.weight"],
            "normalization/beta": peer["norm.bias"],
            "hidden/kernel": halves(peer["to_hidden.0.weight"]),
            "hidden/bias": halves(peer["to_hidden.0.bias"]),
            "shared/kernel": peer["to_qk.0.weight"].T[:, order],
            "shared/bias": peer["to_qk.0.bias"][order],
            "query_key_scale": heads * peer[f"{start}{middle}.gamma"][:, order],
            "query_key_offset": heads * peer[f"{start}{middle}.beta"][:, order],
            "output/kernel": scales.get("output", 1.0)
            * peer[f"{output}.weight"].T,
            "output/bias": peer[f"{output}.bias"],
        }
        if "bias" in scales:
            table = peer["rel_pos_bias.relative_attention_bias.weight"]
            mapped["position_bias"] = scales["bias"] * table[:, 0]
        inside = "" if self.kind == "unit" else "inner/"
        return {
            path
            if path.startswith("normalization")
            and self.kind != "separate chunks"
            else inside + path: array
            for path, array in mapped.items()
        }


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
    length = arrays["in/x"].shape[1]
    expansion = arrays["w/to_hidden.0.bias"].shape[0] / (2 * DIM)
    arguments = {"expansion_factor": expansion}
    if "laplace" in name:
        # Divided inside only.
        arguments |= {"attention_activation": "laplace", "divisor": 1}
        scale = 1.0 / length
    else:
        arguments["divisor"] = "length"
        scale = length**-0.5
    scales = {"heads": [KEY_DIM**0.5 * scale, 1.0]}
    table = arrays["w/rel_pos_bias.relative_attention_bias.weight"]
    if table.any():
        arguments["position"] = "t5"
        scales["bias"] = DIM**0.5 * scale
    return Case(
        arrays,
        arguments,
        scales,
        causal="noncausal" not in name and "causal" in name,
        kind="without residual" if name.endswith("nores") else "unit",
    )


def _chunked_case(name, arrays):
    length = arrays["in/x"].shape[1]
    causal = "noncausal" not in name
    arguments = {"chunk_size": CHUNK}
    # In the causal form both terms are divided by the chunk size.
    arguments["divisor"] = CHUNK if causal else "length"
    root = (KEY_DIM / CHUNK) ** 0.5
    scales = {"heads": [root, 1.0, 1.0, 1.0], "bias": (KEY_DIM * CHUNK) ** 0.5}
    if "laplace" in name:
        # Its first term is not divided; the output kernel makes up for that.
        arguments["attention_activation"] = "laplace"
        scales = {
            "heads": [KEY_DIM**0.5 / CHUNK, 1.0 / CHUNK, 1.0, 1.0],
            "bias": KEY_DIM**0.5,
            "output": float(CHUNK),
        }
    if name.endswith("no_reduce"):
        # Chunks of their own, but divided by the length of all.
        scales["heads"][1] = CHUNK / length
    rotary = name.endswith("rope")
    if arrays["w/rel_pos_bias.relative_attention_bias.weight"].any():
        arguments["position"] = ("rope", "t5") if rotary else "t5"
    else:
        del scales["bias"]
    return Case(
        arrays,
        arguments,
        scales,
        causal,
        interleaved=rotary,
        kind="separate chunks" if name.endswith("no_reduce") else "unit",
    )


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
