import inspect

import keras

from keras_gating import _backend
from keras_gating import _keras
from keras_gating.functional import checks
from keras_gating.layers import Gate
from keras_gating.layers import GatedAttention
from keras_gating.layers.attention import conversion
from keras_gating.surgery import subclasses
from keras_gating.surgery.copying import ModelCopy
from keras_gating.surgery.copying import check_model
from keras_gating.surgery.freezing import freeze_all_but_gates
from keras_gating.surgery.identity import identity_scale
from keras_gating.surgery.inside import WithGatedAttention
from keras_gating.surgery.inside import places_of
from keras_gating.surgery.selection import selected

# Arguments of GatedAttention that are more than a gate.
_CHANGING = (
    "context_normalization",
    "query_key_normalization",
    "rope_max_wavelength",
)
# How far from 1 a gate may start: float precision.
_TOLERANCE = 1e-6


def gate_attention(
    model, select=None, freeze=False, compatible=(), **gate_arguments
):
    """A copy of a model whose attention has gates and computes the same.

    Every `keras.layers.MultiHeadAttention` and
    `keras.layers.GroupQueryAttention` becomes a `GatedAttention` with the same
    weights whose gate multiplies by 1 until it is trained. Keras'
    masks have the effect that they have in the original, in padded and fully
    masked rows too. Names, weights, dtype policies, `trainable` flags and
    sharing of layers are kept; attention that has Keras' gate keeps that. The
    result is a functional or sequential model, and not compiled.

    Attention may stand in the model, in models inside of it, and in attributes
    of other layers, such as blocks of a transformer. Such a block is wrapped,
    so that the model with its gates can be saved and loaded.

    Args:
        model: a functional or sequential model. It stays as it is.
        select: which attention layers: a function of a layer that returns a
            bool, or names or paths of layers. Defaults to `None`, all.
        freeze: whether only gates are to train, see `freeze_all_but_gates`.
        compatible: further subclasses, or names under which they are
            registered, that override methods and yet compute what their base
            class does as long as they get no cache. They are compared with
            their copies on random numbers. keras_hub's
            `CachedMultiHeadAttention` is known.
        **gate_arguments: arguments of `GatedAttention` for the gates.
            `gate_scale` defaults to the factor that makes the gate the
            identity at zero logits. With `gate_scale=1.0` and a constant
            `gate_bias_initializer` of 16 or more the gate starts open.

    Returns:
        A `keras.Model`, or a `keras.Sequential` if `model` is one.

    Raises:
        ValueError: where there is no attention, or attention of a class that
            computes something else; for layers that cannot be copied from
            their configuration; and for arguments under which the copy would
            not compute the same.

    Example:

    >>> import keras, numpy as np
    >>> from keras_gating import surgery
    >>> x = keras.Input((None, 8))
    >>> y = keras.layers.MultiHeadAttention(2, 4, name="attention")(x, x)
    >>> model = keras.Model(x, y)
    >>> gated = surgery.gate_attention(model)
    >>> data = np.random.default_rng(0).normal(size=(2, 5, 8))
    >>> before, after = model.predict(data, verbose=0), gated.predict(
    ...     data, verbose=0
    ... )
    >>> bool(np.allclose(before, after, atol=1e-5))
    True
    >>> gated.get_layer("attention").output_gate.name
    'gate'

    References:
        Qiu et al. 2025, Gated Attention for Large Language Models,
        arXiv 2505.06708.
    """
    checks.boolean("freeze", freeze)
    check_model(model)
    _check_arguments(gate_arguments)
    surgeon = _Surgeon(model, select, compatible, gate_arguments)
    copy = ModelCopy(surgeon.convert)(model)
    if freeze:
        freeze_all_but_gates(copy)
    return copy


class _Surgeon:
    """Knows which layers are to be gated, and how."""

    def __init__(self, model, select, compatible, gate_arguments):
        compatible = _as_classes(compatible)
        self._arguments = gate_arguments
        layers = _keras.sublayers(model, include_self=False)
        attention = [x for x in layers if conversion.kind_of(x) is not None]
        if not attention:
            raise ValueError(_none_found(model, layers))
        wanted = selected("select", select, attention)
        problems = [
            f"{layer.path or layer.name} ({type(layer).__name__}: {reason})"
            for layer in wanted
            if (reason := subclasses.problem(layer, compatible)) is not None
        ]
        if problems:
            raise ValueError(
                "These layers may compute something else than their base class "
                "does; leave them out by `select`, or name the classes in "
                "`compatible` if they do not. Received: " + ", ".join(problems)
            )
        unbuilt = [layer.name for layer in wanted if not layer.built]
        if unbuilt:
            raise ValueError(
                "Attention has no weights to keep before the model is called: "
                f"call it on data first. Received: {', '.join(unbuilt)}, not "
                "built"
            )
        # The layers are kept, so that their ids stay their own.
        self._wanted = {id(layer): layer for layer in wanted}

    def convert(self, layer, model_copy):
        """What stands in the place of a layer; `None` for a plain copy."""
        if id(layer) in self._wanted:
            return self._gated(layer)
        if _keras.is_graph(layer) or not self._holds(layer):
            return None
        return self._with_gates_inside(layer, model_copy)

    def _holds(self, layer):
        return isinstance(layer, keras.layers.Layer) and any(
            id(x) in self._wanted
            for x in _keras.sublayers(layer, include_self=False)
        )

    def _gated(self, layer):
        arguments = dict(self._arguments)
        has_gate = _keras.argument(layer, "use_gate")
        if not has_gate:
            arguments = {**_identity(arguments), **arguments}
        new = subclasses.gated(layer, arguments)
        if not has_gate:
            for part in _keras.sublayers(new):
                if isinstance(part, Gate):
                    _check_identity(part)
        return new

    def _with_gates_inside(self, layer, model_copy):
        copy = model_copy.plain(layer, built_by=_keras.first_call(layer))
        twins = zip(_keras.sublayers(layer), _keras.sublayers(copy))
        sought = {id(twin): twin for x, twin in twins if id(x) in self._wanted}
        self._wanted |= sought

        def is_sought(x):
            return id(x) in sought or _keras.is_graph(x) and self._holds(x)

        replacements = []
        for old, places in places_of(copy, is_sought):
            replace = self._gated if id(old) in sought else self._copy_of_graph
            replacements.append({"places": places, "layer": replace(old)})
        new = WithGatedAttention(copy, replacements)
        left = [x.path for x in _keras.sublayers(new) if id(x) in sought]
        if left:
            raise ValueError(
                "Attention must stand in attributes of the layer that holds "
                "it, or in lists, tuples and dictionaries there. Received: "
                f"layer {layer.name!r} ({type(layer).__name__}), where "
                f"{', '.join(left)} cannot be replaced"
            )
        return new

    def _copy_of_graph(self, model):
        return ModelCopy(self.convert)(model)


def _as_classes(compatible):
    classes = compatible
    if isinstance(compatible, str) or inspect.isclass(compatible):
        classes = (compatible,)
    is_list = isinstance(classes, (list, tuple, set, frozenset))
    if not is_list or not all(
        isinstance(x, str) or inspect.isclass(x) for x in classes
    ):
        raise ValueError(
            "`compatible` must be classes of attention layers, or names under "
            f"which they are registered. Received: compatible={compatible!r}"
        )
    return tuple(classes)


def _check_arguments(gate_arguments):
    # Before anything is copied.
    conversion.check_names(GatedAttention, gate_arguments)
    GatedAttention(num_heads=1, key_dim=2, **gate_arguments)
    given = [name for name in _CHANGING if gate_arguments.get(name) is not None]
    given += [
        name
        for name, value in (("use_gate", False), ("gate_source", "split"))
        if gate_arguments.get(name) == value
    ]
    if given:
        received = ", ".join(f"{x}={gate_arguments[x]!r}" for x in given)
        raise ValueError(
            "A trained model keeps its function when gates are added, and "
            f"nothing else. Received: {received}"
        )


def _identity(gate_arguments):
    """The scale that gates of zero logits need."""
    bias = keras.initializers.get(
        gate_arguments.get("gate_bias_initializer", "zeros")
    )
    if not isinstance(bias, keras.initializers.Zeros):
        return {}
    activation = gate_arguments.get("gate_activation", "sigmoid")
    scale = gate_arguments.get("gate_scale")
    return {
        "gate_scale": identity_scale(activation) if scale is None else scale
    }


def _check_identity(gate):
    """Raises unless a new gate multiplies by 1."""
    kernel, bias = 0.0, 0.0
    if gate.source == "constant":
        bias = gate.bias
    else:
        kernel = _largest(gate.projection.kernel)
        if gate.projection.bias is not None:
            bias = gate.projection.bias
    logits = keras.ops.cast(keras.ops.convert_to_tensor(bias), "float32")
    start = gate.scale * gate.activation(logits)
    if kernel > 0.0 or _largest(start - 1.0) > _TOLERANCE:
        low, high = keras.ops.min(start), keras.ops.max(start)
        raise ValueError(
            "Gates must start as the identity, so the last kernel at zero and "
            "`gate_scale · gate_activation(bias)` at 1. Received: a largest "
            f"kernel entry of {kernel:g}, and a factor between "
            f"{float(_backend.concrete(low)):g} and "
            f"{float(_backend.concrete(high)):g}"
        )


def _largest(x):
    x = keras.ops.cast(keras.ops.convert_to_tensor(x), "float32")
    largest = keras.ops.max(keras.ops.abs(x))
    return float(_backend.concrete(largest))


def _none_found(model, layers):
    alike = sorted(
        {type(x).__name__ for x in layers if "ttention" in type(x).__name__}
    )
    hint = f", with layers of the classes {', '.join(alike)}" if alike else ""
    return (
        "There is no keras.layers.MultiHeadAttention or GroupQueryAttention "
        f"to gate. Received: {model.name!r} ({type(model).__name__}){hint}"
    )
