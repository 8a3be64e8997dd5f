"""Gradients of `sum(outputs * cotangent)` on every training backend."""

import functools

import keras
import numpy as np

from tests.utils import tensor
from tests.utils import to_numpy


def gradients(layer, inputs, cotangent, compiled=False, **call_arguments):
    """Differentiates a built layer with respect to inputs and weights.

    Args:
        layer: A built layer whose call takes `*inputs` and returns a tensor.
        inputs: List of arrays.
        cotangent: Array of the shape of the output.
        compiled: Whether to compile the gradient on JAX, where many operations
            one by one take longer.
        call_arguments: Further call arguments, not differentiated.

    Returns:
        `(output, input_gradients, weight_gradients)` as NumPy arrays, the
        last a dict by weight path.
    """
    inputs = [tensor(x, layer.compute_dtype) for x in inputs]
    cotangent = tensor(cotangent, layer.compute_dtype)
    backend = keras.backend.backend()
    jax = functools.partial(_jax, compiled=compiled)
    differentiate = {"jax": jax, "tensorflow": _tensorflow, "torch": _torch}
    output, for_inputs, for_weights = differentiate[backend](
        layer, inputs, cotangent, call_arguments
    )
    paths = [variable.path for variable in layer.trainable_variables]
    return (
        to_numpy(output),
        [to_numpy(gradient) for gradient in for_inputs],
        dict(zip(paths, map(to_numpy, for_weights))),
    )


def _jax(layer, inputs, cotangent, call_arguments, compiled):
    import jax

    fixed = [v.value for v in layer.non_trainable_variables]

    def objective(inputs, weights):
        output, _ = layer.stateless_call(
            weights, fixed, *inputs, **call_arguments
        )
        return (output * cotangent).sum(), output

    weights = [v.value for v in layer.trainable_variables]
    differentiate = jax.grad(objective, argnums=(0, 1), has_aux=True)
    if compiled:
        differentiate = jax.jit(differentiate)
    (for_inputs, for_weights), output = differentiate(inputs, weights)
    return output, for_inputs, for_weights


def _tensorflow(layer, inputs, cotangent, call_arguments):
    import tensorflow as tf

    weights = [v.value for v in layer.trainable_variables]
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        output = layer(*inputs, **call_arguments)
        objective = tf.reduce_sum(output * cotangent)
    for_inputs, for_weights = tape.gradient(objective, (inputs, weights))
    dense = [tf.convert_to_tensor(gradient) for gradient in for_weights]
    return output, for_inputs, dense


def _torch(layer, inputs, cotangent, call_arguments):
    import torch

    inputs = [x.detach().clone().requires_grad_(True) for x in inputs]
    weights = [v.value for v in layer.trainable_variables]
    output = layer(*inputs, **call_arguments)
    objective = (output * cotangent).sum()
    flat = torch.autograd.grad(objective, [*inputs, *weights])
    return output.detach(), flat[: len(inputs)], flat[len(inputs) :]


def finite(values):
    """Whether every array of a list or a dict is finite."""
    values = values.values() if isinstance(values, dict) else values
    return all(np.all(np.isfinite(value)) for value in values)
