"""Layers as functions to time: forward, and forward and backward.

Functions are compiled where the backend is used so: JAX, and TensorFlow as a
graph or with XLA. On torch they run as they are. All give back what they
computed, once it is there.
"""

import keras
import numpy as np

from keras_gating import _backend

PASSES = ("forward", "forward and backward")


def passes(layer, call, inputs, xla=False):
    """Both passes of a layer through `call(layer, x)`, by name.

    The gradients are those of the sum of squares of the output, by the
    weights and the input.

    Args:
        layer: a built layer without state that changes.
        call: `call(layer, x)`, which returns one tensor.
        inputs: NumPy array.
        xla: whether TensorFlow compiles with XLA.
    """
    make = {"jax": _jax, "tensorflow": _tensorflow, "torch": _torch}
    x = keras.ops.convert_to_tensor(inputs)
    return dict(zip(PASSES, make[keras.config.backend()](layer, call, x, xla)))


def _jax(layer, call, x, xla):
    import jax

    def run(weights, x):
        scope = keras.StatelessScope(list(zip(layer.weights, weights)))
        with scope:
            return call(layer, x)

    def loss(weights, x):
        return (run(weights, x) ** 2).sum()

    weights = [weight.value for weight in layer.weights]
    forward = jax.jit(run)
    both = jax.jit(jax.grad(loss, argnums=(0, 1)))
    return (
        lambda: jax.block_until_ready(forward(weights, x)),
        lambda: jax.block_until_ready(both(weights, x)),
    )


def _tensorflow(layer, call, x, xla):
    import tensorflow as tf

    @tf.function(jit_compile=xla, autograph=False)
    def forward(x):
        return call(layer, x)

    @tf.function(jit_compile=xla, autograph=False)
    def both(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(call(layer, x) ** 2)
        variables = [weight.value for weight in layer.trainable_weights]
        return tape.gradient(loss, [x, *variables])

    return lambda: _waited(forward(x)), lambda: _waited(both(x))


def _torch(layer, call, x, xla):
    import torch

    parameters = list(layer.parameters())

    def forward():
        with torch.no_grad():
            return _waited(call(layer, x))

    def both():
        leaf = x.detach().requires_grad_()
        loss = (call(layer, leaf) ** 2).sum()
        return _waited(torch.autograd.grad(loss, [leaf, *parameters]))

    return forward, both


def _waited(outputs):
    _backend.wait(outputs)
    return outputs


def relative_error(calls):
    """Greatest difference of what two functions compute, relative."""
    ours, theirs = (
        keras.ops.convert_to_numpy(call()) for call in calls.values()
    )
    return float(np.abs(ours - theirs).max() / np.abs(theirs).max())
