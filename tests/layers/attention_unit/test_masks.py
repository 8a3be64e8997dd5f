"""What is hidden has no influence, and what follows does not matter."""

import numpy as np
import pytest

from tests.gradients import finite
from tests.gradients import gradients
from tests.layers.attention_unit.common import unit
from tests.utils import assert_close
from tests.utils import normal
from tests.utils import tensor
from tests.utils import to_numpy

LENGTH = 7
X = normal(2, LENGTH, 6)
FORMS = {
    "relu2-t5": {"position": "t5"},
    "laplace-blocks": {"attention_activation": "laplace", "block_size": 3},
    "softmax": {"attention_activation": "softmax"},
    "chunked-rope": {"chunk_size": 3, "position": "rope"},
}
QUADRATIC = [name for name in FORMS if "chunked" not in name]
by_form = pytest.mark.parametrize("form", FORMS)
by_quadratic_form = pytest.mark.parametrize("form", QUADRATIC)
by_causality = pytest.mark.parametrize("causal", [False, True])


@by_form
def test_prefix_does_not_depend_on_what_follows(form):
    layer = unit(X, **FORMS[form])
    whole = to_numpy(layer(X, use_causal_mask=True))
    for stop in (1, 3, 5, 6):
        part = layer(X[:, :stop], use_causal_mask=True)
        assert_close(part, whole[:, :stop], 1e-5)


@pytest.mark.parametrize("filling", [np.nan, np.inf, 1e4])
@by_causality
@by_form
def test_padding_has_no_influence(form, causal, filling):
    layer = unit(X, **FORMS[form])
    real = np.arange(LENGTH) < np.array([[LENGTH], [4]])
    spoiled = np.where(real[..., None], X, np.float32(filling))
    call = {"mask": real, "use_causal_mask": causal}
    output = to_numpy(layer(spoiled, **call))
    assert np.isfinite(output).all()
    assert_close(output[real], to_numpy(layer(X, **call))[real], 1e-6)
    alone = layer(X[1:, :4], use_causal_mask=causal)
    assert_close(output[1:, :4], alone, 1e-5)


@by_causality
@by_form
def test_hidden_key_has_no_influence(form, causal):
    """Of a real position that `attention_mask` hides as a key."""
    layer = unit(X, **FORMS[form])
    shown = np.ones((2, 1, LENGTH), bool)
    shown[1, 0, 2] = False
    changed = X.copy()
    changed[1, 2] = np.nan
    call = {"attention_mask": shown, "use_causal_mask": causal}
    first, second = (to_numpy(layer(x, **call)) for x in (X, changed))
    others = np.arange(LENGTH) != 2
    assert_close(second[:, others], first[:, others], 1e-6)
    everything = to_numpy(layer(X, use_causal_mask=causal))
    assert np.abs(everything - first)[1, 3:].max() > 1e-3


@by_quadratic_form
def test_forms_of_masks_agree(form):
    layer = unit(X, **FORMS[form])
    allowed = np.tril(np.ones((LENGTH, LENGTH), bool))
    expected = layer(X, use_causal_mask=True)
    if "t5" in form:
        # The buckets are those of the flag.
        expected = layer(X, attention_mask=allowed)
    several = np.tile(allowed, (2, 1, 1))
    for mask in (allowed, several, several[:, None], np.float32(several)):
        assert_close(layer(X, attention_mask=mask), expected, 1e-5)
    keys = np.arange(LENGTH) < 5
    row = np.tile(keys, (2, 1))[:, None]
    pairs = np.tile(row, (1, LENGTH, 1))
    for call in ({}, {"use_causal_mask": True}):
        by_row = layer(X, attention_mask=row, **call)
        assert_close(layer(X, attention_mask=pairs, **call), by_row, 1e-5)
        mask = several.copy()
        mask[:, :, 5:] = False
        if call:
            both = layer(X, attention_mask=mask, **call)
            assert_close(both, by_row, 1e-5)


@by_form
def test_rows_without_any_key_get_zero(form):
    layer = unit(X, **FORMS[form])
    nothing = to_numpy(layer.output_dense.bias)
    hidden = np.zeros((2, 1, LENGTH), bool)
    hidden[0] = True
    output = to_numpy(layer(X, attention_mask=hidden))
    np.testing.assert_array_equal(output[1], np.tile(nothing, (LENGTH, 1)))
    assert_close(output[:1], to_numpy(layer(X[:1])), 1e-5)


@pytest.mark.parametrize("form", ["softmax", "chunked-rope"])
def test_gradients_of_rows_without_any_key(form):
    layer = unit(X, **FORMS[form])
    padding = np.repeat([[True], [False]], LENGTH, axis=1)
    output, for_input, for_weights = gradients(
        layer, [X], np.ones_like(X), mask=tensor(padding)
    )
    nothing = to_numpy(layer.output_dense.bias)
    np.testing.assert_array_equal(output[1], np.tile(nothing, (LENGTH, 1)))
    assert finite(for_input) and finite(for_weights)
    assert not for_input[0][1].any()


@by_quadratic_form
def test_some_rows_without_any_key(form):
    layer = unit(X, **FORMS[form])
    pairs = np.ones((LENGTH, LENGTH), bool)
    pairs[3] = False
    output = to_numpy(layer(X, attention_mask=pairs))
    bias = to_numpy(layer.output_dense.bias)
    np.testing.assert_array_equal(output[:, 3], np.tile(bias, (2, 1)))
    others = np.arange(LENGTH) != 3
    everything = to_numpy(layer(X))
    assert_close(output[:, others], everything[:, others], 1e-5)


def test_length_as_divisor_counts_padding_and_what_follows():
    layer = unit(X, divisor="length")
    whole = to_numpy(layer(X, use_causal_mask=True))
    part = to_numpy(layer(X[:, :4], use_causal_mask=True))
    assert np.abs(whole[:, :4] - part).max() > 1e-3
