import numpy as np
import pytest
from keras import ops

from keras_gating.experiments import functions
from keras_gating.experiments.corrections import holm
from keras_gating.experiments.corrections import paired_p_value
from keras_gating.experiments.functions_model import FUNCTIONS
from keras_gating.experiments.functions_model import SETTINGS
from keras_gating.experiments.functions_model import GatedMap
from keras_gating.experiments.precision import float_type
from tests.experiments.reporting import check_reports
from tests.marks import once
from tests.utils import to_numpy


def expected(setting, function, layer, x):
    """The map again, in NumPy."""
    kernel, bias, *values = (np.float64(to_numpy(v)) for v in layer.weights)
    *values, gate, gate_bias = values
    value = x @ kernel + bias
    if setting.value == "softmax":
        weights = np.exp(value)
        value = weights / weights.sum(axis=-1, keepdims=True) @ values[0]
    return value * function(x @ gate + gate_bias)


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda s: s.name)
def test_maps_are_values_times_gates(setting):
    layer = GatedMap(setting, FUNCTIONS["tanh"])
    layer.build()
    layer.draw(3)
    assert tuple(layer.gate.weights[0].shape) == (
        (2, 8) if setting.granularity == "elementwise" else (2, 1)
    )
    x = np.random.default_rng(0).normal(size=(5, 2))
    np.testing.assert_allclose(
        to_numpy(layer(x.astype("float32"))),
        expected(setting, np.tanh, layer, x),
        rtol=1e-4,
        atol=1e-5,
    )


def test_weights_are_the_same_for_every_function():
    drawn = []
    for name in ("sigmoid", "ReLU"):
        layer = GatedMap(SETTINGS[0], FUNCTIONS[name])
        layer.build()
        layer.draw(1)
        drawn.append([to_numpy(v) for v in layer.weights])
    for first, second in zip(*drawn):
        np.testing.assert_array_equal(first, second)


def test_functions_keep_the_precision():
    x = ops.convert_to_tensor(np.linspace(-3.0, 3.0, 7), dtype=float_type())
    for function in FUNCTIONS.values():
        assert function(x).dtype == x.dtype
    np.testing.assert_allclose(
        to_numpy(FUNCTIONS["tanh"](x)), np.tanh(to_numpy(x)), atol=1e-6
    )


@once
def test_run_measures_and_reports(tmp_path):
    results = functions.run(
        seeds=2,
        functions=["sigmoid", "identity"],
        settings=["softmax_elementwise", "linear_headwise"],
        resolution=12,
    )
    measured = results.measurements["settings"]
    flat = measured["linear_headwise"]["functions"].values()
    assert all(e["flat"] and e["positive_share"] is None for e in flat)
    assert all("difference" not in e for e in flat)
    bent = measured["softmax_elementwise"]["functions"]
    for entry in bent.values():
        assert not entry["flat"] and len(entry["values"]) == 2
        assert min(entry["values"]) > 0.05
        low, high = entry["lower_quartile"], entry["upper_quartile"]
        assert low <= entry["median"] <= high
        assert all(-1e-6 <= s <= 1.0 + 1e-6 for s in entry["positive_shares"])
    gaps = np.log10(bent["identity"]["values"]) - np.log10(
        bent["sigmoid"]["values"]
    )
    difference = bent["identity"]["difference"]
    assert difference["estimate"] == pytest.approx(gaps.mean())
    assert difference["adjusted_p"] == pytest.approx(
        paired_p_value(gaps, [0.0, 0.0])
    )
    conclusions = results.measurements["conclusions"]
    assert conclusions["linear_headwise"]["flat"] == ["sigmoid", "identity"]
    text = check_reports(results, tmp_path)
    assert "flat: sigmoid, identity" in text


def test_shares_are_of_all_curvature():
    # A seed with K = 1 on an area of 3, and one with K = −1 on an area of 1.
    entries = {"sigmoid": functions.summarise([3.0, 1.0], [3.0, -1.0], [0, 0])}
    functions.compare(entries, 1e-10)
    assert entries["sigmoid"]["positive_shares"] == [1.0, 0.0]
    assert entries["sigmoid"]["positive_share"] == pytest.approx(0.75)


def test_conclusions_follow_the_corrected_p():
    rng = np.random.default_rng(0)
    base = rng.uniform(1.0, 2.0, size=20)
    entries = {
        name: functions.summarise(values, -values, [0.0])
        for name, values in {
            "sigmoid": base,
            "exp": 2.0 * base * rng.uniform(0.99, 1.01, size=20),
            "tanh": base * np.exp(rng.choice([-1.0, 1.0], size=20)),
            "ReLU": 1e-20 * base,
        }.items()
    }
    functions.compare(entries, 1e-10)
    found = functions.conclude({"one": {"functions": entries}})["one"]
    assert found["more"] == ["exp"] and found["flat"] == ["ReLU"]
    assert found["no difference shown"] == ["tanh"] and not found["less"]


def test_holm_is_step_down():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.9, None, 0.8]) == [1.0, None, 1.0]
    assert holm([]) == []


def test_p_values_of_pairs():
    from scipy import stats

    first, second = np.random.default_rng(1).normal(size=(2, 9))
    assert paired_p_value(first, second) == pytest.approx(
        stats.ttest_rel(first, second).pvalue
    )
    assert paired_p_value([1.0], [2.0]) is None
    assert paired_p_value([1.0, 2.0], [1.0, 2.0]) == 1.0
    assert paired_p_value([1.0, 2.0], [0.0, 1.0]) == 0.0


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"seeds": 0}, "seeds=0"),
        ({"resolution": 0}, "resolution=0"),
        ({"functions": ["sine"]}, "sine"),
        ({"settings": ["cubic"]}, "cubic"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        functions.run(**arguments)
