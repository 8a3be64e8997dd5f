"""Products: what fits them with how many parameters and layers.

The networks see two features, drawn evenly from the square [−1, 1]², and fit
three functions of them: their product, the conjunction of their signs, and an
amplitude-modulated signal of which the features are envelope and carrier. The
examples are new in every step, so the error is one of what a network can do
and of how it trains, never of memory. Controls have no gate: a square, with
which two units are an exact product, GELU and ReLU.
"""

import keras
import numpy as np

from keras_gating.experiments import comparison
from keras_gating.experiments.population import Population
from keras_gating.experiments.population import draw_weights
from keras_gating.experiments.population import summed_squares
from keras_gating.experiments.products_model import TASKS
from keras_gating.experiments.products_model import Network
from keras_gating.experiments.products_model import arms_by_name
from keras_gating.experiments.products_model import modulated
from keras_gating.experiments.products_model import parameters
from keras_gating.experiments.products_model import units_within
from keras_gating.experiments.results import Results
from keras_gating.experiments.results import stopwatch
from keras_gating.experiments.training import Progress
from keras_gating.experiments.training import fit_in_one_epoch
from keras_gating.functional import checks

BATCH = 128
TEST_POINTS = 4096
# Square of the features: as in training, and twice as wide.
RANGES = {"training": 1.0, "twice": 2.0}

# Parameters of one hidden layer, those of 1, 2, 4, 8 and 16 gated units. The
# tables compare at the middle one.
BUDGETS = (9, 17, 29, 57, 113)
COMPARED_BUDGET = 29
DEPTHS = (1, 2, 3)
DEPTH_BUDGET = 201

# Relative errors below this are rounding of 32-bit floats: all count as one.
ROUNDING = 1e-6

# Cycles a second of envelope and carrier, over one second.
ENVELOPE, CARRIER = 3, 20
SAMPLES = 512
LINES = (CARRIER - ENVELOPE, CARRIER, CARRIER + ENVELOPE)


def run(
    seeds=10,
    quick=False,
    arms=None,
    steps=None,
    learning_rate=0.01,
    on_progress=None,
):
    """Fits every function by every arm at every size.

    Args:
        seeds: number of seeds; they are 0, 1, …
        quick: 2 seeds at most, fewer steps and sizes, to try the program out.
        arms: names of arms, all of `products_model.ARMS` by default.
        steps: Adam steps. Defaults to 3000, and to 100 with `quick`.
        learning_rate: of Adam, at the start; it decays to 0 by a cosine.
        on_progress: function `(description, share done)`, called often.

    Returns:
        `Results`. `measurements["sizes"]` and `["depths"]` have one entry for
        each network, `["differences"]` gated minus ungated arms at one size,
        `arrays["spectra"]` the amplitudes of the modulated signal.
    """
    seeds = checks.positive_integer("seeds", seeds)
    steps = checks.positive_integer("steps", steps, optional=True)
    elapsed = stopwatch()
    arms = arms_by_name(arms)
    seeds = list(range(min(seeds, 2) if quick else seeds))
    if steps is None:
        steps = 100 if quick else 3000
    networks = _networks(arms, quick)
    progress = Progress(len(networks) * steps, on_progress)
    measured, spectra = {"sizes": [], "depths": []}, {}
    data = Data(steps)
    for group, arm, units, depth in networks:
        progress.describe(f"{arm.title}, {units} units, {depth} deep")
        population = _trained(
            arm, units, depth, seeds, data, learning_rate, progress
        )
        spectrum = _spectrum(population, len(seeds))
        measured[group].append(
            {
                "arm": arm.name,
                "title": arm.title,
                "units": units,
                "depth": depth,
                "parameters": parameters(arm, units, depth),
                "tasks": _errors(population, data, len(seeds)),
                "spectrum": spectrum_measures(spectrum),
            }
        )
        if group == "sizes" and units == units_within(arm, COMPARED_BUDGET):
            spectra[arm.name] = spectrum
    return Results(
        experiment="products",
        seeds=seeds,
        settings={
            "quick": quick,
            "steps": steps,
            "batch_size": BATCH,
            "learning_rate": learning_rate,
            "compared_budget": COMPARED_BUDGET,
            "depth_budget": DEPTH_BUDGET,
            "rounding": ROUNDING,
        },
        measurements={
            **measured,
            "differences": compare(arms, measured["sizes"]),
        },
        elapsed_seconds=elapsed(),
        arrays={"spectra": spectra, "target": signal_spectrum(modulated)},
    )


class Data:
    """Examples of training and test, the same for all networks.

    Args:
        steps: number of batches of training.
    """

    def __init__(self, steps):
        rng = np.random.default_rng(0)
        self.inputs = _square(rng, steps * BATCH, 1.0)
        self.tests = {
            name: _square(rng, TEST_POINTS, half)
            for name, half in RANGES.items()
        }


def targets(inputs, members):
    """Targets `(N, tasks × members)`, the members of one task together."""
    return np.repeat(
        np.stack([f(*inputs.T) for _, f in TASKS.values()], axis=-1),
        members,
        axis=-1,
    )


def relative_error(outputs, target):
    """Root mean squared error over the spread of the target, by member.

    A constant at the target's mean has 1.
    """
    error = np.float64(outputs) - target[:, None]
    return np.sqrt(np.square(error).mean(axis=0)) / target.std()


def signal(half=1.0):
    """Envelope and carrier over one second, `(SAMPLES, 2)`."""
    time = np.arange(SAMPLES) / SAMPLES
    waves = [np.cos(2.0 * np.pi * f * time) for f in (ENVELOPE, CARRIER)]
    return np.float32(half * np.stack(waves, axis=-1))


def amplitudes(outputs):
    """Amplitude of each whole frequency of `(SAMPLES, …)`."""
    spectrum = np.abs(np.fft.rfft(np.float64(outputs), axis=0)) / SAMPLES
    spectrum[1:] *= 2.0
    return spectrum


def signal_spectrum(function):
    """Amplitudes of `function(envelope, carrier)` over one second."""
    return amplitudes(function(*signal().T))


def spectrum_measures(spectrum):
    """Sidebands and what should not be there.

    Args:
        spectrum: amplitudes `(frequencies, members)`.

    Returns:
        `"sideband"`, the mean amplitude at carrier ± envelope (½ in the
        target), and `"spurious"`, the share of the power that lies outside
        the three lines of the target, the constant part left out.
    """
    power = np.square(spectrum[1:])
    lines = np.square(spectrum[list(LINES)]).sum(axis=0)
    sidebands = spectrum[[LINES[0], LINES[2]]].mean(axis=0)
    total = np.maximum(power.sum(axis=0), np.finfo("float64").tiny)
    return {
        "sideband": comparison.mean(sidebands),
        "spurious": comparison.mean(np.maximum(1.0 - lines / total, 0.0)),
    }


def compare(arms, sizes):
    """Differences of log10 errors at one size, gated minus ungated arms.

    Args:
        arms: the arms to compare.
        sizes: the entries of `measurements["sizes"]`.

    Returns:
        One dictionary for each task, range and pair of arms.
    """
    at_budget = {
        entry["arm"]: entry
        for arm in arms
        for entry in sizes
        if entry["arm"] == arm.name
        and entry["units"] == units_within(arm, COMPARED_BUDGET)
    }
    return [
        {
            "task": task,
            "range": part,
            "gated": gated.name,
            "ungated": ungated.name,
            **comparison.difference(
                *(
                    at_budget[arm.name]["tasks"][task][part]["values"]
                    for arm in (gated, ungated)
                )
            ),
        }
        for task in TASKS
        for part in RANGES
        for gated in arms
        if gated.gate is not None
        for ungated in arms
        if ungated.gate is None
    ]


def _networks(arms, quick):
    """What is trained: group, arm, units and depth."""
    budgets = (COMPARED_BUDGET,) if quick else BUDGETS
    depths = DEPTHS[1:2] if quick else DEPTHS
    return [
        ("sizes", arm, units_within(arm, budget), 1)
        for arm in arms
        for budget in budgets
    ] + [
        ("depths", arm, units_within(arm, DEPTH_BUDGET, depth), depth)
        for arm in arms
        for depth in depths
    ]


def _trained(arm, units, depth, seeds, data, learning_rate, progress):
    """One population for all tasks: only the targets of members differ."""

    def build():
        network = Network(arm, units, depth)
        network.build()
        return network

    weights = draw_weights(build, seeds) * len(TASKS)
    population = Population(build(), weights)
    steps = len(data.inputs) // BATCH
    schedule = keras.optimizers.schedules.CosineDecay(learning_rate, steps)
    population.compile(keras.optimizers.Adam(schedule), summed_squares)
    fit_in_one_epoch(
        population,
        data.inputs,
        targets(data.inputs, len(seeds)),
        batch_size=BATCH,
        progress=progress,
    )
    return population


def _errors(population, data, members):
    """Means over seeds of log10 of the relative error, by task and range."""
    errors = {task: {} for task in TASKS}
    for part, points in data.tests.items():
        outputs = population.predict(points, batch_size=SAMPLES, verbose=0)
        by_task = np.split(outputs, len(TASKS), axis=-1)
        for (task, (_, function)), answers in zip(TASKS.items(), by_task):
            error = relative_error(answers, function(*points.T))
            logs = np.log10(np.maximum(error, ROUNDING))
            errors[task][part] = comparison.mean(logs)
    return errors


def _spectrum(population, members):
    outputs = population.predict(signal(), batch_size=SAMPLES, verbose=0)
    task = list(TASKS).index("modulated")
    return amplitudes(np.split(outputs, len(TASKS), axis=-1)[task])


def _square(rng, count, half):
    return rng.uniform(-half, half, size=(count, 2)).astype("float32")
