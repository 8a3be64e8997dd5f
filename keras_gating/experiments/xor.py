"""XOR: an affine readout cannot, a gated one can.

Four examples, targets 0, 1, 1, 0. A network has *solved* XOR when all four
errors are below ¼. The arms that read one bit in the gate isolate
multiplication: there a sum of functions of single bits remains a sum, whatever
is added to it, while a product of two of them is not.
"""

import keras
import numpy as np

from keras_gating.experiments.intervals import wilson_interval
from keras_gating.experiments.population import Population
from keras_gating.experiments.population import draw_weights
from keras_gating.experiments.population import summed_squares
from keras_gating.experiments.results import Results
from keras_gating.experiments.results import stopwatch
from keras_gating.experiments.training import Progress
from keras_gating.experiments.training import fit_in_one_epoch
from keras_gating.experiments.xor_arms import BitReader
from keras_gating.experiments.xor_arms import arms_by_name
from keras_gating.functional import checks

INPUTS = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], "float32")
TARGETS = np.array([0, 1, 1, 0], "float32")
SOLVED_BELOW = 0.25

# Square of the plane that the surfaces cover, and points a side.
SURFACE_RANGE = (-0.5, 1.5)
SURFACE_POINTS = 61


def run(
    seeds=200,
    quick=False,
    arms=None,
    steps=None,
    learning_rate=0.03,
    on_progress=None,
):
    """Trains every arm from every seed and counts what is solved.

    Args:
        seeds: number of seeds; they are 0, 1, …
        quick: 5 seeds at most and fewer steps, to try the program out.
        arms: names of arms, all of `xor_arms.ARMS` by default.
        steps: Adam steps on all four examples. Defaults to 1000, and to 100
            with `quick`.
        learning_rate: of Adam.
        on_progress: function `(description, share done)`, called often.

    Returns:
        `Results`, with one entry for each arm in `measurements["arms"]` and
        the decision surfaces of single networks in `arrays["surfaces"]`.
    """
    seeds = checks.positive_integer("seeds", seeds)
    steps = checks.positive_integer("steps", steps, optional=True)
    elapsed = stopwatch()
    arms = arms_by_name(arms)
    seeds = list(range(min(seeds, 5) if quick else seeds))
    if steps is None:
        steps = 100 if quick else 1000
    progress = Progress(len(arms) * steps, on_progress)
    measured, surfaces = {}, []
    for arm in arms:
        progress.describe(arm.title)
        outputs, arm_surfaces = _train(
            arm, seeds, steps, learning_rate, progress
        )
        measured[arm.name] = {
            "title": arm.title,
            "obstacle": arm.obstacle,
            **summarise(outputs),
        }
        surfaces.extend(arm_surfaces)
    return Results(
        experiment="xor",
        seeds=seeds,
        settings={
            "quick": quick,
            "steps": steps,
            "learning_rate": learning_rate,
            "solved_below": SOLVED_BELOW,
        },
        measurements={"arms": measured},
        elapsed_seconds=elapsed(),
        arrays={"surfaces": surfaces},
    )


def summarise(outputs):
    """Counts and errors of one arm.

    Args:
        outputs: `(4, seeds)`, what the networks answer to `INPUTS`.

    Returns:
        A dictionary of plain numbers and lists.
    """
    errors = np.abs(np.float64(outputs) - TARGETS[:, None])
    largest = errors.max(axis=0)
    squared = np.square(errors).mean(axis=0)
    solved = largest < SOLVED_BELOW
    interval = wilson_interval(int(solved.sum()), solved.size)
    return {
        "solved": int(solved.sum()),
        "trials": int(solved.size),
        "share": interval.estimate,
        "share_low": interval.low,
        "share_high": interval.high,
        "median_squared_error": float(np.median(squared)),
        "smallest_squared_error": float(squared.min()),
        "smallest_largest_error": float(largest.min()),
        "solved_seeds": [bool(s) for s in solved],
        "largest_errors": [float(e) for e in largest],
        "squared_errors": [float(e) for e in squared],
    }


def _train(arm, seeds, steps, learning_rate, progress):
    """Returns the outputs `(4, seeds)` and the surfaces worth drawing."""

    def build():
        network = BitReader(arm)
        network.build()
        return network

    population = Population(build(), draw_weights(build, seeds))
    population.compile(keras.optimizers.Adam(learning_rate), summed_squares)
    fit_in_one_epoch(
        population,
        np.tile(INPUTS, (steps, 1)),
        np.tile(TARGETS[:, None], (steps, 1)),
        batch_size=len(INPUTS),
        progress=progress,
    )
    # Five equal batches: compiled once, and small enough for many members.
    points = np.concatenate([INPUTS, _grid()])
    predicted = population.predict(
        points, batch_size=len(points) // 5, verbose=0
    )
    outputs, values = predicted[: len(INPUTS)], predicted[len(INPUTS) :]
    return outputs, [
        {
            "arm": arm.name,
            "title": arm.title,
            "seed": seeds[member],
            "solved": solved,
            "values": values[:, member].reshape(SURFACE_POINTS, SURFACE_POINTS),
        }
        for member, solved in representatives(outputs)
    ]


def _grid():
    """Points of the surface, the second bit running fastest."""
    axis = np.linspace(*SURFACE_RANGE, SURFACE_POINTS, dtype="float32")
    return np.stack(np.meshgrid(axis, axis, indexing="ij"), -1).reshape(-1, 2)


def representatives(outputs):
    """The members to draw: the median one of those that solved, and did not.

    Args:
        outputs: `(4, seeds)`.

    Returns:
        Pairs of a member and whether it has solved XOR, one or two.
    """
    errors = np.abs(outputs - TARGETS[:, None]).max(axis=0)
    chosen = []
    for solved in (True, False):
        members = np.flatnonzero((errors < SOLVED_BELOW) == solved)
        if members.size:
            ranked = members[np.argsort(errors[members], kind="stable")]
            chosen.append((int(ranked[(members.size - 1) // 2]), solved))
    return chosen
