"""Channel gates in a small convolutional network on handwritten digits.

The images are scikit-learn's `load_digits`, split anew for each seed. All arms
share the split and the order of the batches, so differences are taken pair by
pair. Gates come on top of the network: they have more parameters than the arm
without, a few hundred at most, and the table says what each one costs.
"""

import keras
import numpy as np

from keras_gating.experiments import comparison
from keras_gating.experiments.channels_model import PAIRS
from keras_gating.experiments.channels_model import arms_by_name
from keras_gating.experiments.channels_model import build
from keras_gating.experiments.channels_model import cost
from keras_gating.experiments.digits import Split
from keras_gating.experiments.population import seeded
from keras_gating.experiments.results import Results
from keras_gating.experiments.results import stopwatch
from keras_gating.experiments.training import Progress
from keras_gating.experiments.training import fit_in_one_epoch
from keras_gating.experiments.training import restart
from keras_gating.functional import checks

BATCH = 32


def run(
    seeds=5,
    quick=False,
    arms=None,
    epochs=None,
    learning_rate=3e-3,
    on_progress=None,
):
    """Trains every arm on the split of every seed.

    Args:
        seeds: number of seeds; they are 0, 1, …
        quick: 2 seeds at most and fewer epochs, to try the program out.
        arms: names of arms, all of `channels_model.ARMS` by default.
        epochs: passes over the training images. Defaults to 10, and to 1
            with `quick`.
        learning_rate: of Adam, at the start; it decays to 0 by a cosine.
        on_progress: function `(description, share done)`, called often.

    Returns:
        `Results`. `measurements["arms"]` has accuracies and costs,
        `["differences"]` those of `channels_model.PAIRS`.
    """
    seeds = checks.positive_integer("seeds", seeds)
    epochs = checks.positive_integer("epochs", epochs, optional=True)
    elapsed = stopwatch()
    arms = arms_by_name(arms)
    seeds = list(range(min(seeds, 2) if quick else seeds))
    if epochs is None:
        epochs = 1 if quick else 10
    splits = [Split(seed) for seed in seeds]
    steps = epochs * len(splits[0].train_labels) // BATCH
    progress = Progress(len(arms) * len(seeds) * steps, on_progress)
    measured = {}
    for arm in arms:
        model = _compiled(arm, learning_rate, steps)
        accuracies, seconds = [], []
        for seed, split in zip(seeds, splits):
            progress.describe(f"{arm.title}, seed {seed}")
            with seeded(seed):
                restart(model, build(arm))
            seconds.append(_train(model, split, seed, steps, progress))
            accuracies.append(accuracy(model, split))
        measured[arm.name] = {
            "title": arm.title,
            "gate": arm.gate,
            "accuracy": comparison.mean(accuracies),
            "seconds_per_step": float(np.median(seconds)),
            **cost(arm),
        }
    return Results(
        experiment="channels",
        seeds=seeds,
        settings={
            "quick": quick,
            "epochs": epochs,
            "steps": steps,
            "batch_size": BATCH,
            "learning_rate": learning_rate,
            "training_images": len(splits[0].train_labels),
            "test_images": len(splits[0].test_labels),
        },
        measurements={"arms": measured, "differences": compare(measured)},
        elapsed_seconds=elapsed(),
    )


def compare(measured):
    """Differences of the accuracies of pairs of arms, seed by seed.

    Args:
        measured: `measurements["arms"]`.

    Returns:
        One dictionary for each pair of which both arms were trained.
    """
    return comparison.differences(measured, PAIRS, "accuracy")


def accuracy(model, split):
    """Share of the test images that `model` names rightly."""
    images = split.test_images[..., None]
    logits = model.predict(images, batch_size=len(images), verbose=0)
    return float(np.mean(logits.argmax(axis=-1) == split.test_labels))


def _compiled(arm, learning_rate, steps):
    model = build(arm)
    model.compile(
        keras.optimizers.Adam(
            keras.optimizers.schedules.CosineDecay(learning_rate, steps)
        ),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    return model


def _train(model, split, seed, steps, progress):
    rng = np.random.default_rng(seed)
    count = len(split.train_labels)
    epochs = -(-steps * BATCH // count)
    order = np.concatenate([rng.permutation(count) for _ in range(epochs)])
    order = order[: steps * BATCH]
    return fit_in_one_epoch(
        model,
        split.train_images[order, ..., None],
        split.train_labels[order],
        batch_size=BATCH,
        progress=progress,
    )
