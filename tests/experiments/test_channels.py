import numpy as np
import pytest

from keras_gating.experiments import channels
from keras_gating.experiments import channels_model
from keras_gating.experiments.channels_model import ARMS
from keras_gating.experiments.channels_model import PAIRS
from keras_gating.experiments.channels_model import STAGES
from keras_gating.experiments.channels_model import build
from keras_gating.experiments.channels_model import cost
from keras_gating.experiments.channels_model import gate_cost
from keras_gating.experiments.digits import Split
from keras_gating.layers import CBAM
from keras_gating.layers import ECA
from keras_gating.layers import SqueezeExcite
from tests.experiments.reporting import check_difference
from tests.experiments.reporting import check_mean
from tests.experiments.reporting import check_reports
from tests.marks import once

GATES = {"se": SqueezeExcite, "eca": ECA, "cbam": CBAM}
BY_ARM = pytest.mark.parametrize("arm", ARMS, ids=lambda arm: arm.name)


def gates_of(model):
    """Each gate and the layer that follows it."""
    return [
        (layer, layer._outbound_nodes[0].operation)
        for layer in model.layers
        if isinstance(layer, tuple(GATES.values()))
    ]


@BY_ARM
def test_costs_are_those_of_the_model(arm):
    assert cost(arm)["parameters"] == build(arm).count_params()


@BY_ARM
def test_gates_are_where_the_title_says(arm):
    found = gates_of(build(arm))
    wanted = {None: 0, "last": 1}.get(arm.place, len(STAGES))
    assert len(found) == wanted
    for gate, following in found:
        assert type(gate) is GATES[arm.gate]
        is_sum = type(following).__name__ == "Add"
        assert is_sum == (arm.place in ("branch", "last"))
    if arm.place == "last":
        assert found[0][0].output.shape[-1] == STAGES[-1][0]


def test_operations_of_a_gate_grow_as_its_formula_says():
    # Pooling and product are 2 · 64 · 16 for SE and ECA, maps come on top.
    assert gate_cost("se", 16, 64)[1] == 2 * 64 * 16 + 4 * 16 * 4 + 4 + 16
    assert gate_cost("eca", 16, 64)[1] == 2 * 64 * 16 + 2 * 3 * 16
    # Three passes for each of the two gates, and 7 × 7 × 2 at each position.
    maps = 8 * 16 * 4 + 16 + 2 * 98 * 64
    assert gate_cost("cbam", 16, 64)[1] == 6 * 64 * 16 + maps
    for stage in STAGES:
        eca, se, cbam = (
            gate_cost(name, stage[0], stage[1] ** 2)
            for name in ("eca", "se", "cbam")
        )
        assert eca[0] < se[0] and eca[1] < se[1] < cbam[1]


def test_operations_without_a_gate_are_counted_by_hand():
    stem, first = 2 * 9 * 16 * 64, 2 * (2 * 9 * 16 * 16 * 64)
    down, second = 2 * 9 * 16 * 32 * 16, 2 * (2 * 9 * 32 * 32 * 16)
    readout = 16 * 32 + 2 * 32 * 10 + 10
    expected = stem + first + down + second + readout
    assert cost(ARMS[0])["operations"] == expected


def test_every_gate_is_compared_with_none():
    assert {first for first, second in PAIRS if second == "none"} == {
        arm.name for arm in ARMS[1:]
    }


def test_images_of_training_and_test_are_those_of_the_split():
    split = Split(0)
    assert split.train_images.shape[1:] == (8, 8)
    assert len(split.train_images) == len(split.train_labels)
    first_patch = split.train_images[:, :2, :2].reshape(-1, 4)
    assert np.array_equal(split.train[:, 0], first_patch)


@once
def test_results_are_consistent(tmp_path):
    names = ["none", "eca_branch"]
    results = channels.run(seeds=2, quick=True, arms=names)
    arms = results.measurements["arms"]
    assert list(arms) == names
    for name, arm in arms.items():
        check_mean(arm["accuracy"])
        counts = np.multiply(
            arm["accuracy"]["values"], results.settings["test_images"]
        )
        np.testing.assert_allclose(counts, np.round(counts), atol=1e-6)
        assert 0 < min(counts) and max(counts) < results.settings["test_images"]
        (known,) = channels_model.arms_by_name([name])
        assert arm["operations"] == cost(known)["operations"]
    (difference,) = results.measurements["differences"]
    check_difference(difference, *(arms[n]["accuracy"] for n in names[::-1]))
    text = check_reports(results, tmp_path)
    assert "ECA, before the sum − no gate" in text


@once
def test_a_network_learns_images_that_differ_by_their_class():
    """Without the test set: an image of each class, seen many times."""
    split = Split(0)
    first = [np.flatnonzero(split.train_labels == c)[0] for c in range(10)]
    (arm,) = channels_model.arms_by_name(["cbam_branch"])
    model = channels._compiled(arm, 1e-2, 60)
    images = split.train_images[first, ..., None]
    model.fit(images, np.arange(10), batch_size=10, epochs=60, verbose=0)
    loss = model.evaluate(images, np.arange(10), batch_size=10, verbose=0)
    assert loss < 0.5


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"seeds": 0}, "seeds=0"),
        ({"epochs": 0}, "epochs=0"),
        ({"arms": ["none", "gct"]}, "gct"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        channels.run(**arguments)
