"""Trains the networks of the curvature experiment, all of an arm at once."""

import itertools

import keras
import numpy as np
from keras import ops

from keras_gating.experiments.curvature_model import Network
from keras_gating.experiments.population import Population
from keras_gating.experiments.population import draw_weights

TEST_POINTS = 2000
LEARNING_RATE = 0.02


class Pupils(Population):
    """A population whose members see examples of their own.

    Call arguments:
        inputs: `(B, members, …)`.

    Returns:
        `(B, members)`.
    """

    def call(self, inputs):
        frozen = [ops.convert_to_tensor(value) for value in self._frozen]

        def member(arguments):
            examples, *weights = arguments
            return self._apply_network(weights, frozen, examples)[0]

        outputs = ops.vectorized_map(
            member,
            (
                ops.swapaxes(inputs, 0, 1),
                *(ops.convert_to_tensor(v) for v in self.stacks),
            ),
        )
        return ops.transpose(outputs)


def summed_losses(labels, logits):
    """Logistic loss of every example, summed over the members."""
    return ops.sum(ops.softplus(logits) - labels * logits, axis=-1)


def train(arm, tasks, seeds, steps, progress):
    """Trains one network for every task and seed, all in one population.

    Args:
        arm: the `Arm`.
        tasks: of one number of points.
        seeds: integers; a seed fixes the data of a task, and weights.
        steps: of Adam on all points, with a cosine decay of the rate.
        progress: a `Progress`, advanced by one a step.

    Returns:
        A list of weights for each task and seed, `(tasks, seeds)` nested
        lists, and accuracies on new points, `(tasks, seeds)`.
    """

    def build():
        network = Network(arm)
        network.build()
        return network

    drawn = draw_weights(build, seeds)
    population = Pupils(build(), drawn * len(tasks))
    schedule = keras.optimizers.schedules.CosineDecay(LEARNING_RATE, steps)
    population.compile(keras.optimizers.Adam(schedule), summed_losses)
    data = examples(tasks, seeds, tasks[0].points)
    population.fit(
        # A generator: arrays would hold every example `steps` times.
        (batch for batch in itertools.repeat(data)),
        steps_per_epoch=steps,
        epochs=1,
        shuffle=False,
        verbose=0,
        callbacks=[
            keras.callbacks.LambdaCallback(
                on_train_batch_end=lambda batch, logs: progress.advance(1)
            )
        ],
    )
    points, labels = examples(tasks, seeds, TEST_POINTS)
    logits = population.predict(points, batch_size=TEST_POINTS, verbose=0)
    accuracies = np.mean((logits > 0.0) == (labels > 0.5), axis=0)
    stacks = [ops.convert_to_numpy(v) for v in population.stacks]
    shape = len(tasks), len(seeds)
    weights = [
        [[stack[t * shape[1] + s] for stack in stacks] for s in range(shape[1])]
        for t in range(shape[0])
    ]
    return weights, accuracies.reshape(shape)


def examples(tasks, seeds, count):
    """Points `(count, members, 2)` and labels `(count, members)`."""
    drawn = [task.data(seed, count) for task in tasks for seed in seeds]
    points, labels = zip(*drawn)
    return np.stack(points, axis=1), np.stack(labels, axis=1)
