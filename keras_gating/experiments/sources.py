"""What a gate reads and where it multiplies: which products that reaches.

One query attends to four tokens with one head. The targets are three products:
of the query's sign and a mean over the tokens (only a gate that reads the query
has both), of two means over the tokens (only a gate that reads the context has
both), and a mean of products within the tokens (only a gate on the values has
both). Where attention is uniform and the query lies outside the tokens, what no
weights can explain is proved; with softmax attention or a query among the
tokens, arms may find other ways, and the experiment tells how far they get.
"""

import keras
import numpy as np

from keras_gating.experiments import comparison
from keras_gating.experiments.population import Population
from keras_gating.experiments.population import draw_weights
from keras_gating.experiments.population import summed_squares
from keras_gating.experiments.results import Results
from keras_gating.experiments.results import stopwatch
from keras_gating.experiments.sources_model import SETTINGS
from keras_gating.experiments.sources_model import TASKS
from keras_gating.experiments.sources_model import Reader
from keras_gating.experiments.sources_model import arms_by_name
from keras_gating.experiments.sources_model import sequences
from keras_gating.experiments.training import Progress
from keras_gating.experiments.training import fit_in_one_epoch
from keras_gating.functional import checks

BATCH = 128
TEST_SEQUENCES = 4096


def run(
    seeds=5,
    quick=False,
    arms=None,
    steps=None,
    learning_rate=0.02,
    on_progress=None,
):
    """Trains every arm in every setting on all three targets.

    Args:
        seeds: number of seeds; they are 0, 1, …
        quick: 2 seeds at most, fewer steps and cross-attention only, to try
            the program out.
        arms: names of arms, all of `sources_model.ARMS` by default.
        steps: Adam steps. Defaults to 2000, and to 50 with `quick`.
        learning_rate: of Adam, at the start; it decays to 0 by a cosine.
        on_progress: function `(description, share done)`, called often.

    Returns:
        `Results`. `measurements["settings"]` has, for each setting, arm and
        task, the share of the variance that is explained and the accuracy of
        the sign, and their differences from the arm without a gate.
    """
    seeds = checks.positive_integer("seeds", seeds)
    steps = checks.positive_integer("steps", steps, optional=True)
    elapsed = stopwatch()
    arms = arms_by_name(arms)
    seeds = list(range(min(seeds, 2) if quick else seeds))
    if steps is None:
        steps = 50 if quick else 2000
    settings = SETTINGS[:1] if quick else SETTINGS
    progress = Progress(len(settings) * len(arms) * steps, on_progress)
    measured, parameters = {}, {}
    for setting in settings:
        data = Data(setting, steps)
        by_arm = {}
        for arm in arms:
            progress.describe(f"{setting.title}: {arm.title}")
            outputs, parameters[arm.name] = _train(
                arm, setting, seeds, data, learning_rate, progress
            )
            by_arm[arm.name] = {
                "title": arm.title,
                "tasks": _measure(arm, setting, outputs, data),
            }
        compare(by_arm)
        measured[setting.name] = {"title": setting.title, "arms": by_arm}
    return Results(
        experiment="sources",
        seeds=seeds,
        settings={
            "quick": quick,
            "steps": steps,
            "batch_size": BATCH,
            "learning_rate": learning_rate,
            "test_sequences": TEST_SEQUENCES,
        },
        measurements={"settings": measured, "parameters": parameters},
        elapsed_seconds=elapsed(),
    )


class Data:
    """Sequences and targets of one setting, the same for all arms.

    Args:
        setting: the `Setting`.
        steps: number of batches of training.
    """

    def __init__(self, setting, steps):
        rng = np.random.default_rng(0)
        self.inputs = sequences(rng, steps * BATCH, setting)
        self.test = sequences(rng, TEST_SEQUENCES, setting)


def targets(inputs):
    """Targets of all tasks, `(N, tasks)`."""
    query, context = inputs[:, 0], inputs[:, 1:]
    return np.stack([f(query, context) for _, f in TASKS.values()], axis=-1)


def explained(outputs, target):
    """Share of the variance that each member explains.

    0 for the best constant, 1 for the target; negative where the error is
    larger than that of the best constant.

    Args:
        outputs: `(N, members)`.
        target: `(N,)`.
    """
    error = np.square(np.float64(outputs) - target[:, None]).mean(axis=0)
    return 1.0 - error / np.float64(target).var()


def compare(arms):
    """Adds to each arm and task the difference from the arm without a gate.

    Where no weights explain anything there is nothing to compare.
    """
    if "ungated" not in arms:
        return
    for name, arm in arms.items():
        for task, entry in arm["tasks"].items():
            if name != "ungated" and entry["reach"] != 0.0:
                entry["difference"] = comparison.difference(
                    entry["explained"]["values"],
                    arms["ungated"]["tasks"][task]["explained"]["values"],
                )


def _train(arm, setting, seeds, data, learning_rate, progress):
    """Returns the outputs `(N, tasks × seeds)` on the test sequences."""

    def build():
        reader = Reader(arm, setting.uniform)
        reader.build()
        return reader

    reader = build()
    population = Population(reader, draw_weights(build, seeds) * len(TASKS))
    steps = len(data.inputs) // BATCH
    schedule = keras.optimizers.schedules.CosineDecay(learning_rate, steps)
    population.compile(keras.optimizers.Adam(schedule), summed_squares)
    fit_in_one_epoch(
        population,
        data.inputs,
        np.repeat(targets(data.inputs), len(seeds), axis=-1),
        batch_size=BATCH,
        progress=progress,
    )
    outputs = population.predict(
        data.test, batch_size=TEST_SEQUENCES // 4, verbose=0
    )
    return outputs, reader.attention.count_params()


def _measure(arm, setting, outputs, data):
    proved = setting.uniform and not setting.own_query
    measured = {}
    for task, target, answers in zip(
        TASKS, targets(data.test).T, np.split(outputs, len(TASKS), axis=-1)
    ):
        right = (answers > 0.0) == (target > 0.0)[:, None]
        measured[task] = {
            "explained": comparison.mean(explained(answers, target)),
            "accuracy": comparison.mean(right.mean(axis=0)),
            "reach": float(arm.reach[task]) if proved else None,
        }
    return measured
