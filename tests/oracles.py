"""Reads the reference outputs that other libraries computed."""

import json
import pathlib

import numpy as np

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
