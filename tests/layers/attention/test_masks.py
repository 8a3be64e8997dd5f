"""Masks of attention: forms, padding, and rows that see nothing."""

import warnings

import keras
import numpy as np
import pytest

from keras_gating.layers import GatedAttention
from tests.gradients import finite
from tests.gradients import gradients
from tests.layers.attention.common import attention
from tests.layers.attention.common import embed
from tests.layers.attention.common import gated_and_ungated
from tests.layers.attention.common import keras_mask
from tests.layers.attention.common import without_mask
from tests.utils import assert_close
from tests.utils import normal
from tests.utils import to_numpy

QUERY = normal(2, 5, 6, seed=1)
VALUE = normal(2, 3, 6, seed=2)
MASK = np.array([[1, 1, 0], [1, 0, 1], [0, 1, 1], [1, 1, 1], [0, 0, 1]], bool)

# Ways to the same numbers: the fused kernel, and what rules it out.
PATHS = {
    "fused": {},
    "scores": {"return_attention_scores": True},
    "dropout": {},
}


def run(layer, path, *inputs, **call):
    output = layer(*inputs, **call, **PATHS[path])
    return to_numpy(output[0] if isinstance(output, tuple) else output)


def on_path(path, *shapes, **arguments):
    dropout = 0.3 if path == "dropout" else 0.0
    return attention(*shapes, dropout=dropout, **arguments)


@gated_and_ungated
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("dtype", ["bool", "int32", "float32"])
@pytest.mark.parametrize("lead", [(), (2,), (2, 1), (2, 2), (1,)])
def test_equivalent_forms_are_equal(lead, dtype, path, use_gate):
    layer = on_path(path, QUERY, VALUE, use_gate=use_gate)
    expected = run(layer, path, QUERY, VALUE, attention_mask=MASK)
    assert np.abs(expected - run(layer, path, QUERY, VALUE)).max() > 1e-3
    mask = np.broadcast_to(MASK, (*lead, *MASK.shape)).astype(dtype)
    actual = run(layer, path, QUERY, VALUE, attention_mask=mask)
    assert_close(actual, expected, 1e-6)
    mask = keras.ops.convert_to_tensor(mask)
    actual = run(layer, path, QUERY, VALUE, attention_mask=mask)
    assert_close(actual, expected, 1e-6)


@pytest.mark.parametrize("shape", [(2, 3), (3, 5), (5, 5), (5, 4), (2, 5)])
def test_two_axes_are_query_by_key(shape):
    layer = attention(QUERY, VALUE)
    with pytest.raises(ValueError) as error:
        layer(QUERY, VALUE, attention_mask=np.ones(shape, bool))
    message = str(error.value)
    assert "mask[:, None, :]" in message
    assert str(shape) in message
    if shape == (2, 3):
        mask = np.array([[1, 1, 0], [0, 1, 1]], bool)
        as_keys = layer(QUERY, VALUE, attention_mask=mask[:, None, :])
        as_padding = layer(QUERY, VALUE, value_mask=mask)
        assert_close(as_keys, as_padding, 1e-6)


def test_square_mask_is_never_a_key_mask():
    """With B = T = S a mask of two axes still is (T, S)."""
    x = normal(4, 4, 6)
    mask = np.tril(np.ones((4, 4), bool))
    layer = attention(x, x)
    causal = layer(x, x, use_causal_mask=True)
    assert_close(layer(x, x, attention_mask=mask), causal, 1e-6)


@pytest.mark.parametrize("use_causal_mask", [True, False])
def test_additive_mask_is_refused(use_causal_mask):
    layer = attention(QUERY, VALUE)
    additive = np.where(MASK, 0.0, -1e9).astype("float32")
    for mask in (additive, additive[None], additive[None, None]):
        with pytest.raises(ValueError, match="0.*1|additive|negative"):
            layer(
                QUERY,
                VALUE,
                attention_mask=mask,
                use_causal_mask=use_causal_mask,
            )


@gated_and_ungated
@pytest.mark.parametrize("path", PATHS)
def test_both_masks_are_joined(path, use_gate):
    x = normal(2, 5, 6)
    layer = on_path(path, x, x, use_gate=use_gate)
    extra = np.ones((2, 5, 5), bool)
    causal = run(layer, path, x, x, use_causal_mask=True)
    call = {"attention_mask": extra, "use_causal_mask": True}
    assert_close(run(layer, path, x, x, **call), causal, 1e-6)
    extra[:, 3, 1] = False
    joined = extra & np.tril(np.ones((5, 5), bool))
    expected = run(layer, path, x, x, attention_mask=joined)
    assert_close(run(layer, path, x, x, **call), expected, 1e-6)


@gated_and_ungated
@pytest.mark.parametrize("rows", ["zero", "uniform"])
@pytest.mark.parametrize("path", PATHS)
def test_row_without_a_visible_key(path, rows, use_gate):
    layer = on_path(path, QUERY, VALUE, use_gate=use_gate, masked_rows=rows)
    mask = np.broadcast_to(MASK, (2, 5, 3)).copy()
    mask[0, 2] = mask[1, 4] = False
    output = run(layer, path, QUERY, VALUE, attention_mask=mask)
    assert np.isfinite(output).all()
    bias = to_numpy(layer.output_dense.bias)
    for row in ((0, 2), (1, 4)):
        if rows == "zero":
            np.testing.assert_array_equal(output[row], bias)
        else:
            # As if every key were equally visible: no logits, no mask.
            flat = attention(QUERY, VALUE, use_gate=use_gate, masked_rows=rows)
            flat.query_dense.kernel.assign(0.0 * flat.query_dense.kernel)
            flat.query_dense.bias.assign(0.0 * flat.query_dense.bias)
            assert_close(output[row], to_numpy(flat(QUERY, VALUE))[row], 1e-5)
    seen = np.ones((2, 5), bool)
    seen[0, 2] = seen[1, 4] = False
    mask[~seen] = MASK[[2, 4]]
    expected = run(layer, path, QUERY, VALUE, attention_mask=mask)
    assert_close(output[seen], expected[seen], 1e-6)


@gated_and_ungated
@pytest.mark.parametrize("rows", ["zero", "uniform"])
@pytest.mark.parametrize("dropout", [0.0, 0.3], ids=["fused", "explicit"])
@pytest.mark.parametrize("normalization", [None, "rms", "layer"])
def test_gradients_stay_finite_in_masked_rows(
    normalization, dropout, rows, use_gate
):
    layer = attention(
        QUERY,
        VALUE,
        use_gate=use_gate,
        masked_rows=rows,
        dropout=dropout,
        context_normalization=normalization,
    )
    mask = np.zeros((2, 5, 3), bool)
    mask[1, 2:] = True
    output, for_inputs, for_weights = gradients(
        layer, [QUERY, VALUE], np.ones((2, 5, 6)), attention_mask=mask
    )
    assert np.isfinite(output).all()
    assert finite(for_inputs) and finite(for_weights)
    if rows == "zero":
        # Nothing was attended to in the first example.
        assert not np.any(for_inputs[1][0])


@gated_and_ungated
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_padding_cannot_leak(bad, path, use_gate):
    layer = on_path(path, QUERY, VALUE, use_gate=use_gate)
    padding = np.array([[1, 1, 0], [1, 0, 0]], bool)
    expected = run(layer, path, QUERY, VALUE, value_mask=padding)
    value = VALUE.copy()
    value[~padding] = bad
    for call in (
        {"value_mask": padding},
        {"key_mask": padding},
        {"attention_mask": padding[:, None, :]},
        {"attention_mask": np.repeat(padding[:, None, :], 5, axis=1)},
    ):
        actual = run(layer, path, QUERY, value, **call)
        assert_close(actual, expected, 1e-6)


@gated_and_ungated
@pytest.mark.parametrize("path", PATHS)
def test_huge_finite_values_do_not_leak_under_causal(path, use_gate):
    x = normal(1, 4, 6)
    layer = on_path(path, x, x, use_gate=use_gate)
    expected = run(layer, path, x, x, use_causal_mask=True)
    changed = x.copy()
    changed[:, -1] = 1e4
    actual = run(layer, path, changed, changed, use_causal_mask=True)
    assert_close(actual[:, :-1], expected[:, :-1], 1e-6)


@gated_and_ungated
@pytest.mark.parametrize("path", PATHS)
def test_query_mask_is_honoured(path, use_gate):
    layer = on_path(path, QUERY, VALUE, use_gate=use_gate)
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 0]], bool)
    actual = run(layer, path, QUERY, VALUE, query_mask=mask)
    pairwise = np.repeat(mask[:, :, None], 3, axis=2)
    expected = run(layer, path, QUERY, VALUE, attention_mask=pairwise)
    assert_close(actual, expected, 1e-6)
    bias = to_numpy(layer.output_dense.bias)
    np.testing.assert_array_equal(actual[0, 3], bias)


@gated_and_ungated
def test_masks_of_the_caller_survive(use_gate):
    ids = np.array([[1, 2, 3, 0, 0], [3, 3, 1, 1, 2]])
    x = embed(ids)
    layer = GatedAttention(2, 4, use_gate=use_gate)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        output = layer(x, x)
        with_scores, _ = layer(x, x, return_attention_scores=True)
    assert not [w for w in caught if "mask" in str(w.message)]
    np.testing.assert_array_equal(keras_mask(x), ids != 0)
    np.testing.assert_array_equal(keras_mask(output), ids != 0)
    np.testing.assert_array_equal(keras_mask(with_scores), ids != 0)
    residual = keras.layers.Add()([x, output])
    np.testing.assert_array_equal(keras_mask(residual), ids != 0)


@gated_and_ungated
def test_keras_masks_equal_explicit_ones(use_gate):
    ids = np.array([[1, 2, 3, 0, 0], [3, 3, 1, 1, 2]])
    other = np.array([[5, 4, 0], [3, 0, 0]])
    query, value = embed(ids), embed(other, seed=1)
    layer = attention(query, value, use_gate=use_gate)
    query_mask, value_mask = ids != 0, other != 0
    mask = query_mask[:, :, None] & value_mask[:, None, :]
    implicit = layer(query, value)
    query, value = without_mask(query), without_mask(value)
    assert_close(layer(query, value, attention_mask=mask), implicit, 1e-6)
    explicit = layer(query, value, query_mask=query_mask, value_mask=value_mask)
    assert_close(explicit, implicit, 1e-6)


@gated_and_ungated
@pytest.mark.parametrize("use_causal_mask", [True, False])
def test_padding_inside_a_compiled_function(use_causal_mask, use_gate):
    ids = np.array([[1, 2, 3, 0, 0], [3, 3, 1, 1, 2]])
    tokens = keras.Input((None,), dtype="int32")
    x = keras.layers.Embedding(4, 8, mask_zero=True)(tokens)
    layer = GatedAttention(2, 4, use_gate=use_gate)
    implicit = layer(x, x, use_causal_mask=use_causal_mask)
    model = keras.Model(tokens, [x, implicit])
    vectors, output = model.predict(ids, verbose=0)
    expected = layer(
        vectors,
        vectors,
        query_mask=ids != 0,
        value_mask=ids != 0,
        use_causal_mask=use_causal_mask,
    )
    assert_close(output, expected, 1e-6)

    # The same with the mask as an input of the compiled function.
    inputs, mask = keras.Input((None, 8)), keras.Input((None,), dtype="bool")
    traced = keras.Model(
        [inputs, mask],
        layer(
            inputs,
            inputs,
            query_mask=mask,
            value_mask=mask,
            use_causal_mask=use_causal_mask,
        ),
    )
    output = traced.predict([vectors, ids != 0], verbose=0)
    assert_close(output, expected, 1e-6)


@gated_and_ungated
@pytest.mark.parametrize("use_causal_mask", [True, False])
def test_padded_rows_equal_the_unpadded_batch(use_causal_mask, use_gate):
    short, long = normal(1, 3, 6, seed=1), normal(1, 5, 6, seed=2)
    padded = np.concatenate([short, normal(1, 2, 6, seed=3)], axis=1)
    batch = np.concatenate([padded, long])
    mask = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], bool)
    layer = attention(batch, batch, use_gate=use_gate)
    call = {"use_causal_mask": use_causal_mask}
    together = to_numpy(
        layer(batch, batch, query_mask=mask, value_mask=mask, **call)
    )
    assert_close(together[:1, :3], layer(short, short, **call), 1e-5)
    assert_close(together[1:], layer(long, long, **call), 1e-5)
