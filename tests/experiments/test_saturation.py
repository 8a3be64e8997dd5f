import math
from statistics import NormalDist

import keras
import numpy as np
import pytest
from keras import ops

from keras_gating.diagnostics import record_gates
from keras_gating.experiments import saturation
from keras_gating.experiments import saturation_conclusions
from keras_gating.experiments import saturation_model
from keras_gating.experiments import saturation_slopes
from keras_gating.experiments import verdicts
from keras_gating.experiments.saturation_slopes import ACTIVATIONS
from keras_gating.experiments.saturation_slopes import vanished_share
from tests.experiments.reporting import check_difference
from tests.experiments.reporting import check_mean
from tests.experiments.reporting import check_reports
from tests.marks import once
from tests.utils import to_numpy

BY_NAME = {activation.name: activation for activation in ACTIVATIONS}
BY_ACTIVATION = pytest.mark.parametrize("name", BY_NAME)


def share(name, spread):
    return sum(vanished_share(BY_NAME[name], spread))


@BY_ACTIVATION
def test_slopes_are_those_of_the_activation_of_keras(name):
    # Off the kinks at 0 and ±3; a central difference in float32.
    z = np.float32(np.linspace(-7.95, 7.95, 54))
    step = np.float32(2.0**-6)
    activation = keras.activations.get(name)
    high, low = (
        np.float64(to_numpy(activation(ops.convert_to_tensor(z + s))))
        for s in (step, -step)
    )
    slopes = BY_NAME[name].slope(np.float64(z))
    np.testing.assert_allclose(
        slopes, (high - low) / (2.0 * step), atol=3e-4, err_msg=name
    )


@pytest.mark.parametrize(
    "name, spread, percent",
    [
        ("sigmoid", 3.0, 4.6),
        ("sigmoid", 10.0, 55.0),
        ("gelu", 3.0, 16.0),
        ("gelu", 10.0, 38.0),
        ("silu", 3.0, 3.0),
        ("silu", 10.0, 27.0),
    ],
)
def test_known_shares(name, spread, percent):
    digits = 1 if percent == 4.6 else 0
    assert round(100.0 * share(name, spread), digits) == percent


@pytest.mark.parametrize("spread", saturation.SPREADS)
def test_shares_in_closed_form(spread):
    def below(z):
        return NormalDist().cdf(z / spread)

    # 4 σ (1 − σ) = 0.01, which is 1/cosh² of half the logit; softplus has σ.
    edge = math.acosh(10.0)
    expected = {
        "sigmoid": 2.0 * below(-2.0 * edge),
        "tanh": 2.0 * below(-edge),
        "hard_sigmoid": 2.0 * below(-3.0),
        "softsign": 2.0 * below(-9.0),
        "softplus": below(-math.log(99.0)),
        "relu": 0.5,
        "linear": 0.0,
    }
    for name, value in expected.items():
        assert share(name, spread) == pytest.approx(value, rel=1e-9), name


@pytest.mark.parametrize("name", ["gelu", "silu"])
@pytest.mark.parametrize("spread", saturation.SPREADS)
def test_shares_by_quadrature(name, spread):
    """Without intervals: a sum over the quantiles of the normal law."""
    points = np.linspace(-12.0, 12.0, 400001)
    weights = np.exp(-0.5 * points**2)
    z = spread * points
    if name == "silu":
        half = 0.5 * (1.0 + np.tanh(0.5 * z))
        slopes = half + z * half * (1.0 - half)
        largest = 1.0998393
    else:
        erf = np.array([math.erf(x) for x in z[::8] / math.sqrt(2.0)])
        z, weights = z[::8], weights[::8]
        density = np.exp(-0.5 * z**2) / math.sqrt(2.0 * math.pi)
        slopes = 0.5 * (1.0 + erf) + z * density
        largest = 1.1289041
    small = np.abs(slopes) < 0.01 * largest
    expected = weights[small].sum() / weights.sum()
    assert share(name, spread) == pytest.approx(expected, abs=2e-4)
    size = math.sqrt((weights * slopes**2).sum() / weights.sum())
    measured = saturation_slopes.slope_size(BY_NAME[name], spread)
    assert measured == pytest.approx(size, rel=1e-6)


def test_sides():
    negative, positive = vanished_share(BY_NAME["sigmoid"], 3.0)
    assert negative == pytest.approx(positive, rel=1e-9)
    for name in ("gelu", "silu", "softplus", "relu"):
        negative, positive = vanished_share(BY_NAME[name], 10.0)
        assert negative > 0.2 and positive == 0.0, name


def test_logits_are_those_that_the_gate_activates():
    model = saturation_model.build("tanh")
    saturation_model.scale_start(model, 3.0)
    inputs = np.random.default_rng(0).normal(size=(5, 64)).astype("float32")
    with record_gates(model) as record:
        model(inputs)
    (gate,) = record.values()
    expected = np.tanh(saturation_model.logits(model, inputs))
    np.testing.assert_allclose(gate.values, expected, atol=1e-5)


def test_images_are_centred_and_spread_by_one():
    images = saturation_model.Images(0)
    np.testing.assert_allclose(images.train.mean(axis=0), 0.0, atol=1e-5)
    assert np.square(images.train).mean() == pytest.approx(1.0, rel=1e-5)
    # The test set is measured with the training set's rule.
    assert np.abs(images.test.mean(axis=0)).max() > 1e-3


def test_gradient_norm_is_that_of_the_loss():
    """By the formula of the gradient of the gate's kernel."""
    model = saturation._compiled(BY_NAME["tanh"], 1e-3, 2)
    start = [to_numpy(w).astype("float64") for w in model.get_weights()]
    rng = np.random.default_rng(1)
    inputs = rng.normal(size=(saturation.BATCH, 64)).astype("float32")
    labels = rng.integers(0, 10, len(inputs))
    model.fit(inputs, labels, batch_size=len(inputs), verbose=0)
    (w, b), (v, c), (r, a) = zip(start[::2], start[1::2])
    value, gate = inputs @ w + b, np.tanh(inputs @ v + c)
    logits = (value * gate) @ r + a
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    error = (shares - np.eye(10)[labels]) / len(inputs)
    upstream = error @ r.T
    expected = {
        "gate_projection_kernel": upstream * value * (1.0 - gate**2),
        "value_kernel": upstream * gate,
    }
    for name, slope in expected.items():
        norm = saturation.gradient_norm(model.optimizer, name)
        exact = np.linalg.norm(inputs.T @ slope)
        assert norm == pytest.approx(exact, rel=1e-3), name


@once
def test_results_are_consistent(tmp_path, monkeypatch):
    monkeypatch.setattr(saturation, "BATCH", 256)
    names = ["sigmoid", "relu"]
    results = saturation.run(
        seeds=2, quick=True, activations=names, scales=(0, 1, 10), epochs=1
    )
    measured = results.measurements["activations"]
    assert list(measured) == names == list(results.measurements["exact"])
    for name in names:
        for entry in measured[name]["scales"].values():
            for key, value in entry.items():
                if key != "differences":
                    check_mean(value)
            bounded = name == "sigmoid"
            assert ("near_ends_start" in entry) == bounded
    wide = {name: measured[name]["scales"]["10"] for name in names}
    for name, entry in wide.items():
        # The logits of images are not quite normal, but nearly.
        spread = entry["spread_start"]["estimate"]
        expected = share(name, spread)
        assert entry["vanished_start"]["estimate"] == pytest.approx(
            expected, abs=0.05
        )
    for measure in saturation_conclusions.MEASURES:
        check_difference(
            wide["relu"]["differences"][measure],
            wide["relu"][measure],
            wide["sigmoid"][measure],
        )
    # Shut for good: no slope, no gradient, and no class told from another.
    shut = measured["relu"]["scales"]["0"]
    assert shut["gradient_share"]["values"] == [0.0, 0.0]
    assert shut["vanished_end"]["values"] == [1.0, 1.0]
    assert max(shut["accuracy"]["values"]) < 0.2
    half = measured["sigmoid"]["scales"]["0"]
    assert half["vanished_start"]["values"] == [0.0, 0.0]
    assert half["spread_start"]["values"] == [0.0, 0.0]
    assert half["spread_end"]["estimate"] > 0.0
    text = check_reports(results, tmp_path)
    assert "a wide start saturates sigmoid gates: supported" in text


def entries(rng, vanished, gradient, accuracy):
    def around(mean):
        return {"values": (mean + 0.01 * rng.normal(size=6)).tolist()}

    return {
        "vanished_start": around(vanished),
        "log10_gradient": around(gradient),
        "gradient_share": around(0.5),
        "accuracy": around(accuracy),
    }


def test_conclusions_come_from_the_measurements():
    rng = np.random.default_rng(0)
    made = {
        "sigmoid": [(0.0, -0.5, 0.9), (0.6, -1.0, 0.8)],
        "gelu": [(0.2, 0.0, 0.9), (0.4, 0.0, 0.7)],
        "linear": [(0.0, 0.0, 0.9), (0.0, 0.0, 0.6)],
    }
    measured = {
        name: {
            "title": name,
            "scales": {
                scale: entries(rng, *numbers)
                for scale, numbers in zip(("1", "10"), rows)
            },
        }
        for name, rows in made.items()
    }
    saturation_conclusions.compare(measured)
    found = saturation_conclusions.conclude(measured)
    words = [entry["verdict"] for entry in found]
    assert words == [
        "supported",
        "supported",
        "not supported",
        "supported",
        "not supported",
        "supported in part",
        "supported",
        "not supported",
        "not supported",
    ]
    # It loses less than what cannot saturate: the opposite is shown.
    assert found[4]["against"] == ["10× against 1×"]
    assert found[5]["for"] == ["gelu 10×"]
    assert found[5]["against"] == ["gelu 1×"]
    assert found[8]["against"] == ["gelu 10×"]
    assert found[8]["not shown"] == ["gelu 1×"]
    # Nothing to compare with, nothing to say.
    del measured["sigmoid"]
    assert saturation_conclusions.conclude(measured) == []


@pytest.mark.parametrize(
    "cases, expected",
    [
        ({"a": (1.0, 0.01), "b": (2.0, 0.04)}, "supported"),
        ({"a": (1.0, 0.01), "b": (2.0, 0.06)}, "supported in part"),
        ({"a": (-1.0, 0.01), "b": (2.0, None)}, "not supported"),
    ],
)
def test_verdicts(cases, expected):
    found = verdicts.verdict("claim", cases, 1)
    assert found["verdict"] == expected
    sorted_cases = found["for"] + found["against"] + found["not shown"]
    assert sorted(sorted_cases) == ["a", "b"]
    assert ("a" in found["against"]) == (cases["a"][0] < 0.0)


def test_marks():
    assert verdicts.mark({"estimate": 1.0, "adjusted_p": 0.01}) == "↑"
    assert verdicts.mark({"estimate": -1.0, "adjusted_p": 0.01}) == "↓"
    assert verdicts.mark({"estimate": -1.0, "adjusted_p": 0.2}) == "·"
    assert verdicts.mark({"estimate": -1.0, "adjusted_p": None}) == "·"


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"seeds": 0}, "seeds=0"),
        ({"epochs": 0}, "epochs=0"),
        ({"scales": (1, -3)}, r"scales=\(1, -3\)"),
        ({"scales": ()}, r"scales=\(\)"),
        ({"activations": ["sigmoid", "swish2"]}, "swish2"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        saturation.run(**arguments)
