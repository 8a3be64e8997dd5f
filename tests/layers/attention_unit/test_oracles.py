"""The unit against FLASH-pytorch, both forms, with gradients."""

import keras
import numpy as np
import pytest

from tests.gradients import gradients
from tests.layers.attention_unit.oracle_cases import CASES
from tests.layers.attention_unit.oracle_cases import CHUNK
from tests.layers.attention_unit.oracle_cases import DESCRIPTIONS
from tests.layers.attention_unit.oracle_cases import EXCEPTIONS
from tests.layers.attention_unit.oracle_cases import ORACLES
from tests.layers.attention_unit.oracle_cases import TABLE
from tests.layers.attention_unit.oracle_cases import peer_weights
from tests.marks import once
from tests.utils import assert_close
from tests.utils import tensor

BACKEND = keras.backend.backend()
# Where Keras computes float64 in float32.
FALLS_BACK = {
    "jax": "the variance of the layer normalization",
    "torch": "the variance of the layer normalization",
}


def built(case, dtype):
    """The layer of a case with the peer's weights."""
    layer = case.layer(dtype)
    layer.build(case.arrays["in/x"].shape)
    case.assign(layer, peer_weights(case))
    return layer


def call_arguments(case):
    call = {}
    if case.causal:
        call["use_causal_mask"] = True
    if "in/mask" in case.arrays:
        # Padded queries of the peer attend like all others.
        call["attention_mask"] = tensor(case.arrays["in/mask"][:, None])
    return call


def compare(name, dtype, tolerance):
    case = CASES[name]
    layer = built(case, dtype)
    output, (for_input,), for_weights = gradients(
        layer,
        [case.arrays["in/x"]],
        case.arrays["cot"],
        **call_arguments(case),
    )
    assert_close(output, case.arrays["out"], tolerance)
    assert_close(for_input, case.arrays["gin/x"], tolerance)
    expected = case.gradients(
        layer, peer_weights(case, "gw"), peer_weights(case)
    )
    assert set(expected) == set(for_weights)
    for path, gradient in for_weights.items():
        assert_close(gradient, expected[path], tolerance)


@pytest.mark.float64
@pytest.mark.parametrize("name", CASES)
def test_equals_peer_in_float64(name):
    compare(name, "float64", 1e-5 if BACKEND in FALLS_BACK else 1e-6)


# In float64 on every backend, above.
@once
@pytest.mark.parametrize("name", CASES)
def test_equals_peer_in_float32(name):
    compare(name, "float32", 1e-5)


def test_every_case_is_run_or_excepted():
    names = {f"{file}-{name}" for file in ORACLES for name in ORACLES[file]}
    excepted = {name for name in names if name.partition("-")[2] in EXCEPTIONS}
    assert len(excepted) == len(EXCEPTIONS)
    assert names == set(CASES) | excepted


@pytest.mark.parametrize("name", CASES)
def test_table_agrees_with_the_stored_description(name):
    """Each weight of the peer is used, but for what is zero or fixed."""
    file, _, short = name.partition("-")
    case, facts = CASES[name], DESCRIPTIONS[file][short]
    assert facts["dtype"] == "float64"
    assert facts.get("causal", False) == case.causal
    assert facts.get("group_size", CHUNK) == CHUNK
    arrays = peer_weights(case)
    frequencies = arrays.pop("rotary_pos_emb.freqs", np.zeros(0))
    np.testing.assert_allclose(
        frequencies, 1e4 ** (-np.arange(frequencies.size) / 4), rtol=1e-6
    )
    used = built(case, "float32").count_params()
    table = arrays[TABLE]
    unused = 0 if table.any() else table.size
    assert used == sum(array.size for array in arrays.values()) - unused
