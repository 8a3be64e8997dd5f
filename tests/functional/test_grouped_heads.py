"""Attention whose keys and values have fewer heads than its queries."""

import contextlib

import keras
import numpy as np
import pytest

from keras_gating import functional
from keras_gating._backend import on_torch
from tests.gradients import gradients
from tests.utils import assert_close
from tests.utils import normal
from tests.utils import tensor

HEADS, GROUPS, KEYS = 6, 2, 5
KEY, VALUE = normal(2, KEYS, GROUPS, 4, seed=1), normal(2, KEYS, GROUPS, 4)


def repeated(x):
    return np.repeat(x, HEADS // GROUPS, axis=-2)


def masks(length):
    """Some for all heads and some for each, of which some rows see no key."""
    visible = np.random.default_rng(2).random((2, HEADS, length, KEYS)) > 0.4
    visible[0, :, 0] = False
    return {
        "none": None,
        "for all heads": visible[:, 0],
        "for each head": visible,
    }


@pytest.mark.parametrize("way", ["fast", "explicit", "scores", "dropout"])
@pytest.mark.parametrize("is_causal", [False, True], ids=["", "causal"])
@pytest.mark.parametrize("mask", masks(1))
@pytest.mark.parametrize("length", [1, 3, KEYS])
def test_equals_repeated_heads(length, mask, is_causal, way):
    query = normal(2, length, HEADS, 4)
    arguments = {
        "mask": masks(length)[mask],
        "is_causal": is_causal,
        "return_scores": way == "scores",
        # Any function will do.
        "dropout": (lambda x: 2.0 * x) if way == "dropout" else None,
    }
    explicit = way == "explicit"
    with functional.explicit_attention() if explicit else nothing():
        actual = functional.dot_product_attention(
            query, KEY, VALUE, **arguments
        )
    expected = functional.dot_product_attention(
        query, repeated(KEY), repeated(VALUE), **arguments
    )
    for ours, theirs in zip(actual, expected):
        assert (ours is None) == (theirs is None)
        if ours is not None:
            assert_close(ours, theirs, 1e-5)


nothing = contextlib.nullcontext


@pytest.mark.parametrize("shares", [True, False])
@pytest.mark.parametrize("mask", ["none", "for all heads"])
@pytest.mark.parametrize("length", [1, 3])
def test_gradients(length, mask, shares, monkeypatch):
    """Also those of a PyTorch whose kernel wants as many heads of keys."""
    monkeypatch.setattr(on_torch, "attention_shares_keys", lambda: shares)
    visible = masks(length)[mask]
    query, cotangent = normal(2, length, HEADS, 4), normal(2, length, HEADS, 4)

    class Attention(keras.Layer):
        def __init__(self, repeats):
            super().__init__()
            self.repeats = repeats
            self.built = True

        def call(self, query, key, value):
            key, value = (
                keras.ops.repeat(x, self.repeats, -2) for x in (key, value)
            )
            return functional.dot_product_attention(query, key, value, visible)[
                0
            ]

    inputs = [query, KEY, VALUE]
    _, actual, _ = gradients(Attention(1), inputs, cotangent)
    _, expected, _ = gradients(Attention(HEADS // GROUPS), inputs, cotangent)
    for ours, theirs in zip(actual, expected):
        assert_close(ours, theirs, 1e-5)


def test_higher_rank():
    layout = functional.AttentionLayout.resolve(4, (1,))
    query, key = normal(2, 3, 2, HEADS, 4), normal(2, KEYS, 2, GROUPS, 4)
    actual, _ = functional.dot_product_attention(query, key, key, layout=layout)
    expected, _ = functional.dot_product_attention(
        query, repeated(key), repeated(key), layout=layout
    )
    assert_close(actual, expected, 1e-5)


@pytest.mark.parametrize("heads", [(4, 4), (3, 2), (12, 12)])
def test_heads_that_do_not_divide(heads):
    query = tensor(normal(1, 2, HEADS, 4))
    key, value = (tensor(normal(1, 2, count, 4)) for count in heads)
    with pytest.raises(ValueError, match="fewer heads that divide"):
        functional.dot_product_attention(query, key, value)


@pytest.mark.skipif(
    keras.config.backend() != "torch", reason="a kernel of torch"
)
@pytest.mark.parametrize("shares", [True, False])
def test_the_kernel_of_torch_shares_keys(shares, monkeypatch):
    import torch

    monkeypatch.setattr(on_torch, "attention_shares_keys", lambda: shares)
    query = tensor(normal(2, 3, HEADS, 4))
    repeated = []
    repeat = keras.ops.repeat
    monkeypatch.setattr(
        keras.ops,
        "repeat",
        lambda *x, **y: repeated.append(x) or repeat(*x, **y),
    )
    with torch.profiler.profile() as profile:
        functional.dot_product_attention(query, KEY, VALUE, is_causal=True)
    names = {event.key for event in profile.key_averages()}
    assert "aten::_scaled_dot_product_flash_attention_for_cpu" in names
    assert len(repeated) == (0 if shares else 2)


@pytest.mark.skipif(
    keras.config.backend() != "tensorflow", reason="sizes of TensorFlow"
)
def test_an_unknown_number_of_heads():
    import tensorflow as tf

    spec = tf.TensorSpec((None, None, None, 4))

    @tf.function(input_signature=[spec, spec])
    def attend(query, key):
        return functional.dot_product_attention(query, key, key)[0]

    query = tensor(normal(2, 3, HEADS, 4))
    key = tensor(normal(2, KEYS, HEADS, 4, seed=1))
    expected, _ = functional.dot_product_attention(query, key, key)
    assert_close(attend(query, key), expected, 1e-5)


def test_a_query_of_nan_that_sees_no_key():
    """It gets the mean of all values, like any other."""
    query = normal(1, 2, HEADS, 4)
    query[0, 0] = np.nan
    mask = np.array([[False] * KEYS, [True] * KEYS])
    context, _ = functional.dot_product_attention(
        query, KEY[:1], VALUE[:1], mask
    )
    mean = repeated(VALUE[:1].mean(1))
    np.testing.assert_allclose(
        keras.ops.convert_to_numpy(context)[:, 0], mean, rtol=1e-5, atol=1e-6
    )
