"""Overfitting: the gap between training and test on few images.

The encoder of the digits experiment, gated, ungated, and ungated with as many
parameters, trained on a hundred of scikit-learn's digits and tested on all the
others; and the gated one with dropout in the gate or after it, and with weight
decay of the gates or of all. All arms of a seed share the images and the order
of the batches, and those with the same encoder their initial weights.
"""

import numpy as np

from keras_gating.experiments import comparison
from keras_gating.experiments.corrections import holm
from keras_gating.experiments.corrections import paired_p_value
from keras_gating.experiments.digits import Split
from keras_gating.experiments.overfitting_model import ARMS
from keras_gating.experiments.overfitting_model import PAIRS
from keras_gating.experiments.overfitting_model import arms_by_name
from keras_gating.experiments.overfitting_model import compiled
from keras_gating.experiments.overfitting_model import seed_dropout
from keras_gating.experiments.overfitting_model import start
from keras_gating.experiments.results import Results
from keras_gating.experiments.results import stopwatch
from keras_gating.experiments.training import Progress
from keras_gating.experiments.training import fit_in_one_epoch
from keras_gating.experiments.training import restart
from keras_gating.experiments.verdicts import verdict
from keras_gating.functional import checks

TRAINING_IMAGES = 100
IMAGES = 1797
BATCH = 20
MEASURES = ("loss_gap", "test_loss", "test_accuracy")
# What is claimed: measure and expected sign of the difference, in words.
_GATES = (
    ("gates widen the gap of the loss", "loss_gap", 1),
    ("gates raise the test loss", "test_loss", 1),
    ("gates cost test accuracy", "test_accuracy", -1),
)
_REMEDIES = (
    ("narrows the gap of the loss", "loss_gap", -1),
    ("lowers the test loss", "test_loss", -1),
    ("raises test accuracy", "test_accuracy", 1),
)
_GROUPS = {
    "gate_dropout": "dropout in the gate",
    "output_dropout": "dropout after the gate",
    "gate_decay": "weight decay of the gates",
    "decay": "weight decay of all weights",
    "wider": "dropout or decay without a gate",
}


def run(
    seeds=10,
    quick=False,
    arms=None,
    epochs=None,
    learning_rate=5e-3,
    on_progress=None,
):
    """Trains every arm on the few images of every seed.

    Args:
        seeds: number of seeds; they are 0, 1, …
        quick: 2 seeds at most and fewer epochs, to try the program out.
        arms: names of arms, all of `overfitting_model.ARMS` by default.
        epochs: passes over the training images. Defaults to 50, and to 3
            with `quick`.
        learning_rate: of AdamW, at the start; it decays to 0 by a cosine.
        on_progress: function `(description, share done)`, called often.

    Returns:
        `Results`. `measurements["arms"]` has loss and accuracy on both sets
        and their gaps, `["differences"]` those of `overfitting_model.PAIRS`,
        `["conclusions"]` what they say of the claims.
    """
    seeds = checks.positive_integer("seeds", seeds)
    epochs = checks.positive_integer("epochs", epochs, optional=True)
    elapsed = stopwatch()
    arms = arms_by_name(arms)
    seeds = list(range(min(seeds, 2) if quick else seeds))
    if epochs is None:
        epochs = 3 if quick else 50
    splits = [Split(seed, IMAGES - TRAINING_IMAGES) for seed in seeds]
    steps = epochs * TRAINING_IMAGES // BATCH
    progress = Progress(len(arms) * len(seeds) * steps, on_progress)
    measured = {}
    for arm in arms:
        model = compiled(arm, learning_rate, steps)
        trained = []
        for seed, split in zip(seeds, splits):
            progress.describe(f"{arm.title}, seed {seed}")
            restart(model, start(arm, seed))
            seed_dropout(model, seed)
            _train(model, split, seed, epochs, progress)
            trained.append(measures(model, split))
        measured[arm.name] = {
            "title": arm.title,
            "parameters": model.count_params(),
            **{
                key: comparison.mean([entry[key] for entry in trained])
                for key in trained[0]
            },
        }
    differences = compare(measured)
    return Results(
        experiment="overfitting",
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
            "arms": measured,
            "differences": differences,
            "conclusions": conclude(differences),
        },
        elapsed_seconds=elapsed(),
    )


def measures(model, split):
    """Loss and accuracy on both sets, and the gaps between them.

    A gap is positive where the test set fares worse.
    """
    # Both sets at once: another size would be compiled anew.
    inputs = np.concatenate([split.train, split.test])
    logits = model.predict(inputs, batch_size=len(inputs), verbose=0)
    count = len(split.train_labels)
    numbers = {}
    for part, own, labels in (
        ("train", logits[:count], split.train_labels),
        ("test", logits[count:], split.test_labels),
    ):
        numbers[f"{part}_loss"] = cross_entropy(own, labels)
        numbers[f"{part}_accuracy"] = float(
            np.mean(own.argmax(axis=-1) == labels)
        )
    return {
        **numbers,
        "loss_gap": numbers["test_loss"] - numbers["train_loss"],
        "accuracy_gap": numbers["train_accuracy"] - numbers["test_accuracy"],
    }


def cross_entropy(logits, labels):
    """Mean of `log Σ exp(logits) − logits[label]`, in float64."""
    logits = np.float64(logits)
    logits = logits - logits.max(axis=-1, keepdims=True)
    chosen = logits[np.arange(len(labels)), labels]
    return float(np.mean(np.log(np.exp(logits).sum(axis=-1)) - chosen))


def compare(measured):
    """Differences of pairs of arms, seed by seed.

    Holm's correction is for all pairs of one measure.

    Args:
        measured: `measurements["arms"]`.

    Returns:
        By measure, one dictionary for each pair of which both arms were
        trained.
    """
    differences = {}
    for measure in MEASURES:
        entries = comparison.differences(measured, PAIRS, measure)
        adjusted = holm(
            [
                paired_p_value(
                    measured[entry["first"]][measure]["values"],
                    measured[entry["second"]][measure]["values"],
                )
                for entry in entries
            ]
        )
        differences[measure] = [
            {**entry, "adjusted_p": p} for entry, p in zip(entries, adjusted)
        ]
    return differences


def conclude(differences):
    """What the run says of each claim.

    Args:
        differences: what `compare` returned.

    Returns:
        A list of what `verdicts.verdict` returns.
    """
    titles = {arm.name: arm.title for arm in ARMS}
    claims = [
        (claim, measure, sign, "gated", "against {second}")
        for claim, measure, sign in _GATES
    ] + [
        (f"{words} {claim}", measure, sign, group, "{first}")
        for group, words in _GROUPS.items()
        for claim, measure, sign in _REMEDIES
    ]
    conclusions = []
    for claim, measure, sign, group, case in claims:
        cases = {
            case.format(
                first=titles[entry["first"]], second=titles[entry["second"]]
            ): (entry["estimate"], entry["adjusted_p"])
            for entry in differences[measure]
            if _group(entry["first"]) == group
        }
        if cases:
            conclusions.append(verdict(claim, cases, sign))
    return conclusions


def _group(name):
    """The kind of remedy of an arm: its name without the strength."""
    if name.startswith("wider"):
        return "wider"
    return name if name == "gated" else name.rpartition("_")[0]


def _train(model, split, seed, epochs, progress):
    rng = np.random.default_rng(seed)
    count = len(split.train_labels)
    order = np.concatenate([rng.permutation(count) for _ in range(epochs)])
    fit_in_one_epoch(
        model, split.train[order], split.train_labels[order], BATCH, progress
    )
