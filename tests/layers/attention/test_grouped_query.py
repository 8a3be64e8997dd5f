"""One query of grouped heads, which share keys and values unrepeated."""

from contextlib import nullcontext

import keras
import numpy as np
import pytest

from keras_gating import functional
from keras_gating.diagnostics import record_gates
from keras_gating.layers import GatedAttention
from tests.gradients import gradients
from tests.layers.attention.common import attention
from tests.utils import assert_close
from tests.utils import normal
from tests.utils import to_numpy

HEADS, GROUPS, KEYS = 6, 2, 5
QUERY, SOURCE = normal(2, 1, 8), normal(2, KEYS, 8, seed=1)
VISIBLE = np.random.default_rng(2).random((2, HEADS, 1, KEYS)) > 0.4
PADDING = np.array([[1, 1, 0, 1, 0], [0, 0, 0, 0, 0]], bool)


def pair(**arguments):
    """A layer with grouped heads, and one with a key for every head."""
    arguments = {"num_heads": HEADS, **arguments}
    grouped = attention(QUERY, SOURCE, num_key_value_heads=GROUPS, **arguments)
    every = attention(QUERY, SOURCE, **arguments)
    for ours, theirs in zip(grouped.weights, every.weights):
        array = to_numpy(ours)
        if ours.shape != theirs.shape:
            axis = tuple(ours.shape).index(GROUPS)
            array = np.repeat(array, HEADS // GROUPS, axis)
        theirs.assign(array)
    return grouped, every


CALLS = {
    "plain": {},
    "mask": {"attention_mask": VISIBLE[:, 0]},
    "mask for all heads": {"attention_mask": VISIBLE[:, :1]},
    "mask for each head": {"attention_mask": VISIBLE},
    "padding": {"value_mask": PADDING},
    "causal": {"use_causal_mask": True},
    "scores": {"return_attention_scores": True},
}


@pytest.mark.parametrize("masked_rows", ["zero", "uniform"])
@pytest.mark.parametrize("call", CALLS)
def test_equals_repeated_heads(call, masked_rows):
    grouped, every = pair(masked_rows=masked_rows)
    actual = grouped(QUERY, SOURCE, **CALLS[call])
    expected = every(QUERY, SOURCE, **CALLS[call])
    for ours, theirs in zip(
        keras.tree.flatten(actual), keras.tree.flatten(expected)
    ):
        assert_close(ours, theirs, 1e-5)


def test_heads_stay_in_their_groups():
    """Each head by itself, from the formula."""
    layer = attention(
        QUERY,
        SOURCE,
        num_heads=HEADS,
        num_key_value_heads=GROUPS,
        use_gate=False,
        use_bias=False,
    )
    query, key, value, output = (
        np.float64(to_numpy(getattr(layer, f"{name}_dense").kernel))
        for name in ("query", "key", "value", "output")
    )
    expected = 0.0
    for head in range(HEADS):
        group = head // (HEADS // GROUPS)
        scores = (QUERY @ query[:, head]) @ np.swapaxes(
            SOURCE @ key[:, group], 1, 2
        )
        weights = np.exp(scores / np.sqrt(query.shape[-1]))
        weights /= weights.sum(-1, keepdims=True)
        expected = (
            expected + weights @ (SOURCE @ value[:, group]) @ output[head]
        )
    assert_close(layer(QUERY, SOURCE), expected, 1e-5)


@pytest.mark.parametrize("is_explicit", [False, True])
def test_gradients(is_explicit):
    """Also where a query sees no key at all."""
    grouped, every = pair()
    call = {"attention_mask": np.broadcast_to(PADDING[:, None], (2, 1, KEYS))}
    cotangent = normal(*QUERY.shape, seed=3)
    kind = functional.explicit_attention if is_explicit else nullcontext
    with kind():
        actual = gradients(grouped, [QUERY, SOURCE], cotangent, **call)
    expected = gradients(every, [QUERY, SOURCE], cotangent, **call)
    for ours, theirs in zip(actual[1], expected[1]):
        assert_close(ours, theirs, 1e-5)


def test_an_override_gets_repeated_heads():
    seen = []

    class Own(GatedAttention):
        def _compute_attention(self, query, key, value, *args, **kwargs):
            seen.extend(tuple(x.shape) for x in (query, key, value))
            return super()._compute_attention(
                query, key, value, *args, **kwargs
            )

    layer = Own(HEADS, 4, num_key_value_heads=GROUPS)
    layer(QUERY, SOURCE)
    assert seen == [(2, 1, HEADS, 4), *[(2, KEYS, HEADS, 4)] * 2]


def test_who_records_the_attention_gets_that_of_all_heads():
    scores = []
    for layer in pair():
        with record_gates(layer, scores=True) as record:
            layer(QUERY, SOURCE)
        (attended,) = record.scores.values()
        scores.append(attended.calls[0])
    assert scores[0].shape == (2, HEADS, 1, KEYS)
    assert_close(*scores, 1e-5)


@pytest.mark.parametrize("call", ["plain", "mask", "padding"])
def test_keys_are_not_repeated(call, monkeypatch):
    grouped, every = pair()
    expected = every(QUERY, SOURCE, **CALLS[call])

    def repeat(*args, **kwargs):
        raise AssertionError("repeated")

    monkeypatch.setattr(keras.ops, "repeat", repeat)
    assert_close(grouped(QUERY, SOURCE, **CALLS[call]), expected, 1e-5)
