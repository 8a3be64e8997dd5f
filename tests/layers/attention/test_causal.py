"""No output may depend on what a causal mask or a window hides."""

import numpy as np
import pytest

from tests.layers.attention.common import attention
from tests.layers.attention.common import gated_and_ungated
from tests.utils import assert_close
from tests.utils import normal
from tests.utils import to_numpy

EXTRA = np.ones((2, 5, 5), bool)
EXTRA[:, 3, 1] = False
PADDING = np.ones((2, 5), bool)
PADDING[0, 0] = False

# What rules out a fast path, or adds a second mask to the causal one.
WAYS = {
    "fused": ({}, {}),
    "dropout": ({"dropout": 0.4}, {}),
    "scores": ({}, {"return_attention_scores": True}),
    "extra-mask": ({}, {"attention_mask": EXTRA}),
    "padding": ({}, {"query_mask": PADDING, "value_mask": PADDING}),
    "dropout+scores+mask": (
        {"dropout": 0.4},
        {"attention_mask": EXTRA, "return_attention_scores": True},
    ),
    "window": ({"sliding_window": 3}, {}),
    "grouped": ({"num_key_value_heads": 1}, {}),
    "rotary": ({"rope_max_wavelength": 100.0}, {}),
    "value-dim": ({"value_dim": 6}, {}),
    "every-site": (
        {"gate_site": ("output", "value", "key", "query", "projection")},
        {},
    ),
    "context-gate": ({"gate_source": "context"}, {}),
    "normalised": (
        {"context_normalization": "rms", "query_key_normalization": "rms"},
        {},
    ),
}


def run(layer, x, **call):
    output = layer(x, x, use_causal_mask=True, **call)
    return to_numpy(output[0] if isinstance(output, tuple) else output)


@gated_and_ungated
@pytest.mark.parametrize("way", WAYS)
def test_last_token_does_not_reach_earlier_ones(way, use_gate):
    arguments, call = WAYS[way]
    x = normal(2, 5, 6)
    layer = attention(x, x, use_gate=use_gate, **arguments)
    before = run(layer, x, **call)
    x[:, -1] += 3.0
    after = run(layer, x, **call)
    np.testing.assert_allclose(after[:, :-1], before[:, :-1], atol=1e-6)
    assert np.abs(after[:, -1] - before[:, -1]).max() > 1e-2


@gated_and_ungated
@pytest.mark.parametrize("scores", [True, False])
@pytest.mark.parametrize("dropout", [0.0, 0.4])
def test_last_token_of_the_second_axis(dropout, scores, use_gate):
    x = normal(2, 3, 5, 6)
    layer = attention(
        x, x, use_gate=use_gate, attention_axes=2, dropout=dropout
    )
    call = {"return_attention_scores": scores}
    before = run(layer, x, **call)
    x[:, :, -1] += 3.0
    after = run(layer, x, **call)
    np.testing.assert_allclose(after[:, :, :-1], before[:, :, :-1], atol=1e-6)
    assert np.abs(after[:, :, -1] - before[:, :, -1]).max() > 1e-2


@gated_and_ungated
def test_training_dropout_keeps_the_mask(use_gate):
    """With dropout drawn, hidden tokens still have no influence at all."""
    x = normal(1, 4, 6)
    outputs = []
    for shift in (0.0, 3.0):
        layer = attention(x, x, use_gate=use_gate, dropout=0.4, seed=7)
        layer_input = x.copy()
        layer_input[:, -1] += shift
        outputs.append(run(layer, layer_input, training=True))
    before, after = outputs
    np.testing.assert_allclose(after[:, :-1], before[:, :-1], atol=1e-6)


@gated_and_ungated
@pytest.mark.parametrize("scores", [True, False])
def test_several_axes_are_read_row_by_row(scores, use_gate):
    x = normal(2, 3, 4, 6)
    layer = attention(x, x, use_gate=use_gate, attention_axes=(1, 2))
    call = {"return_attention_scores": scores}
    before = run(layer, x, **call).reshape(2, 12, 6)
    x[:, 1, 2] += 3.0
    after = run(layer, x, **call).reshape(2, 12, 6)
    np.testing.assert_allclose(after[:, :6], before[:, :6], atol=1e-6)
    assert (np.abs(after[:, 6:] - before[:, 6:]).max(axis=(0, 2)) > 1e-4).all()


@gated_and_ungated
def test_several_axes_equal_the_flat_sequence(use_gate):
    x = normal(2, 3, 4, 6)
    layer = attention(x, x, use_gate=use_gate, attention_axes=(1, 2))
    flat = x.reshape(2, 12, 6)
    plain = attention(flat, flat, use_gate=use_gate)
    plain.set_weights(layer.get_weights())
    expected = run(plain, flat).reshape(2, 3, 4, 6)
    assert_close(run(layer, x), expected, 1e-5)


def test_several_axes_need_equal_lengths():
    query, value = normal(2, 3, 4, 6), normal(2, 3, 5, 6)
    layer = attention(query, value, attention_axes=(1, 2))
    with pytest.raises(ValueError, match=r"\(1, 2\)"):
        layer(query, value, use_causal_mask=True)


@pytest.mark.parametrize("shape", [(2, 3, 5, 6), (2, 5, 3, 6)])
def test_second_axis_of_another_length(shape):
    """The length of the attended axis counts, not that of axis 1."""
    x = normal(*shape)
    layer = attention(x, x, attention_axes=2)
    folded = x.reshape(-1, *shape[2:])
    plain = attention(folded, folded)
    plain.set_weights(layer.get_weights())
    assert_close(run(layer, x), run(plain, folded).reshape(shape), 1e-5)


def test_window_on_the_second_axis():
    x = normal(2, 3, 5, 6)
    layer = attention(x, x, attention_axes=2, sliding_window=2)
    folded = x.reshape(-1, 5, 6)
    plain = attention(folded, folded, sliding_window=2)
    plain.set_weights(layer.get_weights())
    expected = to_numpy(plain(folded, folded)).reshape(x.shape)
    assert_close(layer(x, x), expected, 1e-5)


@gated_and_ungated
def test_scores_vanish_outside_the_window(use_gate):
    x = normal(1, 6, 8)
    layer = attention(x, x, use_gate=use_gate, sliding_window=3)
    rows, columns = np.indices((6, 6))
    for causal in (True, False):
        _, scores = layer(
            x, x, use_causal_mask=causal, return_attention_scores=True
        )
        scores = to_numpy(scores)[0]
        seen = np.abs(rows - columns) < 3
        seen = seen & (columns <= rows) if causal else seen
        assert (scores[:, seen] > 0).all()
        assert not scores[:, ~seen].any()
        np.testing.assert_allclose(scores.sum(-1), 1.0, rtol=1e-5)
