"""Depth: where gates start, and what keeps a deep stack of them trainable.

A half-open gate halves the signal, so a stack of them shrinks it by a factor
that is exponential in the depth. The experiment trains stacks of self-attention
with gates that read input and context, with and without residual sums and
normalization, on a target that one block can compute. It reports how much of
the target's variance a stack explains and the norm of the first gradient in
the first block over that in the last one.
"""

import keras
import numpy as np
from keras import ops

from keras_gating.experiments import comparison
from keras_gating.experiments.depth_model import REFERENCE
from keras_gating.experiments.depth_model import Stack
from keras_gating.experiments.depth_model import arms_by_name
from keras_gating.experiments.depth_model import sequences
from keras_gating.experiments.depth_model import targets
from keras_gating.experiments.population import Population
from keras_gating.experiments.population import draw_weights
from keras_gating.experiments.population import summed_squares
from keras_gating.experiments.results import Results
from keras_gating.experiments.results import stopwatch
from keras_gating.experiments.sources import explained
from keras_gating.experiments.training import Progress
from keras_gating.experiments.training import fit_in_one_epoch
from keras_gating.functional import checks

BATCH = 64
TEST_SEQUENCES = 2048
DEPTHS = (2, 6, 12)
# Points of a training curve after the first.
PARTS = 8
# Smaller ratios are printed as this: 32-bit gradients go to zero below.
SMALLEST_RATIO = 1e-30


def run(
    seeds=5,
    quick=False,
    arms=None,
    depths=None,
    steps=None,
    learning_rate=3e-3,
    on_progress=None,
):
    """Trains stacks of every arm at every depth.

    Args:
        seeds: number of seeds; they are 0, 1, …
        quick: 2 seeds at most, fewer steps and depths, to try the program
            out.
        arms: names of arms, all of `depth_model.ARMS` by default.
        depths: numbers of blocks. Defaults to 2, 6 and 12, and to 2 with
            `quick`.
        steps: Adam steps. Defaults to 400, and to 16 with `quick`.
        learning_rate: of Adam, at the start; it decays to 0 by a cosine.
        on_progress: function `(description, share done)`, called often.

    Returns:
        `Results`. `measurements["arms"]` has, for each arm and depth, the
        explained variance, its curve and the gradient ratio.
    """
    seeds = checks.positive_integer("seeds", seeds)
    steps = checks.positive_integer("steps", steps, optional=True)
    elapsed = stopwatch()
    arms = arms_by_name(arms)
    seeds = list(range(min(seeds, 2) if quick else seeds))
    if steps is None:
        steps = 16 if quick else 400
    if depths is None:
        depths = DEPTHS[:1] if quick else DEPTHS
    for depth in depths:
        checks.positive_integer("depths", depth)
    progress = Progress(len(arms) * len(depths) * steps, on_progress)
    rng = np.random.default_rng(0)
    inputs = sequences(rng, steps * BATCH)
    test = sequences(rng, TEST_SEQUENCES)
    measured = {}
    for arm in arms:
        by_depth = {}
        for depth in depths:
            progress.describe(f"{arm.title}, {depth} blocks")
            by_depth[str(depth)] = _train(
                arm, depth, seeds, inputs, test, learning_rate, progress
            )
        measured[arm.name] = {"title": arm.title, "depths": by_depth}
    compare(measured)
    return Results(
        experiment="depth",
        seeds=seeds,
        settings={
            "quick": quick,
            "depths": list(depths),
            "steps": steps,
            "batch_size": BATCH,
            "learning_rate": learning_rate,
            "test_sequences": TEST_SEQUENCES,
        },
        measurements={"arms": measured},
        elapsed_seconds=elapsed(),
    )


def compare(measured):
    """Adds to each arm and depth the difference from the post-norm block."""
    if REFERENCE not in measured:
        return
    reference = measured[REFERENCE]["depths"]
    for name, arm in measured.items():
        for depth, entry in arm["depths"].items():
            if name != REFERENCE:
                entry["difference"] = comparison.difference(
                    entry["explained"]["values"],
                    reference[depth]["explained"]["values"],
                )


def gradient_ratio(gradients, first, last):
    """Norm of the gradient in one block over that in another, by member.

    Args:
        gradients: one array `(members, …)` for each weight.
        first, last: places of the weights of either block.
    """

    def norm(places):
        return np.sqrt(
            sum(
                np.square(np.float64(gradients[i]))
                .reshape(len(gradients[i]), -1)
                .sum(axis=1)
                for i in places
            )
        )

    smallest = np.finfo("float32").tiny
    return norm(first) / np.maximum(norm(last), smallest)


def _train(arm, depth, seeds, inputs, test, learning_rate, progress):
    def build():
        stack = Stack(arm, depth)
        stack.build()
        return stack

    stack = build()
    population = Population(stack, draw_weights(build, seeds))
    steps = len(inputs) // BATCH
    schedule = keras.optimizers.schedules.CosineDecay(learning_rate, steps)
    population.compile(keras.optimizers.Adam(schedule), summed_squares)
    labels = targets(inputs)[:, None]
    # The first step by itself: Adam's momentum is then its gradient.
    ends = [0, 1, *np.linspace(1, steps, PARTS + 1).astype(int)[1:]]
    ends = sorted(set(map(int, ends)))
    curve, gradients = [_explained(population, test)], None
    for start, end in zip(ends, ends[1:]):
        part = slice(start * BATCH, end * BATCH)
        fit_in_one_epoch(
            population, inputs[part], labels[part], BATCH, progress
        )
        gradients = gradients or _momentums(population)
        if end > 1:
            curve.append(_explained(population, test))
    ratios = gradient_ratio(
        gradients, stack.weights_of(0), stack.weights_of(depth - 1)
    )
    return {
        "parameters": sum(int(np.prod(v.shape)) for v in stack.weights),
        "explained": comparison.mean(curve[-1]),
        "log10_gradient_ratio": comparison.mean(
            np.log10(np.maximum(ratios, SMALLEST_RATIO))
        ),
        "curve": {
            "steps": [0, *(end for end in ends if end > 1)],
            "explained": [[float(v) for v in values] for values in curve],
        },
    }


def _explained(population, test):
    outputs = population.predict(test, batch_size=TEST_SEQUENCES, verbose=0)
    # A diverged member explains nothing, and a file holds no infinity.
    outputs = np.nan_to_num(outputs, nan=0.0, posinf=0.0, neginf=0.0)
    return np.maximum(explained(outputs, targets(test)), -1.0)


def _momentums(population):
    """Momentum of each weight, in the order of the population's weights."""
    return [
        ops.convert_to_numpy(v)
        for v in population.optimizer.variables
        if v.path.endswith("momentum")
    ]
