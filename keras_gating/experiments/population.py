"""Many independently trained copies of one small network."""

import contextlib
import random

import keras
import numpy as np
from keras import ops

from keras_gating.functional import explicit_attention


class Population(keras.Model):
    """Copies of a network that differ in their weights, run side by side.

    `outputs[b, m] = network(inputs[b]; weights[m])`

    The weights of all members are stacked on a new first axis and the network
    is mapped over it, so that training hundreds of small networks costs about
    as many steps as training one. With `summed_squares` as its loss no member
    feels another one: the loss is a sum with one term for each, and optimisers
    such as Adam work weight by weight.

    Args:
        network: a built layer that maps `(B, …)` to `(B,)`. Its frozen weights
            are shared by all members.
        weights: one list of arrays for each member, in the order of
            `network.trainable_variables`.

    Call arguments:
        inputs: `(B, …)`, the same for all members.

    Returns:
        `(B, members)`.
    """

    def __init__(self, network, weights, **kwargs):
        super().__init__(**kwargs)
        if not weights:
            raise ValueError(
                "A population needs at least one member. Received: weights=[]"
            )
        # A bound method, so that Keras does not count the network's own
        # weights among those of the population.
        self._apply_network = network.stateless_call
        self._frozen = tuple(
            ops.convert_to_numpy(v) for v in network.non_trainable_variables
        )
        self.stacks = [
            self.add_weight(
                name=f"stack_{i}",
                shape=(len(weights), *member_shape),
                initializer="zeros",
            )
            for i, member_shape in enumerate(
                tuple(v.shape) for v in network.trainable_variables
            )
        ]
        for stack, members in zip(self.stacks, zip(*weights)):
            stack.assign(np.stack(members))
        self.built = True

    def call(self, inputs):
        frozen = [ops.convert_to_tensor(value) for value in self._frozen]

        def member(weights):
            outputs, _ = self._apply_network(list(weights), frozen, inputs)
            return outputs

        # Fused kernels have no rule for one more batch axis on every backend.
        with explicit_attention():
            outputs = ops.vectorized_map(
                member, [ops.convert_to_tensor(v) for v in self.stacks]
            )
        return ops.transpose(outputs)


def summed_squares(targets, outputs):
    """Squared error of every example, summed over the members."""
    return ops.sum(ops.square(outputs - targets), axis=-1)


def draw_weights(build, seeds):
    """Initial weights of the networks that `build` makes.

    Args:
        build: function without arguments that returns a built layer.
        seeds: integers, one for each network.

    Returns:
        One list of arrays for each seed.
    """
    weights = []
    for seed in seeds:
        with seeded(seed):
            variables = build().trainable_variables
        weights.append([ops.convert_to_numpy(v) for v in variables])
    return weights


@contextlib.contextmanager
def seeded(seed):
    """Fixes the seeds that Keras draws inside, and nothing outside.

    Initializers without a seed draw theirs from Python's generator.
    `keras.utils.set_random_seed` would change those of the caller for good,
    and imports whatever other backend is installed.
    """
    state = random.getstate()
    random.seed(seed)
    try:
        yield
    finally:
        random.setstate(state)
