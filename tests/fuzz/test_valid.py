"""Whatever fits together runs, and keeps what all layers promise."""

import json

import keras
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.profiles import PROFILE
from tests.fuzz.profiles import on_torch_unless_long
from tests.fuzz.subjects import SUBJECTS
from tests.utils import assert_close
from tests.utils import random_weights
from tests.utils import tensor
from tests.utils import to_numpy

pytestmark = on_torch_unless_long

POLICIES = (*4 * ["float32"], "mixed_float16", "bfloat16")
# Which of the inputs a padding mask is about.
PADDED = {
    "mask": ("inputs", "source"),
    "query_mask": ("query",),
    "value_mask": ("value", "key"),
    "key_mask": ("value", "key"),
}


def result(layer, call):
    outputs = layer(
        **{
            name: tensor(x) if isinstance(x, np.ndarray) else x
            for name, x in call.items()
        }
    )
    assert keras.backend.standardize_dtype(outputs.dtype)
    return outputs


def symbolic(call):
    return {
        name: keras.KerasTensor(x.shape, dtype=x.dtype.name)
        if isinstance(x, np.ndarray)
        else x
        for name, x in call.items()
    }


def is_batched(name, x):
    """The one argument without a batch is a mask `(T, S)`."""
    return isinstance(x, np.ndarray) and (
        name != "attention_mask" or x.ndim > 2
    )


def restored(layer):
    config = json.loads(json.dumps(keras.saving.serialize_keras_object(layer)))
    return keras.saving.deserialize_keras_object(config)


def positions_last(x, mask, config):
    """Features behind the axes of the mask, as of the inputs, and the mask."""
    if config.get("data_format") == "channels_first":
        x = np.moveaxis(x, 1, -1)
    return x, mask.astype(bool)


def without_padding(pick, call, config):
    """The call with other numbers in its padding, and its valid positions."""
    changed = dict(call)
    for mask_name, names in PADDED.items():
        if mask_name not in call:
            continue
        noise = pick((np.nan, np.inf, 1e6))
        for name in names:
            if name in call:
                x = changed[name].copy()
                view, mask = positions_last(x, call[mask_name], config)
                view[~mask] = noise
                changed[name] = x
    return changed


def check_padding(pick, layer, call, config, expected):
    changed = without_padding(pick, call, config)
    actual = to_numpy(result(layer, changed))
    mask = call.get("mask", call.get("query_mask"))
    if mask is not None:
        actual, mask = positions_last(actual, mask, config)
        expected, _ = positions_last(expected, mask, config)
        actual, expected = actual[mask], expected[mask]
    assert_close(actual, expected, 1e-5)


def check_rows(layer, call, expected):
    for row in range(2):
        alone = {
            name: x[row : row + 1] if is_batched(name, x) else x
            for name, x in call.items()
        }
        if "attention_mask" in call and len(call["attention_mask"]) == 1:
            alone["attention_mask"] = call["attention_mask"]
        actual = to_numpy(result(layer, alone))
        assert_close(actual, expected[row : row + 1], 1e-5)


def is_prefix_invariant(call, config):
    if not call.get("use_causal_mask"):
        return False
    if config.get("divisor") == "length":
        return False
    # Rows that see nothing get the mean of what there is.
    if config.get("masked_rows") == "uniform":
        return False
    lengths = {call[n].shape[1] for n in ("query", "value") if n in call}
    return len(lengths) < 2


def check_prefix(layer, call, expected):
    length = expected.shape[1] // 2
    if length == 0:
        return
    prefix = {
        name: x[:, :length] if isinstance(x, np.ndarray) else x
        for name, x in call.items()
    }
    if "attention_mask" in call:
        mask = call["attention_mask"][..., :length]
        prefix["attention_mask"] = mask[..., :length, :]
    actual = to_numpy(result(layer, prefix))
    assert_close(actual, expected[:, :length], 1e-5)


@pytest.mark.parametrize("name", SUBJECTS)
@PROFILE
@given(data=st.data())
def test_layer(name, data):
    def pick(choices):
        return data.draw(st.sampled_from(list(choices)))

    subject = SUBJECTS[name]
    config = subject.configuration(pick)
    call = subject.inputs(pick, config)
    policy = pick(POLICIES)
    layer = subject.layer(**config, dtype=policy)
    result(layer, call)
    random_weights(layer)
    outputs = result(layer, call)
    spec = layer.compute_output_spec(**symbolic(call))
    assert tuple(outputs.shape) == tuple(spec.shape)
    assert keras.backend.standardize_dtype(outputs.dtype) == spec.dtype
    expected = to_numpy(outputs)
    assert np.isfinite(np.float32(expected)).all()
    copy = restored(layer)
    result(copy, call)
    copy.set_weights(layer.get_weights())
    np.testing.assert_array_equal(to_numpy(result(copy, call)), expected)
    if policy != "float32":
        return
    check_rows(layer, call, expected)
    check_padding(pick, layer, call, config, expected)
    if is_prefix_invariant(call, config):
        check_prefix(layer, call, expected)
