import collections
import itertools
import json
import subprocess
import sys

import keras
import numpy as np
import pytest
from matplotlib import image as png

from keras_gating import cli
from keras_gating.diagnostics import timing
from keras_gating.experiments import characters
from keras_gating.experiments import gau
from keras_gating.experiments import gau_cost
from keras_gating.experiments import gau_model
from keras_gating.experiments import gau_report
from keras_gating.experiments import memory
from keras_gating.experiments.characters import VOCABULARY
from keras_gating.experiments.gau_model import ARMS
from keras_gating.experiments.gau_model import DIM
from keras_gating.experiments.gau_model import HIDDEN
from keras_gating.experiments.gau_model import KEY_DIM
from keras_gating.experiments.gau_model import PAIRS
from keras_gating.experiments.gau_model import ReducedUnit
from keras_gating.experiments.gau_model import arms_by_name
from keras_gating.experiments.gau_model import matched_hidden
from keras_gating.experiments.results import Results
from tests.experiments.reporting import check_difference
from tests.experiments.reporting import check_mean
from tests.experiments.reporting import printed
from tests.marks import once
from tests.utils import to_numpy

LENGTH = 12


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run of the command line with two arms and forms."""
    folder = tmp_path_factory.mktemp("gau")
    with pytest.MonkeyPatch.context() as patch:
        text = characters.Text(["calendar"], ["textwrap"])
        patch.setattr(gau, "Text", lambda: text)
        patch.setattr(gau, "VALIDATION_WINDOWS", 64)
        patch.setattr(gau_model, "LENGTH", LENGTH)
        patch.setattr(gau_model, "BLOCKS", 1)
        patch.setattr(gau_model, "ARMS", arms_by_name(["unit", "identity"]))
        forms = [gau_cost.FORMS[0], gau_cost.FORMS[3]]
        patch.setattr(gau_cost, "FORMS", forms)
        code = cli.main(
            ["gau", "--quick", "--seeds", "2", "--out", str(folder)]
        )
    assert code == 0
    return folder


@pytest.fixture(scope="module")
def units():
    """One unit of each arm that has any, with positive scores."""
    made = {arm.name: arm.unit() for arm in ARMS if arm.unit is not None}
    for unit in made.values():
        unit.build((None, LENGTH, DIM))
        for weight in unit.weights:
            if weight.name in ("query_key_offset", "offset"):
                weight.assign(np.ones(weight.shape))
    return made


def test_arms_have_equal_parameters(units):
    inputs = keras.Input((LENGTH, DIM))
    hidden = gau_model.matched_feed_forward(DIM, HIDDEN, KEY_DIM)
    baseline = keras.Model(
        inputs,
        gau_model.attention_and_feed_forward(
            inputs, gau_model.HEADS, hidden, "block"
        ),
    )
    counts = [2 * unit.count_params() for unit in units.values()]
    counts.append(baseline.count_params())
    assert max(counts) <= 1.01 * min(counts)
    weights = gau_model.unit_weights(DIM, HIDDEN, KEY_DIM)
    assert units["unit"].count_params() == weights


def test_forms_of_the_cost_have_equal_parameters():
    # The other forms have the weights of the quadratic one.
    counts = [
        gau_cost.build(form, 16, gau_cost.SIZES).count_params()
        for form in (gau_cost.FORMS[0], gau_cost.FORMS[3])
    ]
    assert max(counts) <= 1.01 * min(counts)


@pytest.mark.parametrize("name", [a.name for a in ARMS if a.unit is not None])
def test_only_attention_mixes_positions_and_only_forward(units, name):
    changed = 4
    rng = np.random.default_rng(0)
    inputs = np.repeat(rng.normal(size=(1, LENGTH, DIM)), 2, axis=0)
    inputs[1, changed] = rng.normal(size=DIM)
    outputs = gau_model.apply(units[name], inputs.astype("float32"))
    first, second = to_numpy(outputs)
    seen = np.flatnonzero(np.abs(first - second).max(axis=-1) > 1e-6)
    end = changed + 1 if name == "identity" else LENGTH
    assert seen.tolist() == list(range(changed, end))


def test_mean_weighs_all_positions_so_far_equally():
    unit = ReducedUnit(5, "mean", use_gate=False)
    x = np.random.default_rng(0).normal(size=(2, 6, DIM)).astype("float32")
    outputs = to_numpy(unit(x))
    value = to_numpy(unit.value_dense(unit.normalization(x)))
    means = [value[:, : i + 1].mean(axis=1) for i in range(6)]
    kernel, bias = map(to_numpy, unit.output_dense.weights)
    expected = x + np.stack(means, axis=1) @ kernel + bias
    np.testing.assert_allclose(outputs, expected, atol=1e-5)


def whole_and_reduced(hidden_dim, use_gate):
    """A whole unit and a reduced one with its weights."""
    whole = gau_model.whole_unit(expansion_factor=hidden_dim / DIM)
    whole.build((None, 7, DIM))
    reduced = ReducedUnit(hidden_dim, use_gate=use_gate)
    reduced.build((None, 7, DIM))
    rng = np.random.default_rng(0)
    for weight in whole.weights:
        weight.assign(rng.normal(size=weight.shape) / 7)
    kernel, bias = map(to_numpy, whole.hidden_dense.weights)
    for i, dense in enumerate((reduced.value_dense, reduced.gate_dense)):
        if dense is not None:
            dense.set_weights([kernel[:, i], bias[i]])
    for mine, theirs in (
        (reduced.normalization, whole.normalization),
        (reduced.shared_dense, whole.shared_dense),
        (reduced.output_dense, whole.output_dense),
    ):
        mine.set_weights(theirs.get_weights())
    reduced.scale.assign(whole.query_key_scale)
    reduced.offset.assign(whole.query_key_offset)
    return whole, reduced


@pytest.mark.parametrize("use_gate", [True, False])
def test_reduced_unit_is_the_whole_one_but_for_what_is_taken_out(use_gate):
    whole, reduced = whole_and_reduced(10, use_gate)
    if not use_gate:
        # A gate that is 1 everywhere: silu(1.2785) = 1.
        kernel, bias = whole.hidden_dense.get_weights()
        kernel[:, 1], bias[1] = 0.0, 1.27846454
        whole.hidden_dense.set_weights([kernel, bias])
    x = np.random.default_rng(1).normal(size=(2, 7, DIM)).astype("float32")
    expected = to_numpy(whole(x, use_causal_mask=True))
    np.testing.assert_allclose(to_numpy(reduced(x)), expected, atol=1e-5)
    assert np.abs(expected - x).max() > 0.1


def test_parts_taken_out_are_made_up_for_by_width():
    assert matched_hidden() == HIDDEN
    assert matched_hidden(gates=0) > 1.4 * HIDDEN
    assert matched_hidden(attends=False) > HIDDEN


def test_pairs_name_arms():
    names = {arm.name for arm in ARMS}
    assert {name for pair in PAIRS for name in pair} == names
    assert len(set(PAIRS)) == len(PAIRS)


@once
def test_quick_run_writes_and_draws(made):
    pictures = ["gau.png", "gau_cost.png"]
    names = sorted(path.name for path in made.iterdir())
    assert names == ["gau.json", *pictures]
    for name in pictures:
        pixels = png.imread(made / name)[..., :3]
        assert min(pixels.shape[:2]) > 300 and pixels.std() > 0.05
    text = printed(Results.read(made / "gau.json"))
    assert "unit, squared ReLU" in text and "units, chunked" in text
    assert "A quick run" in text


@once
def test_losses_are_consistent(made):
    results = Results.read(made / "gau.json")
    arms = results.measurements["arms"]
    assert list(arms) == ["unit", "identity"]
    for arm in arms.values():
        check_mean(arm["loss"])
        # Better than knowing nothing, and seeds differ.
        assert max(arm["loss"]["values"]) < np.log(VOCABULARY)
        assert len(set(arm["loss"]["values"])) == 2
    (difference,) = results.measurements["differences"]
    check_difference(difference, arms["identity"]["loss"], arms["unit"]["loss"])


@once
def test_cost_has_every_form_and_task(made):
    rows = json.loads((made / "gau.json").read_text())["measurements"]["cost"]
    (length,) = gau_cost.QUICK_LENGTHS
    found = [(row["length"], row["task"], row["form"]) for row in rows]
    assert found == [
        (length, task, form)
        for task in gau_cost.TASKS
        for form in ("attention", "chunked")
    ]
    for row in rows:
        assert row["seconds"] > 0.0 and row["parameters"] > 0
        assert 0.0 < row["low"] <= row["ratio"] <= row["high"]
        assert row["peak_bytes"] is None or row["peak_bytes"] >= 0
        if row["form"] == gau_cost.BASELINE:
            assert row["low"] == row["ratio"] == row["high"] == 1.0


def cost_rows(form, highs, seconds=None, peaks=None):
    lengths = [2**i for i in range(8, 8 + len(highs))]
    return [
        {
            "length": length,
            "task": "training",
            "form": form,
            "parameters": 1,
            "seconds": length**2 * 1e-6 if seconds is None else seconds[i],
            "ratio": highs[i] - 0.1,
            "low": highs[i] - 0.2,
            "high": highs[i],
            "peak_bytes": None if peaks is None else peaks[i],
        }
        for i, length in enumerate(lengths)
    ]


@pytest.mark.parametrize(
    "highs, expected",
    [
        ([0.5, 0.6, 0.7, 0.8], 256),
        ([0.9, 1.5, 0.9, 0.8], 1024),
        ([1.5, 1.4, 1.3, 0.9], 2048),
        # Faster for short sequences only: not from any length on.
        ([0.5, 0.6, 0.9, 1.1], None),
    ],
)
def test_faster_from_is_the_last_crossing(highs, expected):
    rows = cost_rows("chunked", highs)[::-1]
    assert gau_cost.faster_from(rows, "chunked", "training") == expected


def test_growth_is_the_exponent_at_the_greatest_lengths():
    seconds = [9.0, 9.0, 2.0, 4.0, 8.0]
    rows = cost_rows("chunked", [1.0] * 5, seconds)
    assert gau_cost.growth(rows, "chunked", "training") == pytest.approx(1.0)
    rows = cost_rows("quadratic", [1.0] * 5)
    assert gau_cost.growth(rows, "quadratic", "training") == pytest.approx(2.0)
    # One length, or memory that is not known, has no exponent.
    assert gau_cost.growth(rows[:1], "quadratic", "training") is None
    assert gau_cost.growth(rows, "quadratic", "training", "peak_bytes") is None


@once
def test_conclusions_follow_the_measurements(made):
    results = Results.read(made / "gau.json")
    results.measurements["cost"] = [
        {**row, "task": task}
        for task in gau_cost.TASKS
        for row in (
            *cost_rows("attention", [1.0, 1.0], peaks=[2.0, 4.0]),
            *cost_rows("chunked", [1.5, 0.9], peaks=[2.0, 1.0]),
            *cost_rows("quadratic", [0.5, 1.9]),
        )
    ]
    (entry,) = results.measurements["differences"]
    entry["verdict"] = "higher"
    found = list(gau_report.conclusions(results))
    assert found[0] == (
        "“A fixed: identity” has a higher loss than “unit, squared ReLU”."
    )
    assert found[1] == (
        "units, quadratic, inference: not faster at the greatest length."
    )
    assert found[2] == (
        "units, chunked, inference: faster from length 512 on, 0.25 times the "
        "memory at length 512."
    )


@pytest.mark.parametrize("names", ["ab", "abc", "abcd"])
def test_calls_take_turns(names, monkeypatch):
    count, order = len(names), []
    calls = {name: lambda name=name: order.append(name) for name in names}
    seconds = timing.time_in_turns(calls, 1, 2 * count)
    assert {name: len(times) for name, times in seconds.items()} == {
        name: 2 * count for name in names
    }
    rounds = [
        "".join(order[i : i + count]) for i in range(0, len(order), count)
    ]
    # In each round once, at each place twice, and twice after each other.
    assert all(sorted(turns) == list(names) for turns in rounds)
    for turns in zip(*rounds):
        assert sorted(turns) == sorted(2 * names)
    pairs = collections.Counter(
        pair for turns in rounds for pair in itertools.pairwise(turns)
    )
    assert pairs == {pair: 2 for pair in itertools.permutations(names, 2)}
    # Without time for more.
    monkeypatch.setattr(timing, "_SECONDS", -1.0)
    seconds = timing.time_in_turns(calls, 3, 100)
    assert [len(times) for times in seconds.values()] == [3] * count


def test_peak_memory_is_that_of_the_call():
    size = 32 * 2**20

    def call():
        np.ones(size, "uint8").sum()

    call()
    peak = memory.peak_memory(call)
    if peak is None:
        pytest.skip("The system does not tell the peak.")
    assert 0.9 * size < peak < 1.5 * size
    assert memory.peak_memory(lambda: None) < 0.1 * size


def test_memory_that_is_returned_leaves_no_gaps():
    code = """
import numpy as np
from keras_gating.experiments.memory import peak_memory, return_memory
return_memory()
# Which another measurement must not undo.
peak_memory(lambda: None)
def ones(mebibytes):
    return np.ones(mebibytes * 2**20, "uint8")
def call():
    ones(3)
    ones(8)
call()
first, last = ones(4), ones(1)
# The 3 MiB of the call would fit in here, and stay beside the 8.
del first
print(peak_memory(call))
"""
    peak = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.split()[-1]
    if peak == "None":
        pytest.skip("The system does not tell the peak.")
    assert int(peak) / 2**20 == pytest.approx(8, abs=1)


def test_a_process_that_fails_is_quoted(monkeypatch):
    monkeypatch.setattr(gau_cost, "_PROGRAM", "no_such_module")
    with pytest.raises(RuntimeError, match="(?s)after 0 .*no_such_module"):
        gau_cost.measure(quick=True)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"seeds": 0}, "seeds=0"),
        ({"steps": 0}, "steps=0"),
        ({"lengths": [64, -1]}, "lengths=-1"),
        ({"arms": ["unit", "flash"]}, "flash"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        gau.run(**arguments)
