"""Calls of a layer's own children without what surrounds calls in Keras."""

import keras
from keras import ops

from keras_gating import _keras
from keras_gating._backend import on_torch
from keras_gating.functional.gate import as_dtype
from keras_gating.layers.projection import Projection

# Those of Keras that are called alike with `training` and without.
_OF_KERAS = (
    keras.layers.Conv1D,
    keras.layers.Conv2D,
    keras.layers.Conv3D,
    keras.layers.LayerNormalization,
    keras.layers.RMSNormalization,
)
_OWN = "keras_gating.layers."


def call_child(parent, child, first, *others, **kwargs):
    """Returns `child(first, *others, **kwargs)` for a layer inside of `parent`.

    A call of a layer costs some 0.1 ms beside what it computes, as much as a
    small gate. For most of what happens around it the call of the parent has
    seen to already, so that `call` is used directly where `is_plain` holds.

    Args:
        parent: the layer whose `call` this is in.
        child: a layer that `parent` has built.
        first: a tensor of floating point.
        *others: further tensors. By position: where TensorFlow computes a layer
            again for its gradients, keywords have none.
        **kwargs: further arguments, `training` and `mask` among them if
            `child` needs these: nothing is filled in.
    """
    if is_plain(child, parent):
        # The layer before may have a policy of its own.
        return child.call(
            as_dtype(first, child.compute_dtype), *others, **kwargs
        )
    return child(first, *others, **kwargs)


def call_in_parts(parent, child, inputs):
    """The parts of what a packed projection returns.

    Args:
        parent: the layer whose `call` this is in.
        child: a projection with a kernel `(D, parts, units)`.
        inputs: `(…, D)`.

    Returns:
        A list of tensors `(…, units)`, and whether only the parent has them.
    """
    if is_plain_projection(child, parent):
        inputs = as_dtype(inputs, child.compute_dtype)
        return child.call_in_parts(inputs), True
    outputs = child(inputs)
    return ops.unstack(outputs, outputs.shape[-2], axis=-2), False


def is_plain_projection(child, parent):
    """Whether what a child returns is a new tensor that only the parent has.

    Layers of other classes may return what they were given, or have children
    of their own, of which hooks have seen it.
    """
    return type(child) is Projection and is_plain(child, parent)


def is_plain(child, parent):
    """Whether nothing is asked for that happens around calls of `child`.

    That is: casts, quantization, regularizers of activities,
    rematerialization, the layout of a distribution, hooks of torch, and
    whatever layers of other classes or replaced methods do.
    """
    policy = child.dtype_policy
    kind = type(child)
    return (
        (kind.__module__.startswith(_OWN) or kind in _OF_KERAS)
        and child.built
        and not getattr(child, "needs_whole_call", False)
        # Policies of quantized layers are of subclasses.
        and type(policy) is keras.DTypePolicy
        and policy == parent.dtype_policy
        and child.autocast
        # Where the parent casts no weights, whole calls of its children do.
        and (parent.autocast or policy.compute_dtype == policy.variable_dtype)
        and child.activity_regularizer is None
        and not _keras.is_watched(child)
        and not (
            keras.config.backend() == "torch" and on_torch.has_global_hooks()
        )
        and keras.distribution.distribution() is None
    )
