"""`GatedAttention.from_keras`: the same function in a layer with gates."""

import warnings

import keras
import numpy as np
import pytest

from keras_gating.layers import GatedAttention
from tests.gradients import gradients
from tests.layers.attention.common import embed
from tests.layers.attention.common import without_mask
from tests.layers.attention.keras_sources import GATED
from tests.layers.attention.keras_sources import SOURCES
from tests.layers.attention.keras_sources import UNGATED
from tests.layers.attention.keras_sources import built
from tests.layers.attention.keras_sources import grouped
from tests.layers.attention.keras_sources import has_gate
from tests.layers.attention.keras_sources import has_window
from tests.layers.attention.keras_sources import multi_head
from tests.utils import assert_close
from tests.utils import normal
from tests.utils import random_weights
from tests.utils import to_numpy

QUERY = normal(2, 5, 6, seed=1)
VALUE = normal(2, 3, 8, seed=2)
KEY = normal(2, 3, 7, seed=3)
MASK = np.array([[1, 1, 0], [1, 0, 1], [0, 1, 1], [1, 1, 1], [0, 0, 1]], bool)


@pytest.mark.parametrize("gate", [UNGATED, GATED])
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("call", ["plain", "causal", "mask", "padding"])
def test_function_is_preserved(call, source, gate):
    call = {
        "plain": {},
        "causal": {"use_causal_mask": True},
        "mask": {"attention_mask": MASK},
        "padding": {"value_mask": np.array([[1, 1, 0], [1, 0, 1]], bool)},
    }[call]
    layer = built(source, QUERY, VALUE, KEY, **gate)
    converted = GatedAttention.from_keras(layer)
    assert isinstance(converted, GatedAttention) and converted.built
    expected = layer(QUERY, VALUE, KEY, **call)
    assert_close(converted(QUERY, VALUE, KEY, **call), expected, 1e-5)


@pytest.mark.parametrize("gate", [UNGATED, GATED])
@pytest.mark.parametrize("source", ["multi-head", "grouped"])
def test_scores_are_preserved(source, gate):
    layer = built(source, QUERY, VALUE, KEY, **gate)
    converted = GatedAttention.from_keras(layer)
    call = {"attention_mask": MASK, "return_attention_scores": True}
    for actual, expected in zip(
        converted(QUERY, VALUE, KEY, **call), layer(QUERY, VALUE, KEY, **call)
    ):
        assert_close(actual, expected, 1e-5)


@pytest.mark.parametrize("gate", [UNGATED, GATED])
@pytest.mark.parametrize(
    "source", ["multi-head", "grouped", "dropout", "grouped-dropout"]
)
@pytest.mark.parametrize("how", ["mask", "padding", "keras"])
def test_fully_masked_rows_are_preserved(how, source, gate):
    """Keras gives them the mean value on its fused path, else nothing."""
    ids = np.array([[1, 2, 3, 0, 0], [3, 3, 1, 1, 2]])
    query = embed(ids)
    call = {}
    if how == "mask":
        pairs = np.repeat((ids != 0)[:, :, None], 3, axis=2)
        pairs[0, 0, 1:] = False
        call = {"attention_mask": pairs}
    elif how == "padding":
        call = {"value_mask": np.array([[0, 0, 0], [1, 1, 0]], bool)}
    if how != "keras":
        query = without_mask(query)
    layer = built(source, query, VALUE, **gate)
    converted = GatedAttention.from_keras(layer)
    # Keras takes the mask off its input: ours goes first.
    actual = converted(query, VALUE, **call)
    with warnings.catch_warnings():
        # Keras' grouped layer drops the mask of its input, with a warning.
        warnings.simplefilter("ignore")
        expected = layer(query, VALUE, **call)
    assert_close(actual, expected, 1e-5)


@pytest.mark.parametrize("rank", [4, 5])
def test_higher_ranks_are_preserved(rank):
    x = normal(2, *range(3, rank + 1), 8)
    x = x.reshape(2, 3, *x.shape[2:])
    # TensorFlow's own softmax stops at rank 5 in float32, and Keras with it.
    on_tensorflow = keras.backend.backend() == "tensorflow"
    dtype = "float64" if rank == 5 and on_tensorflow else "float32"
    layer = multi_head(attention_axes=2, dtype=dtype)
    layer.build(x.shape, x.shape)
    random_weights(layer)
    converted = GatedAttention.from_keras(layer)
    assert_close(converted(x, x), layer(x, x), 1e-5)


@has_window
@pytest.mark.parametrize("make", [multi_head, grouped])
def test_window_is_kept(make):
    x = normal(2, 5, 8)
    layer = make(sliding_window=2)
    layer.build(x.shape, x.shape)
    random_weights(layer)
    converted = GatedAttention.from_keras(layer)
    assert converted.get_config()["sliding_window"] == 2
    assert_close(converted(x, x), layer(x, x), 1e-5)


def test_ungated_source_gets_a_gate_that_trains():
    layer = built("multi-head", QUERY, VALUE)
    converted = GatedAttention.from_keras(layer)
    config = converted.get_config()
    assert config["use_gate"] and config["gate_scale"] == 2.0
    assert config["gate_activation"] == "sigmoid"
    kernel = converted.output_gate.weights[0]
    assert not np.any(to_numpy(kernel))
    cotangent = normal(2, 5, 6, seed=4)
    _, _, for_weights = gradients(converted, [QUERY, VALUE], cotangent)
    assert np.any(for_weights[kernel.path])


@pytest.mark.parametrize(
    "arguments",
    [
        {"gate_granularity": "headwise"},
        {"gate_site": "value"},
        {"gate_site": ("output", "key", "query", "projection")},
        {"gate_source": "query_context"},
        {"gate_source": "constant"},
        {"gate_rank": 2},
    ],
)
def test_gate_arguments_reach_the_layer(arguments):
    layer = built("grouped", QUERY, VALUE)
    converted = GatedAttention.from_keras(layer, **arguments)
    for name, value in arguments.items():
        assert converted.get_config()[name] == value
    assert_close(converted(QUERY, VALUE), layer(QUERY, VALUE), 1e-5)


@pytest.mark.parametrize("source", ["multi-head", "grouped"])
def test_plain_copy(source):
    layer = built(source, QUERY, VALUE)
    converted = GatedAttention.from_keras(layer, use_gate=False)
    assert len(converted.weights) == len(layer.weights)
    for mine, theirs in zip(converted.weights, layer.weights):
        np.testing.assert_array_equal(to_numpy(mine), to_numpy(theirs))
    assert_close(converted(QUERY, VALUE), layer(QUERY, VALUE), 1e-6)


@has_gate
@pytest.mark.parametrize("source", ["multi-head", "grouped"])
def test_gated_source_keeps_its_gate(source):
    layer = built(source, QUERY, VALUE, use_gate=True)
    converted = GatedAttention.from_keras(layer)
    assert converted.get_config()["gate_scale"] == 1.0
    assert len(converted.weights) == len(layer.weights)
    for mine, theirs in zip(converted.weights, layer.weights):
        np.testing.assert_array_equal(to_numpy(mine), to_numpy(theirs))


@has_gate
@pytest.mark.parametrize(
    "arguments",
    [
        {"gate_granularity": "headwise"},
        {"gate_site": "value"},
        {"gate_source": "context"},
        {"gate_rank": 2},
    ],
)
def test_gated_source_refuses_another_gate(arguments):
    layer = built("multi-head", QUERY, VALUE, use_gate=True)
    (name,) = arguments
    with pytest.raises(ValueError, match=name):
        GatedAttention.from_keras(layer, **arguments)
