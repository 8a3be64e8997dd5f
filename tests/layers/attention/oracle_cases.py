"""How the cases of three reference libraries map to `GatedAttention`.

A case is the constructor's arguments, the call's arguments and the layout of
the peer's weights. For peers whose layout the package does not name, it is a
linear map from their weights to ours; because the map is linear, it carries
the peer's gradients to ours as well. Names of our weights are those that
`variables` gives them; `gate` stands for the one kernel of a gate.
"""

import dataclasses
from collections.abc import Callable

import numpy as np

from keras_gating.surgery import copy_weights
from tests.oracles import mapped
from tests.oracles import mapped_gradients
from tests.utils import to_numpy

FILES = ("keras_mha_gate", "hf_gated_attn", "xt_attn")

# Cases that need what `GatedAttention` deliberately leaves out.
EXCEPTIONS = {
    "xt_attn/gate_values_rank3": "a SiLU between the two kernels of the gate",
    "xt_attn/on_attn_glu": "a GLU after a widened output projection",
}


@dataclasses.dataclass
class Case:
    """One case: `weights` is a layout, or maps the peer's arrays to ours."""

    arguments: dict
    weights: str | Callable
    call: Callable
    dtype: str = "float64"
    # (inputs) -> boolean (B, T): the rows on which the two must agree.
    rows: Callable | None = None
    inputs: tuple = ("x", "x")

    def assign(self, layer, peer):
        """Gives our layer the peer's weights."""
        if isinstance(self.weights, str):
            copy_weights(layer, peer, self.weights)
            return
        mapped = self.weights(peer)
        for name, variable in variables(layer).items():
            if name in mapped:
                assert tuple(variable.shape) == mapped[name].shape, name
                variable.assign(mapped[name].astype(variable.dtype))
            else:
                # A bias the peer does not have.
                assert name.endswith("bias"), name
                assert not np.any(to_numpy(variable)), name
        assert set(mapped) <= set(variables(layer))

    def mapped(self, layer, peer):
        """The peer's weights as ours, by name."""
        if not isinstance(self.weights, str):
            return self.weights(peer)
        return _named(layer, mapped(layer, peer, self.weights))

    def gradients(self, layer, gradients, peer):
        """The gradients of the peer's weights as those of ours."""
        if not isinstance(self.weights, str):
            return self.weights(gradients)
        return _named(
            layer, mapped_gradients(layer, gradients, peer, self.weights)
        )


def variables(layer):
    """Our weights by the names of the table."""
    named = {}
    for child in ("query", "key", "value", "output"):
        dense = getattr(layer, f"{child}_dense")
        path = "attention_output" if child == "output" else child
        named[f"{path}/kernel"] = dense.kernel
        if dense.bias is not None:
            named[f"{path}/bias"] = dense.bias
    if getattr(layer, "output_gate", None) is not None:
        named["gate"], *bias = layer.output_gate.weights
        if bias:
            (named["gate_bias"],) = bias
    for side in ("query", "key"):
        scale = [w for w in layer.weights if f"{side}_norm" in w.path]
        if scale:
            (named[f"{side}_scale"],) = scale
    return named


def _named(layer, arrays):
    return {
        name: arrays[variable.path]
        for name, variable in variables(layer).items()
    }


def heads(weight, count):
    """A torch `(count * D, C)` weight as a `(C, count, D)` kernel."""
    return weight.reshape(count, -1, weight.shape[1]).transpose(2, 0, 1)


def output_heads(weight, count):
    """A torch `(E, count * D)` weight as a `(count, D, E)` kernel."""
    return weight.T.reshape(count, -1, weight.shape[0])


def _separate(gate):
    """Separate projections with two key/value heads, gate in `gate`."""

    def weights(w):
        return {
            "query/kernel": heads(w["q_proj.weight"], 4),
            "key/kernel": heads(w["k_proj.weight"], 2),
            "value/kernel": heads(w["v_proj.weight"], 2),
            "gate": heads(w[gate], 4),
            "attention_output/kernel": output_heads(w["o_proj.weight"], 4),
        }

    return weights


def _esmfold(w):
    """`[query | key | value]` packed per head; only two biases."""
    packed = w["proj.weight"].reshape(4, 3, 8, 32).transpose(1, 3, 0, 2)
    return {
        "query/kernel": packed[0],
        "key/kernel": packed[1],
        "value/kernel": packed[2],
        "gate": heads(w["g_proj.weight"], 4),
        "gate_bias": w["g_proj.bias"].reshape(4, 8),
        "attention_output/kernel": output_heads(w["o_proj.weight"], 4),
        "attention_output/bias": w["o_proj.bias"],
    }


def _xt(gate=None, kv_heads=4):
    """x-transformers; `gate` maps its weights to those of our gate.

    It tiles grouped heads (query head h reads h % H_kv), we repeat them
    (h // G), so its query heads are put in our order.
    """
    order = np.arange(4).reshape(-1, kv_heads).T.ravel()

    def weights(w):
        mapped = {
            "query/kernel": heads(w["to_q.weight"], 4)[:, order],
            "key/kernel": heads(w["to_k.weight"], kv_heads),
            "value/kernel": heads(w["to_v.weight"], kv_heads),
            "attention_output/kernel": output_heads(w["to_out.weight"], 4)[
                order
            ],
        }
        if gate is not None:
            for name, array in gate(w).items():
                reorder = array.ndim == 3
                mapped[name] = array[:, order] if reorder else array
        return mapped

    return weights


def _value_gate(w):
    return {"gate": heads(w["to_v_gate.weight"], 4)}


def _head_gate(w):
    return {
        "gate": heads(w["to_v_head_gate.weight"], 4),
        "gate_bias": w["to_v_head_gate.bias"].reshape(4, 1),
    }


def _context_gate(w):
    return {"gate": heads(w["to_output_gate.weight"], 4)}


def _both_gates(w):
    stacked = (_value_gate(w)["gate"], _context_gate(w)["gate"])
    return {"gate": np.concatenate(stacked)}


def _plain(inputs):
    return {}


def _mask(inputs):
    return {"attention_mask": inputs["attention_mask"]}


def _causal(inputs):
    return {"use_causal_mask": True}


def _additive(inputs):
    return {"attention_mask": inputs["additive_mask"] == 0.0}


def _key_mask(inputs):
    return {"attention_mask": inputs["mask"][:, None, :]}


def _keras_case(kv_heads=4, call=_plain, **arguments):
    arguments = {
        "num_heads": 4,
        "key_dim": 8,
        "num_key_value_heads": kv_heads,
        **arguments,
    }
    inputs = ("0", "1")
    return Case(arguments, "keras", call, dtype="float32", inputs=inputs)


def _hf_case(weights, kv_heads, call=_plain, case=None, **arguments):
    arguments = {
        "num_heads": 4,
        "key_dim": 8,
        "num_key_value_heads": kv_heads,
        "use_bias": False,
        **arguments,
    }
    return Case(arguments, weights, call, **(case or {}))


def _xt_case(weights, call=_plain, case=None, **arguments):
    arguments = {"num_heads": 4, "key_dim": 4, "use_bias": False, **arguments}
    return Case(arguments, weights, call, **(case or {}))


CASES = {
    "keras_mha_gate/mha_self": _keras_case(),
    "keras_mha_gate/mha_self_nobias": _keras_case(use_bias=False),
    "keras_mha_gate/mha_cross_valuedim_mask": _keras_case(
        call=_mask, value_dim=6, output_shape=10
    ),
    "keras_mha_gate/mha_cross_mask": _keras_case(call=_mask, output_shape=10),
    "keras_mha_gate/mha_causal": _keras_case(call=_causal),
    "keras_mha_gate/mha_ungated": _keras_case(use_gate=False),
    "keras_mha_gate/gqa_self": _keras_case(kv_heads=2),
    "hf_gated_attn/qwen_mha_noncausal": _hf_case("qwen3_next", 4),
    "hf_gated_attn/qwen_mha_causal": _hf_case("qwen3_next", 4, _causal),
    "hf_gated_attn/qwen_mha_bias_noncausal": _hf_case(
        "qwen3_next", 4, use_bias=True
    ),
    "hf_gated_attn/qwen_gqa2_noncausal": _hf_case("qwen3_next", 2),
    "hf_gated_attn/qwen_gqa2_causal": _hf_case("qwen3_next", 2, _causal),
    "hf_gated_attn/qwen_mqa1_padmask": _hf_case("qwen3_next", 1, _additive),
    # Two of eight features are rotated: one pair, which turns by one radian a
    # position whatever the wavelength, so the stored cosines leave it open.
    "hf_gated_attn/qwen_gqa2_full_qknorm_rope_causal": _hf_case(
        "qwen3_next",
        2,
        _causal,
        {"dtype": "float32"},
        query_key_normalization="rms",
        normalization_epsilon=1e-6,
        rope_max_wavelength=10000.0,
        rope_fraction=0.25,
    ),
    "hf_gated_attn/step3p7_headwise_gqa2": _hf_case(
        _separate("g_proj.weight"), 2, gate_granularity="headwise"
    ),
    "hf_gated_attn/afmoe_elementwise_gqa2": _hf_case(
        _separate("gate_proj.weight"), 2
    ),
    "hf_gated_attn/laguna_softplus_per-head": _hf_case(
        _separate("g_proj.weight"),
        2,
        case={"dtype": "float32"},
        gate_granularity="headwise",
        gate_activation="softplus",
    ),
    "hf_gated_attn/laguna_softplus_per-element": _hf_case(
        _separate("g_proj.weight"),
        2,
        case={"dtype": "float32"},
        gate_activation="softplus",
    ),
    # The peer has a bias in the gate and the output only; ours are then zero.
    "hf_gated_attn/esmfold_gated_mask": _hf_case(
        _esmfold, 4, _key_mask, use_bias=True
    ),
    "xt_attn/plain": _xt_case(_xt(), use_gate=False),
    "xt_attn/gate_value_heads": _xt_case(
        _xt(_head_gate), gate_granularity="headwise", gate_use_bias=True
    ),
    "xt_attn/gate_values": _xt_case(_xt(_value_gate)),
    "xt_attn/gate_values_causal": _xt_case(_xt(_value_gate), _causal),
    # The peer sets the output rows of padded queries to zero; ours stay.
    "xt_attn/gate_values_mask": _xt_case(
        _xt(_value_gate), _key_mask, {"rows": lambda inputs: inputs["mask"]}
    ),
    "xt_attn/gate_values_gqa2": _xt_case(
        _xt(_value_gate, kv_heads=2), num_key_value_heads=2
    ),
    "xt_attn/gate_values_headwise": _xt_case(
        _xt(_value_gate), gate_granularity="headwise"
    ),
    "xt_attn/swiglu_values": _xt_case(_xt(_value_gate), gate_activation="silu"),
    "xt_attn/output_gate": _xt_case(_xt(_context_gate), gate_source="context"),
    "xt_attn/hyga_both": _xt_case(
        _xt(_both_gates), gate_source="query_context"
    ),
}
