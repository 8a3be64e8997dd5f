"""Arguments of `GatedAttention` that must not depend on how they are spelt."""

import keras
import numpy as np
import pytest

from keras_gating.functional import cpu_kernels
from keras_gating.layers import GatedAttention
from tests.layers.attention.keras_sources import multi_head
from tests.utils import normal
from tests.utils import random_weights
from tests.utils import to_numpy


@pytest.mark.parametrize(
    "argument",
    [{"gate_rank": 2}, {"gate_initializer": "ones"}, {"gate_use_bias": False}],
)
def test_constant_gates_refuse_what_they_cannot_use(argument):
    (name,) = argument
    for site in ("output", "projection", ("output", "projection")):
        with pytest.raises(ValueError, match=name):
            GatedAttention(
                2, 4, gate_source="constant", gate_site=site, **argument
            )


def test_order_of_sites_does_not_matter():
    for sites in (("output", "value"), ("value", "output")):
        layer = GatedAttention(
            2,
            4,
            use_bias=False,
            gate_source="constant",
            gate_site=sites,
            gate_bias_initializer="ones",
        )
        layer.build((2, 5, 8), (2, 5, 8))
        np.testing.assert_array_equal(to_numpy(layer.output_gate.bias), 1.0)
        with pytest.raises(ValueError, match="would never train"):
            GatedAttention(
                2,
                4,
                gate_source="constant",
                gate_site=sites,
                gate_activation="relu",
            )


@pytest.mark.parametrize(
    "arguments",
    [
        {"gate_activation": keras.activations.sigmoid},
        {"gate_initializer": keras.initializers.Zeros()},
        {"gate_site": ("output",)},
    ],
)
def test_new_gates_start_as_the_identity_however_spelt(arguments):
    x, plain = normal(2, 5, 8), multi_head()
    plain.build(x.shape, x.shape)
    random_weights(plain)
    converted = GatedAttention.from_keras(plain, **arguments)
    np.testing.assert_allclose(
        to_numpy(converted(x, x)), to_numpy(plain(x, x)), rtol=1e-5, atol=1e-5
    )


def test_parent_may_have_the_name_of_the_layer():
    class Parent(keras.layers.Layer):
        def build(self, shape):
            self.child = multi_head(name="mha")
            self.child.build(shape, shape)

        def call(self, x):
            return self.child(x, x)

    x, parent = normal(2, 5, 8), Parent(name="mha")
    expected = to_numpy(parent(x))
    converted = GatedAttention.from_keras(parent.child)
    np.testing.assert_allclose(
        to_numpy(converted(x, x)), expected, rtol=1e-5, atol=1e-5
    )


def test_gates_of_one_shape_drop_different_values():
    layer = GatedAttention(
        2, 4, gate_site=("value", "key"), gate_dropout=0.5, seed=3
    )
    layer.build((1, 5, 8), (1, 5, 8))
    ones = np.ones((1, 5, 2, 4), "float32")
    source = normal(1, 5, 8)
    value = to_numpy(layer.value_gate(ones, source, training=True))
    key = to_numpy(layer.key_gate(ones, source, training=True))
    assert 0 < np.mean(value == 0.0) < 1 and 0 < np.mean(key == 0.0) < 1
    assert np.any((value == 0.0) != (key == 0.0))


def test_flash_attention_that_cannot_be_had_is_an_error():
    layer = GatedAttention(2, 4, flash_attention=True)
    x = normal(2, 3, 5, 8)
    with pytest.raises(ValueError, match="Flash attention is not to be had"):
        layer(x, x)


@pytest.mark.parametrize("wanted", [None, False, True])
def test_flash_attention_reaches_the_kernel(wanted, monkeypatch):
    seen = {}

    def kernel(query, key, value, flash_attention, **kwargs):
        seen["flash"] = flash_attention
        return value

    monkeypatch.setattr(keras.ops, "dot_product_attention", kernel)
    monkeypatch.setattr(cpu_kernels, "choose", lambda query, key: None)
    x = normal(2, 5, 8)
    GatedAttention(2, 4, flash_attention=wanted)(x, x)
    unset = False if keras.backend.backend() == "torch" else None
    assert seen["flash"] is (unset if wanted is None else wanted)


@pytest.mark.parametrize("index", [1.5, True, "a", np.array([1]), -1, 4])
def test_cache_index_is_an_integer_that_fits(index):
    layer = GatedAttention(2, 4)
    x = normal(2, 2, 8)
    layer(x, x)
    cache = layer.init_cache(2, 5)
    with pytest.raises(ValueError, match="cache_update_index"):
        layer(x, x, cache=cache, cache_update_index=index)


@pytest.mark.parametrize("shape", [(1, 1, 1, 5, 3), (1, 1, 2, 5, 5, 3)])
def test_masks_of_more_axes_than_the_scores_are_errors(shape):
    layer = GatedAttention(2, 4)
    with pytest.raises(ValueError, match=r"mask\[:, None, :\]"):
        layer(
            normal(2, 5, 8),
            normal(2, 3, 8),
            attention_mask=np.ones(shape, bool),
        )


def test_masks_are_arrays():
    layer = GatedAttention(2, 4)
    with pytest.raises(ValueError, match="must be an array"):
        layer(
            normal(1, 2, 8), normal(1, 2, 8), attention_mask=[[True, False]] * 2
        )


def test_mean_of_values_in_masked_rows_of_a_cache():
    layer = GatedAttention(2, 4, masked_rows="uniform", use_gate=False)
    x, mask = normal(2, 5, 8), np.ones((5, 5), bool)
    mask[2] = False
    layer.build(x.shape, x.shape)
    random_weights(layer)
    plain, scores = layer(
        x, x, attention_mask=mask, return_attention_scores=True
    )
    cached, cached_scores, _ = layer(
        x,
        x,
        attention_mask=mask,
        return_attention_scores=True,
        cache=layer.init_cache(2, 5),
        cache_update_index=0,
    )
    np.testing.assert_allclose(to_numpy(scores)[:, :, 2], 0.2, rtol=1e-6)
    for actual, expected in ((cached, plain), (cached_scores, scores)):
        np.testing.assert_allclose(
            to_numpy(actual), to_numpy(expected), rtol=1e-5, atol=1e-6
        )


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64"])
def test_cache_index_of_any_integer_type(dtype):
    layer, x = GatedAttention(2, 4, rope_max_wavelength=10.0), normal(2, 2, 8)
    layer(x, x)
    cache = layer.init_cache(2, 5)
    expected = layer(x, x, cache=cache, cache_update_index=1)[0]
    actual = layer(x, x, cache=cache, cache_update_index=np.array(1, dtype))[0]
    np.testing.assert_allclose(to_numpy(actual), to_numpy(expected))


def test_masks_with_nan_are_errors():
    layer, x = GatedAttention(2, 4), normal(2, 3, 8)
    mask = np.ones((3, 3), "float32")
    mask[0, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        layer(x, x, attention_mask=mask)


def test_subclasses_that_mask_in_their_own_way_are_refused():
    class Sub(keras.layers.MultiHeadAttention):
        def _compute_attention_mask(self, *args, **kwargs):
            return None

    with pytest.raises(ValueError, match="overrides `_compute_attention_mask`"):
        GatedAttention.from_keras(Sub(2, 4))


def test_subclasses_with_further_settings_are_taken():
    class Sub(keras.layers.MultiHeadAttention):
        def __init__(self, *args, extra=1, **kwargs):
            super().__init__(*args, **kwargs)
            self.extra = extra

        def get_config(self):
            return {**super().get_config(), "extra": self.extra}

    assert GatedAttention.from_keras(Sub(2, 4)).num_heads == 2
