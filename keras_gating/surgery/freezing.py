from keras_gating import _keras
from keras_gating.layers.gate_kinds import has_gate
from keras_gating.layers.gate_kinds import is_gate
from keras_gating.layers.trainable_flags import set_trainable


def freeze_all_but_gates(model):
    """Makes the gates of a model the only part of it that trains.

    Gates are `Gate` layers, which are those of `GatedAttention` too, and the
    gates on feature maps (`SqueezeExcite`, `ECA`, `ChannelGate`,
    `SpatialGate`, `CBAM`). Frozen batch normalization uses its moving
    statistics, as always in Keras.

    Call this before `compile`. Keras saves the flags of layers, but not those
    of single weights: call it again on a loaded model that has layers with both
    gates and other weights of their own.

    Args:
        model: a model or layer with gates; changed in place.

    Raises:
        ValueError: if there are no gates, for layers with gates that are not
            built, and if no gate has weights of its own, as in the GLU family,
            where gate and value are halves of one kernel.

    Example:

    >>> import keras
    >>> from keras_gating import layers, surgery
    >>> model = keras.Sequential(
    ...     [keras.Input((4, 8)), keras.layers.Dense(8), layers.ECA()]
    ... )
    >>> surgery.freeze_all_but_gates(model)
    >>> len(model.weights), len(model.trainable_weights)
    (3, 1)
    """
    layers = _keras.sublayers(model)
    unbuilt = [
        x.name for x in layers if not x.built and (has_gate(x) or x is model)
    ]
    if unbuilt:
        raise ValueError(
            "The gates of a layer are made when it is built: build the model, "
            f"or call it once, before. Received: {', '.join(unbuilt)}, not "
            "built"
        )
    if not _has_gates(model):
        received = f"{model.name!r} ({type(model).__name__})"
        if any(map(has_gate, layers)):
            raise ValueError(
                "No gate of the model has weights of its own that could be "
                "trained without the value: those of the GLU family and of "
                "`GatedAttentionUnit` are halves of a kernel, and "
                '`gate_source="split"` has none. Received: '
                f"{received}"
            )
        raise ValueError(
            "There is nothing to train: the model has no gates. Received: "
            f"{received}"
        )
    _freeze(model)


def _has_gates(layer):
    return any(map(is_gate, _keras.sublayers(layer)))


def _freeze(layer):
    set_trainable(layer, True)
    if is_gate(layer):
        return
    if not _has_gates(layer):
        layer.trainable = False
        return
    children = _keras.children(layer)
    inner = {id(v) for child in children for v in child.variables}
    for variable in layer.trainable_variables:
        if id(variable) not in inner:
            variable.trainable = False
    for child in children:
        _freeze(child)
