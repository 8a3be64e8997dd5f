"""Steps of decoding with a cache, each of which leaves it to the next.

Compiled on JAX, where a step is given the cache to keep (`donate_argnums`), and
a graph on TensorFlow. All on one token, which is written at one position again
and again.
"""

import keras

from keras_gating import _backend


def cached_step(call, weights, token, cache, index):
    """A function without arguments that returns the output of a step.

    Args:
        call: `call(token, cache, index)`, which returns the output and the
            cache.
        weights: the variables it reads.
        token: tensor of one position.
        cache: what `call` takes, full up to `index`. JAX takes its memory.
        index: position of the token, a number.
    """
    make = {"jax": _jax, "tensorflow": _tensorflow, "torch": _torch}
    run = make[keras.config.backend()](call, weights)
    state = {"cache": cache}

    def step():
        output, state["cache"] = run(token, state["cache"], index)
        _backend.wait(output)
        return output

    return step


def jax_program(call, weights, token, cache, index):
    """The compiled step as text."""
    compiled, values = _jax_compiled(call, weights)
    return compiled.lower(values, token, cache, index).compile().as_text()


def _jax_compiled(call, weights):
    import jax

    def run(values, token, cache, index):
        with keras.StatelessScope(list(zip(weights, values))):
            return call(token, cache, index)

    values = [weight.value for weight in weights]
    return jax.jit(run, donate_argnums=2), values


def _jax(call, weights):
    compiled, values = _jax_compiled(call, weights)
    return lambda *arguments: compiled(values, *arguments)


def _tensorflow(call, weights):
    import tensorflow as tf

    run = tf.function(call, autograph=False)

    def with_tensor(token, cache, index):
        return run(token, cache, tf.constant(index))

    return with_tensor


def _torch(call, weights):
    def run(token, cache, index):
        with _backend.no_gradients():
            return call(token, cache, index)

    return run
