import keras
import numpy as np
import pytest

from keras_gating.diagnostics import gate_statistics
from keras_gating.diagnostics.moments import Moments
from keras_gating.diagnostics.statistics import GateStatistics
from keras_gating.experiments import digits
from keras_gating.experiments import digits_model
from keras_gating.experiments import gate_values
from keras_gating.layers import GatedAttention
from tests.utils import to_numpy


@pytest.fixture(scope="module")
def models():
    return {
        arm.name: digits_model.build(arm) for arm in digits_model.matched_arms()
    }


def attention_of(model):
    (layer,) = [x for x in model.layers if isinstance(x, GatedAttention)]
    return layer


def test_arms_have_equal_parameters(models):
    counts = {name: model.count_params() for name, model in models.items()}
    assert max(counts.values()) <= 1.01 * min(counts.values())
    # What is matched is worth matching.
    gate = attention_of(models["gated"]).output_gate.count_params()
    assert gate > 0.05 * counts["gated"]


def test_only_one_arm_has_a_gate_and_no_arm_wider_values(models):
    layers = {name: attention_of(model) for name, model in models.items()}
    gated = {n for n, x in layers.items() if x.output_gate is not None}
    assert gated == {"gated"}
    assert len({layer.value_dim for layer in layers.values()}) == 1
    heads = {name: layer.num_heads for name, layer in layers.items()}
    assert heads["more_heads"] > heads["gated"] == heads["wider_feed_forward"]


def test_patches_are_squares_of_the_image():
    images = np.arange(2 * 64).reshape(2, 8, 8)
    tokens = digits_model.patches(images)
    assert tokens.shape == (2, 16, 4)
    for token in range(16):
        row, column = 2 * (token // 4), 2 * (token % 4)
        square = images[1, row : row + 2, column : column + 2]
        assert tokens[1, token].tolist() == square.ravel().tolist()


def test_splits_are_shared_by_seed_and_keep_the_classes():
    first, again, other = (digits.Split(seed) for seed in (0, 0, 1))
    assert np.array_equal(first.test, again.test)
    assert np.array_equal(first.train_labels, again.train_labels)
    assert not np.array_equal(first.test_labels, other.test_labels)
    assert len(first.train) + len(first.test) == 1797
    assert first.train.max() == 1.0 and first.train.min() == 0.0
    counts = [
        np.bincount(labels, minlength=10)
        for labels in (first.train_labels, first.test_labels)
    ]
    assert np.abs(counts[0] - counts[1]).max() <= 1
    # No image is in both halves (the data hold no duplicates).
    both = np.concatenate([first.train, first.test]).reshape(1797, -1)
    assert len(np.unique(both, axis=0)) == 1797


def test_restart_leaves_nothing_of_an_earlier_training():
    arm = digits_model.matched_arms()[0]
    split = digits.Split(0)
    model = digits._compiled(arm, 5e-3, steps=3)
    trained = []
    for _ in range(2):
        digits._restart(model, arm, seed=4)
        digits._train(model, split, seed=0, steps=3, progress=None)
        trained.append([to_numpy(w) for w in model.weights])
    for first, second in zip(*trained):
        np.testing.assert_allclose(first, second, atol=1e-5)
    digits._restart(model, arm, seed=4)
    start = [to_numpy(w) for w in model.weights]
    assert max(np.abs(a - b).max() for a, b in zip(start, trained[0])) > 1e-3
    assert not any(to_numpy(v).any() for v in model.optimizer.variables)


def test_accuracy_counts_right_answers():
    split = digits.Split(0)

    class Oracle:
        def predict(self, inputs, **kwargs):
            logits = np.eye(10)[split.test_labels]
            logits[::4] = np.roll(logits[::4], 1, axis=1)
            return logits

    wrong = len(split.test_labels[::4])
    expected = 1.0 - wrong / len(split.test_labels)
    assert digits.accuracy(Oracle(), split) == pytest.approx(expected)


@pytest.mark.parametrize(
    "gap, expected",
    [
        (0.05, "higher"),
        (-0.05, "lower"),
        (0.001, "inside its interval: no difference shown"),
    ],
)
def test_conclusions_come_from_the_accuracies(gap, expected):
    rng = np.random.default_rng(0)
    arms = digits_model.matched_arms()
    ungated = 0.9 + 0.02 * rng.normal(size=6)
    gated = ungated + gap + 0.005 * rng.normal(size=6)
    accuracies = {arm.name: ungated.tolist() for arm in arms}
    accuracies["gated"] = gated.tolist()
    compared = digits.compare(arms, accuracies)
    assert set(compared["differences"]) == {"wider_feed_forward", "more_heads"}
    for difference in compared["differences"].values():
        assert difference["verdict"] == expected
        assert difference["low"] < (gated - ungated).mean() < difference["high"]
    assert compared["arms"]["gated"]["accuracies"] == gated.tolist()


def test_recorded_gates_of_a_new_model_are_half_open(models):
    recorded = gate_statistics(models["gated"], digits.Split(0).test[:3])
    (path,) = recorded
    assert path == attention_of(models["gated"]).output_gate.path
    heads = digits_model.HEADS
    assert recorded[path]["count"] == 3 * 16 * heads * digits_model.HEAD_DIM
    statistics = gate_values.head_statistics(recorded, path)
    assert statistics["mean"] == [0.5] * heads
    assert statistics["spread"] == [0.0] * heads
    assert statistics["share_below_0.1"] == [0.0] * heads
    with pytest.raises(ValueError, match="no gates"):
        gate_statistics(models["more_heads"], np.zeros((1, 16, 4)))


def test_statistics_are_those_of_the_values():
    rng = np.random.default_rng(0)
    gates = [rng.beta(0.5, 0.3 + i, size=(5, 4, 3, 6)) for i in range(2)]
    statistics = []
    for values in gates:
        moments = Moments(bounded=True, low=0.1, high=0.9)
        moments.update(np.moveaxis(values, 2, 1).reshape(5, 3, 24))
        made = GateStatistics({"gate": moments})
        statistics.append(gate_values.head_statistics(made, "gate"))
    head = gates[1][:, :, 2]
    assert statistics[1]["mean"][2] == pytest.approx(head.mean())
    assert statistics[1]["spread"][2] == pytest.approx(head.std())
    below, above = (head < 0.1).mean(), (head > 0.9).mean()
    assert statistics[1]["share_below_0.1"][2] == pytest.approx(below)
    assert statistics[1]["share_above_0.9"][2] == pytest.approx(above)
    assert below != above
    pooled = gate_values.pool(statistics)
    together = np.stack(gates)
    assert pooled["mean"] == pytest.approx(together.mean())
    assert pooled["spread"] == pytest.approx(together.std())
    assert pooled["share_below_0.1"] == pytest.approx((together < 0.1).mean())
    assert sum(pooled["histogram"]) == together.size
    means = [m for s in statistics for m in s["mean"]]
    assert pooled["lowest_head_mean"] == min(means)
    assert pooled["highest_head_mean"] == max(means)


@pytest.mark.parametrize("name", ["seeds", "epochs"])
def test_bad_arguments(name):
    with pytest.raises(ValueError, match=f"{name}=0"):
        digits.run(**{name: 0})


def test_readout_is_of_ten_classes(models):
    for model in models.values():
        assert model.output_shape == (None, 10)
        assert isinstance(model, keras.Model)
