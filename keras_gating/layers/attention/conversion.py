"""From the attention layers of Keras to `GatedAttention`."""

import keras

_NAMES = {
    "head_dim": "key_dim",
    "num_query_heads": "num_heads",
}
# What the gate of Keras is in our terms.
_COPIED_GATE = {
    "gate_site": "output",
    "gate_granularity": "elementwise",
    "gate_source": "query",
    "gate_activation": "sigmoid",
    "gate_scale": 1.0,
    "gate_rank": None,
    "gate_use_bias": None,
    "use_gate": True,
}


def from_keras(cls, layer, gate_arguments):
    """See `GatedAttention.from_keras`."""
    _check_source(layer)
    config = _translated(layer)
    own = set(cls.from_config(config).get_config()) - set(config)
    unknown = set(gate_arguments) - own - {"use_gate", "masked_rows"}
    if unknown:
        raise ValueError(
            "`from_keras` takes the keyword-only arguments of "
            f"{cls.__name__} and `use_gate`; the others come from the layer. "
            f"Received: {', '.join(sorted(unknown))}"
        )
    if config["use_gate"]:
        _check_same_gate(gate_arguments)
    else:
        config["use_gate"] = True
        if "gate_scale" not in gate_arguments and _is_half_open(gate_arguments):
            config["gate_scale"] = 2.0
    copy = cls.from_config({**config, **gate_arguments})
    if layer.built:
        copy.build_from_config(layer.get_build_config())
        _copy_weights(layer, copy)
    return copy


def _check_source(layer):
    kinds = (keras.layers.MultiHeadAttention, keras.layers.GroupQueryAttention)
    kind = next((kind for kind in kinds if isinstance(layer, kind)), None)
    if kind is None:
        raise ValueError(
            "`from_keras` takes a keras.layers.MultiHeadAttention or "
            f"GroupQueryAttention. Received: {type(layer).__name__}"
        )
    for name in ("call", "_compute_attention", "build"):
        if getattr(type(layer), name) is not getattr(kind, name):
            raise ValueError(
                f"{type(layer).__name__} overrides `{name}` of "
                f"{kind.__name__}, so a copy of its weights would compute "
                f"something else. Received: layer {layer.name!r}"
            )
    if layer.quantization_mode is not None or any(
        sublayer.quantization_mode is not None
        for sublayer in layer._flatten_layers()
    ):
        raise ValueError(
            "`from_keras` copies kernels in floating point. Received: the "
            f"quantized layer {layer.name!r}"
        )


def _translated(layer):
    config = {
        _NAMES.get(name, name): value
        for name, value in layer.get_config().items()
    }
    # The releases of Keras differ in what they have and in what they save.
    config["use_gate"] = config.get("use_gate", False)
    config["flash_attention"] = getattr(layer, "_flash_attention", None)
    axes = config.get("attention_axes")
    sequences_only = axes is None or len(axes) == 1
    if layer.built:
        shape = layer.get_build_config()["shapes_dict"]["query_shape"]
        sequences_only = len(shape) == 3
    # What Keras gives a fully masked row depends on the path it takes.
    fused = config["dropout"] == 0.0 and sequences_only
    config["masked_rows"] = "uniform" if fused else "zero"
    config.setdefault("num_key_value_heads", None)
    return config


def _check_same_gate(gate_arguments):
    for name, copied in _COPIED_GATE.items():
        if gate_arguments.get(name, copied) != copied:
            raise ValueError(
                "The layer has a gate, elementwise on its output, which is "
                f"copied with `{name}={copied!r}`. Received: "
                f"{name}={gate_arguments[name]!r}"
            )


def _is_half_open(gate_arguments):
    """Whether a gate with these arguments starts at ½."""
    zeros = (None, "zeros")
    return (
        gate_arguments.get("gate_activation", "sigmoid") == "sigmoid"
        and gate_arguments.get("gate_source") != "split"
        and gate_arguments.get("gate_initializer") in zeros
        and gate_arguments.get("gate_bias_initializer") in zeros
    )


def _copy_weights(layer, copy):
    targets = {_role(weight, copy): weight for weight in copy.weights}
    for weight in layer.weights:
        role = _role(weight, layer)
        target = targets.get(role)
        if target is None or target.shape != weight.shape:
            raise ValueError(
                f"The weight {weight.path!r} with shape {weight.shape} has no "
                "place in the copy. Received: gate arguments that change the "
                "projections, or a layer with weights of its own (LoRA "
                "weights are merged by saving and loading them)"
            )
        target.assign(weight)


def _role(weight, layer):
    """The part of the path below the layer, alike in both layers."""
    path = weight.path.split("/")
    role = "/".join(path[path.index(layer.name) + 1 :])
    return role.replace("gate/projection/", "gate/")
