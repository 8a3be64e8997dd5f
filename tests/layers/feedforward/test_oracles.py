"""Gated linear units against what other libraries computed, with gradients."""

import numpy as np
import pytest

from keras_gating.surgery import copy_weights
from tests.gradients import gradients
from tests.layers.feedforward.oracle_cases import CASES
from tests.layers.feedforward.oracle_cases import EXCEPTIONS
from tests.marks import once
from tests.oracles import load
from tests.oracles import mapped_gradients
from tests.oracles import part
from tests.utils import assert_close

ORACLES, DESCRIPTIONS = load("glu")


def built(name, dtype):
    """The layer of a case with the peer's weights."""
    case, arrays = CASES[name], ORACLES[name]
    layer = case.layer(dtype)
    layer.build(part(arrays, "in")["x"].shape)
    weights = part(arrays, "w")
    if case.layout is not None:
        copy_weights(case.inner(layer), case.inside(weights), case.layout)
    rest = case.rest(layer, weights)
    for variable in layer.weights:
        if variable.path in rest:
            variable.assign(rest[variable.path])
    return layer


def mapped_gradients_of(case, layer, arrays):
    weights, peer = part(arrays, "w"), part(arrays, "gw")
    expected = case.rest(layer, peer)
    if case.layout is not None:
        expected |= mapped_gradients(
            case.inner(layer),
            case.inside(peer),
            case.inside(weights),
            case.layout,
        )
    return expected


def compare(name, dtype, tolerance):
    case, arrays = CASES[name], ORACLES[name]
    layer = built(name, dtype)
    output, (for_input,), for_weights = gradients(
        layer, [part(arrays, "in")["x"]], arrays["cot"]
    )
    assert_close(output, arrays["out"], tolerance)
    assert_close(for_input, arrays["gin/x"], tolerance)
    expected = mapped_gradients_of(case, layer, arrays)
    assert set(expected) == set(for_weights)
    for path, gradient in for_weights.items():
        assert_close(gradient, expected[path], tolerance)


@pytest.mark.float64
@pytest.mark.parametrize("name", CASES)
def test_equals_peer_in_float64(name):
    compare(name, "float64", 1e-6)


# In float64 on every backend, above.
@once
@pytest.mark.parametrize("name", CASES)
def test_equals_peer_in_float32(name):
    compare(name, "float32", 1e-5)


def test_every_case_is_run_or_excepted():
    assert set(ORACLES) == set(CASES) | set(EXCEPTIONS)
    assert not set(CASES) & set(EXCEPTIONS)


def test_table_agrees_with_the_stored_description():
    """Each weight of the peer is used, in the dtype that the file states."""
    for name in CASES:
        assert DESCRIPTIONS[name]["dtype"] == "float64"
        arrays = part(ORACLES[name], "w")
        total = sum(array.size for array in arrays.values())
        assert built(name, "float32").count_params() == total, name


@pytest.mark.parametrize("name", ["timm_SwiGLUPacked", "timm_GluMlp_swiglu"])
def test_the_order_of_the_halves_matters(name):
    """The other order is far off, so the case above tells them apart."""
    arrays = ORACLES[name]
    layer = built(name, "float32")
    layer.hidden.gate_first = not layer.hidden.gate_first
    output, _, _ = gradients(layer, [part(arrays, "in")["x"]], arrays["cot"])
    assert np.abs(output - arrays["out"]).max() > 0.05
