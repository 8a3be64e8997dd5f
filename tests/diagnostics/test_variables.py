"""The weights of gates: which they are, and what they are good for."""

import keras
import numpy as np
import pytest

from keras_gating import layers
from keras_gating.diagnostics import gate_variables
from tests.utils import random_weights
from tests.utils import to_numpy


@pytest.fixture(scope="module")
def model():
    inputs = keras.Input((5, 6))
    x = layers.GatedAttention(
        2,
        3,
        gate_site=("output", "value"),
        gate_rank=2,
        name="attention",
    )(inputs, inputs)
    x = layers.GLU(6, name="glu")(x)
    x = layers.GatedAttentionUnit(key_dim=2, name="unit")(x)
    x = layers.SqueezeExcite(
        units=2, data_format="channels_last", name="squeeze"
    )(x)
    x = layers.ECA(data_format="channels_last", name="eca")(x)
    x = layers.CBAM(
        units=2, batch_norm=True, data_format="channels_last", name="cbam"
    )(x)
    gate = layers.Gate(source="constant", name="constant")
    x = gate(gate(x))
    return random_weights(keras.Model(inputs, keras.layers.Dense(2)(x)))


EXPECTED = [
    "attention/gate/reduction/kernel",
    "attention/gate/projection/kernel",
    "attention/gate/projection/bias",
    "attention/value_gate/reduction/kernel",
    "attention/value_gate/projection/kernel",
    "attention/value_gate/projection/bias",
    "squeeze/reduction/kernel",
    "squeeze/reduction/bias",
    "squeeze/expansion/kernel",
    "squeeze/expansion/bias",
    "eca/convolution/kernel",
    "cbam/channel_gate/reduction/kernel",
    "cbam/channel_gate/expansion/kernel",
    "cbam/spatial_gate/convolution/kernel",
    "cbam/spatial_gate/batch_norm/gamma",
    "cbam/spatial_gate/batch_norm/beta",
    "cbam/spatial_gate/batch_norm/moving_mean",
    "cbam/spatial_gate/batch_norm/moving_variance",
    "constant/bias",
]
PACKED = [
    "glu/projection/kernel",
    "glu/projection/bias",
    "unit/hidden/kernel",
    "unit/hidden/bias",
]


def test_which_they_are(model):
    found = gate_variables(model)
    assert sorted(v.path for v in found) == sorted(EXPECTED)
    own = {id(weight) for weight in model.weights}
    assert all(id(variable) in own for variable in found)
    packed = [variable.path for variable in gate_variables(model, packed=True)]
    assert sorted(packed) == sorted(EXPECTED + PACKED)


def test_weight_decay_leaves_them_out(model):
    """A step without a gradient is one of weight decay alone."""
    gates = {variable.path for variable in gate_variables(model)}
    optimizer = keras.optimizers.SGD(0.5, weight_decay=0.2)
    optimizer.exclude_from_weight_decay(var_list=gate_variables(model))
    variables = model.trainable_variables
    before = {v.path: to_numpy(v) for v in variables}
    optimizer.build(variables)
    optimizer.apply(
        [keras.ops.zeros(v.shape, v.dtype) for v in variables], variables
    )
    changed = 0
    for variable in variables:
        kept = 1.0 if variable.path in gates else 1.0 - 0.5 * 0.2
        np.testing.assert_allclose(
            to_numpy(variable), kept * before[variable.path], rtol=1e-6
        )
        changed += kept != 1.0
    assert changed == len(variables) - len(gates & before.keys()) > 0


def test_freezing_them(model):
    gates = gate_variables(model)
    assert {id(v) for v in gates} & {id(v) for v in model.trainable_variables}
    trainable = [variable.trainable for variable in gates]
    for variable in gates:
        variable.trainable = False
    left = {id(variable) for variable in model.trainable_variables}
    assert left and not left & {id(variable) for variable in gates}
    # They are still found, to be set free again.
    assert [id(v) for v in gate_variables(model)] == [id(v) for v in gates]
    for variable, was in zip(gates, trainable):
        variable.trainable = was


def test_lora_weights_are_among_them():
    gate = layers.Gate(name="gate")
    gate.build((None, 4))
    gate.enable_lora(2)
    paths = {variable.path for variable in gate_variables(gate)}
    assert "gate/projection/lora_kernel_a" in paths


def test_none_of_them():
    dense = keras.layers.Dense(2)
    dense.build((None, 3))
    with pytest.raises(ValueError, match="no gates.*Dense"):
        gate_variables(dense)
    glu = layers.GLU(2)
    glu.build((None, 3))
    with pytest.raises(ValueError, match="packed=True"):
        gate_variables(glu)
    assert len(gate_variables(glu, packed=True)) == 2
    with pytest.raises(ValueError, match="gate.built=False"):
        gate_variables(layers.Gate(name="gate"))
    with pytest.raises(ValueError, match="attention.built=False"):
        gate_variables(layers.GatedAttention(1, 2, name="attention"))
