"""What `GatedAttention.from_keras` keeps besides the function."""

import keras
import numpy as np
import pytest

from keras_gating.layers import GatedAttention
from tests.layers.attention.keras_sources import GATED
from tests.layers.attention.keras_sources import UNGATED
from tests.layers.attention.keras_sources import built
from tests.layers.attention.keras_sources import grouped
from tests.layers.attention.keras_sources import has_gate
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


def test_parts_frozen_by_themselves_stay_so(tmp_path):
    layer = built("multi-head", QUERY, VALUE)
    layer.query_dense.trainable = False
    layer.value_dense.bias.trainable = False
    converted = GatedAttention.from_keras(layer)
    frozen = [weight.path for weight in converted.non_trainable_weights]
    assert frozen == [weight.path for weight in layer.non_trainable_weights]
    assert len(frozen) == 3

    query, value = keras.Input(QUERY.shape[1:]), keras.Input(VALUE.shape[1:])
    model = keras.Model([query, value], converted(query, value))
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    # The flags of layers, of which Keras saves the outer one only.
    frozen = [weight.path for weight in loaded.non_trainable_weights]
    assert frozen == [weight.path for weight in layer.query_dense.weights]


def test_weights_keep_the_paths_they_have_in_a_parent():
    with keras.name_scope("block"):
        layer = built("multi-head", QUERY, VALUE)
    converted = GatedAttention.from_keras(layer)
    paths = [weight.path for weight in converted.weights]
    assert (
        paths[0] == layer.weights[0].path == f"block/{layer.name}/query/kernel"
    )
    assert f"block/{layer.name}/gate/projection/kernel" in paths


@has_gate
def test_policy_of_the_gate_of_keras_is_that_of_its_kernel():
    policies = keras.dtype_policies.DTypePolicyMap("float32")
    policies["attend/gate"] = keras.DTypePolicy("mixed_bfloat16")
    layer = multi_head(use_gate=True, dtype=policies, name="attend")
    layer.build(QUERY.shape, VALUE.shape)
    random_weights(layer)
    converted = GatedAttention.from_keras(layer)
    assert converted.output_gate.projection.compute_dtype == "bfloat16"
    assert converted.query_dense.compute_dtype == "float32"
    actual, expected = converted(QUERY, VALUE), layer(QUERY, VALUE)
    assert_close(actual, expected, 3e-2)


def test_training_the_copy_leaves_the_buffers_of_the_layer_alone():
    """On JAX a training step gives its buffers away."""
    layer = built("multi-head", QUERY, QUERY)
    before = to_numpy(layer(QUERY, QUERY))
    x = keras.Input(QUERY.shape[1:])
    model = keras.Model(x, GatedAttention.from_keras(layer)(x, x))
    model.compile("sgd", "mse")
    model.train_on_batch(QUERY, QUERY)
    np.testing.assert_array_equal(to_numpy(layer(QUERY, QUERY)), before)
