"""What the tables and pictures of every experiment must do."""

import io
import json

import keras
import numpy as np
import rich.console
from matplotlib import image as png

from keras_gating.experiments import console
from keras_gating.experiments import next_character
from keras_gating.experiments import plots
from keras_gating.experiments.results import Results


def compile_without_xla(patch):
    """Spares TensorFlow the compilation of models that train a few steps."""
    compile_model = next_character.compile_model

    def compile_lightly(model, *args, **kwargs):
        compile_model(model, *args, **kwargs)
        model.jit_compile = False

    if keras.backend.backend() == "tensorflow":
        patch.setattr(next_character, "compile_model", compile_lightly)


def printed(results):
    """The tables of an experiment as one line of text."""
    text = io.StringIO()
    console.print_results(rich.console.Console(file=text, width=200), results)
    return " ".join(text.getvalue().split())


def check_reports(results, folder):
    """Writes file and pictures and returns what was printed."""
    path = results.write(folder)
    read = Results.read(path)
    assert read == results
    assert json.loads(path.read_text("utf-8"))["seeds"] == results.seeds
    pictures = plots.write_plots(results, folder)
    assert pictures
    for picture in pictures:
        pixels = png.imread(picture)[..., :3]
        assert min(pixels.shape[:2]) > 300, picture
        assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 50, picture
    text = printed(results)
    assert printed(read) == text
    assert ("A quick run" in text) == results.settings["quick"]
    return text


def check_mean(entry):
    """An entry of `comparison.mean` says what its values say."""
    np.testing.assert_allclose(entry["estimate"], np.mean(entry["values"]))
    if len(entry["values"]) > 1:
        assert entry["low"] <= entry["estimate"] <= entry["high"]


def check_difference(entry, first, second):
    """An entry of `comparison.difference` is that of two entries of means."""
    gaps = np.subtract(first["values"], second["values"])
    np.testing.assert_allclose(entry["estimate"], gaps.mean(), atol=1e-12)
    if entry["low"] > 0.0:
        assert entry["verdict"] == "higher"
    elif entry["high"] < 0.0:
        assert entry["verdict"] == "lower"
    else:
        assert entry["verdict"].startswith("inside its interval")
