"""Forward passes, and forward and backward ones, on every backend."""

import os

import keras
import numpy as np
from timing import time_in_turns

FORWARD = "forward"
BOTH = "forward and backward"


def prepare(backend):
    """One thread, on the CPU; before the first tensor."""
    if backend == "torch":
        import torch

        torch.set_num_threads(1)
        torch.manual_seed(0)
    elif backend == "jax":
        os.environ["XLA_FLAGS"] = (
            "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
        )
    else:
        import tensorflow as tf

        tf.config.threading.set_intra_op_parallelism_threads(1)
        tf.config.threading.set_inter_op_parallelism_threads(1)


def copy_of(x):
    """A copy of the tensor, which a compiler does not leave out."""
    return x + 1.0


def passes(function, inputs):
    """Functions without arguments, by the name of the pass.

    JAX and TensorFlow compile them; on torch they are called as they are.
    Gradients are those of the sum of the outputs, with respect to inputs and
    weights.

    Args:
        function: a built layer, or a function of one tensor.
        inputs: array or tensor.
    """
    make = {"jax": _jax, "tensorflow": _tensorflow, "torch": _torch}
    return make[keras.config.backend()](function, inputs)


def _torch(function, inputs):
    import torch

    inputs = torch.as_tensor(inputs)
    weights = getattr(function, "parameters", tuple)

    def forward():
        with torch.no_grad():
            function(inputs)

    def both():
        x = inputs.detach().requires_grad_()
        for weight in weights():
            weight.grad = None
        function(x).sum().backward()

    return {FORWARD: forward, BOTH: both}


def _jax(function, inputs):
    import jax

    weights = _weights(function)
    inputs = jax.numpy.asarray(inputs)

    def call(weights, inputs):
        if not isinstance(function, keras.layers.Layer):
            return function(inputs)
        fixed = [v.value for v in function.non_trainable_variables]
        return function.stateless_call(weights, fixed, inputs)[0]

    def loss(weights, inputs):
        return call(weights, inputs).sum()

    compiled = {
        FORWARD: jax.jit(call),
        BOTH: jax.jit(jax.value_and_grad(loss, argnums=(0, 1))),
    }

    def bound(call):
        return lambda: jax.block_until_ready(call(weights, inputs))

    return {name: bound(call) for name, call in compiled.items()}


def _tensorflow(function, inputs):
    import tensorflow as tf

    weights = _weights(function)
    inputs = tf.constant(np.asarray(inputs))

    def both(inputs):
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            loss = tf.reduce_sum(function(inputs))
        return loss, tape.gradient(loss, [inputs, *weights])

    compiled = {
        name: tf.function(call, autograph=False, jit_compile=True)
        for name, call in ((FORWARD, lambda x: function(x)), (BOTH, both))
    }

    def bound(call):
        return lambda: call(inputs)

    return {name: bound(call) for name, call in compiled.items()}


def _weights(function):
    return [v.value for v in getattr(function, "trainable_variables", ())]


def ratio_rows(what, ours, other, rounds, goal, **fields):
    """A line of the table for each pass, of ours over the other."""
    for name in ours:
        calls = {"ours": ours[name], "other": other[name]}
        seconds = time_in_turns(calls, rounds)
        ratios = np.divide(seconds["ours"], seconds["other"])
        low, middle, high = np.quantile(ratios, [0.25, 0.5, 0.75])
        yield {
            "what": f"{what}, {name}",
            "unit": "ms",
            "ours": 1e3 * float(np.median(seconds["ours"])),
            "other": 1e3 * float(np.median(seconds["other"])),
            "ratio": float(middle),
            "low": float(low),
            "high": float(high),
            "goal": goal,
            **fields,
        }
