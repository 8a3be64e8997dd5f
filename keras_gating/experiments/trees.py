"""Does negative curvature have room for trees, and is it of use to a gate?

Two parts. In the first, trees, a cycle and a grid are embedded in two and five
dimensions at a curvature of zero, below, above, or learnt with the points.
Points drawn from spaces of known curvature are the controls: it has to come
back. In the second, gates stand between attention and the readout of a model
that tells leaves of a tree apart: a sigmoid gate, and gates of learnt or fixed
curvature at equal parameters.
"""

import keras
import numpy as np
from keras import ops

from keras_gating.experiments import comparison
from keras_gating.experiments.corrections import holm
from keras_gating.experiments.corrections import paired_p_value
from keras_gating.experiments.population import seeded
from keras_gating.experiments.precision import float_type
from keras_gating.experiments.results import Results
from keras_gating.experiments.results import stopwatch
from keras_gating.experiments.training import Progress
from keras_gating.experiments.training import fit_in_one_epoch
from keras_gating.experiments.training import restart
from keras_gating.experiments.trees_model import ARMS
from keras_gating.experiments.trees_model import Embedding
from keras_gating.experiments.trees_model import spaces_by_name
from keras_gating.experiments.trees_model import start
from keras_gating.experiments.trees_task import BATCH
from keras_gating.experiments.trees_task import TEST_SEQUENCES
from keras_gating.experiments.trees_task import arms_by_name
from keras_gating.experiments.trees_task import build
from keras_gating.experiments.trees_task import leaf_distances
from keras_gating.experiments.trees_task import learnt_curvature
from keras_gating.experiments.trees_task import node_vectors
from keras_gating.experiments.trees_task import sequences
from keras_gating.functional import checks

DIMENSIONS = (2, 5)
STEPS = 1500
# Seeds of a graph differ by the noise of the start alone.
EMBEDDED_SEEDS = 3
TASK_STEPS = 800
LEARNING_RATE = 0.03
TASK_LEARNING_RATE = 0.01
# What comes back of a curvature: within so much, where the distortion says
# that the points have come back.
RECOVERED_WITHIN = 0.05
NO_DISTORTION = 0.01


def run(
    seeds=10,
    quick=False,
    spaces=None,
    dimensions=DIMENSIONS,
    task_arms=None,
    on_progress=None,
):
    """Embeds every space, then trains every arm of the task.

    Args:
        seeds: number of seeds of the task; they are 0, 1, … The embeddings
            take the first 3 of them.
        quick: few steps and seeds, to try the program out.
        spaces: names of spaces, all of `trees_model.SPACES` by default.
        dimensions: numbers of dimensions to embed in.
        task_arms: names of arms of the task, all by default.
        on_progress: function `(description, share done)`, called often.

    Returns:
        `Results`, with a list of embeddings in `measurements["embeddings"]`,
        the arms of the task in `measurements["task"]`, and in
        `arrays["pictures"]` embeddings of the first seed.
    """
    seeds = checks.positive_integer("seeds", seeds)
    elapsed = stopwatch()
    spaces, task_arms = spaces_by_name(spaces), arms_by_name(task_arms)
    seeds = list(range(min(seeds, 2) if quick else seeds))
    embedded = seeds[:EMBEDDED_SEEDS]
    steps, task_steps = (60, 20) if quick else (STEPS, TASK_STEPS)
    dtype = float_type()
    total = len(spaces) * len(dimensions) * steps
    progress = Progress(
        total + len(task_arms) * len(seeds) * task_steps, on_progress
    )
    embeddings, pictures = [], {}
    for dimension in dimensions:
        for space in spaces:
            progress.describe(f"{space.title}, {dimension} dimensions")
            entry, picture = _embed(
                space, dimension, embedded, steps, dtype, progress
            )
            embeddings.append(entry)
            if dimension == 2:
                pictures[space.name] = picture
    task = _task(task_arms, seeds, task_steps, progress)
    return Results(
        experiment="trees",
        seeds=seeds,
        settings={
            "quick": quick,
            "dtype": dtype,
            "steps": steps,
            "embedded_seeds": embedded,
            "learning_rate": LEARNING_RATE,
            "task_steps": task_steps,
            "task_learning_rate": TASK_LEARNING_RATE,
            "batch_size": BATCH,
            "test_sequences": TEST_SEQUENCES,
            "recovered_within": RECOVERED_WITHIN,
            "no_distortion": NO_DISTORTION,
        },
        measurements={
            "embeddings": embeddings,
            "conclusions": conclude(embeddings),
            "task": task,
        },
        elapsed_seconds=elapsed(),
        arrays={"pictures": pictures},
    )


def conclude(embeddings):
    """Which controls came back, and which curvature each space chose.

    Args:
        embeddings: entries of `measurements["embeddings"]`.

    Returns:
        A dictionary: `controls`, for each the number of runs without
        distortion and those of them whose curvature is the known one; and
        `signs`, of the best learnt curvature of each other space.
    """
    controls, signs = [], []
    for entry in embeddings:
        learnt = entry["arms"]["learnt"]
        about = {key: entry[key] for key in ("space", "title", "dimension")}
        distortion = np.array(learnt["distortion"]["values"])
        curvature = np.array(learnt["curvature"]["values"])
        if entry["known_curvature"] is not None:
            close = distortion < NO_DISTORTION
            error = np.abs(curvature - entry["known_curvature"])
            controls.append(
                {
                    **about,
                    "runs": len(distortion),
                    "without_distortion": int(close.sum()),
                    "recovered": int(
                        (close & (error < RECOVERED_WITHIN)).sum()
                    ),
                    "largest_error": float(error[close].max())
                    if close.any()
                    else None,
                }
            )
        else:
            best = int(distortion.argmin())
            signs.append({**about, "curvature": float(curvature[best])})
    return {"controls": controls, "signs": signs}


def _embed(space, dimension, seeds, steps, dtype, progress):
    """All arms and seeds of one space, trained side by side."""
    distances = [space.distances(seed, dimension) for seed in seeds]
    layer = Embedding(
        np.stack(distances * len(ARMS)),
        [arm for arm in ARMS for _ in seeds],
        # A sphere that is just large enough.
        [(np.pi / d.max()) ** 2 for d in distances] * len(ARMS),
        np.stack(
            [start(d, dimension, s) for d, s in zip(distances, seeds)]
            * len(ARMS)
        ),
        dtype=dtype,
    )
    inputs = keras.Input((2,))
    model = keras.Model(inputs, layer(inputs))
    schedule = keras.optimizers.schedules.CosineDecay(LEARNING_RATE, steps)
    model.compile(
        keras.optimizers.Adam(schedule),
        lambda targets, squares: ops.sum(squares, axis=-1),
    )
    done = np.arange(steps) / steps
    released = done >= 1.0 / 3.0
    # A fixed curvature comes in slowly, so that points can follow.
    share = np.clip((done - 1.0 / 3.0) * 6.0, 0.0, 1.0)
    fit_in_one_epoch(
        model,
        np.stack([share, released], axis=-1).astype("float32"),
        np.zeros((steps, 1), "float32"),
        batch_size=1,
        progress=progress,
    )
    rows = (len(ARMS), len(seeds))
    squares = model.predict(np.ones((1, 2), "float32"), verbose=0)
    distortion = np.sqrt(np.float64(squares)).reshape(rows)
    points, curvature = (ops.convert_to_numpy(x) for x in layer.points())
    curvature = np.float64(curvature).reshape(rows)
    arms = {
        arm.name: {
            "title": arm.title,
            "short": arm.short,
            "distortion": comparison.mean(distortion[i]),
            "curvature": comparison.mean(curvature[i]),
        }
        for i, arm in enumerate(ARMS)
    }
    flat, learnt = arms["flat"]["distortion"], arms["learnt"]["distortion"]
    entry = {
        "space": space.name,
        "title": space.title,
        "points": len(distances[0]),
        "dimension": dimension,
        "known_curvature": space.curvature,
        "arms": arms,
        "learnt_minus_flat": comparison.difference(
            learnt["values"], flat["values"]
        ),
    }
    points = points.reshape(*rows, *points.shape[1:])
    picture = {
        arm.name: (points[i, 0], float(curvature[i, 0]))
        for i, arm in enumerate(ARMS)
    }
    return entry, {"distances": distances[0], "arms": picture}


def _task(arms, seeds, steps, progress):
    measured: dict = {}
    for arm in arms:
        progress.describe(arm.title)
        schedule = keras.optimizers.schedules.CosineDecay(
            TASK_LEARNING_RATE, steps
        )
        model = build(arm)
        model.compile(
            keras.optimizers.Adam(schedule),
            keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        )
        runs = [_classify(model, arm, seed, steps, progress) for seed in seeds]
        columns = {key: [run[key] for run in runs] for key in runs[0]}
        curvature = columns.pop("curvature")
        measured[arm.name] = {
            "title": arm.title,
            "parameters": model.count_params(),
            "curvature": None
            if curvature[0] is None
            else comparison.mean(curvature),
            **{key: comparison.mean(values) for key, values in columns.items()},
        }
    return {"arms": measured, "differences": _differences(measured)}


def _classify(model, arm, seed, steps, progress):
    with seeded(seed):
        restart(model, build(arm))
    rng = np.random.default_rng(seed)
    nodes = node_vectors(rng)
    inputs, labels = sequences(rng, steps * BATCH, nodes)
    fit_in_one_epoch(model, inputs, labels, batch_size=BATCH, progress=progress)
    inputs, labels = sequences(rng, TEST_SEQUENCES, nodes)
    logits = np.float64(
        model.predict(inputs, batch_size=TEST_SEQUENCES, verbose=0)
    )
    chosen = logits.argmax(axis=-1)
    logits -= np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    return {
        "accuracy": float(np.mean(chosen == labels)),
        "steps_off": float(np.mean(leaf_distances()[chosen, labels])),
        "loss": float(-np.mean(logits[np.arange(len(labels)), labels])),
        "curvature": learnt_curvature(model),
    }


def _differences(measured):
    """Accuracy and loss of each arm, less those of the sigmoid gate."""
    if "sigmoid" not in measured:
        return []
    made = []
    for name, arm in measured.items():
        if name == "sigmoid":
            continue
        for key in ("accuracy", "steps_off"):
            first = arm[key]["values"]
            second = measured["sigmoid"][key]["values"]
            made.append(
                {
                    "first": name,
                    "second": "sigmoid",
                    "measure": key,
                    **comparison.difference(first, second),
                    "p": paired_p_value(first, second),
                }
            )
    adjusted = holm([entry["p"] for entry in made])
    for entry, p in zip(made, adjusted):
        entry["adjusted_p"] = p
    return made
