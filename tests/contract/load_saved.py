"""Loads models in a process that imports nothing but the package.

`python load_saved.py FOLDER` reads every `NAME.keras` and `NAME.npz` in the
folder and writes the outputs to `NAME.BACKEND.npz`, or the error to
`NAME.BACKEND.txt`. Weights come once from the model's file and once, where it
exists, from `NAME.weights.h5`.
"""

import pathlib
import sys
import traceback

import keras_gating  # noqa: F401

# isort: split
import keras
import numpy as np


def run(path):
    inputs = list(np.load(path.with_suffix(".npz")).values())
    model = keras.models.load_model(path)
    results = [model(inputs)]
    for weight in model.weights:
        weight.assign(np.zeros(weight.shape, "float32"))
    model.load_weights(path.with_suffix(".weights.h5"))
    results.append(model(inputs))
    return [keras.ops.convert_to_numpy(x) for x in keras.tree.flatten(results)]


def main(folder):
    backend = keras.config.backend()
    for path in sorted(pathlib.Path(folder).glob("*.keras")):
        try:
            np.savez(path.with_suffix(f".{backend}.npz"), *run(path))
        except Exception:
            error = path.with_suffix(f".{backend}.txt")
            error.write_text(traceback.format_exc())


if __name__ == "__main__":
    main(sys.argv[1])
