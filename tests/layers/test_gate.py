"""`Gate` on its own: what it refuses and what it promises."""

import keras
import numpy as np
import pytest

from keras_gating import functional
from keras_gating.layers import Gate
from tests.utils import normal
from tests.utils import to_numpy


@pytest.mark.parametrize(
    "activation",
    ["relu", "relu6", "tanh_shrink", "soft_shrink", keras.ops.square],
)
def test_kernels_that_would_never_train_are_not_zero(activation):
    gate = Gate(activation=activation)
    gate(normal(2, 5))
    assert np.any(to_numpy(gate.projection.kernel))
    with pytest.raises(ValueError, match="would never train"):
        Gate(activation=activation, kernel_initializer="zeros")


@pytest.mark.parametrize(
    "activation", ["sigmoid", "tanh", "silu", "gelu", None]
)
def test_other_kernels_start_at_zero(activation):
    gate = Gate(activation=activation)
    gate(normal(2, 5))
    assert not np.any(to_numpy(gate.projection.kernel))


def test_a_bias_may_lift_a_gate_that_vanishes_at_zero():
    gate = Gate(activation="relu", bias_initializer="ones")
    gate(normal(2, 5))
    assert not np.any(to_numpy(gate.projection.kernel))


@pytest.mark.parametrize("arguments", [{}, {"source": "constant"}])
def test_gated_axes_are_those_of_the_build(arguments):
    gate, source = Gate(**arguments), normal(2, 5, 3)
    gate(normal(2, 5, 8), source=source)
    with pytest.raises(ValueError, match=r"sizes \(8,\).*\(2, 5, 1\)"):
        gate(normal(2, 5, 1), source=source)


@pytest.mark.parametrize(
    "argument",
    [
        {"bias_initializer": "ones"},
        {"bias_regularizer": "l2"},
        {"bias_constraint": "non_neg"},
    ],
)
def test_bias_arguments_need_a_bias(argument):
    (name,) = argument
    with pytest.raises(ValueError, match=name):
        Gate(use_bias=False, **argument)


def test_heads_are_biased_along_their_own_axis():
    """With as many positions as heads, where an addition may mistake them."""
    inputs, source = normal(2, 3, 3, 6), normal(2, 3, 7, seed=1)
    gate = Gate(granularity="headwise")
    gate(inputs, source)
    kernel, bias = normal(7, 3, 1, seed=2), normal(3, 1, seed=3)
    gate.set_weights([kernel, bias])
    logits = np.einsum("btd,dhe->bthe", source, kernel) + bias
    expected = inputs / (1.0 + np.exp(-logits))
    np.testing.assert_allclose(
        to_numpy(gate(inputs, source)), expected, rtol=1e-5, atol=1e-6
    )


def test_functional_attention_refuses_additive_masks():
    x = normal(1, 3, 2, 4)
    with pytest.raises(ValueError, match="additive"):
        functional.dot_product_attention(x, x, x, mask=np.float32([[[-1e9]]]))


def test_rotary_refuses_bad_wavelengths():
    with pytest.raises(ValueError, match="max_wavelength=-1"):
        functional.apply_rotary(normal(1, 3, 4), np.arange(3), -1)


def test_integers_are_gated_as_numbers():
    inputs = np.arange(1, 7).reshape(2, 3)
    gated = to_numpy(Gate(source="constant")(inputs))
    np.testing.assert_allclose(gated, inputs / 2)
    product = functional.apply_gate(np.array([2, 4]), np.array([0, 100]))
    np.testing.assert_allclose(to_numpy(product), [1.0, 4.0])


def test_an_empty_batch_is_an_empty_output():
    gate = Gate(granularity="headwise")
    outputs = gate(np.ones((0, 2, 4), "float32"), source=np.ones((0, 3)))
    assert tuple(outputs.shape) == (0, 2, 4)
