"""Layers as functions to time: forward, and forward and backward.

Functions are compiled where the backend is used so: JAX, and TensorFlow as a
graph or with XLA. On torch they run as they are. All give back what they
computed, once it is there.
"""

import keras
import numpy as np
import start
from timing import time_in_turns

from keras_gating import _backend

PASSES = ("forward", "forward and backward")


def passes(layer, inputs, call=None, xla=False):
    """Both passes of a layer, by name.

    The gradients are those of the sum of squares of the output, by the
    weights and the input.

    Args:
        layer: a built layer without state that changes, or a function of one
            tensor.
        inputs: array or tensor.
        call: `call(layer, x)`, which returns one tensor. Defaults to `None`,
            `layer(x)`.
        xla: whether TensorFlow compiles with XLA.
    """
    make = {"jax": _jax, "tensorflow": _tensorflow, "torch": _torch}
    x = keras.ops.convert_to_tensor(inputs)

    def run(x):
        return layer(x) if call is None else call(layer, x)

    return dict(zip(PASSES, make[keras.config.backend()](layer, run, x, xla)))


def ratio_rows(what, ours, other, rounds, goal, **further):
    """A line of the table for each pass of two layers."""
    for kind in PASSES:
        calls = {"ours": ours[kind], "other": other[kind]}
        seconds = time_in_turns(calls, rounds)
        yield start.ratio_row(
            f"{what}, {kind}", *seconds.values(), goal, **further
        )


def _jax(layer, call, x, xla):
    import jax

    variables = getattr(layer, "weights", [])

    def run(weights, x):
        with keras.StatelessScope(list(zip(variables, weights))):
            return call(x)

    def loss(weights, x):
        return (run(weights, x) ** 2).sum()

    weights = [variable.value for variable in variables]
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
        return call(x)

    @tf.function(jit_compile=xla, autograph=False)
    def both(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(call(x) ** 2)
        variables = getattr(layer, "trainable_weights", [])
        variables = [variable.value for variable in variables]
        return tape.gradient(loss, [x, *variables])

    return lambda: _waited(forward(x)), lambda: _waited(both(x))


def _torch(layer, call, x, xla):
    import torch

    parameters = getattr(layer, "parameters", tuple)()
    parameters = [p for p in parameters if p.requires_grad]

    def forward():
        with torch.no_grad():
            return _waited(call(x))

    def both():
        leaf = x.detach().requires_grad_()
        loss = (call(leaf) ** 2).sum()
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
