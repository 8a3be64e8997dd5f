import itertools

import numpy as np
import pytest

from keras_gating.experiments import xor
from keras_gating.experiments.xor import INPUTS
from keras_gating.experiments.xor import TARGETS
from keras_gating.experiments.xor_arms import ARMS
from keras_gating.experiments.xor_arms import DEMO_ARMS
from keras_gating.experiments.xor_arms import BitReader
from keras_gating.experiments.xor_arms import arms_by_name
from keras_gating.functional import record_into
from tests.utils import to_numpy

IMPOSSIBLE = [arm for arm in ARMS if arm.obstacle]
ADDITIVE = [arm for arm in IMPOSSIBLE if "f₀₀ + f₁₁" in arm.obstacle]


def network(arm):
    reader = BitReader(arm)
    reader.build()
    return reader


def random_outputs(arm, draws=25):
    """Answers to the four inputs under random trainable weights."""
    reader = network(arm)
    rng = np.random.default_rng(1)
    for _ in range(draws):
        for variable in reader.trainable_variables:
            variable.assign(rng.normal(size=variable.shape))
        yield np.float64(to_numpy(reader(INPUTS)))


def by_name(name):
    return arms_by_name([name])[0]


def test_arms_have_names_of_their_own():
    assert len({arm.name for arm in ARMS}) == len(ARMS) == 11
    assert set(DEMO_ARMS) <= {arm.name for arm in ARMS}


@pytest.mark.parametrize("arm", IMPOSSIBLE, ids=lambda arm: arm.name)
def test_no_weights_get_past_an_obstacle(arm):
    spread = []
    for outputs in random_outputs(arm):
        rounding = 1e-5 * np.abs(outputs).max()
        assert np.abs(outputs - TARGETS).max() >= 0.5 - rounding
        spread.append(np.ptp(outputs))
    assert np.median(spread) > 0.1


@pytest.mark.parametrize("arm", ADDITIVE, ids=lambda arm: arm.name)
def test_sums_of_functions_of_one_bit_err_by_a_quarter(arm):
    for outputs in random_outputs(arm):
        f00, f01, f10, f11 = outputs
        rounding = 1e-5 * np.abs(outputs).max()
        assert abs(f00 + f11 - f01 - f10) <= rounding
        assert np.square(outputs - TARGETS).mean() >= 0.25 - rounding


@pytest.mark.parametrize(
    "arm", [a for a in ARMS if not a.obstacle], ids=lambda arm: arm.name
)
def test_other_arms_are_no_sums_of_functions_of_one_bit(arm):
    interactions = [
        abs(f00 + f11 - f01 - f10) for f00, f01, f10, f11 in random_outputs(arm)
    ]
    assert np.median(interactions) > 1e-2


def test_uniform_arms_are_affine_beyond_the_bits():
    reader = network(by_name("affine"))
    for variable in reader.trainable_variables:
        variable.assign(np.random.default_rng(2).normal(size=variable.shape))
    ends = np.array([[-2.0, 1.0], [3.0, -1.5], [0.5, -0.25]], "float32")
    first, second, middle = to_numpy(reader(ends))
    assert middle == pytest.approx((first + second) / 2.0, rel=1e-4)


def test_elementwise_gate_on_one_bit_solves_with_these_weights():
    # Feature 0 holds x₂ and is open for x₁ = 0, feature 1 holds 1 − x₂ and is
    # open for x₁ = 1; the readout adds them up.
    reader = network(by_name("elementwise_one"))
    for variable in reader.trainable_variables:
        variable.assign(np.zeros(variable.shape))
    embeddings, positions = np.zeros((2, 2, 8))
    embeddings[0, 0] = embeddings[1, 1] = positions[1, 2] = 1.0
    reader.embeddings.assign(embeddings)
    reader.positions.assign(positions)
    attention = reader.attention
    value = np.zeros((8, 1, 8))
    value[1, 0, 0], value[1, 0, 1], value[2, 0, 1] = 2.0, -2.0, 2.0
    attention.value_dense.kernel.assign(value)
    kernel, bias = np.zeros((8, 1, 8)), np.zeros((1, 8))
    kernel[0, 0, :2], bias[0, :2] = [-40.0, 40.0], [20.0, -20.0]
    for variable, array in zip(attention.output_gate.weights, (kernel, bias)):
        variable.assign(array)
    attention.output_dense.kernel.assign(np.eye(8)[None])
    readout = np.zeros((8, 1))
    readout[:2] = 1.0
    reader.readout.kernel.assign(readout)
    np.testing.assert_allclose(to_numpy(reader(INPUTS)), TARGETS, atol=1e-6)


def test_one_bit_gates_do_not_see_the_other_bit():
    reader = network(by_name("elementwise_one"))
    seen = []
    gate = reader.attention.output_gate
    for variable in gate.weights:
        variable.assign(np.random.default_rng(3).normal(size=variable.shape))
    with record_into(lambda path, values, mask: seen.append(to_numpy(values))):
        reader(INPUTS)
    gates = seen[0].reshape(4, -1)
    for (i, first), (j, second) in itertools.combinations(enumerate(INPUTS), 2):
        same = np.allclose(gates[i], gates[j], atol=1e-7)
        assert same == (first[0] == second[0])


def test_summary_counts_errors_below_a_quarter():
    outputs = np.array(
        [
            # solved, one error of exactly ¼, best affine answer
            [0.1, 0.0, 0.5],
            [0.9, 0.75, 0.5],
            [1.2, 1.0, 0.5],
            [-0.2, 0.0, 0.5],
        ]
    )
    summary = xor.summarise(outputs)
    assert summary["solved_seeds"] == [True, False, False]
    assert (summary["solved"], summary["trials"]) == (1, 3)
    assert summary["largest_errors"] == pytest.approx([0.2, 0.25, 0.5])
    assert summary["smallest_largest_error"] == pytest.approx(0.2)
    assert summary["squared_errors"][2] == pytest.approx(0.25)
    assert 0.0 < summary["share_low"] < 1 / 3 < summary["share_high"] < 1.0
    assert xor.representatives(outputs) == [(0, True), (1, False)]
    assert xor.representatives(outputs[:, 2:]) == [(0, False)]


def test_run_trains_reports_and_keeps_its_bounds():
    results = xor.run(seeds=3, arms=["affine_constant_gate"], steps=15)
    (arm,) = results.measurements["arms"].values()
    assert results.seeds == [0, 1, 2] and arm["trials"] == 3
    assert arm["solved"] == 0
    assert min(arm["squared_errors"]) >= 0.25 - 1e-5
    assert min(arm["largest_errors"]) >= 0.5 - 1e-5
    (surface,) = results.arrays["surfaces"]
    assert surface["values"].shape == (xor.SURFACE_POINTS,) * 2
    # The bits are grid points, and the first one is the first index.
    bits = [xor.SURFACE_POINTS // 4, 3 * (xor.SURFACE_POINTS // 4)]
    corners = surface["values"][np.ix_(bits, bits)].ravel()
    errors = np.abs(corners - TARGETS)
    expected = arm["largest_errors"][surface["seed"]]
    assert errors.max() == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"seeds": 0}, "seeds=0"),
        ({"seeds": 1.5}, "seeds=1.5"),
        ({"steps": 0}, "steps=0"),
        ({"arms": ["affine", "xnor"]}, "xnor"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        xor.run(**arguments)
