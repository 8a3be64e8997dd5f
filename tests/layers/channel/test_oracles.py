"""Channel gates against what timm computed, with gradients."""

import numpy as np
import pytest

from keras_gating.surgery import copy_weights
from tests.gradients import gradients
from tests.layers.channel.oracle_cases import CASES
from tests.layers.channel.oracle_cases import EXCEPTIONS
from tests.layers.channel.oracle_cases import FILES
from tests.marks import once
from tests.oracles import load
from tests.oracles import mapped_gradients
from tests.oracles import part
from tests.utils import assert_close
from tests.utils import tensor

ORACLES = {file: load(file) for file in FILES}


def peer(name):
    file, case = name.split("/")
    return ORACLES[file][0][case]


def built(name, dtype):
    """The layer of a case with the peer's weights."""
    case, arrays = CASES[name], peer(name)
    layer = case.layer(dtype)
    layer.build(part(arrays, "in")["x"].shape)
    copy_weights(layer, part(arrays, "w"), case.layout)
    return layer


def compare(name, dtype, tolerance):
    case, arrays = CASES[name], peer(name)
    layer = built(name, dtype)
    call = {"training": True} if case.training else {}
    output, (for_input,), for_weights = gradients(
        layer, [part(arrays, "in")["x"]], arrays["cot"], **call
    )
    assert_close(output, arrays["out"], tolerance)
    assert_close(for_input, arrays["gin/x"], tolerance)
    expected = mapped_gradients(
        layer, part(arrays, "gw"), part(arrays, "w"), case.layout
    )
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


def test_moving_statistics_after_a_step():
    """Of torch's update, new = 0.9 old + 0.1 batch, we take the batch's part.

    torch corrects the variance of the batch by n / (n - 1), Keras does not.
    """
    name = "cbam/train_c32_k7"
    arrays = peer(name)
    layer = built(name, "float32")
    normalization = layer.spatial_gate.normalization
    inputs, after = part(arrays, "in"), part(arrays, "w")
    count = np.prod(inputs["x"].shape) / inputs["x"].shape[1]
    variables, expected = [], []
    for variable, kind, correction in (
        (normalization.moving_mean, "mean", 1.0),
        (normalization.moving_variance, "var", (count - 1) / count),
    ):
        before = inputs[f"running_{kind}_before"]
        variable.assign(before)
        variables.append(variable)
        batch = (after[f"spatial.conv.bn.running_{kind}"] - 0.9 * before) / 0.1
        momentum = normalization.momentum
        expected.append(momentum * before + (1 - momentum) * batch * correction)
    layer(tensor(inputs["x"]), training=True)
    for variable, value in zip(variables, expected):
        assert_close(variable, value, 1e-5)


def test_every_case_is_run_or_excepted():
    stored = {
        f"{file}/{case}"
        for file, (cases, _) in ORACLES.items()
        for case in cases
    }
    assert stored == set(CASES) | set(EXCEPTIONS)
    assert not set(CASES) & set(EXCEPTIONS)


def test_table_agrees_with_the_stored_description():
    """Each weight of the peer is used, in the dtype that the file states."""
    for name in CASES:
        file, key = name.split("/")
        assert ORACLES[file][1][key]["dtype"] == "float64"
        arrays = part(peer(name), "w")
        total = sum(array.size for array in arrays.values())
        assert built(name, "float32").count_params() == total, name
