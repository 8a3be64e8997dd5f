import numpy as np
import pytest
from keras import ops
from scipy import stats

from keras_gating.experiments import curvature
from keras_gating.experiments import curvature_analysis
from keras_gating.experiments import curvature_maps
from keras_gating.experiments import curvature_random
from keras_gating.experiments import curvature_statistics
from keras_gating.experiments.curvature_model import PLANAR_ARMS
from keras_gating.experiments.curvature_model import Context
from keras_gating.experiments.curvature_model import Network
from keras_gating.experiments.curvature_model import arms_of
from keras_gating.experiments.curvature_tasks import HALF_WIDTH
from keras_gating.experiments.curvature_tasks import TASKS
from keras_gating.experiments.curvature_training import Pupils
from keras_gating.experiments.curvature_training import examples
from keras_gating.experiments.population import draw_weights
from keras_gating.experiments.precision import float_type
from keras_gating.experiments.training import Progress
from keras_gating.layers import GatedAttention
from tests.experiments.reporting import check_difference
from tests.experiments.reporting import check_reports
from tests.marks import once
from tests.utils import random_weights
from tests.utils import to_numpy

ARMS = (*arms_of(3), *arms_of(8), *PLANAR_ARMS)
STEP = 1.0 / np.sqrt(8.0)


def points(count=7):
    return np.random.default_rng(0).normal(size=(count, 2)).astype("float32")


@pytest.mark.parametrize("arm", ARMS, ids=lambda a: f"{a.name}_{a.group}")
def test_parameters_are_counted_and_matched(arm):
    network = Network(arm)
    network.build()
    assert network.count_params() == arm.parameters
    if arm.name in ("more_tokens", "wide"):
        (gated,) = (a for a in arms_of(arm.group) if a.name == "elementwise")
        assert 0 <= arm.parameters - gated.parameters < 12


@pytest.mark.parametrize("gate", [None, "constant", "headwise", "elementwise"])
def test_contexts_are_those_of_gated_attention(gate):
    """With one-hot tokens the layer has the same weights and no others."""
    (arm,) = (a for a in arms_of(8) if a.name == (gate or "ungated"))
    context = Context(arm)
    context.build()
    random_weights(context, seed=2)
    arguments = {"use_gate": False}
    if gate is not None:
        arguments = {
            "gate_source": "constant" if gate == "constant" else "query",
            "gate_granularity": "headwise"
            if gate == "headwise"
            else "elementwise",
        }
    layer = GatedAttention(1, 8, value_dim=8, output_shape=8, **arguments)
    layer.build((None, 1, 2), (None, 8, 8))
    tokens = np.eye(8, dtype="float32")[None]
    layer.query_dense.kernel.assign(to_numpy(context.keys)[:, None])
    layer.query_dense.bias.assign(to_numpy(context.bias)[None])
    layer.key_dense.kernel.assign(np.eye(8)[:, None] / STEP)
    layer.key_dense.bias.assign(np.zeros((1, 8)))
    layer.value_dense.kernel.assign(to_numpy(context.values)[:, None])
    layer.value_dense.bias.assign(np.zeros((1, 8)))
    layer.output_dense.kernel.assign(np.eye(8)[None])
    layer.output_dense.bias.assign(np.zeros(8))
    if gate is not None:
        own = layer.output_gate.weights
        for variable, other in zip(own, context.gate.weights):
            variable.assign(to_numpy(other).reshape(variable.shape))
    x = points()
    expected = layer(x[:, None], np.repeat(tokens, len(x), axis=0))[:, 0]
    np.testing.assert_allclose(
        to_numpy(context(x)), to_numpy(expected), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_tasks_are_balanced_and_on_the_patch(task):
    x, labels = task.data(0, 4000)
    assert x.shape == (4000, 2) and np.abs(x).max() <= HALF_WIDTH + 1e-6
    assert set(labels) == {0.0, 1.0}
    assert labels.mean() == pytest.approx(0.5, abs=0.05)
    again, _ = task.data(0, 4000)
    other, _ = task.data(1, 4000)
    np.testing.assert_array_equal(x, again)
    assert not np.array_equal(x, other)
    # What a line can do, by least squares.
    design = np.column_stack([x, np.ones(len(x))])
    plane, *_ = np.linalg.lstsq(design, 2.0 * labels - 1.0, rcond=None)
    right = np.mean((design @ plane > 0.0) == (labels > 0.5))
    assert (right > 0.95) == task.straight


def test_pupils_are_networks_with_examples_of_their_own():
    (arm,) = (a for a in arms_of(3) if a.name == "elementwise")

    def build():
        network = Network(arm)
        network.build()
        return network

    weights = draw_weights(build, [0, 1])
    pupils = Pupils(build(), weights)
    x, labels = examples(TASKS[1:2], [0, 1], 6)
    assert x.shape == (6, 2, 2) and labels.shape == (6, 2)
    outputs = to_numpy(pupils(x))
    network = build()
    for member in (0, 1):
        network.set_weights(weights[member])
        np.testing.assert_allclose(
            outputs[:, member], to_numpy(network(x[:, member])), rtol=1e-4
        )


@pytest.mark.parametrize(
    "head", curvature_maps.HEADS, ids=lambda head: head.name
)
def test_random_attention_and_its_hull(head):
    layer = curvature_maps.RandomHead(head, dtype=float_type())
    layer.build()
    layer.draw(5)
    origin, basis = layer.hull()
    assert basis.shape == (head.features, head.hull)
    rank, distance = curvature_random.hull_of(layer, 0, float_type())
    inside = head.gate in (None, "constant") or head.hull == head.features
    assert (distance < 1e-5) == inside
    if head.gate in (None, "constant"):
        assert rank <= head.hull
    # The mean of all vertices of the hull of one head lies in it.
    values = to_numpy(layer.values)
    if head.gate is None:
        centre = values.mean(axis=1).sum(axis=0) - origin
        np.testing.assert_allclose(
            basis @ (basis.T @ centre), centre, atol=1e-5
        )


def test_depth_is_a_number():
    """A switched stack is the composition of its first layers."""
    stack = curvature_maps.AttentionStack(3, True, layers=3)
    stack.build()
    stack.draw(1)
    x = points()
    hidden = np.float32(x @ to_numpy(stack.embedding))
    for residual in (False, True):
        stack.switch(2, residual)
        expected = hidden
        for i in range(2):
            outputs = to_numpy(stack.layer(i, ops.convert_to_tensor(expected)))
            expected = outputs + (expected if residual else 0.0)
        np.testing.assert_allclose(
            to_numpy(stack(x)), expected, rtol=1e-4, atol=1e-5
        )
    stack.switch(0)
    np.testing.assert_allclose(to_numpy(stack(x)), hidden, rtol=1e-6)


def test_softplus_goes_to_relu():
    perceptron = curvature_maps.SoftplusPerceptron(2)
    perceptron.build()
    perceptron.draw(3)
    perceptron.switch(2)
    perceptron.sharpness.assign(1e4)
    rectified = curvature_maps.Perceptron("ReLU", 2)
    rectified.build()
    rectified.set_weights([to_numpy(v) for v in perceptron.weights[:4]])
    np.testing.assert_allclose(
        to_numpy(perceptron(points())),
        to_numpy(rectified(points())),
        atol=1e-3,
    )


@pytest.mark.parametrize(
    "name, is_flat", [("identity", True), ("GELU", False), ("ReLU", True)]
)
def test_activations_bend_and_rectifiers_hide_it(name, is_flat):
    network = curvature_maps.Perceptron(name, 2, dtype=float_type())
    network.build()
    network.switch(2)
    totals = []
    for seed in range(2):
        network.draw(seed)
        totals.append(curvature_random.total(network, 12))
    assert curvature_random.is_flat(curvature_random.summarise(totals)) == (
        is_flat
    )


def test_growth_pairs_depths():
    rng = np.random.default_rng(0)
    first = rng.uniform(1.0, 10.0, size=60)
    totals = np.stack([first, 3.0 * first], axis=1)
    growth = curvature_random.growth(totals)
    # Without the pairs the interval would be wide.
    assert growth["low"] == pytest.approx(3.0)
    assert growth["high"] == pytest.approx(3.0)
    assert growth["verdict"] == "grows"
    assert curvature_random.growth(totals[:, ::-1])["verdict"] == "shrinks"
    same = np.stack([first, rng.permutation(first)], axis=1)
    assert curvature_random.growth(same)["verdict"] == "no change shown"
    assert curvature_random.growth(0.0 * totals) is None


def test_scopes_of_correlations():
    """Arms that differ make a correlation that seeds do not have."""
    rng = np.random.default_rng(0)
    arms = np.array([0.0, 2.0])[:, None, None]
    tasks = np.array([-3.0, 0.0, 3.0])[:, None]
    noise = rng.normal(size=(2, 2, 3, 30))
    totals = 10.0 ** (arms + 0.1 * noise[0])
    accuracies = 0.8 + 0.05 * (arms + tasks) - 0.01 * noise.sum(axis=0)
    found = curvature_statistics.correlations(totals, accuracies, 300)
    assert found["within_task"]["pearson"]["low"] > 0.9
    assert found["pooled"]["pearson"]["estimate"] < 0.8
    within = found["within_arm_and_task"]["pearson"]
    assert within["high"] < 0.0
    assert not curvature_statistics.supported(within)
    driven = 0.8 + 0.05 * arms + 0.1 * noise[0] + 0.01 * noise[1]
    found = curvature_statistics.correlations(totals, driven, 300)
    assert curvature_statistics.supported(
        found["within_arm_and_task"]["pearson"]
    )


def test_correlations_are_those_of_scipy():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(2, 3, 2, 6))
    y = y + x
    x[0, 0, 0] = np.nan
    # Ties, which share a rank.
    y[1, 0, :3] = y[1, 0, 0]
    flat = [a[np.isfinite(x)] for a in (x, y)]
    assert curvature_statistics.pearson(x, y, None) == pytest.approx(
        stats.pearsonr(*flat)[0]
    )
    known = np.where(np.isfinite(x), y, np.nan)
    assert curvature_statistics.spearman(x, known, None) == pytest.approx(
        stats.spearmanr(*flat)[0]
    )


def test_flat_arms_have_no_correlation():
    totals = np.full((1, 2, 5), 1e-30)
    accuracies = np.random.default_rng(0).uniform(size=(1, 2, 5))
    for entry in curvature_statistics.correlations(totals, accuracies).values():
        assert entry["pearson"]["estimate"] is None


@pytest.fixture(scope="module")
def trained():
    return curvature.run(
        seeds=2,
        quick=True,
        parts=["training"],
        tokens=[3],
        arms=["ungated", "elementwise"],
        tasks=["linear", "circle"],
        steps=60,
    )


@once
def test_trained_arms_are_measured(trained, tmp_path):
    training = trained.measurements["training"]
    ungated, gated = training["arms"].values()
    for task in ("linear", "circle"):
        assert curvature_random.is_flat(ungated["tasks"][task]["curvature"])
        entry = gated["tasks"][task]
        assert min(entry["curvature"]["values"]) > 1e-3
        # ‖II‖² ≥ 2|K| at every point of a surface in space.
        assert np.all(
            np.array(entry["bending"]["values"])
            >= 2.0 * np.array(entry["curvature"]["values"]) * (1.0 - 1e-3)
        )
        accuracies = [a["tasks"][task]["accuracies"] for a in (gated, ungated)]
        difference = training["groups"]["3"]["differences"]["elementwise"]
        check_difference(
            difference[task]["accuracy"],
            *({"values": values} for values in accuracies),
        )
        assert all(0.0 <= a <= 1.0 for a in accuracies[0] + accuracies[1])
    (claim,) = (
        c for c in trained.measurements["conclusions"] if "flat" in c["claim"]
    )
    assert claim["supported"]
    text = check_reports(trained, tmp_path)
    assert "elementwise gate" in text and "not supported" in text


@pytest.mark.float64
@once
def test_flat_networks_are_flat_to_rounding(trained):
    ungated, _ = trained.measurements["training"]["arms"].values()
    for task in ungated["tasks"].values():
        assert max(task["curvature"]["values"]) < 1e-12


@once
def test_conclusions_need_every_number_of_tokens(trained):
    training = trained.measurements["training"]
    groups = {}
    for number, low in (("3", 0.1), ("8", 0.1)):
        group = {**training["groups"]["3"]}
        within = {"estimate": 0.3, "low": low, "high": 0.5}
        group["correlations"] = {
            "all": {"within_arm_and_task": {"pearson": within}}
        }
        groups[number] = group

    def verdict():
        *_, last = curvature_analysis.conclude(
            {"training": {**training, "groups": groups}}
        )
        assert "more curvature goes with more accuracy" in last["claim"]
        return last["supported"]

    assert verdict()
    scope = groups["8"]["correlations"]["all"]["within_arm_and_task"]
    scope["pearson"]["low"] = -0.1
    assert not verdict()


@once
def test_random_parts_are_summarised_and_printed(tmp_path, monkeypatch):
    monkeypatch.setattr(curvature_random, "HEADS", curvature_maps.HEADS[:2])
    monkeypatch.setattr(
        curvature_random,
        "ATTENTION_STACKS",
        {"ungated_3": ("no gate, 3 tokens", 3, False)},
    )
    monkeypatch.setattr(curvature_random, "SHARPNESS", (2.0, 5.0))
    progress = Progress(1.0)
    seeds = [0, 1]
    measured = {
        "heads": curvature_random.heads(seeds, 8, progress),
        "sharpness": curvature_random.sharpness(seeds, 8, progress),
        "stacks": curvature_random.stacks(seeds, 8, (1, 2), progress),
    }
    degenerate, plane = measured["heads"].values()
    assert degenerate["median"] is None and degenerate["dropped"] == 1.0
    assert degenerate["flat"] is None and degenerate["ranks"] == [1]
    assert plane["flat"] and plane["ranks"] == [2]
    for entry in measured["sharpness"].values():
        signed, absolute = (
            entry["signed"]["values"],
            entry["absolute"]["values"],
        )
        assert np.all(np.abs(signed) <= np.array(absolute) + 1e-9)
    plain, residual = measured["stacks"].values()
    # All layers map to a plane of three values; a sum leaves it.
    assert plain["flat"] and plain["growth"] is None
    assert not residual["flat"] and residual["growth"]["estimate"] > 0.0
    measured["conclusions"] = curvature_analysis.conclude(measured)
    results = curvature.Results(
        experiment="curvature",
        seeds=seeds,
        settings={
            "quick": False,
            "dtype": float_type(),
            "flat_below": 1e-12,
            "map_seeds": 2,
            "sharpness_seeds": 2,
        },
        measurements=measured,
        elapsed_seconds=1.0,
    )
    text = check_reports(results, tmp_path)
    assert "degenerate" in text and "softplus" in text


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"seeds": 0}, "seeds=0"),
        ({"steps": 0}, "steps=0"),
        ({"parts": ["maps"]}, "maps"),
        ({"arms": ["gated"]}, "gated"),
        ({"tasks": ["saddle"]}, "saddle"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        curvature.run(**arguments)
