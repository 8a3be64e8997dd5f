"""Reads the reference outputs that other libraries computed."""

import json
import pathlib

import numpy as np

from keras_gating.surgery.weights import converted

DATA = pathlib.Path(__file__).parent / "data" / "oracles"


def load(file):
    """The arrays of one file, by case and kind, and its description."""
    with np.load(DATA / f"{file}.npz") as arrays:
        meta = json.loads(bytes(arrays["__meta__"]))
        cases = {}
        for path in arrays.files:
            if path != "__meta__":
                case, rest = path.split("/", 1)
                cases.setdefault(case, {})[rest] = arrays[path]
    return cases, meta


def part(arrays, kind):
    """The arrays below `in/`, `w/`, `gin/` or `gw/`, by name."""
    start = kind + "/"
    return {
        name[len(start) :]: array
        for name, array in arrays.items()
        if name.startswith(start)
    }


def mapped(layer, weights, layout):
    """What `copy_weights` assigns, by path, in the dtype it comes in."""
    values, _ = converted(layer, weights, layout)
    return {variable.path: array for variable, array in values}


def mapped_gradients(layer, gradients, weights, layout):
    """Gradients of the peer's weights as those of our layer's, by path.

    Every one of our weights is one of the peer's, moved, times a factor, plus
    a constant. Gradients move alike and carry the inverse of the factor.

    Args:
        layer: our layer, built.
        gradients: gradients of the peer, by name.
        weights: its weights; buffers, which have no gradient, are these.
        layout: name of the layout.
    """

    def after(change):
        changed = {name: change(array) for name, array in gradients.items()}
        return mapped(layer, {**weights, **changed}, layout)

    offsets, ones = after(np.zeros_like), after(np.ones_like)
    moved = after(lambda array: array)
    return {
        path: (moved[path] - offsets[path])
        / np.square(ones[path] - offsets[path], dtype="float64")
        for path in moved
        if np.any(ones[path] != offsets[path])
    }
