import numpy as np
import pytest

from keras_gating.experiments import products
from keras_gating.experiments.products_model import ARMS
from keras_gating.experiments.products_model import TASKS
from keras_gating.experiments.products_model import Network
from keras_gating.experiments.products_model import arms_by_name
from keras_gating.experiments.products_model import modulated
from keras_gating.experiments.products_model import parameters
from keras_gating.experiments.products_model import units_within
from tests.experiments.reporting import check_difference
from tests.experiments.reporting import check_mean
from tests.experiments.reporting import check_reports
from tests.marks import once
from tests.utils import to_numpy


def network(name, units, depth=1):
    made = Network(arms_by_name([name])[0], units, depth)
    made.build()
    return made


def set_weights(layer, *arrays):
    for variable, array in zip(layer.weights, arrays, strict=True):
        variable.assign(np.reshape(array, variable.shape))


def points(half=2.0):
    rng = np.random.default_rng(0)
    return rng.uniform(-half, half, size=(200, 2)).astype("float32")


@pytest.mark.parametrize("arm", ARMS, ids=lambda arm: arm.name)
@pytest.mark.parametrize("units, depth", [(1, 1), (5, 1), (4, 2), (3, 3)])
def test_parameters_are_counted_by_a_formula(arm, units, depth):
    made = network(arm.name, units, depth)
    assert made.count_params() == parameters(arm, units, depth)


@pytest.mark.parametrize("arm", ARMS, ids=lambda arm: arm.name)
def test_budgets_are_used_up(arm):
    unit = parameters(arm, 2) - parameters(arm, 1)
    for budget in products.BUDGETS:
        units = units_within(arm, budget)
        assert budget - unit < parameters(arm, units) <= budget


def test_one_bilinear_unit_is_an_exact_product():
    made = network("bilinear", 1)
    # Value a, gate b: a · b; with a bias of the value (1 + a) · b.
    for bias, task in ((0.0, "product"), (1.0, "modulated")):
        set_weights(made.hidden[0], [1, 0, 0, 1], [bias, 0])
        set_weights(made.readout, [1], [0])
        expected = TASKS[task][1](*points().T)
        np.testing.assert_allclose(to_numpy(made(points())), expected, 1e-5)


@pytest.mark.parametrize("name", ["swiglu", "geglu"])
def test_two_units_of_any_gate_are_an_exact_product(name):
    # φ(b) − φ(−b) = b for SiLU and GELU, so a φ(b) − a φ(−b) = a b.
    made = network(name, 2)
    set_weights(made.hidden[0], [[[1, 1], [0, 0]], [[0, 0], [1, -1]]], [0] * 4)
    set_weights(made.readout, [1, -1], [0])
    expected = TASKS["product"][1](*points().T)
    np.testing.assert_allclose(
        to_numpy(made(points())), expected, 1e-4, atol=1e-5
    )


def test_two_squares_are_an_exact_product():
    made = network("square", 2)
    set_weights(made.hidden[0], [[1, 1], [1, -1]], [0, 0])
    set_weights(made.readout, [0.25, -0.25], [0])
    expected = TASKS["product"][1](*points().T)
    np.testing.assert_allclose(to_numpy(made(points())), expected, atol=1e-5)


@pytest.mark.parametrize("name", ["bilinear", "square"])
def test_quadratic_layers_have_no_other_frequencies(name):
    made = network(name, 6)
    rng = np.random.default_rng(1)
    for variable in made.trainable_variables:
        variable.assign(rng.normal(size=variable.shape))
    spectrum = products.amplitudes(to_numpy(made(products.signal())))
    envelope, carrier = products.ENVELOPE, products.CARRIER
    possible = [0, envelope, 2 * envelope, carrier, 2 * carrier]
    possible += [carrier - envelope, carrier + envelope]
    assert np.delete(spectrum, possible).max() < 1e-5 * spectrum.max()
    assert spectrum[possible].min() > 1e-3


def test_spectrum_of_the_target_is_three_lines():
    spectrum = products.signal_spectrum(modulated)
    expected = np.zeros(len(spectrum))
    expected[list(products.LINES)] = [0.5, 1.0, 0.5]
    np.testing.assert_allclose(spectrum, expected, atol=1e-6)
    measures = products.spectrum_measures(spectrum[:, None])
    assert measures["sideband"]["estimate"] == pytest.approx(0.5)
    assert measures["spurious"]["estimate"] < 1e-10
    constant = products.amplitudes(np.full((products.SAMPLES, 1), 3.0))
    assert constant[0, 0] == pytest.approx(3.0)


def test_error_is_relative_to_the_spread():
    target = np.array([0.0, 2.0, 4.0])
    outputs = np.stack([np.full(3, 2.0), target, target + 1.0], axis=-1)
    error = products.relative_error(outputs, target)
    np.testing.assert_allclose(error, [1.0, 0.0, 1.0 / target.std()])


def test_targets_repeat_each_task_for_each_member():
    columns = products.targets(points(), 2)
    for i, (_, function) in enumerate(TASKS.values()):
        for member in (0, 1):
            np.testing.assert_array_equal(
                columns[:, 2 * i + member], function(*points().T)
            )


@once
def test_results_are_consistent(tmp_path):
    names = ["bilinear", "square"]
    results = products.run(seeds=2, quick=True, arms=names, steps=12)
    measured = results.measurements
    assert [entry["arm"] for entry in measured["sizes"]] == names
    assert {entry["depth"] for entry in measured["depths"]} == {2}
    for entry in measured["sizes"] + measured["depths"]:
        assert set(entry["tasks"]) == set(TASKS)
        for task in entry["tasks"].values():
            for part in products.RANGES:
                assert len(task[part]["values"]) == 2
                check_mean(task[part])
        assert 0.0 <= min(entry["spectrum"]["spurious"]["values"])
        assert max(entry["spectrum"]["spurious"]["values"]) <= 1.0
    gated, square = (entry["tasks"] for entry in measured["sizes"])
    assert len(measured["differences"]) == len(TASKS) * len(products.RANGES)
    for entry in measured["differences"]:
        task, part = entry["task"], entry["range"]
        check_difference(entry, gated[task][part], square[task][part])
    text = check_reports(results, tmp_path)
    assert "4 BilinearGLU" in text and "7 square, no gate" in text


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"seeds": 0}, "seeds=0"),
        ({"steps": 0}, "steps=0"),
        ({"arms": ["gelu", "selu"]}, "selu"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        products.run(**arguments)
