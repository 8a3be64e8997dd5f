"""Gated against plain feed-forward layers: next-character loss on real text.

A small causal transformer reads source files of the standard library. Its arms
differ in the feed-forward layer alone and have equal parameters. For each seed
all arms share the batches and their order, so differences are taken pair by
pair; the learning rate warms up and decays to 0 by a cosine, without which the
noise of the last steps hides the differences.
"""

import functools

from keras_gating.experiments import comparison
from keras_gating.experiments import next_character
from keras_gating.experiments.characters import Text
from keras_gating.experiments.characters import even_windows
from keras_gating.experiments.feedforward_model import DIM
from keras_gating.experiments.feedforward_model import HIDDEN
from keras_gating.experiments.feedforward_model import LAYERS
from keras_gating.experiments.feedforward_model import LENGTH
from keras_gating.experiments.feedforward_model import PAIRS
from keras_gating.experiments.feedforward_model import arms_by_name
from keras_gating.experiments.feedforward_model import build
from keras_gating.experiments.results import Results
from keras_gating.experiments.results import stopwatch
from keras_gating.experiments.training import Progress
from keras_gating.functional import checks

VALIDATION_WINDOWS = 512


def run(
    seeds=5,
    quick=False,
    arms=None,
    steps=None,
    learning_rate=3e-3,
    on_progress=None,
):
    """Trains every arm from every seed.

    Args:
        seeds: number of seeds; they are 0, 1, …
        quick: 2 seeds at most and fewer steps, to try the program out.
        arms: names of arms, all of `feedforward_model.ARMS` by default.
        steps: Adam steps. Defaults to 1000, and to 20 with `quick`.
        learning_rate: of Adam, at its highest after a tenth of the steps.
        on_progress: function `(description, share done)`, called often.

    Returns:
        `Results`. `measurements["arms"]` has the validation losses in nats a
        character, `["differences"]` those of `feedforward_model.PAIRS`.
    """
    seeds = checks.positive_integer("seeds", seeds)
    steps = checks.positive_integer("steps", steps, optional=True)
    elapsed = stopwatch()
    arms = arms_by_name(arms)
    seeds = list(range(min(seeds, 2) if quick else seeds))
    if steps is None:
        steps = 20 if quick else 1000
    text = Text()
    validation = even_windows(text.validation, VALIDATION_WINDOWS, LENGTH)
    progress = Progress(len(arms) * len(seeds) * steps, on_progress)
    measured = {}
    for arm in arms:
        measured[arm.name] = {
            "title": arm.title,
            "gated": arm.variant is not None,
            **next_character.measure(
                arm.title,
                _compiled(arm, learning_rate, steps),
                functools.partial(build, arm),
                text,
                validation,
                seeds,
                steps,
                progress,
            ),
            "published": list(arm.published),
        }
    return Results(
        experiment="feedforward",
        seeds=seeds,
        settings={
            "quick": quick,
            "steps": steps,
            "batch_size": next_character.BATCH,
            "learning_rate": learning_rate,
            "warmup_share": next_character.WARMUP_SHARE,
            "dim": DIM,
            "hidden": HIDDEN,
            "layers": LAYERS,
            "length": LENGTH,
            "training_characters": len(text.training),
            "validation_characters": len(text.validation),
            "text_digest": text.digest,
        },
        measurements={"arms": measured, "differences": compare(measured)},
        elapsed_seconds=elapsed(),
    )


def compare(measured):
    """Differences of the losses of pairs of arms, seed by seed.

    Args:
        measured: `measurements["arms"]`.

    Returns:
        One dictionary for each pair of which both arms were trained, with
        the published differences beside it.
    """
    entries = comparison.differences(measured, PAIRS, "loss")
    for entry in entries:
        first, second = (measured[entry[k]] for k in ("first", "second"))
        entry["published"] = [
            round(a - b, 3)
            for a, b in zip(first["published"], second["published"])
        ]
    return entries


def _compiled(arm, learning_rate, steps):
    model = build(arm)
    next_character.compile_model(model, learning_rate, steps)
    return model
