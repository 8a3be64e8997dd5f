"""Precision policies of the layer and of its children."""

import keras
import numpy as np
import pytest

from tests.cases import CASES
from tests.contract.helpers import apply
from tests.contract.helpers import assert_all_close
from tests.contract.helpers import by_case
from tests.contract.helpers import copy_weights
from tests.contract.helpers import create
from tests.contract.helpers import draw
from tests.contract.helpers import outputs
from tests.marks import once
from tests.utils import random_weights
from tests.utils import relative_path
from tests.utils import to_numpy

POLICIES = [
    "float16",
    "bfloat16",
    "mixed_float16",
    "mixed_bfloat16",
    pytest.param("float64", marks=pytest.mark.float64),
]
# Half the gap between 1 and the next number: the relative error of a rounding.
UNIT_ROUNDOFF = {
    "float16": 2.0**-11,
    "bfloat16": 2.0**-8,
    "float32": 2.0**-24,
    # Some operations of Keras compute float64 in float32.
    "float64": 2.0**-24,
}
# Weights, inputs and the result of each step are rounded: about ten roundings
# on the longest way through a layer, and random weights may double each.
ROUNDINGS = 20


def standard_dtype(x):
    return keras.backend.standardize_dtype(x.dtype)


def compare(case, layer, reference, values):
    """Outputs have the compute dtype and are those of `reference`."""
    expected = outputs(case, reference, values)
    result = keras.tree.flatten(apply(case, layer, values))
    for x in result:
        assert standard_dtype(x) == layer.compute_dtype
    tolerance = ROUNDINGS * UNIT_ROUNDOFF[layer.compute_dtype]
    result = [
        np.float64(to_numpy(keras.ops.cast(x, "float32"))) for x in result
    ]
    assert all(np.isfinite(x).all() for x in result)
    assert_all_close(result, expected, tolerance)


def check_policy(case, policy):
    reference = random_weights(create(case))
    layer = create(case, dtype=policy)
    assert layer.dtype_policy.name == policy
    half = layer.variable_dtype in ("float16", "bfloat16")
    for weight in layer.weights:
        kept = half and relative_path(layer, weight) in case.float32_weights
        expected = "float32" if kept else layer.variable_dtype
        assert standard_dtype(weight) == expected
    copy_weights(reference, layer)
    compare(case, layer, reference, draw(case))
    for option in case.options:
        if option.id == "scores":
            compare(case, layer, reference, draw(case, option))


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(**by_case(CASES))
def test_policy(case, policy):
    check_policy(case, policy)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(**by_case(CASES))
def test_children_follow_the_policy(case, policy):
    layer = create(case, dtype=policy)
    for child in layer._flatten_layers(include_self=False):
        assert child.dtype_policy.name == policy, child.name


@once
@pytest.mark.parametrize(**by_case(CASES))
def test_policy_of_one_child(case):
    """A map gives each child the policy of its path, and survives saving."""
    reference = random_weights(create(case, name="layer"))
    children = [
        child
        for child in reference._flatten_layers(include_self=False)
        if child.weights and not child._layers
    ]
    for child in children:
        policies = keras.dtype_policies.DTypePolicyMap("float32")
        policies[child.path] = keras.DTypePolicy("mixed_bfloat16")
        layer = create(case, name="layer", dtype=policies)
        config = keras.saving.serialize_keras_object(layer)
        restored = keras.saving.deserialize_keras_object(config)
        apply(case, restored, draw(case))
        for one in (layer, restored):
            got = {
                c.path: c.compute_dtype
                for c in one._flatten_layers(include_self=False)
                if c.weights
            }
            assert got.pop(child.path) == "bfloat16"
            assert set(got.values()) <= {"float32"}
            copy_weights(reference, one)
            expected = outputs(case, reference)
            result = apply(case, one, draw(case))
            assert standard_dtype(result) == "float32"
            tolerance = ROUNDINGS * UNIT_ROUNDOFF["bfloat16"]
            assert_all_close([to_numpy(result)], expected, tolerance)
