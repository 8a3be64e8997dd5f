"""What `GatedAttention.from_keras` keeps besides the function."""

import keras
import numpy as np
import pytest

from keras_gating.layers import GatedAttention
from tests.layers.attention.keras_sources import GATED
from tests.layers.attention.keras_sources import UNGATED
from tests.layers.attention.keras_sources import built
from tests.layers.attention.keras_sources import grouped
from tests.layers.attention.keras_sources import multi_head
from tests.utils import assert_close
from tests.utils import normal
from tests.utils import random_weights
from tests.utils import to_numpy

QUERY = normal(2, 5, 6, seed=1)
VALUE = normal(2, 3, 8, seed=2)


def test_weights_are_copied_not_shared():
    layer = built("multi-head", QUERY, VALUE)
    converted = GatedAttention.from_keras(layer)
    before = to_numpy(converted(QUERY, VALUE))
    for variable in layer.weights:
        variable.assign(np.zeros(variable.shape))
    np.testing.assert_array_equal(to_numpy(converted(QUERY, VALUE)), before)


@pytest.mark.parametrize("gate", [UNGATED, GATED])
@pytest.mark.parametrize("make", [multi_head, grouped])
def test_unbuilt_source(make, gate):
    layer = make(**gate, name="attend", dropout=0.2)
    converted = GatedAttention.from_keras(layer)
    assert not converted.built and not layer.built
    assert converted.name == "attend"
    converted.build(QUERY.shape, VALUE.shape)
    assert tuple(converted(QUERY, VALUE).shape) == QUERY.shape


@pytest.mark.parametrize("make", [multi_head, grouped])
def test_name_and_trainable_are_kept(make):
    for trainable in (True, False):
        layer = make(name="attend", trainable=trainable)
        layer.build(QUERY.shape, QUERY.shape)
        converted = GatedAttention.from_keras(layer)
        assert converted.name == "attend"
        assert converted.trainable is trainable
        assert bool(converted.trainable_variables) is trainable


@pytest.mark.parametrize("make", [multi_head, grouped])
@pytest.mark.parametrize(
    "dtype", ["float16", "bfloat16", "mixed_float16", "mixed_bfloat16"]
)
def test_dtype_policy_is_kept(dtype, make):
    x = normal(2, 5, 8)
    layer = make(dtype=dtype)
    layer.build(x.shape, x.shape)
    random_weights(layer)
    converted = GatedAttention.from_keras(layer)
    assert converted.dtype_policy.name == layer.dtype_policy.name
    actual, expected = converted(x, x), layer(x, x)
    assert str(actual.dtype) == str(expected.dtype)
    tolerance = 3e-2 if "bfloat16" in dtype else 5e-3
    actual, expected = (np.float32(to_numpy(y)) for y in (actual, expected))
    assert_close(actual, expected, tolerance)


def test_constructor_arguments_are_kept():
    layer = multi_head(
        kernel_initializer=keras.initializers.HeNormal(seed=1),
        bias_initializer="ones",
        kernel_regularizer=keras.regularizers.L2(1e-3),
        bias_regularizer=keras.regularizers.L1(1e-3),
        activity_regularizer=keras.regularizers.L2(1e-4),
        kernel_constraint="non_neg",
        bias_constraint="unit_norm",
        value_dim=6,
        dropout=0.1,
        seed=3,
    )
    converted = GatedAttention.from_keras(layer)
    kept = set(layer.get_config()) - {"use_gate"}
    config = converted.get_config()
    for name in kept:
        assert config[name] == layer.get_config()[name], name


def test_converted_layer_round_trips():
    layer = built("grouped-dropout", QUERY, VALUE)
    converted = GatedAttention.from_keras(layer)
    config = converted.get_config()
    assert GatedAttention.from_config(config).get_config() == config


class Overridden(keras.layers.MultiHeadAttention):
    """A subclass that computes something else."""

    def call(self, query, value, **kwargs):
        return 2.0 * super().call(query, value, **kwargs)


class OverriddenAttention(keras.layers.GroupQueryAttention):
    """A subclass with an attention of its own."""

    def _compute_attention(self, query, key, value, *args, **kwargs):
        return super()._compute_attention(query, key, value, *args, **kwargs)


@pytest.mark.parametrize(
    "layer",
    [Overridden(2, 4), OverriddenAttention(4, 2, 2)],
    ids=["call", "_compute_attention"],
)
def test_subclass_with_another_computation_is_refused(layer):
    with pytest.raises(ValueError, match=type(layer).__name__):
        GatedAttention.from_keras(layer)


@pytest.mark.parametrize(
    "layer", [keras.layers.Dense(3), "attention", None], ids=repr
)
def test_other_objects_are_refused(layer):
    with pytest.raises((ValueError, TypeError), match="Attention"):
        GatedAttention.from_keras(layer)
