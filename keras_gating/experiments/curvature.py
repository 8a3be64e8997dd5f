"""Curvature: what gates do to it, and whether accuracy goes with it.

Attention to fixed values is a weighted mean of them, so its image lies in
their affine hull, and is flat where this has no more dimensions than the
input. Gates and activations bend it. The experiment measures ∫|K| dA of random
maps (attention, activations, stacks of layers) and of networks trained on
tasks with straight and curved boundaries, where it asks whether more curvature
goes with more accuracy.
"""

from keras_gating.experiments import curvature_random
from keras_gating.experiments.curvature_analysis import analyse
from keras_gating.experiments.curvature_analysis import conclude
from keras_gating.experiments.curvature_maps import ACTIVATIONS
from keras_gating.experiments.curvature_maps import HEADS
from keras_gating.experiments.curvature_measure import measure
from keras_gating.experiments.curvature_model import PLANAR_ARMS
from keras_gating.experiments.curvature_model import arms_of
from keras_gating.experiments.curvature_random import ATTENTION_STACKS
from keras_gating.experiments.curvature_random import BOUNDS
from keras_gating.experiments.curvature_random import FLAT_BELOW
from keras_gating.experiments.curvature_random import SHARPNESS
from keras_gating.experiments.curvature_tasks import TASKS
from keras_gating.experiments.curvature_training import LEARNING_RATE
from keras_gating.experiments.curvature_training import TEST_POINTS
from keras_gating.experiments.curvature_training import train
from keras_gating.experiments.precision import float_type
from keras_gating.experiments.results import Results
from keras_gating.experiments.results import stopwatch
from keras_gating.experiments.selection import entries_by_name
from keras_gating.experiments.selection import known_names
from keras_gating.experiments.training import Progress
from keras_gating.functional import checks

PARTS = ("heads", "activations", "sharpness", "stacks", "training")
TOKENS = (3, 8)
DEPTHS = (1, 2, 3, 4, 6, 8)
QUICK_ARMS = ("ungated", "constant", "elementwise")
# Gated and ungated attention, and a control that must stay flat.
DEMO: dict = {
    "parts": ("training",),
    "tokens": (3,),
    "arms": QUICK_ARMS,
    "tasks": ("linear", "circle", "xor"),
}
# Random maps cost little: so many seeds for one of the training.
MAPS_A_SEED = 10
# Gauss–Legendre nodes along each axis: trained maps, random maps, softplus
# close to ReLU, whose curvature stands on lines.
RESOLUTIONS = {"training": 64, "maps": 32, "sharpness": 240}
QUICK_RESOLUTION = 12


def run(
    seeds=10,
    quick=False,
    parts=None,
    tokens=None,
    arms=None,
    tasks=None,
    steps=None,
    on_progress=None,
):
    """Measures random maps, trains networks and measures these.

    Args:
        seeds: number of seeds for training; they are 0, 1, … Random maps
            have ten times as many.
        quick: 2 seeds at most, three arms, one task, few steps and coarse
            grids, to try the program out.
        parts: names of parts, all of `PARTS` by default.
        tokens: numbers of tokens of the arms. Defaults to 3 and 8, and to 3
            with `quick`.
        arms: names of arms, all by default.
        tasks: names of tasks, all of `curvature_tasks.TASKS` by default.
        steps: of Adam. Defaults to 1000, or 2000 on the three hardest
            tasks, and to 200 with `quick`.
        on_progress: function `(description, share done)`, called often.

    Returns:
        `Results`, with one entry for each part in `measurements`, the
        conclusions beside them, and in `arrays["pictures"]` images of trained
        networks.
    """
    seeds = checks.positive_integer("seeds", seeds)
    steps = checks.positive_integer("steps", steps, optional=True)
    elapsed = stopwatch()
    parts = known_names(PARTS, parts, "curvature", "parts")
    if quick:
        tokens = tokens or TOKENS[:1]
        arms = arms or QUICK_ARMS
        tasks = tasks or ("circle",)
        steps = steps or 200
    tokens = tuple(tokens or TOKENS)
    tasks = entries_by_name(TASKS, tasks, "curvature", "tasks")
    arms = _arms_called(arms, tokens)
    training_seeds = list(range(min(seeds, 2) if quick else seeds))
    map_seeds = list(range(len(training_seeds) * (1 if quick else MAPS_A_SEED)))
    depths = DEPTHS[:2] if quick else DEPTHS
    resolutions = dict.fromkeys(RESOLUTIONS, QUICK_RESOLUTION)
    resolutions = resolutions if quick else RESOLUTIONS
    sharp_seeds = map_seeds[: max(2, len(map_seeds) // 5)]
    maps = resolutions["maps"]
    work = {
        "heads": (len(HEADS) * len(map_seeds), (map_seeds, maps)),
        "activations": (
            len(ACTIVATIONS) * len(depths) * len(map_seeds),
            (map_seeds, maps, depths),
        ),
        "sharpness": (
            len(SHARPNESS) * len(sharp_seeds),
            (sharp_seeds, resolutions["sharpness"]),
        ),
        "stacks": (
            2 * len(ATTENTION_STACKS) * len(depths) * len(map_seeds),
            (map_seeds, maps, depths),
        ),
    }
    total = sum(work[part][0] for part in parts if part in work)
    if "training" in parts:
        total += len(arms) * (
            sum(steps or n for n in {t.steps for t in tasks})
            + len(tasks) * len(training_seeds)
        )
    progress = Progress(total, on_progress)
    measurements, arrays = {}, {}
    for part in parts:
        if part in work:
            function = getattr(curvature_random, part)
            measurements[part] = function(*work[part][1], progress)
        else:
            measurements[part], arrays["pictures"] = _training(
                arms,
                tasks,
                training_seeds,
                steps,
                resolutions["training"],
                progress,
            )
    measurements["conclusions"] = conclude(measurements)
    return Results(
        experiment="curvature",
        seeds=training_seeds,
        settings={
            "quick": quick,
            "parts": list(parts),
            "dtype": float_type(),
            "bounds": [list(pair) for pair in BOUNDS],
            "flat_below": FLAT_BELOW[float_type()],
            "map_seeds": len(map_seeds),
            "sharpness_seeds": len(sharp_seeds),
            "resolutions": dict(resolutions),
            "depths": list(depths),
            "steps": {t.name: steps or t.steps for t in tasks},
            "points": {t.name: t.points for t in tasks},
            "test_points": TEST_POINTS,
            "learning_rate": LEARNING_RATE,
        },
        measurements=measurements,
        elapsed_seconds=elapsed(),
        arrays=arrays,
    )


def _training(arms, tasks, seeds, steps, resolution, progress):
    """Trains and measures every arm; returns measurements and pictures."""
    measured, pictures = {}, []
    for key, arm in arms.items():
        entries = {}
        for length in dict.fromkeys(task.steps for task in tasks):
            alike = [task for task in tasks if task.steps == length]
            progress.describe(f"training: {arm.title}")
            weights, accuracies = train(
                arm, alike, seeds, steps or length, progress
            )
            progress.describe(f"measuring: {arm.title}")
            entries |= measure(
                arm, alike, weights, accuracies, resolution, progress, pictures
            )
        measured[key] = {
            "name": arm.name,
            "title": arm.title,
            "tokens": arm.tokens,
            "features": arm.features,
            "group": arm.group,
            "must_be_flat": arm.flat,
            "parameters": arm.parameters,
            "tasks": {task.name: entries[task.name] for task in tasks},
        }
    titles = {t.name: {"title": t.title, "straight": t.straight} for t in tasks}
    return {
        "tasks": titles,
        "arms": measured,
        "groups": analyse(measured, titles),
    }, pictures


def _arms(tokens):
    groups = {f"{a.name}_{n}": a for n in tokens for a in arms_of(n)}
    return {**groups, **{arm.name: arm for arm in PLANAR_ARMS}}


def _arms_called(names, tokens):
    """Arms by their keys; a name stands for every number of tokens."""
    arms = _arms(tokens)
    known = tuple({arm.name: arm for arm in arms.values()})
    names = known_names(known, names, "curvature", "arms")
    return {key: arm for key, arm in arms.items() if arm.name in names}
