import io
import json
import sys

import keras
import numpy as np
import pytest
import rich.console
from matplotlib import image as png

import keras_gating
from keras_gating import cli
from keras_gating.experiments import console
from keras_gating.experiments import digits
from keras_gating.experiments import digits_model
from keras_gating.experiments import plots
from keras_gating.experiments.results import Results
from keras_gating.experiments.results import environment
from keras_gating.experiments.xor_arms import DEMO_ARMS

FILES = ["curvature.json", "digits.json", "xor.json"]
PICTURES = [
    "curvature.png",
    "curvature_representations.png",
    "curvature_surfaces.png",
    "digits_accuracy.png",
    "digits_gates.png",
    "digits_maps.png",
    "xor.png",
]


def read(demo, experiment):
    return json.loads((demo.folder / f"{experiment}.json").read_text("utf-8"))


def test_demo_writes_and_prints_where(demo):
    assert demo.code == 0
    names = sorted(path.name for path in demo.folder.iterdir())
    assert names == sorted([*PICTURES, *FILES])
    for name in names:
        assert str(demo.folder / name) in demo.printed


@pytest.mark.parametrize("experiment", ["xor", "digits", "curvature"])
def test_files_say_where_they_come_from(demo, experiment):
    content = read(demo, experiment)
    assert content["experiment"] == experiment
    assert content["seeds"] == [0, 1]
    assert content["environment"] == environment()
    assert content["command"] == " ".join(["keras-gating", *demo.arguments])
    assert content["elapsed_seconds"] > 0.0
    assert content["settings"]["quick"] is True


def test_xor_file_obeys_what_can_be_proved(demo):
    arms = read(demo, "xor")["measurements"]["arms"]
    assert tuple(arms) == DEMO_ARMS
    for arm in arms.values():
        assert arm["trials"] == len(arm["solved_seeds"]) == 2
        assert arm["solved"] == sum(arm["solved_seeds"])
        assert arm["share_low"] <= arm["share"] <= arm["share_high"]
        if arm["obstacle"]:
            assert arm["solved"] == 0
            assert min(arm["largest_errors"]) >= 0.5 - 1e-5


def test_digits_file_is_consistent(demo):
    measured = read(demo, "digits")["measurements"]
    arms = [arm.name for arm in digits_model.matched_arms()]
    assert list(measured["arms"]) == arms == list(measured["cost"])
    for name in arms:
        accuracies = measured["arms"][name]["accuracies"]
        assert len(accuracies) == 2 and all(0 <= a <= 1 for a in accuracies)
        assert measured["cost"][name]["seconds_per_step"] > 0.0
    parameters = [cost["parameters"] for cost in measured["cost"].values()]
    assert max(parameters) <= 1.01 * min(parameters)
    for name, difference in measured["differences"].items():
        pairs = zip(
            measured["arms"]["gated"]["accuracies"],
            measured["arms"][name]["accuracies"],
        )
        assert difference["estimate"] == pytest.approx(
            np.mean([a - b for a, b in pairs])
        )
    (gates,) = measured["gates"]["pooled"].values()
    images = read(demo, "digits")["settings"]["test_images"]
    size = digits_model.HEADS * digits_model.HEAD_DIM * digits_model.TOKENS
    assert sum(gates["histogram"]) == 2 * images * size
    # Training has moved the gates away from ½.
    assert gates["spread"] > 0.0


def test_curvature_file_has_its_flat_controls(demo):
    content = read(demo, "curvature")
    arms = content["measurements"]["training"]["arms"]
    flat = {arm["name"]: arm["must_be_flat"] for arm in arms.values()}
    assert flat == {"ungated": True, "constant": True, "elementwise": False}
    for arm in arms.values():
        for task in arm["tasks"].values():
            assert len(task["accuracies"]) == 2
            values = task["curvature"]["values"]
            bound = content["settings"]["flat_below"]
            assert (max(values) < bound) == arm["must_be_flat"]


def test_tables_show_what_was_measured(demo):
    text = " ".join(demo.printed.split())
    assert f"on {keras.config.backend()}" in text
    for name, arm in read(demo, "xor")["measurements"]["arms"].items():
        assert f"{arm['solved']}/2" in text, name
    measured = read(demo, "digits")["measurements"]
    for arm in measured["arms"].values():
        assert f"{arm['estimate']:.2%}" in text
    assert "A quick run" in text


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_show_something(demo, name):
    pixels = png.imread(demo.folder / name)[..., :3]
    assert min(pixels.shape[:2]) > 300
    assert pixels.std() > 0.05
    assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 50


def test_drawing_sets_nothing_global(demo):
    import matplotlib

    backend = matplotlib.rcParams._get("backend")
    results = Results.read(demo.folder / "digits.json")
    figure = plots.digits_accuracy(results)
    assert matplotlib.rcParams._get("backend") == backend
    labels = [t.get_text() for t in figure.axes[0].get_xticklabels()]
    assert any(label.startswith("gated") for label in labels)
    assert figure.axes[0].get_ylabel() == "test accuracy, %"


def test_one_seed_gets_no_interval_in_table_or_picture(demo):
    results = Results.read(demo.folder / "digits.json")
    arms = digits_model.matched_arms()
    accuracies = {
        arm.name: results.measurements["arms"][arm.name]["accuracies"][:1]
        for arm in arms
    }
    results.measurements.update(digits.compare(arms, accuracies))
    printed = io.StringIO()
    console.print_results(rich.console.Console(file=printed), results)
    assert "nothing shown" in " ".join(printed.getvalue().split())
    axis = plots.digits_accuracy(results).axes[0]
    values = [100 * value for (value,) in accuracies.values()]
    assert axis.lines[0].get_ydata().tolist() == pytest.approx(values)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["xor", "--seeds", "0"], "received '0'"),
        (["digits", "--seeds", "-3"], "received '-3'"),
        (["demo", "--seeds", "many"], "received 'many'"),
        (["demo", "--seeds", "1.5"], "received '1.5'"),
        (["xor", "--out", __file__], "expected a folder"),
        (["xor", "--backend", "numpy"], "invalid choice: 'numpy'"),
        (["xnor"], "invalid choice: 'xnor'"),
        ([], "required: command"),
    ],
)
def test_bad_arguments_are_quoted(arguments, message, capsys):
    assert cli.main(arguments) == 2
    assert message in capsys.readouterr().err


def test_a_backend_that_does_not_run_is_refused(capsys):
    running = keras.config.backend()
    other = next(b for b in cli.BACKENDS if b != running)
    assert cli.main(["digits", "--backend", other]) == 2
    error = capsys.readouterr().err
    assert f"KERAS_BACKEND={other}" in error and running in error


@pytest.mark.parametrize("module", ["matplotlib", "sklearn"])
def test_missing_packages_are_named_before_anything_runs(
    module, monkeypatch, capsys, tmp_path
):
    monkeypatch.setitem(sys.modules, module, None)
    folder = tmp_path / "out"
    assert cli.main(["xor", "--out", str(folder)]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert 'pip install "keras-gating[experiments]"' in error
    assert not folder.exists()


def test_help_and_version(capsys):
    assert cli.main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert all(f"\n    {name} " in shown for name in cli._RUNS)
    assert cli.main(["xor", "--help"]) == 0
    shown = capsys.readouterr().out
    for option in ("--seeds", "--backend", "--out", "--quick"):
        assert option in shown
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out.strip() == keras_gating.__version__
