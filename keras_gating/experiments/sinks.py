"""Attention sinks: how much attention the first token gets, gated and not.

A small causal transformer reads source files of the standard library, with and
without gates on the output of its attention. Softmax has to give its weights to
something; a head that has nothing to add can give them to the first token, or
shut its gate. For each seed all arms share the batches and their order.
"""

import dataclasses
import functools

import keras
import numpy as np

from keras_gating import diagnostics
from keras_gating.experiments import comparison
from keras_gating.experiments import next_character
from keras_gating.experiments.characters import Text
from keras_gating.experiments.characters import even_windows
from keras_gating.experiments.results import Results
from keras_gating.experiments.results import stopwatch
from keras_gating.experiments.sinks_model import DIM
from keras_gating.experiments.sinks_model import HEADS
from keras_gating.experiments.sinks_model import HIDDEN
from keras_gating.experiments.sinks_model import LAYERS
from keras_gating.experiments.sinks_model import LENGTH
from keras_gating.experiments.sinks_model import PAIRS
from keras_gating.experiments.sinks_model import arms_by_name
from keras_gating.experiments.sinks_model import build
from keras_gating.experiments.training import Progress
from keras_gating.experiments.transformer import residual_streams
from keras_gating.functional import checks

VALIDATION_WINDOWS = 512
# Those of them that are looked at eagerly.
RECORDED_WINDOWS = 128
# A head is a sink from this share on (Gu et al. 2024, arXiv 2410.10781).
SINK_SHARE = 0.3


def run(
    seeds=3,
    quick=False,
    arms=None,
    steps=None,
    learning_rate=3e-3,
    on_progress=None,
):
    """Trains every arm from every seed and looks at its attention.

    Args:
        seeds: number of seeds; they are 0, 1, …
        quick: 2 seeds at most and fewer steps, to try the program out.
        arms: names of arms, all of `sinks_model.ARMS` by default.
        steps: Adam steps. Defaults to 500, and to 20 with `quick`.
        learning_rate: of Adam, at its highest after a tenth of the steps.
        on_progress: function `(description, share done)`, called often.

    Returns:
        `Results`. `measurements["arms"]` has for each arm the validation loss
        in nats a character and what `look` measures, `["differences"]` those
        of loss and share for `sinks_model.PAIRS`, and `["uniform"]` the shares
        of attention that is equal everywhere.
    """
    seeds = checks.positive_integer("seeds", seeds)
    steps = checks.positive_integer("steps", steps, optional=True)
    elapsed = stopwatch()
    arms = arms_by_name(arms)
    seeds = list(range(min(seeds, 2) if quick else seeds))
    if steps is None:
        steps = 20 if quick else 500
    text = Text()
    validation = even_windows(text.validation, VALIDATION_WINDOWS, LENGTH)
    # The last ones would all be of one file.
    recorded = validation[0][:: max(1, VALIDATION_WINDOWS // RECORDED_WINDOWS)]
    progress = Progress(len(arms) * len(seeds) * steps, on_progress)
    measured = {}
    for arm in arms:
        model = build(arm)
        next_character.compile_model(model, learning_rate, steps)
        seen = []
        losses = next_character.measure(
            arm.title,
            model,
            functools.partial(build, arm),
            text,
            validation,
            seeds,
            steps,
            progress,
            inspect=lambda model, seen=seen: seen.append(look(model, recorded)),
        )
        measured[arm.name] = {
            "title": arm.title,
            **losses,
            **_summary(seen),
            "published": _published(arm.published),
        }
    return Results(
        experiment="sinks",
        seeds=seeds,
        settings={
            "quick": quick,
            "steps": steps,
            "batch_size": next_character.BATCH,
            "learning_rate": learning_rate,
            "warmup_share": next_character.WARMUP_SHARE,
            "dim": DIM,
            "heads": HEADS,
            "hidden": HIDDEN,
            "layers": LAYERS,
            "length": LENGTH,
            "recorded_windows": len(recorded),
            "sink_share": SINK_SHARE,
            "training_characters": len(text.training),
            "validation_characters": len(text.validation),
            "text_digest": text.digest,
        },
        measurements={
            "arms": measured,
            "uniform": {
                "share": uniform_share(LENGTH, 1),
                "late_share": uniform_share(LENGTH, LENGTH // 2),
            },
            "differences": comparison.differences(measured, PAIRS, "loss"),
            "share_differences": comparison.differences(
                measured, PAIRS, "late_share"
            ),
        },
        elapsed_seconds=elapsed(),
    )


def uniform_share(length, skip):
    """The first token's share if each row's weights are equal.

    `mean of 1/(t + 1) over the rows t from skip to length − 1`
    """
    return float(np.mean(1.0 / np.arange(skip + 1, length + 1)))


def look(model, windows):
    """Attention, gates and activations of a trained model.

    Args:
        model: the model.
        windows: inputs `(B, T)`.

    Returns:
        A dictionary of arrays and numbers: `share`, the first token's share of
        the attention by layer and head, in all rows but the first, which sees
        nothing else; `late_share`, the same in the second half of the rows;
        `gate`, the mean of the gate by layer, without those that have none;
        `largest`, the greatest absolute value of the residual stream.
    """
    # Before the recording: that of a model of the same layers would be a trace.
    streams = residual_streams(model)
    with diagnostics.record_gates(model, scores=True) as record:
        outputs = streams(windows, training=False)
    late = windows.shape[1] // 2
    return {
        **{
            name: np.stack(
                list(diagnostics.attention_sink(record, skip=skip).values())
            )
            for name, skip in (("share", 1), ("late_share", late))
        },
        "gate": [float(gate.values.mean()) for gate in record.values()],
        "largest": max(float(abs(_numpy(x)).max()) for x in outputs),
    }


def _numpy(x):
    return keras.ops.convert_to_numpy(x)


def _summary(seen):
    """What a JSON file keeps of what `look` gave for each seed."""
    shares = np.stack([one["late_share"] for one in seen])
    gates = np.array([one["gate"] for one in seen])
    return {
        "share": comparison.mean([one["share"].mean() for one in seen]),
        "late_share": comparison.mean(shares.mean((1, 2))),
        "highest_head": comparison.mean(shares.max((1, 2))),
        "sink_heads": comparison.mean((shares > SINK_SHARE).mean((1, 2))),
        # By layer, and by head from the least share to the greatest.
        "late_share_by_head": np.sort(shares, -1).mean(0).tolist(),
        "gate": comparison.mean(gates.mean(1)) if gates.size else None,
        "gate_by_layer": gates.mean(0).tolist(),
        "largest": comparison.mean([one["largest"] for one in seen]),
    }


def _published(figures):
    return None if figures is None else dataclasses.asdict(figures)
