"""Layouts of attention layers."""

from keras_gating.surgery.weights_rules import Plan
from keras_gating.surgery.weights_rules import Rule
from keras_gating.surgery.weights_rules import from_heads
from keras_gating.surgery.weights_rules import projection
from keras_gating.surgery.weights_rules import same
from keras_gating.surgery.weights_rules import to_heads


def keras_attention(layer):
    """`MultiHeadAttention` and `GroupQueryAttention`, in their order."""
    _check_gates(layer, needs_gate=False)
    children = [("query", layer.query_dense), ("key", layer.key_dense)]
    if layer.output_gate is not None:
        children.append(("gate", layer.output_gate.projection))
    children += [
        ("value", layer.value_dense),
        ("attention_output", layer.output_dense),
    ]
    rules = []
    for name, dense in children:
        rules.append(same(dense.kernel, f"{name}/kernel"))
        if dense.bias is not None:
            rules.append(same(dense.bias, f"{name}/bias"))
    return Plan(rules)


def qwen3_next(layer):
    """The attention of Qwen3-Next: `[query | gate]` per head in `q_proj`."""
    _check_gates(layer, needs_gate=True)
    query, gate = layer.query_dense, layer.output_gate.projection
    rules = _packed(query.kernel, gate.kernel, "q_proj.weight")
    if query.bias is not None and gate.bias is not None:
        rules += _packed(query.bias, gate.bias, "q_proj.bias")
    for name, dense, kernel in (
        ("k_proj", layer.key_dense, to_heads),
        ("v_proj", layer.value_dense, to_heads),
        ("o_proj", layer.output_dense, from_heads),
    ):
        bias = to_heads if kernel is to_heads else same
        rules += projection(dense, name, kernel, bias)
    if layer.query_key_normalization is not None:
        for name, child in (
            ("q_norm", layer.query_norm),
            ("k_norm", layer.key_norm),
        ):
            rules.append(
                Rule(
                    child.scale,
                    {f"{name}.weight": tuple(child.scale.shape)},
                    # What is stored is the difference from one.
                    lambda array: array + 1.0,
                )
            )
    return Plan(rules, {"rotary_emb.inv_freq": None})


def _check_gates(layer, needs_gate):
    """Raises unless the gate is where the peers have theirs."""
    gates = layer.gates()
    is_split = layer.use_gate and layer.gate_source == "split"
    if set(gates) - {"output"} or is_split or (needs_gate and not gates):
        found = "split" if is_split else tuple(gates) or "none"
        raise ValueError(
            "The layout has one gate, on the attention output"
            f"{'' if needs_gate else ', or none'}. Received: layer "
            f"{layer.name!r} with gates: {found}"
        )
    if gates and (
        layer.gate_source != "query"
        or layer.gate_granularity != "elementwise"
        or layer.gate_rank is not None
    ):
        raise ValueError(
            "The layout has an elementwise gate of one kernel that reads the "
            f"query. Received: layer {layer.name!r} with "
            f"gate_source={layer.gate_source!r}, "
            f"gate_granularity={layer.gate_granularity!r}, "
            f"gate_rank={layer.gate_rank!r}"
        )


def _packed(query, gate, name):
    """Both parts of `(heads · (key_dim + value_dim), in)`, or of a bias."""
    *width, count, size = query.shape
    total = size + gate.shape[-1]
    shape = (count * total, *width)

    def part(features):
        return lambda array: array.T.reshape(*width, count, total)[
            ..., features
        ]

    return [
        Rule(query, {name: shape}, part(slice(size))),
        Rule(gate, {name: shape}, part(slice(size, None))),
    ]
