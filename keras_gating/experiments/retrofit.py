"""Gates for a trained network: how far they move, and what they add.

A small causal transformer without gates learns to predict the next character.
Surgery puts gates into copies of it that compute the same, and all copies go on
from there on the same batches in the same order, one without gates among them.
"""

import functools

import keras
import numpy as np

from keras_gating import diagnostics
from keras_gating.experiments import comparison
from keras_gating.experiments import next_character
from keras_gating.experiments import retrofit_model
from keras_gating.experiments.characters import Text
from keras_gating.experiments.characters import even_windows
from keras_gating.experiments.characters import random_windows
from keras_gating.experiments.population import seeded
from keras_gating.experiments.results import Results
from keras_gating.experiments.results import stopwatch
from keras_gating.experiments.retrofit_model import PAIRS
from keras_gating.experiments.retrofit_model import GateRateAdam
from keras_gating.experiments.retrofit_model import arms_by_name
from keras_gating.experiments.retrofit_model import build
from keras_gating.experiments.retrofit_model import gated
from keras_gating.experiments.retrofit_model import with_own_rate
from keras_gating.experiments.training import Progress
from keras_gating.experiments.training import fit_in_one_epoch
from keras_gating.experiments.training import restart
from keras_gating.functional import checks

VALIDATION_WINDOWS = 512
# Those of them that are looked at eagerly.
RECORDED_WINDOWS = 128


def run(
    seeds=3,
    quick=False,
    arms=None,
    steps=None,
    continued_steps=None,
    learning_rate=3e-3,
    continued_learning_rate=1e-3,
    on_progress=None,
):
    """Trains a network without gates from every seed, and goes on in each arm.

    Args:
        seeds: number of seeds; they are 0, 1, …
        quick: 2 seeds at most and fewer steps, to try the program out.
        arms: names of arms, all of `retrofit_model.ARMS` by default.
        steps: Adam steps before surgery. Defaults to 600, and to 20 with
            `quick`.
        continued_steps: steps after it. Defaults to half of `steps`.
        learning_rate: before, at its highest after a tenth of the steps.
        continued_learning_rate: after, likewise.
        on_progress: function `(description, share done)`, called often.

    Returns:
        `Results`. `measurements["arms"]` has for each arm the validation
        losses in nats a character right after surgery and at the end, how far
        the logits moved by surgery, and how far gates are from 1 at the end;
        `["start"]` the loss before surgery, and `["differences"]` those of the
        losses for `retrofit_model.PAIRS`.
    """
    seeds = checks.positive_integer("seeds", seeds)
    steps = checks.positive_integer("steps", steps, optional=True)
    continued_steps = checks.positive_integer(
        "continued_steps", continued_steps, optional=True
    )
    elapsed = stopwatch()
    arms = arms_by_name(arms)
    seeds = list(range(min(seeds, 2) if quick else seeds))
    if steps is None:
        steps = 20 if quick else 600
    if continued_steps is None:
        continued_steps = max(1, steps // 2)
    length = retrofit_model.LENGTH
    text = Text()
    validation = even_windows(text.validation, VALIDATION_WINDOWS, length)
    recorded = validation[0][:: max(1, VALIDATION_WINDOWS // RECORDED_WINDOWS)]
    progress = Progress(
        len(seeds) * (steps + len(arms) * continued_steps), on_progress
    )
    start = build()
    next_character.compile_model(start, learning_rate, steps)
    models = {}
    before, seen = [], {arm.name: [] for arm in arms}
    for seed in seeds:
        progress.describe(f"before surgery, seed {seed}")
        with seeded(seed):
            restart(start, build())
        next_character.train(start, text, seed, steps, length, progress)
        before.append(next_character.validation_loss(start, validation))
        logits = _numpy(start(recorded, training=False))
        # Others than before surgery: a seed of their own.
        inputs, targets = random_windows(
            text.training,
            np.random.default_rng((seed, 1)),
            continued_steps * next_character.BATCH,
            length,
        )
        for arm in arms:
            progress.describe(f"{arm.title}, seed {seed}")
            operated = gated(arm, start, seed)
            if arm.name not in models:
                _compile(
                    arm, operated, continued_learning_rate, continued_steps
                )
                models[arm.name] = operated
            model = models[arm.name]
            restart(model, operated)
            change = abs(_numpy(model(recorded, training=False)) - logits).max()
            is_gated = arm.gate is not None
            at_start = factors(model, recorded) if is_gated else None
            operated_loss = next_character.validation_loss(model, validation)
            fit_in_one_epoch(
                model,
                inputs,
                targets,
                next_character.BATCH,
                progress,
            )
            seen[arm.name].append(
                {
                    "largest_change": float(change),
                    "start_loss": operated_loss,
                    "loss": next_character.validation_loss(model, validation),
                    **(
                        compare(at_start, factors(model, recorded))
                        if is_gated
                        else {}
                    ),
                }
            )
    measured = {
        arm.name: {
            "title": arm.title,
            "parameters": models[arm.name].count_params(),
            **_summary(seen[arm.name]),
        }
        for arm in arms
    }
    return Results(
        experiment="retrofit",
        seeds=seeds,
        settings={
            "quick": quick,
            "steps": steps,
            "continued_steps": continued_steps,
            "batch_size": next_character.BATCH,
            "learning_rate": learning_rate,
            "continued_learning_rate": continued_learning_rate,
            "warmup_share": next_character.WARMUP_SHARE,
            "dim": retrofit_model.DIM,
            "heads": retrofit_model.HEADS,
            "hidden": retrofit_model.HIDDEN,
            "layers": retrofit_model.LAYERS,
            "length": length,
            "open_bias": retrofit_model.OPEN_BIAS,
            "random_spread": retrofit_model.RANDOM_SPREAD,
            "gate_rate": retrofit_model.GATE_RATE,
            "first_share": retrofit_model.FIRST_SHARE,
            "recorded_windows": len(recorded),
            "training_characters": len(text.training),
            "validation_characters": len(text.validation),
            "text_digest": text.digest,
        },
        measurements={
            "start": comparison.mean(before),
            "arms": measured,
            "differences": comparison.differences(measured, PAIRS, "loss"),
        },
        elapsed_seconds=elapsed(),
    )


def factors(model, windows):
    """What the gates of a model multiply by, their scale included.

    Args:
        model: a gated model.
        windows: inputs `(B, T)`.

    Returns:
        An array of the factors of all gates, in one axis.
    """
    with diagnostics.record_gates(model) as record:
        model(windows, training=False)
    return np.concatenate(
        [gate.layer.scale * gate.values.ravel() for gate in record.values()]
    )


def compare(first, last):
    """How far gates have moved.

    Args:
        first: their factors after surgery.
        last: the same ones at the end.

    Returns:
        A dictionary: `distance`, the mean of `|last − 1|`; `moved`, that of
        `|last − first|`; `below` and `above`, the shares of the last ones
        below ½ and above 1½; their `mean` and `spread`; `histogram`, their
        counts in 40 bins on [0, 2].
    """
    return {
        "distance": float(np.abs(last - 1.0).mean()),
        "moved": float(np.abs(last - first).mean()),
        "below": float((last < 0.5).mean()),
        "above": float((last > 1.5).mean()),
        "mean": float(last.mean()),
        "spread": float(last.std()),
        "histogram": np.histogram(last, bins=40, range=(0.0, 2.0))[0],
    }


def _numpy(x):
    return keras.ops.convert_to_numpy(x)


def _compile(arm, model, learning_rate, steps):
    optimizer = keras.optimizers.Adam
    if (arm.rate, arm.first) != (1.0, 0.0):
        optimizer = functools.partial(
            GateRateAdam,
            variables=with_own_rate(arm, model),
            rate=arm.rate,
            wait=round(arm.first * steps),
        )
    next_character.compile_model(
        model, learning_rate, steps, optimizer=optimizer
    )


def _summary(seen):
    """What a JSON file keeps of the seeds of one arm."""
    kept = {
        key: comparison.mean([one[key] for one in seen])
        for key in seen[0]
        if key != "histogram"
    }
    if "histogram" in seen[0]:
        kept["histogram"] = np.sum([x["histogram"] for x in seen], 0).tolist()
    return kept
