"""A cache whose memory the layer may take."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_gating import _backend
from tests.layers.attention.common import attention
from tests.layers.attention.test_cache import LENGTH
from tests.layers.attention.test_cache import OPTIONS
from tests.layers.attention.test_cache import ROOM
from tests.layers.attention.test_cache import X
from tests.layers.attention.test_cache import decode
from tests.layers.attention.test_cache import snapshot
from tests.layers.attention_unit.common import unit
from tests.utils import assert_close
from tests.utils import to_numpy

IS_TORCH = keras.config.backend() == "torch"
torch_only = pytest.mark.skipif(not IS_TORCH, reason="gradients of torch")


@pytest.mark.parametrize("prefill", [0, 3])
@pytest.mark.parametrize("option", OPTIONS)
def test_decoding_equals_the_causal_pass(option, prefill):
    layer = attention(X, X, **OPTIONS[option])
    expected = layer(X, X, use_causal_mask=True)
    with _backend.no_gradients():
        actual = decode(layer, X, prefill, donate_cache=True)
    assert_close(actual, expected, 1e-5)


def test_padding_is_remembered():
    padding = np.ones((2, LENGTH), bool)
    padding[0, :2] = False
    layer = attention(X, X)
    expected = layer(X, X, value_mask=padding, use_causal_mask=True)
    cache, outputs = layer.init_cache(2, ROOM), []
    for start, stop in ((0, 3), (3, 4), (4, 7)):
        tokens = X[:, start:stop]
        with _backend.no_gradients():
            output, cache = layer(
                tokens,
                tokens,
                value_mask=padding[:, start:stop],
                use_causal_mask=True,
                cache=cache,
                cache_update_index=start,
                donate_cache=True,
            )
        outputs.append(to_numpy(output))
    assert_close(np.concatenate(outputs, axis=1), expected, 1e-5)


def attention_step(index=0, **call):
    """A layer's step, and its cache."""
    layer, token = attention(X, X), ops.convert_to_tensor(X[:, :1])

    def step(cache):
        call_ = {"cache": cache, "cache_update_index": index, **call}
        return layer(token, token, **call_)[1]

    return step, layer.init_cache(2, ROOM)


def unit_step(index=0, **call):
    layer, token = unit(X), ops.convert_to_tensor(X[:, :1])

    def step(cache):
        call_ = {"cache": cache, "cache_update_index": index, **call}
        return layer(token, **call_)[1]

    return step, layer.init_cache(2, ROOM)


both = pytest.mark.parametrize("make", [attention_step, unit_step])


@both
@pytest.mark.parametrize("index", [2, np.array(2, "int32")], ids=["int", "0-d"])
def test_torch_writes_in_place(make, index):
    if isinstance(index, np.ndarray):
        index = ops.convert_to_tensor(index)
    step, cache = make(index, donate_cache=True)
    before = snapshot(cache)
    with _backend.no_gradients():
        after = step(cache)
    assert set(after) == set(cache)
    for name, old in zip(sorted(cache), before):
        is_same = after[name] is cache[name]
        assert is_same == IS_TORCH, name
        changed = not np.array_equal(to_numpy(cache[name]), old)
        assert changed == IS_TORCH, name


@both
@pytest.mark.parametrize("donate", [True, False])
def test_otherwise_the_cache_stays(make, donate):
    """With gradients, and where nothing is said."""
    step, cache = make(donate_cache=donate)
    before = snapshot(cache)
    if donate:
        step(cache)
    else:
        with _backend.no_gradients():
            step(cache)
    for old, new in zip(before, snapshot(cache)):
        np.testing.assert_array_equal(old, new)


@torch_only
def test_gradients_of_queries_alone():
    """What they remember is not overwritten, though keys have no gradients."""
    results = []
    for donate in (True, False):
        layer = attention(X, X, num_heads=4, num_key_value_heads=2)
        layer.key_dense.trainable = layer.value_dense.trainable = False
        cache, loss = layer.init_cache(2, ROOM), 0.0
        for index in range(3):
            token = ops.convert_to_tensor(X[:, index : index + 1])
            output, cache = layer(
                token,
                token,
                use_causal_mask=True,
                cache=cache,
                cache_update_index=index,
                donate_cache=donate,
            )
            loss = loss + ops.sum(output**2)
        loss.backward()
        results.append(to_numpy(layer.query_dense.kernel.value.grad))
    np.testing.assert_allclose(*results, rtol=1e-5)


@both
@pytest.mark.parametrize("axis", [0, 1])
def test_an_expanded_cache_is_not_written_into(make, axis):
    """Parts that share memory would all have the last one's numbers."""
    step, cache = make(donate_cache=True)
    shared = {
        name: x[:1] if axis == 0 else x[:, :1] for name, x in cache.items()
    }
    expanded = {
        name: ops.broadcast_to(shared[name], x.shape)
        for name, x in cache.items()
    }
    with _backend.no_gradients():
        expected = snapshot(make()[0](cache))
        actual = step(expanded)
    for one, other in zip(snapshot(actual), expected):
        np.testing.assert_array_equal(one, other)
    assert not any(x.any() for x in snapshot(shared))


def assert_decodes(change):
    """Decoding equals the pass, from an empty cache that is changed first."""
    layer = attention(X, X)
    expected = layer(X, X, use_causal_mask=True)
    cache = layer.init_cache(2, ROOM)
    change(cache)
    with _backend.no_gradients():
        actual = decode(layer, X, 0, cache=cache, donate_cache=True)
    assert_close(actual, expected, 1e-5)
    return cache


@pytest.mark.parametrize(
    "view", [lambda x: x, lambda x: x[:], lambda x: x[:, ::1]]
)
def test_one_tensor_for_keys_and_values(view):
    def change(cache):
        cache["value"] = view(cache["key"])

    assert_decodes(change)


@torch_only
def test_rows_that_overlap():
    """The second sequence is the first one, moved by a position."""

    def change(cache):
        key = cache["key"]
        line = key.new_zeros(ROOM + 1, *key.shape[2:])
        strides = line.stride()
        cache["key"] = line.as_strided(key.shape, (strides[0], *strides))

    assert_decodes(change)


@torch_only
def test_halves_of_one_tensor_are_written_in_place():
    def change(cache):
        key = cache["key"]
        cache["key"], cache["value"] = key.new_zeros(2, *key.shape)

    cache = assert_decodes(change)
    assert to_numpy(cache["key"]).any() and to_numpy(cache["value"]).any()


@torch_only
def test_a_cache_of_inference_mode_outside_of_it():
    import torch

    step, _ = attention_step(donate_cache=True)
    with torch.inference_mode():
        cache = attention_step()[1]
    with torch.no_grad():
        after = step(cache)
    assert after["key"] is not cache["key"]
    assert to_numpy(after["key"]).any() and not to_numpy(cache["key"]).any()


@both
@pytest.mark.parametrize(
    "call, match",
    [
        ({"donate_cache": True}, "`donate_cache` has no effect without"),
        ({"donate_cache": "no"}, "`donate_cache` must be True or False"),
    ],
)
def test_bad_arguments(make, call, match):
    step, _ = make(None, **call)
    with pytest.raises(ValueError, match=match):
        step(None)


def test_chunked_unit():
    layer = unit(X, chunk_size=3)
    expected = layer(X, use_causal_mask=True)
    cache, outputs = layer.init_cache(2), []
    for index in range(LENGTH):
        with _backend.no_gradients():
            output, cache = layer(
                X[:, index : index + 1],
                use_causal_mask=True,
                cache=cache,
                cache_update_index=index,
                donate_cache=True,
            )
        outputs.append(to_numpy(output))
    assert_close(np.concatenate(outputs, axis=1), expected, 1e-5)
