import keras

from keras_gating.layers import CBAM
from keras_gating.layers import Gate
from keras_gating.layers.channel.base import FeatureMapGate
from keras_gating.layers.trainable_flags import set_trainable

_GATES = (Gate, FeatureMapGate, CBAM)


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
        ValueError: if there are no gates.

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
    if not _has_gates(model):
        raise ValueError(
            "There is nothing to train: the model has no gates. Received: "
            f"{model.name!r} ({type(model).__name__})"
        )
    _freeze(model)


def _has_gates(layer):
    return any(isinstance(x, _GATES) for x in layer._flatten_layers())


def _freeze(layer):
    set_trainable(layer, True)
    if isinstance(layer, _GATES):
        return
    if not _has_gates(layer):
        layer.trainable = False
        return
    children: list[keras.layers.Layer] = layer._flatten_layers(
        include_self=False, recursive=False
    )
    inner = {id(v) for child in children for v in child.variables}
    for variable in layer.trainable_variables:
        if id(variable) not in inner:
            variable.trainable = False
    for child in children:
        _freeze(child)
