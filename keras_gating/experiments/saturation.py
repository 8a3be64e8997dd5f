"""Saturation: where gates lose their slope, and what training makes of it.

Under normal logits the share of gates whose slope has vanished is exact, see
`saturation_slopes`. The rest is trained: a network with one gated layer on
scikit-learn's digits, whose gate kernel starts at a multiple of Glorot's. All
activations and scales of a seed share the split, the batches and, up to that
multiple, the initial weights.
"""

import keras
import numpy as np
from keras import ops

from keras_gating.diagnostics import gate_statistics
from keras_gating.experiments import comparison
from keras_gating.experiments.population import seeded
from keras_gating.experiments.results import Results
from keras_gating.experiments.results import stopwatch
from keras_gating.experiments.saturation_conclusions import compare
from keras_gating.experiments.saturation_conclusions import conclude
from keras_gating.experiments.saturation_model import Images
from keras_gating.experiments.saturation_model import build
from keras_gating.experiments.saturation_model import logits
from keras_gating.experiments.saturation_model import scale_start
from keras_gating.experiments.saturation_slopes import ACTIVATIONS
from keras_gating.experiments.saturation_slopes import largest_slope
from keras_gating.experiments.saturation_slopes import slope_size
from keras_gating.experiments.saturation_slopes import vanished
from keras_gating.experiments.saturation_slopes import vanished_share
from keras_gating.experiments.selection import entries_by_name
from keras_gating.experiments.training import Progress
from keras_gating.experiments.training import fit_in_one_epoch
from keras_gating.experiments.training import restart
from keras_gating.functional import checks

SPREADS = (0.5, 1.0, 3.0, 10.0)
SCALES = (0.0, 1.0, 3.0, 10.0)
BATCH = 64
# Thresholds of a `GateMonitor`: next to 0 and next to 1.
LOW, HIGH = 0.01, 0.99
# Gradients below this are zero; a logarithm needs a number.
SMALLEST_GRADIENT = 1e-12


def run(
    seeds=10,
    quick=False,
    activations=None,
    scales=None,
    epochs=None,
    learning_rate=3e-3,
    on_progress=None,
):
    """Computes vanished slopes, then trains every activation at every scale.

    Args:
        seeds: number of seeds; they are 0, 1, …
        quick: 2 seeds at most, fewer epochs and scales, to try the program
            out.
        activations: names of gate activations, all of
            `saturation_slopes.ACTIVATIONS` by default.
        scales: factors on the initial kernel of the gate. Defaults to 0, 1, 3
            and 10, and to 1 and 10 with `quick`.
        epochs: passes over the training images. Defaults to 20, and to 1 with
            `quick`.
        learning_rate: of Adam, at the start; it decays to 0 by a cosine.
        on_progress: function `(description, share done)`, called often.

    Returns:
        `Results`. `measurements["exact"]` has the shares under normal logits,
        `["activations"]` what was trained, `["conclusions"]` what follows.
    """
    seeds = checks.positive_integer("seeds", seeds)
    epochs = checks.positive_integer("epochs", epochs, optional=True)
    elapsed = stopwatch()
    activations = entries_by_name(
        ACTIVATIONS, activations, "saturation", "activations"
    )
    scales = _scales(scales, quick)
    seeds = list(range(min(seeds, 2) if quick else seeds))
    if epochs is None:
        epochs = 1 if quick else 20
    splits = [Images(seed) for seed in seeds]
    starts = [_drawn(seed) for seed in seeds]
    steps = epochs * len(splits[0].train_labels) // BATCH
    progress = Progress(
        len(activations) * len(scales) * len(seeds) * steps, on_progress
    )
    measured = {}
    for activation in activations:
        model = _compiled(activation, learning_rate, steps)
        by_scale = {}
        for scale in scales:
            progress.describe(f"{activation.title}, {scale:g} × Glorot")
            trained = [
                _train(model, activation, scale, *drawn, steps, progress)
                for drawn in zip(seeds, starts, splits)
            ]
            by_scale[f"{scale:g}"] = {
                key: comparison.mean([entry[key] for entry in trained])
                for key in trained[0]
            }
        measured[activation.name] = {
            "title": activation.title,
            "scales": by_scale,
        }
    compare(measured)
    return Results(
        experiment="saturation",
        seeds=seeds,
        settings={
            "quick": quick,
            "spreads": list(SPREADS),
            "scales": list(scales),
            "epochs": epochs,
            "steps": steps,
            "batch_size": BATCH,
            "learning_rate": learning_rate,
            "training_images": len(splits[0].train_labels),
            "test_images": len(splits[0].test_labels),
        },
        measurements={
            "exact": exact(activations),
            "activations": measured,
            "conclusions": conclude(measured),
        },
        elapsed_seconds=elapsed(),
    )


def exact(activations):
    """What normal logits do to activations, without any training.

    Returns:
        For each name the largest slope, and lists with a number for each of
        `SPREADS`: `vanished` slopes, those of them at negative logits, and the
        root mean square of the slope over the largest one.
    """
    measured = {}
    for activation in activations:
        shares = [vanished_share(activation, spread) for spread in SPREADS]
        largest = largest_slope(activation)
        measured[activation.name] = {
            "title": activation.title,
            "largest_slope": largest,
            "vanished": [sum(pair) for pair in shares],
            "vanished_negative": [negative for negative, _ in shares],
            "relative_slope": [
                slope_size(activation, spread) / largest for spread in SPREADS
            ],
        }
    return measured


def _scales(scales, quick):
    if scales is None:
        return SCALES[1::2] if quick else SCALES
    scales = tuple(scales)
    if not scales or not all(checks.is_number(s) and s >= 0 for s in scales):
        raise ValueError(
            f"`scales` must be numbers of at least 0. Received: scales={scales}"
        )
    return tuple(float(scale) for scale in scales)


def _compiled(activation, learning_rate, steps):
    model = build(activation.name)
    model.compile(
        keras.optimizers.Adam(
            keras.optimizers.schedules.CosineDecay(learning_rate, steps)
        ),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    return model


def _drawn(seed):
    """A model with the initial weights that all activations start from."""
    with seeded(seed):
        return build("linear")


def _train(model, activation, scale, seed, drawn, split, steps, progress):
    """Trains once and returns a number for each measure."""
    restart(model, drawn)
    scale_start(model, scale)
    start = _state(model, activation, split, "start")
    rng = np.random.default_rng(seed)
    count = len(split.train_labels)
    order = np.concatenate(
        [rng.permutation(count) for _ in range(-(-steps * BATCH // count))]
    )
    # The first step by itself: Adam's momentum is then its gradient.
    parts = order[:BATCH], order[BATCH : steps * BATCH]
    for part in filter(len, parts):
        fit_in_one_epoch(
            model, split.train[part], split.train_labels[part], BATCH, progress
        )
        if part is parts[0]:
            gate, value = (
                gradient_norm(model.optimizer, f"{path}_kernel")
                for path in ("gate_projection", "value")
            )
    predicted = model.predict(
        split.test, batch_size=len(split.test), verbose=0
    ).argmax(axis=-1)
    return {
        **start,
        **_state(model, activation, split, "end"),
        "log10_gradient": float(np.log10(max(gate, SMALLEST_GRADIENT))),
        "gradient_share": gate / max(gate + value, SMALLEST_GRADIENT),
        "accuracy": float(np.mean(predicted == split.test_labels)),
    }


def gradient_norm(optimizer, name):
    """Norm of the gradient of Adam's first step, from its momentum.

    Args:
        optimizer: `keras.optimizers.Adam` after one step.
        name: of the weight, as the optimizer writes it.
    """
    (momentum,) = [
        v
        for v in optimizer.variables
        if v.path.rpartition("/")[2] == f"{name}_momentum"
    ]
    norm = np.linalg.norm(np.float64(ops.convert_to_numpy(momentum)))
    return float(norm / (1.0 - optimizer.beta_1))


def _state(model, activation, split, when):
    """Logits and gates on the test images, under names that end in `when`."""
    z = logits(model, split.test)
    state = {
        f"spread_{when}": float(z.std()),
        f"vanished_{when}": float(vanished(activation, z).mean()),
    }
    (gate,) = gate_statistics(
        model, split.test, batch_size=len(split.test), low=LOW, high=HIGH
    ).values()
    if gate["bounded"]:
        state[f"near_ends_{when}"] = gate["share_low"] + gate["share_high"]
    return state
