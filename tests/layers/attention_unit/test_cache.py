"""Decoding with a cache equals the pass without one, step by step."""

import keras
import numpy as np
import pytest

from keras_gating import _backend
from tests.layers.attention_unit.common import unit
from tests.marks import once
from tests.utils import assert_close
from tests.utils import normal
from tests.utils import to_numpy

LENGTH, ROOM = 7, 9
X = normal(2, LENGTH, 6)
CAUSAL = {"use_causal_mask": True}
OPTIONS = {
    "relu2": {"divisor": 5, "dropout": 0.4},
    "laplace-t5": {"attention_activation": "laplace", "position": "t5"},
    "softmax-rope-pre-norm": {
        "attention_activation": "softmax",
        "position": "rope",
        "norm_first": True,
    },
    "chunked": {"chunk_size": 3},
    "chunked-laplace-t5": {
        "chunk_size": 2,
        "attention_activation": "laplace",
        "position": "t5",
    },
    "chunked-rope-number": {"chunk_size": 3, "position": "rope", "divisor": 5},
    "single-chunk": {"chunk_size": 8, "position": ("rope", "t5")},
}
CHUNKED = [name for name, value in OPTIONS.items() if "chunk_size" in value]


def decode(layer, x, bounds, mask=None, room=ROOM, call=None):
    """Outputs of the pieces between `bounds`, joined, and the last cache."""
    cache, outputs = layer.init_cache(x.shape[0], room), []
    for start, stop in zip(bounds, bounds[1:]):
        piece = {} if mask is None else {"mask": mask[:, start:stop]}
        output, cache = layer(
            x[:, start:stop],
            cache=cache,
            cache_update_index=start,
            **CAUSAL,
            **piece,
        )
        outputs.append(to_numpy(output))
    return np.concatenate(outputs, axis=1), cache


def snapshot(cache):
    return [to_numpy(leaf) for leaf in keras.tree.flatten(cache)]


@pytest.mark.parametrize(
    "bounds",
    [range(LENGTH + 1), pytest.param((0, 2, 6, 7), marks=once)],
    ids=["single", "pieces"],
)
@pytest.mark.parametrize("option", OPTIONS)
def test_decoding_equals_the_causal_pass(option, bounds):
    layer = unit(X, **OPTIONS[option])
    expected = layer(X, **CAUSAL)
    assert_close(decode(layer, X, list(bounds))[0], expected, 1e-5)


@pytest.mark.parametrize("option", ["laplace-t5", "chunked-laplace-t5"])
def test_length_so_far(option):
    """With `"length"` a step is the last row of a pass over the prefix."""
    layer = unit(X, **OPTIONS[option], divisor="length")
    output, _ = decode(layer, X, range(LENGTH + 1))
    for stop in (1, 4, LENGTH):
        expected = to_numpy(layer(X[:, :stop], **CAUSAL))[:, -1]
        assert_close(output[:, stop - 1], expected, 1e-5)


@pytest.mark.parametrize("option", ["relu2", "chunked", "single-chunk"])
def test_padding_is_remembered(option):
    """Left-padded prompts; later tokens come without a mask."""
    real = np.ones((2, LENGTH), bool)
    real[0, :2] = False
    x = X.copy()
    x[0, :2] = np.nan
    layer = unit(X, **OPTIONS[option])
    expected = to_numpy(layer(x, mask=real, **CAUSAL))
    cache, outputs = layer.init_cache(2, ROOM), []
    for start, stop in ((0, 3), (3, 4), (4, 7)):
        piece = {"mask": real[:, start:stop]} if start == 0 else {}
        output, cache = layer(
            x[:, start:stop],
            cache=cache,
            cache_update_index=start,
            **CAUSAL,
            **piece,
        )
        outputs.append(to_numpy(output))
    output = np.concatenate(outputs, axis=1)
    assert_close(output, expected, 1e-5)
    unmasked = to_numpy(layer(X, **CAUSAL))
    assert np.abs(output - unmasked)[0, 2:].max() > 1e-3


def test_empty_slots_are_invisible_without_a_causal_mask():
    layer = unit(X, position="t5")
    cache = layer.init_cache(2, ROOM)
    output, _ = layer(X, cache=cache, cache_update_index=0)
    assert_close(output, layer(X), 1e-5)


def test_mask_of_pairs_covers_every_slot():
    layer = unit(X)
    allowed = np.random.default_rng(0).random((2, LENGTH, LENGTH)) < 0.7
    expected = layer(X, attention_mask=allowed, **CAUSAL)
    wide = np.pad(allowed, ((0, 0), (0, 0), (0, ROOM - LENGTH)))
    cache, outputs = layer.init_cache(2, ROOM), []
    for start, stop in ((0, 3), (3, 4), (4, 7)):
        output, cache = layer(
            X[:, start:stop],
            attention_mask=wide[:, start:stop],
            cache=cache,
            cache_update_index=start,
            **CAUSAL,
        )
        outputs.append(to_numpy(output))
    assert_close(np.concatenate(outputs, axis=1), expected, 1e-5)


@pytest.mark.parametrize("option", ["laplace-t5", "chunked-rope-number"])
def test_decoding_inside_a_compiled_function(option):
    """The index is traced: one compilation serves every step."""
    layer = unit(X, **OPTIONS[option])
    step = _backend.compiled(
        lambda tokens, cache, index: layer(
            tokens, cache=cache, cache_update_index=index, **CAUSAL
        )
    )
    cache, outputs = layer.init_cache(2, ROOM), []
    for index in range(LENGTH):
        tokens = keras.ops.convert_to_tensor(X[:, index : index + 1])
        index = keras.ops.convert_to_tensor(index, dtype="int32")
        output, cache = step(tokens, cache, index)
        outputs.append(to_numpy(output))
    expected = layer(X, **CAUSAL)
    assert_close(np.concatenate(outputs, axis=1), expected, 1e-5)


@pytest.mark.parametrize("option", CHUNKED)
def test_state_of_constant_size(option):
    layer = unit(X, **OPTIONS[option])
    before = layer.init_cache(2)
    _, after = decode(layer, X, (0, 3, 4, LENGTH), room=None)
    shapes = [[leaf.shape for leaf in snapshot(c)] for c in (before, after)]
    assert shapes[0] == shapes[1]
    size = OPTIONS[option]["chunk_size"]
    numbers = sum(leaf.size for leaf in snapshot(after)) / 2
    assert numbers == 2 * 4 * 12 + size * (4 + 12 + 1) + 3


@pytest.mark.parametrize("option", ["relu2", "chunked"])
def test_cache_of_the_caller_is_not_modified(option):
    layer = unit(X, **OPTIONS[option])
    empty = layer.init_cache(2, ROOM)
    for start, stop in ((0, 3), (3, 4)):
        before = snapshot(empty)
        _, filled = layer(
            X[:, start:stop],
            cache=empty,
            cache_update_index=start,
            **CAUSAL,
        )
        for leaf, kept in zip(snapshot(empty), before, strict=True):
            np.testing.assert_array_equal(leaf, kept)
        empty = filled


@pytest.mark.parametrize(
    ("option", "dtype"),
    [("laplace-t5", "mixed_bfloat16"), ("chunked", "float16")],
)
def test_half_precision(option, dtype):
    layer = unit(X, **OPTIONS[option], dtype=dtype)
    empty = layer.init_cache(2, ROOM)
    output, cache = decode(layer, X, (0, 3, 4, 7))
    assert {str(x.dtype) for x in empty.values()} == {
        str(x.dtype) for x in cache.values()
    }
    if "chunk_size" in OPTIONS[option]:
        for name in ("sum", "chunk_sum"):
            assert "float32" in str(cache[name].dtype)
    expected = np.float32(to_numpy(layer(X, **CAUSAL)))
    tolerance = 1e-2 if dtype == "float16" else 5e-2
    assert_close(np.float32(output), expected, tolerance)


@pytest.mark.parametrize("option", ["relu2", "chunked"])
def test_index_past_the_end(option):
    layer = unit(X, **OPTIONS[option])
    _, cache = decode(layer, X, (0, 7), room=8)
    with pytest.raises(ValueError, match="Received: cache_update_index=7"):
        layer(X[:, :2], cache=cache, cache_update_index=7, **CAUSAL)
    layer(X[:, :1], cache=cache, cache_update_index=7, **CAUSAL)


def test_state_goes_on_where_it_is():
    layer = unit(X, chunk_size=3)
    _, cache = decode(layer, X, (0, 5))
    with pytest.raises(ValueError, match="must be 5. Received: .*=4"):
        layer(X[:, :1], cache=cache, cache_update_index=4, **CAUSAL)
    with pytest.raises(ValueError, match="an integer.*Received: .*5.0"):
        layer(X[:, :1], cache=cache, cache_update_index=5.0, **CAUSAL)


def test_calls_that_no_cache_can_serve():
    layer, chunked = unit(X), unit(X, chunk_size=3)
    cache, state = layer.init_cache(2, ROOM), chunked.init_cache(2)
    place = {"cache_update_index": 0}
    with pytest.raises(ValueError, match="needs `cache_update_index`"):
        chunked(X, cache=state, **CAUSAL)
    with pytest.raises(ValueError, match="no effect without `cache`"):
        layer(X, **place)
    with pytest.raises(ValueError, match="use_causal_mask=True"):
        chunked(X, cache=state, **place)
    with pytest.raises(ValueError, match="takes no `attention_mask`"):
        mask = np.ones((2, 1, LENGTH), bool)
        chunked(X, cache=state, attention_mask=mask, **place, **CAUSAL)
    with pytest.raises(ValueError, match="must be what `init_cache`"):
        chunked(X, cache=cache, **place, **CAUSAL)
    with pytest.raises(ValueError, match="does not fit this call"):
        chunked(X[:1], cache=state, **place, **CAUSAL)
    with pytest.raises(ValueError, match="max_length=None"):
        layer.init_cache(2)
    with pytest.raises(ValueError, match="build or call the layer first"):
        type(layer)().init_cache(2, ROOM)
