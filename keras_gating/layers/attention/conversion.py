"""From the attention layers of Keras to `GatedAttention`."""

import inspect

import keras

from keras_gating import _keras
from keras_gating.layers.attention.arguments import as_sites

_NAMES = {
    "head_dim": "key_dim",
    "num_query_heads": "num_heads",
}
_KINDS = (keras.layers.MultiHeadAttention, keras.layers.GroupQueryAttention)
# What a subclass may override and still compute the same.
_HARMLESS = {"__init__", "get_config", "from_config"}
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


def from_keras(cls, layer, gate_arguments, may_override=False):
    """See `GatedAttention.from_keras`.

    `may_override` takes subclasses that override methods as well, for callers
    that know or find out what these compute.
    """
    check_source(layer, may_override)
    config = _translated(layer)
    check_names(cls, gate_arguments, config)
    is_gated = config["use_gate"]
    if is_gated:
        _check_same_gate(gate_arguments, layer.built)
    else:
        config["use_gate"] = True
        if "gate_scale" not in gate_arguments and _is_half_open(gate_arguments):
            config["gate_scale"] = 2.0
    copy = cls.from_config({**config, **gate_arguments})
    if layer.built:
        # Weights keep their paths.
        _keras.set_parent_path(copy, _keras.parent_path(layer))
        copy.build_from_config(layer.get_build_config())
        _copy_weights(layer, copy, is_gated)
    return copy


def check_names(cls, gate_arguments, config=()):
    """Raises unless all arguments are those of gates, not of the source.

    Args:
        cls: `GatedAttention`.
        gate_arguments: what came, by name.
        config: what the source says of its own.
    """
    parameters = inspect.signature(cls).parameters.values()
    own = {x.name for x in parameters if x.kind is x.KEYWORD_ONLY}
    own = own - set(config) | {"use_gate", "masked_rows"}
    unknown = set(gate_arguments) - own
    if unknown:
        raise ValueError(
            "The arguments of gates are the keyword-only arguments of "
            f"{cls.__name__} and `use_gate`; the others come from the layer. "
            f"Received: {', '.join(sorted(unknown))}"
        )


def kind_of(layer):
    """The class of Keras that a layer is an instance of, or `None`."""
    return next((kind for kind in _KINDS if isinstance(layer, kind)), None)


def overrides(layer):
    """What a subclass changes, as a pair (class, name of the method)."""
    kind = kind_of(layer)
    for owner in type(layer).__mro__:
        if owner is kind:
            return None
        for name, value in vars(owner).items():
            is_method = callable(value) and hasattr(kind, name)
            if is_method and name not in _HARMLESS:
                return owner, name
    return None


def check_source(layer, may_override=False):
    """Raises unless `layer` is attention of Keras as Keras computes it."""
    kind = kind_of(layer)
    if kind is None:
        raise ValueError(
            "The source must be a keras.layers.MultiHeadAttention or "
            f"GroupQueryAttention. Received: {type(layer).__name__}"
        )
    changed = overrides(layer)
    if changed is not None and not may_override:
        owner, name = changed
        raise ValueError(
            f"{owner.__name__} overrides `{name}` of {kind.__name__}, so a "
            "copy of its weights would compute something else. Received: "
            f"layer {layer.name!r}"
        )
    if layer.quantization_mode is not None or any(
        sublayer.quantization_mode is not None
        for sublayer in _keras.sublayers(layer)
    ):
        raise ValueError(
            "Kernels are copied in floating point. Received: the quantized "
            f"layer {layer.name!r}"
        )


def _translated(layer):
    config = {
        _NAMES.get(name, name): value
        for name, value in kind_of(layer).get_config(layer).items()
    }
    # The releases of Keras differ in what they have and in what they save.
    config["use_gate"] = config.get("use_gate", False)
    config["flash_attention"] = _keras.argument(layer, "flash_attention")
    axes = config.get("attention_axes")
    sequences_only = axes is None or len(axes) == 1
    if layer.built:
        shape = layer.get_build_config()["shapes_dict"]["query_shape"]
        sequences_only = len(shape) == 3
    if isinstance(layer.dtype_policy, keras.dtype_policies.DTypePolicyMap):
        config["dtype"] = _with_projection_of_gate(layer.dtype_policy)
    # What Keras gives a fully masked row depends on the path it takes.
    fused = config["dropout"] == 0.0 and sequences_only
    config["masked_rows"] = "uniform" if fused else "zero"
    config.setdefault("num_key_value_heads", None)
    return config


def _with_projection_of_gate(policies):
    """What a map says of the gate of Keras, said of the kernel of ours."""
    policies = type(policies).from_config(policies.get_config())
    for path, policy in list(policies.items()):
        projection = f"{path}/projection"
        if path.endswith("gate") and projection not in policies:
            policies[projection] = policy
    return policies


def _check_same_gate(gate_arguments, has_weights):
    copied_gate = dict(_COPIED_GATE)
    if has_weights:
        copied_gate |= {"gate_initializer": None}
    given = dict(gate_arguments)
    if "gate_site" in given and as_sites(given["gate_site"]) == ("output",):
        given["gate_site"] = "output"
    if _is_sigmoid(given.get("gate_activation", "sigmoid")):
        given["gate_activation"] = "sigmoid"
    for name, copied in copied_gate.items():
        if given.get(name, copied) != copied:
            raise ValueError(
                "The layer has a gate, elementwise on its output, which is "
                f"copied with `{name}={copied!r}`. Received: "
                f"{name}={gate_arguments[name]!r}"
            )


def _is_half_open(gate_arguments):
    """Whether a gate with these arguments starts at ½."""
    # Without a name the kernel starts at zero, but the bias as Keras chooses.
    starts = (
        keras.initializers.get(
            gate_arguments.get("gate_initializer") or "zeros"
        ),
        keras.initializers.get(
            gate_arguments.get("gate_bias_initializer", "zeros")
        ),
    )
    return (
        _is_sigmoid(gate_arguments.get("gate_activation", "sigmoid"))
        and gate_arguments.get("gate_source") != "split"
        and all(isinstance(s, keras.initializers.Zeros) for s in starts)
    )


def _is_sigmoid(activation):
    return keras.activations.get(activation) is keras.activations.sigmoid


def _copy_weights(layer, copy, is_gated):
    children = [copy.query_dense, copy.key_dense]
    children += [copy.output_gate] if is_gated else []
    children += [copy.value_dense, copy.output_dense]
    sources = layer.weights
    targets = [weight for child in children for weight in child.weights]
    if [w.shape for w in sources] != [w.shape for w in targets]:
        raise ValueError(
            "The weights do not fit the copy. Received: gate arguments that "
            "change the projections, or a layer with weights of its own (LoRA "
            "weights are merged by saving and loading them). Shapes: "
            f"{[w.shape for w in sources]} of {layer.name!r} and "
            f"{[w.shape for w in targets]} of its copy"
        )
    for source, target in zip(sources, targets):
        # A copy, since training on JAX gives its buffers away.
        target.assign(keras.ops.copy(source))
    _copy_flags(layer, copy)


def _copy_flags(layer, copy):
    """Parts that were frozen by themselves stay so."""
    parts = {part.name: part for part in _keras.sublayers(layer, False)}
    for part in _keras.children(copy):
        if part.name in parts:
            # The flag of a layer is passed on, so those of weights come last.
            part.trainable = parts[part.name].trainable
            for source, target in zip(parts[part.name].weights, part.weights):
                target.trainable = source.trainable
