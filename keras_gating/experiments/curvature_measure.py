"""Measures the images of trained networks, in the widest floats there are."""

import numpy as np
from keras import ops

from keras_gating import geometry
from keras_gating.experiments.curvature_model import Context
from keras_gating.experiments.curvature_random import BOUNDS
from keras_gating.experiments.curvature_random import summarise
from keras_gating.experiments.curvature_random import total
from keras_gating.experiments.curvature_tasks import HALF_WIDTH
from keras_gating.experiments.precision import float_type
from keras_gating.geometry.evaluation import as_numpy

# Of which arms and tasks there are pictures, of the first seed.
PICTURED_ARMS = ("ungated", "headwise", "elementwise")
PICTURED_TASKS = ("circle", "xor")
GRID_POINTS = 41


def measure(arm, tasks, weights, accuracies, resolution, progress, pictures):
    """∫|K| dA and ∫‖II‖² dA of trained networks.

    Args:
        arm: the `Arm` they are of.
        tasks: `Task`s.
        weights: lists of float32 arrays, `(tasks, seeds)`.
        accuracies: `(tasks, seeds)`.
        resolution: number of nodes along each axis of the patch.
        progress: a `Progress`, advanced by one a network.
        pictures: a list that images of some networks are added to.

    Returns:
        One entry for each task, by name.
    """
    context = Context(arm, dtype=float_type())
    context.build()
    entries = {}
    for i, task in enumerate(tasks):
        totals, bendings = [], []
        for j, values in enumerate(weights[i]):
            # The readout comes last, and what there is before it is measured.
            for variable, value in zip(context.weights, values):
                variable.assign(value)
            totals.append(total(context, resolution))
            bendings.append(
                geometry.total_bending(
                    context, BOUNDS, resolution, dtype=float_type()
                )
            )
            if j == 0 and _is_pictured(arm, task):
                pictures.append(
                    {
                        "arm": arm.name,
                        "tokens": arm.tokens,
                        "title": arm.title,
                        "task": task.name,
                        "task_title": task.title,
                        "accuracy": float(accuracies[i, 0]),
                        "total": totals[0].value,
                        **_image(context, task),
                    }
                )
            progress.advance(1)
        entries[task.name] = {
            "accuracies": [float(a) for a in accuracies[i]],
            "curvature": summarise(totals),
            "bending": summarise(bendings),
        }
    return entries


def _is_pictured(arm, task):
    return arm.name in PICTURED_ARMS and task.name in PICTURED_TASKS


def _image(context, task):
    """A grid of the patch before and after the gate, and curvature there."""
    axis = np.linspace(-HALF_WIDTH, HALF_WIDTH, GRID_POINTS)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1)
    flat = ops.convert_to_tensor(grid.reshape(-1, 2), dtype=float_type())
    shape = GRID_POINTS, GRID_POINTS

    def shaped(values):
        values = as_numpy(values)
        return values.reshape(*shape, *values.shape[1:])

    points, labels = task.data(0, 400)
    examples = ops.convert_to_tensor(points, dtype=float_type())
    return {
        "before": shaped(context.attend(flat)),
        "after": shaped(context(flat)),
        "curvature": shaped(geometry.gaussian_curvature(context, flat)),
        "labels": labels,
        "points": points,
        "points_before": as_numpy(context.attend(examples)),
        "points_after": as_numpy(context(examples)),
    }
