"""Subclasses of Keras' attention: which can be gated, and by which class."""

import inspect

import keras
import numpy as np

from keras_gating.layers.attention import conversion
from keras_gating.surgery.keras_masks import ExplicitMaskAttention
from keras_gating.surgery.keras_masks import KerasMaskAttention
from keras_gating.surgery.keras_masks import KerasRowsAttention

_MASKS = ("query_mask", "value_mask", "key_mask")
# Classes that compute what `MultiHeadAttention` does when there is no cache,
# by the names under which they are registered.
_KNOWN = ("keras_hub>CachedMultiHeadAttention",)


def problem(layer, compatible):
    """Why an attention layer cannot be gated, or `None`."""
    changed = conversion.overrides(layer)
    if changed is None or _is_listed(layer, (*_KNOWN, *compatible)):
        return None
    owner, name = changed
    kind = conversion.kind_of(layer).__name__
    return f"{owner.__name__} overrides `{name}` of {kind}"


def gated(layer, gate_arguments):
    """A `GatedAttention` in the place of `layer`, its masks as they were."""
    cls = _class_for(layer)
    copy = conversion.from_keras(cls, layer, gate_arguments, may_override=True)
    if conversion.overrides(layer) is not None:
        _compare(layer, copy)
    return copy


def _is_listed(layer, listed):
    return any(
        isinstance(layer, entry)
        if inspect.isclass(entry)
        else entry == keras.saving.get_registered_name(type(layer))
        for entry in listed
    )


def _class_for(layer):
    parameters = inspect.signature(layer.call).parameters
    masks = [name for name in _MASKS if name in parameters]
    if not masks:
        return ExplicitMaskAttention
    if len(masks) < len(_MASKS):
        raise ValueError(
            "The `call` of a compatible subclass takes the masks of query, "
            "value and key, or none of them. Received: layer "
            f"{layer.name!r} ({type(layer).__name__}), which takes "
            f"{', '.join(masks)}"
        )
    if conversion.kind_of(layer) is keras.layers.MultiHeadAttention:
        return KerasMaskAttention
    return KerasRowsAttention


def _compare(layer, copy):
    """Raises unless layer and copy agree on numbers drawn at random."""
    shapes = layer.get_build_config()["shapes_dict"]
    query, value = (
        [size or known for size, known in zip(shapes[name], (2, length, 4, 4))]
        for name, length in (("query_shape", 4), ("value_shape", 5))
    )
    key = list(value)
    if shapes.get("key_shape") is not None:
        key[-1] = shapes["key_shape"][-1]
    rng = np.random.default_rng(0)
    inputs = [
        keras.ops.convert_to_tensor(rng.normal(size=shape), "float32")
        for shape in (query, value, key)
    ]
    mask = rng.random((query[0], query[1], value[1])) < 0.7
    mask[0, 0] = False
    expected, actual = (
        keras.ops.convert_to_numpy(
            keras.ops.cast(attention(*inputs, attention_mask=mask), "float32")
        )
        for attention in (layer, copy)
    )
    scale = max(1.0, float(np.max(np.abs(expected))))
    precision = {"float16": 1e-2, "bfloat16": 1e-1}
    limit = precision.get(layer.compute_dtype, 1e-5) * scale
    difference = float(np.max(np.abs(expected - actual)))
    if not difference <= limit:
        raise ValueError(
            f"{type(layer).__name__} does not compute what "
            f"{conversion.kind_of(layer).__name__} computes from the same "
            f"weights: outputs differ by {difference:.1e}. Received: layer "
            f"{layer.name!r} of a class said to be compatible"
        )
