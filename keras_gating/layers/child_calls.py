"""Calls of a layer's own children without what surrounds calls in Keras."""

import keras
from keras import ops

from keras_gating import _keras
from keras_gating.layers.projection import Projection

# Packages whose layers do nothing of their own around calls.
_KNOWN = ("keras", "keras_gating")


def call_child(parent, child, *inputs, **kwargs):
    """Returns `child(*inputs, **kwargs)` for a layer that `parent` has made.

    A call of a layer costs some 0.1 ms beside what it computes, as much as a
    small gate. Conversions, name scopes and checks do nothing new for a child
    whose parent has been through them, so that its `call` is used directly,
    unless something is asked for that happens around it: quantization, a
    policy of its own, a regularizer of activities, rematerialization, the
    layout of a distribution or hooks of torch.

    Args:
        parent: the layer whose `call` this is in.
        child: a layer that `parent` has built.
        *inputs: tensors, by position: where TensorFlow computes a layer again
            for its gradients, keywords have none. The first is in the compute
            dtype of the parent.
        **kwargs: further arguments, `training` and `mask` among them if
            `child` takes these: nothing is filled in.
    """
    if is_plain(child, parent):
        return child.call(*inputs, **kwargs)
    return child(*inputs, **kwargs)


def call_in_parts(parent, child, inputs):
    """The parts of what a packed projection returns.

    Args:
        parent: the layer whose `call` this is in.
        child: a projection with a kernel `(D, parts, units)`.
        inputs: `(…, D)`.

    Returns:
        A list of tensors `(…, units)`, and whether only the parent has them.
    """
    if type(child) is Projection and is_plain(child, parent):
        return child.call_in_parts(inputs), True
    outputs = child(inputs)
    return ops.unstack(outputs, outputs.shape[-2], axis=-2), False


def is_plain(child, parent):
    """Whether nothing is asked for that happens around calls of `child`."""
    policy = child.dtype_policy
    return (
        # Whatever somebody has put in the place of a child is called as usual.
        type(child).__module__.partition(".")[0] in _KNOWN
        and child.built
        and not getattr(child, "needs_whole_call", False)
        # Policies of quantized layers are of subclasses.
        and type(policy) is keras.DTypePolicy
        and policy == parent.dtype_policy
        and child.activity_regularizer is None
        and not _keras.is_watched(child)
        and keras.distribution.distribution() is None
    )
