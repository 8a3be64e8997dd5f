"""Decoding with a cache equals the pass without one, step by step."""

import keras
import numpy as np
import pytest

from keras_gating import _backend
from tests.layers.attention.common import attention
from tests.layers.attention.common import embed
from tests.layers.attention.common import without_mask
from tests.utils import assert_close
from tests.utils import normal
from tests.utils import to_numpy

LENGTH, ROOM = 7, 9
X = normal(2, LENGTH, 8)

OPTIONS = {
    "gated": {},
    "ungated": {"use_gate": False},
    "grouped": {"num_heads": 4, "num_key_value_heads": 2},
    "multi-query": {"num_heads": 4, "num_key_value_heads": 1},
    "value-dim": {"value_dim": 6},
    "window": {"sliding_window": 3},
    "rotary": {"rope_max_wavelength": 50.0},
    "partial-rotary": {"rope_max_wavelength": 50.0, "rope_fraction": 0.5},
    "window-rotary-grouped": {
        "num_heads": 4,
        "num_key_value_heads": 2,
        "sliding_window": 2,
        "rope_max_wavelength": 50.0,
    },
    "dropout": {"dropout": 0.4, "gate_dropout": 0.3},
    "headwise": {"gate_granularity": "headwise"},
    "context": {"gate_source": "query_context"},
    "split": {"gate_source": "split"},
    "normalised": {
        "context_normalization": "rms",
        "query_key_normalization": "rms",
    },
    "every-site": {
        "gate_site": ("output", "value", "key", "query", "projection"),
        "gate_source": "query_context",
        "rope_max_wavelength": 50.0,
        "num_heads": 4,
        "num_key_value_heads": 2,
    },
}


def snapshot(cache):
    return [to_numpy(leaf) for leaf in keras.tree.flatten(cache)]


def decode(layer, x, prefill, room=ROOM, cache=None, **call):
    """Outputs of a prefill and of single tokens, joined."""
    call = {"use_causal_mask": True, **call}
    cache = cache or layer.init_cache(x.shape[0], room)
    outputs = []
    starts = [*([0] if prefill else []), *range(prefill, x.shape[1])]
    for start in starts:
        stop = prefill if start < prefill else start + 1
        tokens = x[:, start:stop]
        output, cache = layer(
            tokens, tokens, cache=cache, cache_update_index=start, **call
        )
        outputs.append(to_numpy(output))
    return np.concatenate(outputs, axis=1)


@pytest.mark.parametrize("prefill", [0, 3, LENGTH])
@pytest.mark.parametrize("option", OPTIONS)
def test_decoding_equals_the_causal_pass(option, prefill):
    layer = attention(X, X, **OPTIONS[option])
    expected = layer(X, X, use_causal_mask=True)
    assert_close(decode(layer, X, prefill), expected, 1e-5)


@pytest.mark.parametrize("option", OPTIONS)
def test_exactly_full_cache(option):
    layer = attention(X, X, **OPTIONS[option])
    expected = layer(X, X, use_causal_mask=True)
    assert_close(decode(layer, X, 3, room=LENGTH), expected, 1e-5)


@pytest.mark.parametrize("use_causal_mask", [True, False])
def test_prefill_of_an_empty_cache_is_a_plain_call(use_causal_mask):
    """Empty slots are never visible, with or without a causal mask."""
    layer = attention(X, X)
    call = {"use_causal_mask": use_causal_mask}
    cache = layer.init_cache(2, ROOM)
    output, _ = layer(X, X, cache=cache, cache_update_index=0, **call)
    assert_close(output, layer(X, X, **call), 1e-5)


def test_decoding_in_chunks():
    layer = attention(X, X, rope_max_wavelength=50.0, sliding_window=4)
    cache, outputs = layer.init_cache(2, ROOM), []
    for start, stop in ((0, 2), (2, 5), (5, 7)):
        tokens = X[:, start:stop]
        output, cache = layer(
            tokens,
            tokens,
            cache=cache,
            cache_update_index=start,
            use_causal_mask=True,
        )
        outputs.append(to_numpy(output))
    expected = layer(X, X, use_causal_mask=True)
    assert_close(np.concatenate(outputs, axis=1), expected, 1e-5)


def test_decoding_inside_a_compiled_function():
    """The index is traced: one compilation serves every step."""
    layer = attention(X, X, rope_max_wavelength=50.0, num_heads=4)

    def step(tokens, cache, index):
        return layer(
            tokens,
            tokens,
            cache=cache,
            cache_update_index=index,
            use_causal_mask=True,
        )

    compiled = _backend.compiled(step)
    cache, outputs = layer.init_cache(2, ROOM), []
    for index in range(LENGTH):
        tokens = keras.ops.convert_to_tensor(X[:, index : index + 1])
        index = keras.ops.convert_to_tensor(index, dtype="int32")
        output, cache = compiled(tokens, cache, index)
        outputs.append(to_numpy(output))
    expected = layer(X, X, use_causal_mask=True)
    assert_close(np.concatenate(outputs, axis=1), expected, 1e-5)


@pytest.mark.parametrize("option", ["gated", "rotary", "window", "grouped"])
def test_padding_is_remembered(option):
    """Left-padded prompts; the later tokens come without a mask."""
    padding = np.ones((2, LENGTH), bool)
    padding[0, :2] = False
    layer = attention(X, X, **OPTIONS[option])
    expected = layer(X, X, value_mask=padding, use_causal_mask=True)
    cache, outputs = layer.init_cache(2, ROOM), []
    for start, stop in ((0, 3), (3, 4), (4, 5), (5, 6), (6, 7)):
        tokens = X[:, start:stop]
        mask = padding[:, start:stop] if start == 0 else None
        output, cache = layer(
            tokens,
            tokens,
            value_mask=mask,
            cache=cache,
            cache_update_index=start,
            use_causal_mask=True,
        )
        outputs.append(to_numpy(output))
    output = np.concatenate(outputs, axis=1)
    assert_close(output, expected, 1e-5)
    unmasked = to_numpy(layer(X, X, use_causal_mask=True))
    assert np.abs(output - unmasked)[0, 2:].max() > 1e-3


def test_keras_padding_is_remembered():
    ids = np.array([[0, 0, 3, 2, 1], [3, 3, 1, 1, 2]])
    x = embed(ids)
    layer = attention(x, x)
    expected = to_numpy(layer(x, x, use_causal_mask=True))
    cache = layer.init_cache(2, 5)
    call = {"use_causal_mask": True}
    prompt = embed(np.where(ids[:, :3] == 0, 0, ids[:, :3]))
    output, cache = layer(
        prompt, prompt, cache=cache, cache_update_index=0, **call
    )
    assert_close(output, expected[:, :3], 1e-5)
    rest = without_mask(x)[:, 3:]
    output, cache = layer(rest, rest, cache=cache, cache_update_index=3, **call)
    assert_close(output, expected[:, 3:], 1e-5)


def test_extra_mask_covers_every_slot():
    """`attention_mask` is (T, max_length)."""
    extra = np.ones((LENGTH, LENGTH), bool)
    extra[:, 1] = False
    layer = attention(X, X)
    expected = layer(X, X, attention_mask=extra, use_causal_mask=True)
    cache, outputs = layer.init_cache(2, ROOM), []
    wide = np.pad(extra, ((0, 0), (0, ROOM - LENGTH)), constant_values=True)
    for start, stop in ((0, 3), (3, 4), (4, 7)):
        tokens = X[:, start:stop]
        output, cache = layer(
            tokens,
            tokens,
            attention_mask=wide[start:stop],
            cache=cache,
            cache_update_index=start,
            use_causal_mask=True,
        )
        outputs.append(to_numpy(output))
    assert_close(np.concatenate(outputs, axis=1), expected, 1e-5)


def test_scores_come_between_output_and_cache():
    layer = attention(X, X)
    call = {"use_causal_mask": True, "return_attention_scores": True}
    _, expected = layer(X, X, **call)
    cache = layer.init_cache(2, ROOM)
    output, scores, cache = layer(
        X[:, :4], X[:, :4], cache=cache, cache_update_index=0, **call
    )
    assert tuple(scores.shape) == (2, 2, 4, ROOM)
    scores = to_numpy(scores)
    assert_close(scores[..., :4], expected[:, :, :4, :4], 1e-5)
    assert not scores[..., 4:].any()
    output, scores, cache = layer(
        X[:, 4:5], X[:, 4:5], cache=cache, cache_update_index=4, **call
    )
    scores = to_numpy(scores)
    assert_close(scores[..., :5], expected[:, :, 4:5, :5], 1e-5)
    assert not scores[..., 5:].any()


def test_cache_of_the_caller_is_not_modified():
    layer = attention(X, X)
    empty = layer.init_cache(2, ROOM)
    before = snapshot(empty)
    _, first = layer(X[:, :3], X[:, :3], cache=empty, cache_update_index=0)
    for leaf, kept in zip(snapshot(empty), before):
        np.testing.assert_array_equal(leaf, kept)
    after = snapshot(first)
    layer(X[:, 3:4], X[:, 3:4], cache=first, cache_update_index=3)
    for leaf, kept in zip(snapshot(first), after):
        np.testing.assert_array_equal(leaf, kept)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "mixed_float16"])
def test_half_precision(dtype):
    layer = attention(X, X, dtype=dtype, rope_max_wavelength=50.0)
    cache = layer.init_cache(2, ROOM)
    types = [str(leaf.dtype) for leaf in keras.tree.flatten(cache)]
    _, updated = layer(X[:, :3], X[:, :3], cache=cache, cache_update_index=0)
    assert types == [str(leaf.dtype) for leaf in keras.tree.flatten(updated)]
    keras.tree.assert_same_structure(cache, updated)
    expected = layer(X, X, use_causal_mask=True)
    actual = np.float32(decode(layer, X, 3))
    tolerance = 5e-2 if dtype == "bfloat16" else 1e-2
    assert_close(actual, np.float32(to_numpy(expected)), tolerance)


@pytest.mark.parametrize("index, tokens", [(9, 1), (8, 2), (7, 3), (-1, 1)])
def test_index_past_the_end(index, tokens):
    layer = attention(X, X)
    cache = layer.init_cache(2, ROOM)
    x = X[:, :tokens]
    with pytest.raises(ValueError, match=str(index)):
        layer(x, x, cache=cache, cache_update_index=index)


def test_last_slot_can_be_written():
    layer = attention(X, X)
    cache = layer.init_cache(2, ROOM)
    output, _ = layer(X[:, :1], X[:, :1], cache=cache, cache_update_index=8)
    assert np.isfinite(to_numpy(output)).all()
