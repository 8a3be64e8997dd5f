"""The gated attention unit: does it stand in for attention and feed-forward?

Two units take the place of an attention and a feed-forward layer in a small
causal model that reads source files of the standard library. All arms have
equal parameters, and those of a seed share the batches and their order. Some
arms lack a part of the unit: the gate (U = 1), or attention (A fixed). Then
time and memory of one block are measured against the length, for several ways
to compute the unit.
"""

import functools

from keras_gating.experiments import comparison
from keras_gating.experiments import gau_cost
from keras_gating.experiments import gau_model
from keras_gating.experiments import next_character
from keras_gating.experiments.characters import Text
from keras_gating.experiments.characters import even_windows
from keras_gating.experiments.gau_model import PAIRS
from keras_gating.experiments.gau_model import arms_by_name
from keras_gating.experiments.gau_model import build
from keras_gating.experiments.results import Results
from keras_gating.experiments.results import stopwatch
from keras_gating.experiments.training import Progress
from keras_gating.functional import checks

VALIDATION_WINDOWS = 512
# Share of the progress bar that the measurements of time get.
_COST_SHARE = 0.4


def run(
    seeds=3,
    quick=False,
    arms=None,
    steps=None,
    lengths=None,
    learning_rate=3e-3,
    on_progress=None,
):
    """Trains every arm from every seed, then measures time and memory.

    Args:
        seeds: number of seeds; they are 0, 1, …
        quick: 2 seeds at most, few steps and short sequences, to try the
            program out.
        arms: names of arms, all of `gau_model.ARMS` by default.
        steps: Adam steps. Defaults to 500, and to 20 with `quick`.
        lengths: numbers of positions at which time and memory are measured.
            Defaults to `gau_cost.LENGTHS`, or `gau_cost.QUICK_LENGTHS`.
        learning_rate: of Adam, at its highest after a tenth of the steps.
        on_progress: function `(description, share done)`, called often.

    Returns:
        `Results`. `measurements["arms"]` has the validation losses in nats a
        character, `["differences"]` those of `gau_model.PAIRS`, and `["cost"]`
        the rows of `gau_cost.measure`.
    """
    seeds = checks.positive_integer("seeds", seeds)
    steps = checks.positive_integer("steps", steps, optional=True)
    elapsed = stopwatch()
    arms = arms_by_name(arms)
    seeds = list(range(min(seeds, 2) if quick else seeds))
    if steps is None:
        steps = 20 if quick else 500
    if lengths is None:
        lengths = gau_cost.QUICK_LENGTHS if quick else gau_cost.LENGTHS
    for length in lengths:
        checks.positive_integer("lengths", length)
    training = len(arms) * len(seeds) * steps
    progress = Progress(training / (1.0 - _COST_SHARE), on_progress)
    text = Text()
    measured = _losses(arms, seeds, steps, text, learning_rate, progress)
    rows = len(lengths) * len(gau_cost.TASKS) * len(gau_cost.FORMS)
    progress.describe("time and memory")

    def on_row(row):
        progress.describe(f"length {row['length']}, {row['task']}")
        progress.advance(training * _COST_SHARE / (1.0 - _COST_SHARE) / rows)

    cost = gau_cost.measure(lengths, quick, on_row)
    return Results(
        experiment="gau",
        seeds=seeds,
        settings={
            "quick": quick,
            "steps": steps,
            "batch_size": next_character.BATCH,
            "learning_rate": learning_rate,
            "warmup_share": next_character.WARMUP_SHARE,
            "adam_epsilon": {arm.name: arm.epsilon for arm in arms},
            "dim": gau_model.DIM,
            "hidden": gau_model.HIDDEN,
            "key_dim": gau_model.KEY_DIM,
            "heads": gau_model.HEADS,
            "blocks": gau_model.BLOCKS,
            "length": gau_model.LENGTH,
            "chunk_size": gau_model.CHUNK,
            "cost_lengths": list(lengths),
            "cost_sizes": {
                **(gau_cost.QUICK if quick else gau_cost.SIZES),
                "heads": gau_cost.HEADS,
            },
            "training_characters": len(text.training),
            "validation_characters": len(text.validation),
            "text_digest": text.digest,
        },
        measurements={
            "arms": measured,
            "differences": compare(measured),
            "cost": cost,
        },
        elapsed_seconds=elapsed(),
    )


def compare(measured):
    """Differences of the losses of pairs of arms, seed by seed.

    Args:
        measured: `measurements["arms"]`.

    Returns:
        One dictionary for each pair of which both arms were trained.
    """
    return comparison.differences(measured, PAIRS, "loss")


def _losses(arms, seeds, steps, text, learning_rate, progress):
    validation = even_windows(
        text.validation, VALIDATION_WINDOWS, gau_model.LENGTH
    )
    measured = {}
    for arm in arms:
        model = build(arm)
        next_character.compile_model(model, learning_rate, steps, arm.epsilon)
        measured[arm.name] = {
            "title": arm.title,
            **next_character.measure(
                arm.title,
                model,
                functools.partial(build, arm),
                text,
                validation,
                seeds,
                steps,
                progress,
            ),
        }
    return measured
