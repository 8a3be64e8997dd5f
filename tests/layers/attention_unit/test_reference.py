"""Outputs against NumPy, in every form and at every kind of length."""

import functools

import numpy as np
import pytest

from keras_gating import _backend
from keras_gating import functional
from tests.layers.attention_unit.common import unit
from tests.reference import attention_unit as reference
from tests.utils import assert_close
from tests.utils import normal
from tests.utils import tensor
from tests.utils import to_numpy
from tests.utils import weights_by_path

X = normal(2, 7, 6)
FORMS = {
    "relu2": {},
    "laplace": {"attention_activation": "laplace"},
    "softmax": {"attention_activation": "softmax"},
    "t5": {"position": "t5"},
    "softmax-t5-blocks": {
        "attention_activation": "softmax",
        "position": "t5",
        "block_size": 3,
    },
    "rope-pre-norm": {"position": "rope", "norm_first": True},
    "length": {"divisor": "length"},
    "number": {"divisor": 5, "attention_activation": "laplace"},
    "chunked": {"chunk_size": 3},
    "chunked-laplace": {"chunk_size": 2, "attention_activation": "laplace"},
    "chunked-rope-t5": {"chunk_size": 4, "position": ("rope", "t5")},
    "chunked-length": {"chunk_size": 3, "divisor": "length"},
    "chunked-number": {"chunk_size": 3, "divisor": 5},
    "one-chunk": {"chunk_size": 9, "position": "t5", "norm_first": True},
}


def expected(layer, x, arguments, **call):
    names = (
        "attention_activation",
        "chunk_size",
        "divisor",
        "position",
        "norm_first",
    )
    arguments = {name: arguments[name] for name in names if name in arguments}
    weights = weights_by_path(layer)
    return reference.unit(np.float64(x), weights, **arguments, **call)


@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
@pytest.mark.parametrize("form", FORMS)
def test_equals_reference(form, causal):
    layer = unit(X, **FORMS[form])
    output = layer(X, use_causal_mask=causal)
    assert_close(output, expected(layer, X, FORMS[form], causal=causal), 1e-5)


@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
@pytest.mark.parametrize("form", ["t5", "softmax-t5-blocks", "chunked-rope-t5"])
def test_padded_batch_equals_reference(form, causal):
    real = np.arange(7) < np.array([[7], [4]])
    layer = unit(X, **FORMS[form])
    output = to_numpy(layer(X, mask=real, use_causal_mask=causal))
    visible = np.repeat(real[:, None, :], 7, axis=1)
    wanted = expected(layer, X, FORMS[form], visible=visible, causal=causal)
    assert_close(output[real], wanted[real], 1e-5)


@pytest.mark.parametrize("length", [1, 255, 256, 257, 1000])
def test_lengths_around_the_chunk(length):
    """With the default sizes of blocks and the chunk of the paper."""
    x = normal(1, length, 6)
    chunked = {"chunk_size": 256}
    for form, causal in (({}, True), (chunked, True), (chunked, False)):
        arguments = {"position": "rope", **form}
        layer = unit(x, **arguments)
        call = functools.partial(layer, use_causal_mask=causal)
        wanted = expected(layer, x, arguments, causal=causal)
        assert_close(_backend.compiled(call)(tensor(x)), wanted, 1e-5)


def test_a_sequence_within_one_causal_chunk_is_quadratic():
    chunked = unit(X, chunk_size=7, position="t5")
    plain = unit(X, position="t5")
    for weight, source in zip(plain.weights, chunked.weights):
        value = to_numpy(source)
        # The queries and keys of the first term, of all four.
        is_part = value.shape != tuple(weight.shape)
        weight.assign(value[::2] if is_part else value)
    call = {"use_causal_mask": True}
    assert_close(chunked(X, **call), plain(X, **call), 1e-6)


@pytest.mark.parametrize("causal", [False, True])
def test_buckets_of_distances(causal):
    distances = np.arange(-300, 301, dtype="int32")
    buckets = functional.relative_position_bucket(distances, is_causal=causal)
    wanted = [reference.bucket(int(d), causal) for d in distances]
    np.testing.assert_array_equal(to_numpy(buckets), wanted)


@pytest.mark.parametrize("causal", [False, True])
def test_bias_of_a_part_of_the_rows(causal):
    table = normal(32)
    whole = reference.position_bias(table, 20, causal)
    part = functional.relative_position_bias(
        table, 4, 20, offset=9, is_causal=causal
    )
    np.testing.assert_array_equal(to_numpy(part), whole[9:13])
