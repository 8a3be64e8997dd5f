import keras
import numpy as np
import pytest

from keras_gating.diagnostics import gate_variables
from keras_gating.experiments import digits_model
from keras_gating.experiments import overfitting
from keras_gating.experiments import overfitting_model
from keras_gating.experiments.digits import Split
from keras_gating.experiments.overfitting_model import ARMS
from keras_gating.experiments.overfitting_model import PAIRS
from keras_gating.experiments.overfitting_model import arms_by_name
from tests.experiments.reporting import check_difference
from tests.experiments.reporting import check_mean
from tests.experiments.reporting import check_reports
from tests.marks import once
from tests.utils import to_numpy

BY_NAME = {arm.name: arm for arm in ARMS}


def compiled(name, learning_rate=0.1):
    # One step of a cosine over very many keeps its learning rate.
    return overfitting_model.compiled(BY_NAME[name], learning_rate, 10**6)


def test_wider_has_the_parameters_of_gated():
    counts = {
        name: digits_model.build(BY_NAME[name].encoder).count_params()
        for name in ("ungated", "wider", "gated")
    }
    assert counts["ungated"] < 0.95 * counts["gated"]
    assert counts["wider"] == pytest.approx(counts["gated"], rel=0.01)


def test_each_remedy_differs_in_one_thing_from_what_it_is_compared_with():
    for first, second in PAIRS[2:]:
        one, other = BY_NAME[first], BY_NAME[second]
        settings = [
            (
                arm.encoder.gate_dropout,
                arm.encoder.output_dropout,
                arm.decay,
            )
            for arm in (one, other)
        ]
        assert settings[1] == (0.0, 0.0, 0.0)
        assert sum(value > 0.0 for value in settings[0]) == 1, first
        assert one.encoder.use_gate == other.encoder.use_gate
        assert one.encoder.hidden == other.encoder.hidden
    assert {first for first, _ in PAIRS} == set(BY_NAME) - {"ungated", "wider"}


@pytest.mark.parametrize("name", ["gate_decay_1", "decay_1"])
def test_weight_decay_shrinks_what_the_title_says(name):
    """A step without a gradient: all that moves has decayed."""
    model = compiled(name)
    for variable in model.trainable_variables:
        variable.assign(np.ones(variable.shape))
    zeros = [
        np.zeros(variable.shape, "float32")
        for variable in model.trainable_variables
    ]
    model.optimizer.apply(
        [keras.ops.convert_to_tensor(zero) for zero in zeros],
        model.trainable_variables,
    )
    gates = {id(v) for v in gate_variables(model)}
    assert len(gates) == 2
    for variable in model.trainable_variables:
        decays = name == "decay_1" or (
            name == "gate_decay_1" and id(variable) in gates
        )
        expected = 1.0 - 0.1 * 1.0 if decays else 1.0
        np.testing.assert_allclose(
            to_numpy(variable), expected, rtol=1e-6, err_msg=variable.path
        )


@pytest.mark.parametrize("name", ["gate_dropout_0.5", "output_dropout_0.5"])
def test_dropout_is_where_the_title_says(name):
    """The attention's part of the sum, with and without dropout."""
    model = digits_model.build(BY_NAME[name].encoder)
    attention = model.get_layer("attention")
    drops_gates = name.startswith("gate")
    assert attention.gate_dropout == (0.5 if drops_gates else 0.0)
    # An identity behind ones: the outputs are the gated context.
    x = np.random.default_rng(0).normal(size=(2, 16, 32)).astype("float32")
    evaluated, trained = (
        to_numpy(attention(x, x, training=training))
        for training in (False, True)
    )
    assert (np.abs(trained - evaluated).max() > 1e-3) == drops_gates
    layers = [type(layer).__name__ for layer in model.layers]
    assert ("Dropout" in layers) != drops_gates
    if not drops_gates:
        dropout = model.get_layer("attention_dropout")
        assert dropout.rate == 0.5
        (parent,) = dropout._inbound_nodes[0].parent_nodes
        assert parent.operation is attention
        add = dropout._outbound_nodes[0].operation
        assert add is model.get_layer("attention_add")


def test_arms_that_differ_in_dropout_start_alike():
    plain, dropped, other = (
        overfitting_model.start(BY_NAME[name], seed).get_weights()
        for name, seed in (
            ("gated", 3),
            ("gate_dropout_0.5", 3),
            ("gated", 4),
        )
    )
    assert all(map(np.array_equal, plain, dropped))
    assert not all(map(np.array_equal, plain, other))


@pytest.mark.parametrize("name", ["gate_dropout_0.5", "output_dropout_0.5"])
def test_dropout_starts_anew_with_its_seed(name):
    model = digits_model.build(BY_NAME[name].encoder)
    outputs = []
    x = np.ones((1, 16, 4), "float32")
    for seed in (2, 2, 5):
        overfitting_model.seed_dropout(model, seed)
        outputs.append(to_numpy(model(x, training=True)))
    np.testing.assert_allclose(outputs[0], outputs[1], atol=1e-6)
    assert np.abs(outputs[0] - outputs[2]).max() > 1e-3


def test_few_images_of_every_class_and_all_others_to_test():
    split = Split(1, overfitting.IMAGES - overfitting.TRAINING_IMAGES)
    assert len(split.train) == overfitting.TRAINING_IMAGES
    assert len(split.train) + len(split.test) == overfitting.IMAGES
    counts = np.bincount(split.train_labels, minlength=10)
    assert counts.min() >= 9 and counts.max() <= 11


def test_measures_are_those_of_the_logits():
    class Oracle:
        """Sure of the class, and of a wrong one for a fourth of the tests."""

        def predict(self, inputs, **kwargs):
            labels = split.test_labels.copy()
            labels[::4] = (labels[::4] + 1) % 10
            labels = np.concatenate([split.train_labels, labels])
            assert len(inputs) == len(labels)
            return 8.0 * np.eye(10, dtype="float32")[labels]

    split = Split(0, 1697)
    found = overfitting.measures(Oracle(), split)
    right = np.log1p(9.0 * np.exp(-8.0))
    wrong = len(split.test_labels[::4]) / len(split.test_labels)
    assert found["train_loss"] == pytest.approx(right)
    assert found["test_loss"] == pytest.approx(right + 8.0 * wrong)
    assert found["loss_gap"] == pytest.approx(8.0 * wrong)
    assert found["train_accuracy"] == 1.0
    assert found["accuracy_gap"] == pytest.approx(wrong)


def test_cross_entropy_of_large_logits_is_finite():
    logits = np.array([[1e4, 0.0], [0.0, 1e4]], "float32")
    assert overfitting.cross_entropy(logits, np.array([0, 0])) == 5e3


@once
def test_results_are_consistent(tmp_path):
    names = ["gated", "gate_decay_1"]
    results = overfitting.run(seeds=2, quick=True, arms=names, epochs=1)
    arms = results.measurements["arms"]
    assert list(arms) == names
    sizes = results.settings["training_images"], results.settings["test_images"]
    assert sizes == (100, 1697)
    for arm in arms.values():
        for key, entry in arm.items():
            if key not in ("title", "parameters"):
                check_mean(entry)
        for part, size in zip(("train", "test"), sizes):
            counts = np.multiply(arm[f"{part}_accuracy"]["values"], size)
            np.testing.assert_allclose(counts, np.round(counts), atol=1e-6)
        np.testing.assert_allclose(
            arm["loss_gap"]["values"],
            np.subtract(
                arm["test_loss"]["values"], arm["train_loss"]["values"]
            ),
        )
    differences = results.measurements["differences"]
    for measure, entries in differences.items():
        pairs = [(entry["first"], entry["second"]) for entry in entries]
        assert pairs == [
            ("gate_decay_1", "gated"),
        ]
        for entry, (first, second) in zip(entries, pairs):
            check_difference(entry, arms[first][measure], arms[second][measure])
    text = check_reports(results, tmp_path)
    assert "decay of gates 1 − gated" in text
    assert "weight decay of the gates lowers the test loss" in text


@pytest.mark.parametrize("sign", [1, -1])
def test_conclusions_come_from_the_measurements(sign):
    rng = np.random.default_rng(0)
    seeds = rng.normal(size=8)
    shifts = {
        "ungated": 0.0,
        "wider": 0.0,
        "gated": 0.5 * sign,
        "gate_dropout_0.2": 0.5 * sign,
        "gate_dropout_0.5": -0.5 * sign,
        "wider_decay_1": 0.0,
    }
    measured = {
        name: {
            measure: {"values": (seeds + shift + 0.01 * noise).tolist()}
            for measure in overfitting.MEASURES
            for noise in [rng.normal(size=8)]
        }
        for name, shift in shifts.items()
    }
    found = overfitting.conclude(overfitting.compare(measured))
    by_claim = {entry["claim"]: entry for entry in found}
    wider = by_claim["gates widen the gap of the loss"]
    assert wider["verdict"] == ("supported" if sign > 0 else "not supported")
    shown = wider["for" if sign > 0 else "against"]
    assert shown == ["against ungated", "against wider"]
    accuracy = by_claim["gates cost test accuracy"]["verdict"]
    assert accuracy == ("not supported" if sign > 0 else "supported")
    remedy = by_claim["dropout in the gate lowers the test loss"]
    assert remedy["not shown"] == ["dropout in gate 0.2"]
    shown = remedy["for" if sign > 0 else "against"]
    assert shown == ["dropout in gate 0.5"]
    control = by_claim["dropout or decay without a gate raises test accuracy"]
    assert control["not shown"] == ["wider, decay 1"]
    # Arms that were not trained are not spoken of.
    assert not any("weight decay of" in claim for claim in by_claim)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"seeds": 0}, "seeds=0"),
        ({"epochs": 0}, "epochs=0"),
        ({"arms": ["gated", "pruned"]}, "pruned"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        overfitting.run(**arguments)


def test_arms_by_name():
    assert arms_by_name() == ARMS
    assert len(BY_NAME) == len(ARMS)
