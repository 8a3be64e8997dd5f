"""Faulty inputs: errors that quote what came."""

import re

import numpy as np
import pytest

from keras_gating.layers import GatedAttention
from tests.layers.attention.common import attention
from tests.utils import normal


@pytest.mark.parametrize(
    "query, value, key",
    [
        ((5, 8), (5, 8), None),
        ((2, 8), (2, 3, 8), None),
        ((2, 5, 8), (2, 8), None),
        ((2, 5, 8), (2, 3, 8), (2, 8)),
    ],
)
def test_rank_two(query, value, key):
    arrays = [normal(*shape) for shape in (query, value, key) if shape]
    with pytest.raises(ValueError) as error:
        GatedAttention(2, 4)(*arrays)
    shapes = [shape for shape in (query, value, key) if shape]
    assert any(str(shape) in str(error.value) for shape in shapes)


@pytest.mark.parametrize(
    "query, value, key",
    [
        ((2, 5, 8), (3, 5, 8), None),
        ((2, 5, 8), (2, 3, 8), (2, 4, 8)),
        ((2, 5, 8), (2, 3, 8), (3, 3, 8)),
        ((1, 5, 8), (2, 3, 8), None),
    ],
)
@pytest.mark.parametrize("built", [True, False])
def test_sizes_that_do_not_agree(query, value, key, built):
    layer = GatedAttention(2, 4)
    if built:
        layer.build((2, 5, 8), (2, 3, 8))
    arrays = [normal(*shape) for shape in (query, value, key) if shape]
    with pytest.raises(ValueError) as error:
        layer(*arrays)
    message = str(error.value)
    shapes = [shape for shape in (query, value, key) if shape]
    assert any(str(shape) in message for shape in shapes), message


def test_batch_axes_that_do_not_agree():
    layer = GatedAttention(2, 4, attention_axes=2)
    with pytest.raises(ValueError, match=r"\(2, 3, 5, 8\)"):
        layer(normal(2, 3, 5, 8), normal(2, 4, 5, 8))


@pytest.mark.parametrize("shape", [(2, 4, 9), (3, 5, 9), (2, 9), (2, 5, 1, 9)])
def test_gate_input_of_another_shape(shape):
    x = normal(2, 5, 8)
    with pytest.raises(ValueError, match=re.escape(str(shape))):
        GatedAttention(2, 4)(x, x, gate_input=normal(*shape))


@pytest.mark.parametrize(
    "arguments",
    [
        {"gate_site": "value"},
        {"gate_site": ("key", "query")},
        {"gate_source": "constant"},
        {"gate_source": "context"},
        {"gate_source": "split"},
    ],
)
def test_gate_input_that_nothing_reads(arguments):
    x = normal(2, 5, 8)
    layer = GatedAttention(2, 4, **arguments)
    with pytest.raises(ValueError, match="gate_input"):
        layer(x, x, gate_input=x)


@pytest.mark.parametrize(
    "mask", [(2, 4, 3), (2, 5, 4), (3, 5, 3), (2, 3, 5, 3), (1, 1, 2, 5, 3)]
)
def test_mask_of_another_shape(mask):
    query, value = normal(2, 5, 8), normal(2, 3, 8)
    layer = attention(query, value)
    with pytest.raises(ValueError):
        layer(query, value, attention_mask=np.ones(mask, bool))


@pytest.mark.parametrize("name", ["query_mask", "value_mask", "key_mask"])
def test_padding_of_another_length(name):
    query, value = normal(2, 5, 8), normal(2, 3, 8)
    layer = attention(query, value)
    with pytest.raises(ValueError):
        layer(query, value, **{name: np.ones((2, 4), bool)})


@pytest.mark.parametrize("batch, length", [(0, 4), (2, 0), (-1, 4), (2, 1.5)])
def test_cache_without_room(batch, length):
    x = normal(2, 5, 8)
    layer = attention(x, x)
    with pytest.raises((ValueError, TypeError)):
        layer.init_cache(batch, length)


@pytest.mark.parametrize("other", [{"num_heads": 4}, {"key_dim": 6}])
def test_cache_of_another_layer(other):
    x = normal(2, 3, 8)
    cache = attention(x, x, **other).init_cache(2, 6)
    with pytest.raises(ValueError):
        attention(x, x)(x, x, cache=cache, cache_update_index=0)


def test_cache_of_another_batch():
    x = normal(2, 3, 8)
    layer = attention(x, x)
    cache = layer.init_cache(4, 6)
    with pytest.raises(ValueError):
        layer(x, x, cache=cache, cache_update_index=0)


@pytest.mark.parametrize("cache", [(), (1.0, 2.0), "cache"])
def test_cache_of_another_kind(cache):
    x = normal(2, 3, 8)
    with pytest.raises((ValueError, TypeError)):
        attention(x, x)(x, x, cache=cache, cache_update_index=0)


def test_index_without_a_cache():
    x = normal(2, 3, 8)
    with pytest.raises(ValueError, match="cache"):
        attention(x, x)(x, x, cache_update_index=0)


def test_cache_needs_self_attention():
    x, y = normal(2, 3, 8), normal(2, 4, 8)
    layer = attention(x, y)
    cache = layer.init_cache(2, 6)
    with pytest.raises(ValueError):
        layer(x, y, cache=cache, cache_update_index=0)


@pytest.mark.parametrize("axes", [(1, 2), None])
def test_cache_needs_one_attention_axis(axes):
    x = normal(2, 3, 4, 8)
    layer = attention(x, x, attention_axes=axes)
    with pytest.raises(ValueError, match=r"\(1, 2\)"):
        layer(x, x, cache=layer.init_cache(2, 6), cache_update_index=0)


@pytest.mark.parametrize("axes", [(1, 2), None])
@pytest.mark.parametrize(
    "option", [{"rope_max_wavelength": 9.0}, {"sliding_window": 2}]
)
def test_one_attention_axis_is_needed(option, axes):
    with pytest.raises(ValueError, match=r"\(1, 2\)"):
        layer = GatedAttention(2, 4, attention_axes=axes, **option)
        layer.build((2, 3, 4, 8), (2, 3, 4, 8))


def test_flash_attention_has_no_dropout_and_no_scores():
    with pytest.raises(ValueError, match="[Dd]ropout"):
        GatedAttention(2, 4, flash_attention=True, dropout=0.1)
    x = normal(2, 5, 8)
    layer = GatedAttention(2, 4, flash_attention=True)
    with pytest.raises(ValueError, match="scores"):
        layer(x, x, return_attention_scores=True)
