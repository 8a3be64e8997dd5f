"""Gated against ungated attention on handwritten digits, equal parameters.

The images are scikit-learn's `load_digits`: 1797 of 8 × 8 pixels, read as 16
patches. For each seed the data are split anew; all arms share the split, the
order of the batches and the seed of their initial weights, so differences are
taken pair by pair. The splits of different seeds overlap: the intervals speak
of these images, not of other writers.
"""

import keras
import numpy as np

from keras_gating.diagnostics import record_gates
from keras_gating.experiments import gate_values
from keras_gating.experiments.digits_model import build
from keras_gating.experiments.digits_model import matched_arms
from keras_gating.experiments.digits_model import patches
from keras_gating.experiments.extras import require
from keras_gating.experiments.intervals import mean_interval
from keras_gating.experiments.intervals import paired_difference
from keras_gating.experiments.intervals import verdict
from keras_gating.experiments.population import seeded
from keras_gating.experiments.results import Results
from keras_gating.experiments.results import stopwatch
from keras_gating.experiments.training import Progress
from keras_gating.experiments.training import fit_in_one_epoch
from keras_gating.functional import checks

BATCH = 32
TEST_SHARE = 0.5
# Digits whose gates are kept for a picture: the first test image of each.
SHOWN_CLASSES = (0, 1, 3, 7)


def run(
    seeds=5, quick=False, epochs=None, learning_rate=5e-3, on_progress=None
):
    """Trains every arm on the split of every seed.

    Args:
        seeds: number of seeds; they are 0, 1, …
        quick: 2 seeds at most and fewer epochs, to try the program out.
        epochs: passes over the training images. Defaults to 30, and to 1
            with `quick`.
        learning_rate: of Adam, at the start; it decays to 0 by a cosine.
        on_progress: function `(description, share done)`, called often.

    Returns:
        `Results`. `measurements` has `"arms"`, `"differences"` (gated minus
        each ungated arm) and `"gates"`; `arrays["maps"]` the gates of a few
        test images.
    """
    seeds = checks.positive_integer("seeds", seeds)
    epochs = checks.positive_integer("epochs", epochs, optional=True)
    elapsed = stopwatch()
    seeds = list(range(min(seeds, 2) if quick else seeds))
    if epochs is None:
        epochs = 1 if quick else 30
    splits = {seed: Split(seed) for seed in seeds}
    steps = epochs * len(splits[0].train_labels) // BATCH
    arms = matched_arms()
    models = {arm.name: _compiled(arm, learning_rate, steps) for arm in arms}
    progress = Progress(len(arms) * len(seeds) * steps, on_progress)
    accuracies = {arm.name: [] for arm in arms}
    seconds = {arm.name: [] for arm in arms}
    gates, maps = [], None
    # Seeds outside, arms inside and first by turns: what the machine does
    # beside this then meets all arms alike.
    for seed in seeds:
        turn = seed % len(arms)
        for arm in arms[turn:] + arms[:turn]:
            progress.describe(f"seed {seed}: {arm.title}")
            model = models[arm.name]
            _restart(model, arm, seed)
            seconds[arm.name].append(
                _train(model, splits[seed], seed, steps, progress)
            )
            accuracies[arm.name].append(accuracy(model, splits[seed]))
            if arm.use_gate:
                with record_gates(model) as record:
                    model(splits[seed].test, training=False)
                statistics = record.statistics()
                gates.append(
                    {
                        path: gate_values.head_statistics(statistics, path)
                        for path in statistics
                    }
                )
                maps = maps or _maps(record, splits[seed], seed)
    return Results(
        experiment="digits",
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
        measurements={
            **compare(arms, accuracies),
            "cost": {
                arm.name: {
                    "parameters": models[arm.name].count_params(),
                    "seconds_per_step": float(np.median(seconds[arm.name])),
                }
                for arm in arms
            },
            "gates": {
                "pooled": {
                    path: gate_values.pool([g[path] for g in gates])
                    for path in gates[0]
                },
                "seeds": gates,
            },
        },
        elapsed_seconds=elapsed(),
        arrays={"maps": maps},
    )


def compare(arms, accuracies):
    """Intervals of the arms and of gated minus ungated.

    Args:
        arms: the arms; the first one is compared with each of the others.
        accuracies: for each arm's name one accuracy a seed, in one order.

    Returns:
        `{"arms": …, "differences": …}` of plain numbers and words.
    """
    first, *others = arms
    return {
        "arms": {
            arm.name: {
                "title": arm.title,
                "accuracies": list(accuracies[arm.name]),
                **_bounds(mean_interval(accuracies[arm.name])),
            }
            for arm in arms
        },
        "differences": {
            arm.name: {
                "title": f"{first.title} − {arm.title}",
                **_bounds(difference),
                "verdict": verdict(difference),
            }
            for arm in others
            for difference in [
                paired_difference(accuracies[first.name], accuracies[arm.name])
            ]
        },
    }


def _bounds(interval):
    return {
        "estimate": interval.estimate,
        "low": interval.low,
        "high": interval.high,
    }


class Split:
    """Training and test images of one seed, as patches.

    Args:
        seed: of the split; each class keeps its share in both parts.
        test_size: share or number of images to test on.
    """

    def __init__(self, seed, test_size=TEST_SHARE):
        digits = require("sklearn.datasets").load_digits()
        model_selection = require("sklearn.model_selection")
        train, test, self.train_labels, self.test_labels = (
            model_selection.train_test_split(
                np.float32(digits.images / 16.0),
                digits.target,
                test_size=test_size,
                random_state=seed,
                stratify=digits.target,
            )
        )
        self.train_images, self.test_images = train, test
        self.train, self.test = patches(train), patches(test)


def accuracy(model, split):
    """Share of the test images that `model` names rightly."""
    logits = model.predict(split.test, batch_size=len(split.test), verbose=0)
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


def _restart(model, arm, seed):
    """Gives a compiled model new weights; a new model would compile anew."""
    with seeded(seed):
        model.set_weights(build(arm).get_weights())
    for variable in model.optimizer.variables:
        variable.assign(np.zeros(variable.shape))


def _train(model, split, seed, steps, progress):
    rng = np.random.default_rng(seed)
    count = len(split.train_labels)
    epochs = -(-steps * BATCH // count)
    order = np.concatenate([rng.permutation(count) for _ in range(epochs)])
    order = order[: steps * BATCH]
    return fit_in_one_epoch(
        model,
        split.train[order],
        split.train_labels[order],
        batch_size=BATCH,
        progress=progress,
    )


def _maps(record, split, seed):
    """Gates of a few test images: of each head the feature that varies most."""
    path, recorded = next(iter(record.items()))
    gates = recorded.calls[0]
    features = gates.var(axis=(0, 1)).argmax(axis=-1)
    shown = [
        int(np.flatnonzero(split.test_labels == label)[0])
        for label in SHOWN_CLASSES
    ]
    return {
        "seed": seed,
        "path": path,
        "images": split.test_images[shown],
        "features": features.tolist(),
        "gates": np.stack(
            [gates[shown, :, h, f] for h, f in enumerate(features)], axis=-1
        ),
    }
