"""`GatedAttention` against what other libraries computed, with gradients."""

import numpy as np
import pytest

from keras_gating.layers import GatedAttention
from tests.gradients import gradients
from tests.layers.attention import oracle_cases
from tests.layers.attention.oracle_cases import CASES
from tests.layers.attention.oracle_cases import variables
from tests.oracles import load
from tests.oracles import part
from tests.reference.attention import gated_attention
from tests.utils import assert_close
from tests.utils import tensor
from tests.utils import to_numpy

ORACLES = {file: load(file) for file in oracle_cases.FILES}
FLOAT64 = [name for name, case in CASES.items() if case.dtype == "float64"]
FLOAT32 = [name for name, case in CASES.items() if case.dtype == "float32"]


def peer(name):
    file, case = name.split("/")
    return ORACLES[file][0][case]


def built(name, dtype):
    """The layer of a case with the peer's weights."""
    case, arrays = CASES[name], peer(name)
    inputs = part(arrays, "in")
    shapes = [inputs[key].shape for key in case.inputs]
    layer = GatedAttention(**case.arguments, dtype=dtype)
    layer.build(*shapes)
    case.assign(layer, part(arrays, "w"))
    return layer


def compare(name, dtype, tolerance):
    case, arrays = CASES[name], peer(name)
    inputs = part(arrays, "in")
    call = case.call(inputs)
    layer = built(name, dtype)
    expected, cotangent = arrays["out"], arrays.get("cot")
    rows = np.ones(expected.shape[:2], bool)
    if case.rows is not None:
        rows = case.rows(inputs)
    assert not np.any(expected[~rows])
    rows = rows[..., None]
    if cotangent is None:
        query, value = (tensor(inputs[key], dtype) for key in case.inputs)
        output = to_numpy(layer(query, value, **call))
        assert_close(output * rows, expected, tolerance)
        return
    # Self-attention: the gradient of the one input is the sum over its roles.
    output, for_inputs, for_weights = gradients(
        layer, [inputs[key] for key in case.inputs], cotangent * rows, **call
    )
    assert_close(output * rows, expected, tolerance)
    assert_close(sum(for_inputs), arrays["gin/x"], tolerance)
    mapped = case.gradients(layer, part(arrays, "gw"), part(arrays, "w"))
    largest = max(np.abs(gradient).max() for gradient in mapped.values())
    for path, variable in variables(layer).items():
        if path in mapped:
            gradient = for_weights[variable.path]
            # A key bias shifts all logits of a row: its gradient vanishes.
            scale = largest if path == "key/bias" else 0.0
            assert_close(gradient, mapped[path], tolerance, scale)


@pytest.mark.float64
@pytest.mark.parametrize("name", FLOAT64)
def test_equals_peer_in_float64(name):
    compare(name, "float64", 1e-6)


@pytest.mark.parametrize("name", [*FLOAT32, *FLOAT64])
def test_equals_peer_in_float32(name):
    compare(name, "float32", 1e-5)


@pytest.mark.parametrize("name", CASES)
def test_numpy_reference_equals_peer(name):
    """The reference of the other tests is held to the same numbers."""
    case, arrays = CASES[name], peer(name)
    inputs = part(arrays, "in")
    layer = built(name, "float32")
    weights = {}
    for path, value in case.mapped(layer, part(arrays, "w")).items():
        path = {"gate": "gate/kernel", "gate_bias": "gate/bias"}.get(path, path)
        weights[path] = np.float64(value)
    query, value = (inputs[key] for key in case.inputs)
    output, _ = gated_attention(
        weights, query, value, **case.arguments, **case.call(inputs)
    )
    if case.rows is not None:
        output = output * case.rows(inputs)[..., None]
    assert_close(output, arrays["out"], 1e-6)


def test_every_case_is_run_or_excepted():
    stored = {
        f"{file}/{case}"
        for file, (cases, _) in ORACLES.items()
        for case in cases
    }
    assert stored == set(CASES) | set(oracle_cases.EXCEPTIONS)
    assert not set(CASES) & set(oracle_cases.EXCEPTIONS)


def test_table_agrees_with_the_stored_description():
    """Each weight of the peer is used, in the dtype that the file states."""
    for name, case in CASES.items():
        file, key = name.split("/")
        described = ORACLES[file][1][key]
        assert described.get("dtype", "float32") == case.dtype, name
        arrays = part(peer(name), "w")
        mapped = case.mapped(built(name, "float32"), arrays)
        total = sum(array.size for array in arrays.values())
        assert sum(array.size for array in mapped.values()) == total, name
