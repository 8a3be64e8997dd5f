"""Statistics against NumPy on gates that are computed by hand."""

import functools
import io
import math
import sys

import keras
import numpy as np
import pytest
import rich.console

from keras_gating import functional
from keras_gating import layers
from keras_gating.diagnostics import gate_statistics
from keras_gating.diagnostics import record_gates
from keras_gating.diagnostics.activations import is_bounded
from keras_gating.diagnostics.moments import Moments
from keras_gating.diagnostics.summary import summarized
from tests.diagnostics import models


@functools.cache
def model():
    return models.model()


def by_hand(values, low, high, bounded):
    """The numbers of a layer or a head, written from their definitions."""
    flat = values.ravel()
    numbers = {
        "count": flat.size,
        "mean": flat.mean(),
        "spread": math.sqrt(np.mean((flat - flat.mean()) ** 2)),
        "lowest": flat.min(),
        "highest": flat.max(),
        "share_nonfinite": 0.0,
    }
    if not bounded:
        return {**numbers, "share_negative": np.mean(flat < 0)}
    features = values.reshape(len(values), -1).T
    entropy = -flat * np.log2(flat) - (1 - flat) * np.log2(1 - flat)
    return {
        **numbers,
        "share_low": np.mean(flat < low),
        "share_high": np.mean(flat > high),
        "dead": np.mean([all(feature < low) for feature in features]),
        "open": np.mean([all(feature > high) for feature in features]),
        "entropy": entropy.mean(),
    }


def assert_same_numbers(actual, expected):
    assert actual.keys() == expected.keys()
    for name, value in expected.items():
        assert actual[name] == pytest.approx(value, rel=1e-5, abs=1e-6), name


@pytest.mark.parametrize("low, high", [(0.1, 0.9), (0.45, 0.55)])
def test_statistics_are_those_of_gates_by_hand(low, high):
    tokens = models.sequences()
    statistics = gate_statistics(
        model(), tokens, batch_size=models.BATCH, low=low, high=high
    )
    expected = models.gates_by_hand(model(), tokens)
    assert list(statistics) == list(models.PATHS)
    for path, gates in expected.items():
        bounded = path != "swiglu"
        summary = dict(statistics[path])
        heads = summary.pop("heads")
        assert summary.pop("bounded") is bounded
        assert_same_numbers(summary, by_hand(gates, low, high, bounded))
        assert len(heads) == gates.shape[1]
        for number, head in enumerate(heads):
            own = by_hand(gates[:, number], low, high, bounded)
            assert_same_numbers(head, own)
    shares = [
        head[name]
        for path in models.PATHS
        for head in statistics[path]["heads"]
        for name in head
        if name in ("share_low", "share_high")
    ]
    # The thresholds do something here.
    assert any(0.0 < share < 1.0 for share in shares)


def test_dead_and_open_features():
    gate = layers.Gate(granularity="elementwise", name="gate")
    gate.build((None, 2, 4))
    kernel, bias = gate.weights
    kernel.assign(np.zeros(kernel.shape))
    bias.assign([-9.0, 9.0, 0.0, 9.0])
    summary = gate_statistics(gate, np.ones((3, 2, 4)))["gate"]
    assert (summary["dead"], summary["open"]) == (0.25, 0.5)
    assert (summary["share_low"], summary["share_high"]) == (0.25, 0.5)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_gate_that_is_not_finite_does_not_look_healthy(value):
    gate = layers.Gate(name="gate", activation="sigmoid")
    gate.build((None, 4))
    gate.weights[1].assign([np.nan, 0.0, 0.0, 0.0])
    summary = gate_statistics(gate, np.ones((3, 4)))["gate"]
    assert summary["share_nonfinite"] == 0.25
    for name in ("mean", "share_low", "share_high", "dead", "open", "entropy"):
        assert np.isnan(summary[name]), name
    moments = Moments(bounded=False, low=0.1, high=0.9)
    for _ in range(2):
        moments.update(np.array([[[value]], [[0.0]]]))
    summary = summarized("gate", moments)
    assert summary["share_nonfinite"] == 0.5
    assert np.isnan(summary["share_negative"])


def test_values_far_from_zero_lose_no_spread():
    """Sums of squares would: 10⁶ ± 0.01, in batches."""
    values = 1e6 + 0.01 * np.random.default_rng(0).normal(size=(1000, 2, 3))
    moments = Moments(bounded=False, low=0.1, high=0.9)
    for start in range(0, 1000, 17):
        moments.update(values[start : start + 17])
    spread = np.sqrt(moments.squares / moments.count)
    expected = values.std(axis=(0, 2))
    np.testing.assert_allclose(spread, expected, rtol=1e-6)
    np.testing.assert_allclose(moments.mean, values.mean((0, 2)), rtol=1e-14)


def test_histograms_that_grow_keep_every_value():
    values = np.random.default_rng(0).normal(size=(300, 2, 1))
    values[100:200] *= 10.0
    values[200:] *= 1000.0
    moments = Moments(bounded=False, low=0.1, high=0.9)
    for start in range(0, 300, 30):
        moments.update(values[start : start + 30])
    counts, edges = moments.histogram.counts, moments.histogram.edges
    for head in range(2):
        expected, _ = np.histogram(values[:, head], edges)
        assert expected.sum() == 300
        np.testing.assert_array_equal(counts[head], expected)


@pytest.mark.parametrize(
    "activation, bounded",
    [
        ("sigmoid", True),
        ("hard_sigmoid", True),
        ("softmax", True),
        ("sparse_sigmoid", True),
        (lambda x: keras.ops.exp(-keras.ops.square(x)), True),
        ("tanh", False),
        ("silu", False),
        ("gelu", False),
        ("relu", False),
        ("linear", False),
        ("softplus", False),
        ("exponential", False),
        (lambda x: 2.0 * keras.ops.sigmoid(x), False),
    ],
)
def test_bounds_come_from_the_activation(activation, bounded):
    assert is_bounded(activation, rank=3) is bounded


def test_a_gate_that_happens_to_be_small_is_not_bounded():
    gate = layers.Gate("relu", name="gate")
    summary = gate_statistics(gate, 1e-3 * np.ones((4, 3)))["gate"]
    assert not summary["bounded"] and summary["highest"] < 1.0
    assert "share_low" not in summary and summary["share_negative"] == 0.0


def test_constant_gates_and_gates_that_heads_share():
    constant = layers.Gate(source="constant", name="constant")
    shared = layers.Gate(granularity="shared", name="shared")
    inputs = keras.Input((5, 2, 3))
    source = keras.Input((5, 4))
    outputs = shared(constant(inputs, source=source), source=source)
    both = keras.Model([inputs, source], outputs)
    constant.bias.assign(np.arange(6.0).reshape(2, 3))
    data = [np.ones((7, 5, 2, 3)), np.ones((7, 5, 4))]
    statistics = gate_statistics(both, data, batch_size=4)
    # One value in each of two calls; seven samples of five positions.
    assert statistics["constant"]["count"] == 2 * 6
    assert statistics["shared"]["count"] == 7 * 5 * 3
    assert [len(s["heads"]) for s in statistics.values()] == [2, 1]
    means = [head["mean"] for head in statistics["constant"]["heads"]]
    expected = models.sigmoid(np.arange(6.0).reshape(2, 3)).mean(axis=1)
    np.testing.assert_allclose(means, expected, rtol=1e-6)


def test_channels_first_has_the_statistics_of_channels_last():
    images = np.random.default_rng(0).normal(size=(3, 4, 5, 6))
    found = []
    for layout in ("channels_last", "channels_first"):
        first = layout == "channels_first"
        layer = layers.CBAM(units=2, data_format=layout, name=layout)
        data = np.moveaxis(images, -1, 1) if first else images
        keras.utils.set_random_seed(0)
        layer.build((None, *data.shape[1:]))
        found.append(gate_statistics(layer, data).as_dict())
    for last, first in zip(*(list(one.values()) for one in found)):
        assert last["count"] == first["count"]
        assert last["mean"] == pytest.approx(first["mean"], rel=1e-5)
        assert last["spread"] == pytest.approx(first["spread"], rel=1e-3)
    counts = [summary["count"] for summary in found[0].values()]
    assert counts == [3 * 6, 3 * 4 * 5]


def test_split_gates_are_those_of_heads():
    layer = layers.GatedAttention(2, 4, gate_source="split", name="attention")
    x = np.random.default_rng(0).normal(size=(3, 5, 8)).astype("float32")
    inputs = keras.Input((5, 8))
    split = keras.Model(inputs, layer(inputs, inputs))
    summary = gate_statistics(split, x)["attention"]
    assert summary["count"] == 3 * 5 * 2 * 2
    assert len(summary["heads"]) == 2


def test_exports():
    statistics = gate_statistics(model(), models.sequences(), models.BATCH)
    exported = statistics.as_dict()
    assert list(exported) == list(statistics)
    exported["glu"]["heads"][0]["mean"] = 7.0
    assert statistics["glu"]["heads"][0]["mean"] != 7.0
    for text in (printed(statistics), printed(statistics, heads=True)):
        assert "swiglu" in text and f"{statistics['glu']['mean']:.3f}" in text
    assert printed(statistics, heads=True).count("head 1") == 1
    with pytest.raises(KeyError, match="no such"):
        statistics["no such"]
    counts, edges = statistics.histogram("glu")
    assert counts.sum() == statistics["glu"]["count"]
    assert (edges[0], edges[-1]) == (0.0, 1.0)


def printed(statistics, heads=False):
    out = io.StringIO()
    console = rich.console.Console(file=out, width=100)
    if heads:
        statistics.print(heads=True, console=console)
    else:
        console.print(statistics)
    return out.getvalue()


def test_frame_has_a_row_for_each_head():
    pytest.importorskip("pandas")
    statistics = gate_statistics(model(), models.sequences(), models.BATCH)
    frame = statistics.as_frame()
    assert len(frame) == models.HEADS + 3
    head = statistics["attention/gate"]["heads"][1]
    assert frame.loc[("attention/gate", 1), "mean"] == head["mean"]
    assert np.isnan(frame.loc[("swiglu", 0), "share_low"])


@pytest.mark.parametrize("package", ["pandas", "rich"])
def test_missing_packages_are_named(monkeypatch, package):
    statistics = gate_statistics(layers.GLU(2), np.ones((2, 3)))

    class Missing:
        def find_spec(name, path=None, target=None):
            if name.partition(".")[0] == package:
                raise ModuleNotFoundError(f"No module {name}", name=package)

    for name in [n for n in sys.modules if n.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Missing, *sys.meta_path])
    use = statistics.as_frame if package == "pandas" else statistics.print
    with pytest.raises(ImportError, match=r"keras-gating\[diagnostics\]"):
        use()


@pytest.mark.parametrize(
    "thresholds", [(0.9, 0.1), (0.0, 0.9), (0.1, 1.0), ("low", 0.9)]
)
def test_bad_thresholds(thresholds):
    low, high = thresholds
    with pytest.raises(ValueError, match="Received: low="):
        gate_statistics(model(), models.sequences(), low=low, high=high)


def test_nothing_to_measure():
    plain = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    with pytest.raises(ValueError, match="no gates"):
        gate_statistics(plain, np.ones((2, 3)))
    with pytest.raises(ValueError, match="padding"):
        gate_statistics(
            model(), np.zeros((models.BATCH, models.LENGTH), "int32")
        )


class Pair(keras.layers.Layer):
    """Two gates, of three values and of one, with names or without."""

    def __init__(self, names=(None, None)):
        super().__init__(name="pair")
        self.names = names

    def call(self, inputs):
        for name, width in zip(self.names, (3, 1)):
            logits = inputs[:, :width]
            inputs = functional.apply_gate(
                inputs, logits, path=name, owner=self
            )
        return inputs


def test_gates_of_several_widths_need_names():
    x = np.ones((2, 3), "float32")
    message = r"\(1, 3\), \(1, 1\) under 'pair'"
    with pytest.raises(ValueError, match=message):
        gate_statistics(Pair(), x)
    layer = Pair()
    with record_gates(layer) as record:
        layer(x)
    with pytest.raises(ValueError, match=r"\(3,\), \(1,\) under 'pair'"):
        record.statistics()
    found = gate_statistics(Pair(["wide", "narrow"]), x)
    assert {path: own["count"] for path, own in found.items()} == {
        "wide": 6,
        "narrow": 2,
    }


def test_bounds_are_looked_for_once():
    sizes = []

    def activation(x):
        sizes.append(x.shape[-1])
        return keras.ops.sigmoid(x)

    gate = layers.Gate(activation=activation)
    for _ in range(2):
        gate_statistics(gate, np.ones((2, 3)))
    assert sum(size > 3 for size in sizes) == 1


def test_a_gate_that_covers_an_axis_of_the_mask():
    """The second axis is gated, so a sample counts if it shows anything."""
    tokens = keras.Input((4,), dtype="int32")
    source = keras.Input((3,))
    x = keras.layers.Embedding(9, 6, mask_zero=True)(tokens)
    gated = keras.Model([tokens, source], layers.Gate(name="gate")(x, source))
    data = [np.array([[1, 2, 0, 0], [0, 0, 0, 0]]), np.ones((2, 3), "float32")]
    assert gate_statistics(gated, data)["gate"]["count"] == 4 * 6
