import keras
import numpy as np
import pytest

from keras_gating.experiments import characters
from keras_gating.experiments import retrofit
from keras_gating.experiments import retrofit_model
from keras_gating.experiments import retrofit_report
from keras_gating.experiments.retrofit_model import ARMS
from keras_gating.experiments.retrofit_model import PAIRS
from keras_gating.experiments.retrofit_model import GateRateAdam
from tests.experiments.reporting import check_difference
from tests.experiments.reporting import check_mean
from tests.experiments.reporting import check_reports
from tests.experiments.reporting import compile_without_xla
from tests.utils import to_numpy

LENGTH = 12


@pytest.fixture(scope="module")
def small():
    with pytest.MonkeyPatch.context() as patch:
        compile_without_xla(patch)
        text = characters.Text(["calendar"], ["textwrap"])
        patch.setattr(retrofit, "Text", lambda: text)
        patch.setattr(retrofit, "VALIDATION_WINDOWS", 64)
        patch.setattr(retrofit, "RECORDED_WINDOWS", 8)
        patch.setattr(retrofit_model, "LENGTH", LENGTH)
        patch.setattr(retrofit_model, "LAYERS", 1)
        yield


@pytest.fixture(scope="module")
def results(small):
    """A run with two arms, a smaller model and shorter text."""
    return retrofit.run(seeds=2, quick=True, arms=["ungated", "first"], steps=8)


def test_surgery_keeps_the_function_in_all_arms_but_the_random_one(small):
    model = retrofit_model.build()
    windows = np.random.default_rng(0).integers(0, 90, (4, LENGTH))
    before = to_numpy(model(windows))
    starts = {}
    for arm in ARMS:
        copy = retrofit_model.gated(arm, model)
        change = np.abs(to_numpy(copy(windows)) - before).max()
        assert (change > 1e-2) if arm.random else (change < 1e-5), arm
        if arm.gate is not None:
            starts[arm.name] = retrofit.factors(copy, windows)
    assert np.abs(starts.pop("random") - 1.0).mean() > 0.05
    for factors in starts.values():
        assert factors.size == 4 * LENGTH * retrofit_model.DIM
        np.testing.assert_allclose(factors, 1.0, atol=1e-6)


def trained(rate, wait, steps):
    """Weights of two layers, the second a gate's, after each step."""
    model = keras.Sequential(
        [keras.Input((1,)), keras.layers.Dense(1), keras.layers.Dense(1)]
    )
    own = model.layers[1].weights
    jit = keras.backend.backend() == "jax"
    optimizer = GateRateAdam(1e-2, own, rate, wait)
    model.compile(optimizer, "mse", jit_compile=jit)
    starts = [to_numpy(layer.kernel) for layer in model.layers]
    x = np.ones((1, 1), "float32")
    moves = []
    for _ in range(steps):
        model.fit(x, 9.0 * x, verbose=0)
        moves.append(
            [
                np.abs(to_numpy(layer.kernel) - start).item()
                for layer, start in zip(model.layers, starts)
            ]
        )
    return np.array(moves)


def test_gates_have_a_rate_of_their_own_and_may_go_first():
    # Adam's first step is the learning rate, whatever the gradient.
    moves = trained(rate=5.0, wait=0, steps=1)
    np.testing.assert_allclose(moves, [[1e-2, 5e-2]], rtol=1e-3)
    moves = trained(rate=1.0, wait=2, steps=3)
    assert moves[:2, 0].tolist() == [0.0, 0.0] and moves[2, 0] > 1e-3
    assert (np.diff(moves[:, 1]) > 1e-3).all() and moves[0, 1] > 1e-3


def test_factors_are_compared_at_each_place():
    first = np.array([1.0, 1.0, 0.5, 1.0])
    last = np.array([1.0, 1.6, 1.0, 0.4])
    found = retrofit.compare(first, last)
    assert found["distance"] == pytest.approx(0.3)
    assert found["moved"] == pytest.approx(0.425)
    assert found["below"] == found["above"] == 0.25
    assert found["mean"] == 1.0 and found["histogram"].sum() == 4


def test_results_are_consistent(results, tmp_path):
    assert results.settings["continued_steps"] == 4
    measured = results.measurements
    check_mean(measured["start"])
    arms = measured["arms"]
    assert list(arms) == ["ungated", "first"]
    for arm in arms.values():
        for key in ("largest_change", "start_loss", "loss"):
            check_mean(arm[key])
        # Every arm goes on from the same start, and learns.
        assert max(arm["largest_change"]["values"]) < 1e-4
        np.testing.assert_allclose(
            arm["start_loss"]["values"], measured["start"]["values"], atol=1e-4
        )
        assert arm["loss"]["estimate"] < measured["start"]["estimate"]
    assert "distance" not in arms["ungated"]
    gate = retrofit_model.DIM * (retrofit_model.DIM + 1)
    assert arms["first"]["parameters"] - arms["ungated"]["parameters"] == gate
    moved = arms["first"]["moved"]["values"]
    assert min(moved) > 1e-3
    np.testing.assert_allclose(moved, arms["first"]["distance"]["values"])
    (entry,) = measured["differences"]
    check_difference(entry, arms["first"]["loss"], arms["ungated"]["loss"])
    text = check_reports(results, tmp_path)
    assert "gates first − no gate" in text


def test_conclusions_follow_the_measurements(results):
    arms = {**results.measurements["arms"]}
    arms["first"] = {**arms["first"], "largest_change": {"values": [0.0, 0.3]}}
    (entry,) = results.measurements["differences"]
    measured = {
        **results.measurements,
        "arms": arms,
        "differences": [{**entry, "verdict": "lower"}],
    }
    changed = type(results)(**{**vars(results), "measurements": measured})
    (said,) = retrofit_report.conclusions(changed)
    assert said.startswith("“gates first” changes the function")
    assert "lower the loss" in said


def test_every_gated_arm_is_compared_with_the_ungated_one():
    names = [arm.name for arm in ARMS]
    assert [f for f, s in PAIRS if s == "ungated"] == names[1:]
    assert ("rate", "control") in PAIRS


def test_control_has_as_many_weights_at_the_rate_of_gates(small):
    model = retrofit_model.build()
    arms = {arm.name: arm for arm in ARMS}
    counts = [
        sum(
            np.prod(variable.shape)
            for variable in retrofit_model.with_own_rate(
                arms[name], retrofit_model.gated(arms[name], model)
            )
        )
        for name in ("rate", "control")
    ]
    gate = retrofit_model.DIM * (retrofit_model.DIM + 1)
    assert counts == [gate, gate]
    assert arms["rate"].rate == arms["control"].rate > 1.0


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"seeds": 0}, "seeds=0"),
        ({"steps": 0}, "steps=0"),
        ({"continued_steps": 0}, "continued_steps=0"),
        ({"arms": ["zero", "half"]}, "half"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        retrofit.run(**arguments)
