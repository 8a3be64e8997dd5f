"""Gated linear units against what other libraries computed, with gradients."""

import numpy as np
import pytest

from tests.gradients import gradients
from tests.layers.feedforward.oracle_cases import CASES
from tests.layers.feedforward.oracle_cases import EXCEPTIONS
from tests.oracles import load
from tests.oracles import part
from tests.utils import assert_close
from tests.utils import relative_path

ORACLES, DESCRIPTIONS = load("glu")


def built(name, dtype):
    """The layer of a case with the peer's weights, and the weights' map."""
    case, arrays = CASES[name], ORACLES[name]
    layer = case.layer(dtype)
    layer.build(part(arrays, "in")["x"].shape)
    weights = case.weights(part(arrays, "w"))
    ours = {relative_path(layer, weight): weight for weight in layer.weights}
    assert set(ours) == set(weights)
    for path, variable in ours.items():
        assert tuple(variable.shape) == weights[path].shape, path
        variable.assign(weights[path].astype(dtype))
    return layer


def compare(name, dtype, tolerance):
    arrays = ORACLES[name]
    layer = built(name, dtype)
    output, (for_input,), for_weights = gradients(
        layer, [part(arrays, "in")["x"]], arrays["cot"]
    )
    assert_close(output, arrays["out"], tolerance)
    assert_close(for_input, arrays["gin/x"], tolerance)
    expected = CASES[name].weights(part(arrays, "gw"))
    for variable in layer.trainable_variables:
        gradient = for_weights[variable.path]
        path = relative_path(layer, variable)
        assert_close(gradient, expected[path], tolerance)


@pytest.mark.float64
@pytest.mark.parametrize("name", CASES)
def test_equals_peer_in_float64(name):
    compare(name, "float64", 1e-6)


@pytest.mark.parametrize("name", CASES)
def test_equals_peer_in_float32(name):
    compare(name, "float32", 1e-5)


def test_every_case_is_run_or_excepted():
    assert set(ORACLES) == set(CASES) | set(EXCEPTIONS)
    assert not set(CASES) & set(EXCEPTIONS)


def test_table_agrees_with_the_stored_description():
    """Each weight of the peer is used, in the dtype that the file states."""
    for name, case in CASES.items():
        assert DESCRIPTIONS[name]["dtype"] == "float64"
        arrays = part(ORACLES[name], "w")
        mapped = case.weights(arrays)
        total = sum(array.size for array in arrays.values())
        assert sum(array.size for array in mapped.values()) == total, name


@pytest.mark.parametrize("name", ["timm_SwiGLUPacked", "timm_GluMlp_swiglu"])
def test_the_order_of_the_halves_matters(name):
    """The other order is far off, so the case above tells them apart."""
    arrays = ORACLES[name]
    layer = built(name, "float32")
    layer.hidden.gate_first = not layer.hidden.gate_first
    output, _, _ = gradients(layer, [part(arrays, "in")["x"]], arrays["cot"])
    assert np.abs(output - arrays["out"]).max() > 0.05
