import numpy as np
import pytest

from keras_gating.experiments import depth
from keras_gating.experiments.depth_model import ARMS
from keras_gating.experiments.depth_model import DIM
from keras_gating.experiments.depth_model import TOKENS
from keras_gating.experiments.depth_model import Stack
from keras_gating.experiments.depth_model import arms_by_name
from keras_gating.experiments.depth_model import sequences
from keras_gating.experiments.depth_model import targets
from keras_gating.experiments.population import Population
from keras_gating.experiments.population import draw_weights
from keras_gating.experiments.population import summed_squares
from keras_gating.functional import record_into
from keras_gating.layers import GatedAttentionBlock
from tests.experiments.reporting import check_difference
from tests.experiments.reporting import check_mean
from tests.experiments.reporting import check_reports
from tests.marks import once
from tests.utils import to_numpy

BY_ARM = pytest.mark.parametrize("arm", ARMS, ids=lambda arm: arm.name)
STARTS = {
    "half": 0.5,
    "open": 1.0 / (1.0 + np.exp(-3.0)),
    "closed": 1.0 / (1.0 + np.exp(3.0)),
    # Recorded before its factor 2.
    "identity": 0.5,
}


def tokens(count=16):
    return sequences(np.random.default_rng(0), count)


def hidden(count=3):
    rng = np.random.default_rng(1)
    return rng.normal(size=(count, TOKENS, DIM)).astype("float32")


@BY_ARM
def test_gates_start_where_the_arm_says(arm):
    seen = []
    with record_into(lambda path, gate, mask: seen.append(to_numpy(gate))):
        arm.layer()(hidden())
    if arm.start == "none":
        assert not seen
    else:
        np.testing.assert_allclose(seen[0], STARTS[arm.start], rtol=1e-5)


@BY_ARM
def test_blocks_have_the_parts_that_the_arm_names(arm):
    block = arm.layer()
    x = hidden()
    outputs = to_numpy(block(x))
    assert isinstance(block, GatedAttentionBlock) == (
        arm.block in ("post", "pre")
    )
    for kernel in (block.attention.output_dense.kernel,):
        kernel.assign(np.zeros(kernel.shape))
    without = to_numpy(block(x))
    centred = x - x.mean(axis=-1, keepdims=True)
    normalized = centred / centred.std(axis=-1, keepdims=True)
    expected = {
        "bare": 0.0 * x,
        "normalized": 0.0 * x,
        "residual": x,
        "pre": x,
        "post": normalized,
    }
    np.testing.assert_allclose(without, expected[arm.block], atol=1e-3)
    if arm.block in ("post", "normalized"):
        np.testing.assert_allclose(outputs.mean(axis=-1), 0.0, atol=1e-5)
        np.testing.assert_allclose(outputs.std(axis=-1), 1.0, atol=1e-2)


def test_half_open_gates_halve_the_signal_of_each_block():
    outputs = []
    for name in ("bare", "bare_identity"):
        stack = Stack(arms_by_name([name])[0], 4)
        stack.build()
        rng = np.random.default_rng(2)
        kernels = [stack.embedding.kernel, stack.readout.kernel]
        for block in stack.blocks:
            # Uniform attention, so that nothing but the gates differs.
            query = block.attention.query_dense.kernel
            query.assign(np.zeros(query.shape))
            kernels.append(block.attention.value_dense.kernel)
            kernels.append(block.attention.output_dense.kernel)
        for kernel in kernels:
            kernel.assign(rng.normal(size=kernel.shape) / 4.0)
        outputs.append(to_numpy(stack(tokens())))
    assert np.abs(outputs[1]).max() > 1e-3
    np.testing.assert_allclose(
        outputs[0], outputs[1] / 2.0**4, rtol=1e-3, atol=1e-6
    )


def test_target_is_a_product_of_unit_variance():
    inputs = tokens(100_000)
    target = targets(inputs)
    assert target.mean() == pytest.approx(0.0, abs=0.02)
    assert target.var() == pytest.approx(1.0, abs=0.05)
    means = np.float64(inputs[5]).mean(axis=0)
    expected = TOKENS * means[0] * means[1]
    assert target[5] == pytest.approx(expected, rel=1e-4)


def test_places_of_weights_are_those_of_the_block():
    stack = Stack(arms_by_name(["post"])[0], 3)
    stack.build()
    places = [stack.weights_of(block) for block in range(3)]
    flat = [i for own in places for i in own]
    assert len(set(flat)) == len(flat)
    # The embedding and the readout have two weights each.
    assert len(flat) == len(stack.trainable_variables) - 4
    for block, own in zip(stack.blocks, places):
        assert [tuple(v.shape) for v in block.trainable_variables] == [
            tuple(stack.trainable_variables[i].shape) for i in own
        ]


@once
def test_first_momentum_is_the_gradient():
    def build():
        stack = Stack(arms_by_name(["residual"])[0], 2)
        stack.build()
        return stack

    stack = build()
    weights = draw_weights(build, [0, 1])
    inputs = tokens(depth.BATCH)
    labels = targets(inputs)[:, None]
    population = Population(stack, weights)
    population.compile("adam", summed_squares)
    before = [to_numpy(v) for v in population.stacks]
    population.fit(inputs, labels, batch_size=len(inputs), verbose=0)
    momentums = depth._momentums(population)
    assert [m.shape for m in momentums] == [b.shape for b in before]
    # A difference quotient of the loss along the momentum of one member.
    for member in (0, 1):
        size = np.sqrt(sum(np.square(m[member]).sum() for m in momentums))
        losses = []
        for sign in (1.0, -1.0):
            moved = [b.copy() for b in before]
            for b, m in zip(moved, momentums):
                b[member] += sign * 1e-2 * m[member] / size
            for variable, value in zip(population.stacks, moved):
                variable.assign(value)
            error = to_numpy(population(inputs)) - labels
            losses.append(np.square(np.float64(error)).sum(1).mean())
        slope = (losses[0] - losses[1]) / 2e-2
        assert slope == pytest.approx(size / 0.1, rel=2e-2)


def test_ratio_is_of_norms_by_member():
    gradients = [
        np.array([[3.0, 4.0], [0.0, 0.0]]),
        np.array([[[1.0]], [[2.0]]]),
        np.array([[10.0], [4.0]]),
    ]
    ratio = depth.gradient_ratio(gradients, [0, 1], [2])
    np.testing.assert_allclose(ratio, [np.sqrt(26.0) / 10.0, 0.5])


@once
def test_results_are_consistent(tmp_path):
    names = ["post", "bare"]
    results = depth.run(seeds=2, quick=True, arms=names)
    arms = results.measurements["arms"]
    assert list(arms) == names
    for arm in arms.values():
        (entry,) = arm["depths"].values()
        check_mean(entry["explained"])
        check_mean(entry["log10_gradient_ratio"])
        curve = entry["curve"]
        assert curve["steps"][0] == 0
        assert curve["steps"][-1] == results.settings["steps"]
        assert len(curve["steps"]) == len(curve["explained"])
        assert curve["explained"][-1] == entry["explained"]["values"]
        assert np.max(curve["explained"]) <= 1.0
    bare, post = (arms[name]["depths"]["2"] for name in ("bare", "post"))
    check_difference(bare["difference"], bare["explained"], post["explained"])
    text = check_reports(results, tmp_path)
    assert "product alone, half open" in text


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"seeds": 0}, "seeds=0"),
        ({"steps": 0}, "steps=0"),
        ({"depths": (2, 0)}, "depths=0"),
        ({"arms": ["post", "deep"]}, "deep"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        depth.run(**arguments)
