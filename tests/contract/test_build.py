"""Building by shapes and by a call; names and order of the weights."""

import keras
import pytest

from tests.cases import CASES
from tests.contract.helpers import apply
from tests.contract.helpers import assert_all_close
from tests.contract.helpers import by_case
from tests.contract.helpers import copy_weights
from tests.contract.helpers import create
from tests.contract.helpers import draw
from tests.contract.helpers import functional_model
from tests.contract.helpers import outputs
from tests.marks import once
from tests.utils import random_weights
from tests.utils import relative_path


def weight_table(layer):
    return [
        (relative_path(layer, w), tuple(w.shape), w.trainable, w.dtype)
        for w in layer.weights
    ]


def check_weight_order(case):
    layer = create(case)
    paths = [relative_path(layer, weight) for weight in layer.weights]
    assert paths == list(case.weights)


def check_build_by_shape(case):
    by_shape = create(case)
    by_call = case.layer(**case.kwargs)
    assert not by_call.built and not by_call.weights
    apply(case, by_call, draw(case))
    symbolic = case.layer(**case.kwargs)
    functional_model(case, symbolic)
    from_config = case.layer(**case.kwargs)
    from_config.build_from_config(by_shape.get_build_config())
    for layer in (by_call, symbolic, from_config):
        assert layer.built
        assert weight_table(layer) == weight_table(by_shape)
    random_weights(by_shape)
    copy_weights(by_shape, by_call)
    assert_all_close(outputs(case, by_call), outputs(case, by_shape))


def check_sublayers_are_built(case):
    """Children are built with their parent, under names that are fixed."""
    first, second = create(case), create(case)
    for one, other in zip(
        first._flatten_layers(include_self=False),
        second._flatten_layers(include_self=False),
        strict=True,
    ):
        assert one.built, f"{one.name} is not built"
        if one.weights:
            assert one.name == other.name


@pytest.mark.parametrize(**by_case(CASES))
def test_weight_names_and_order(case):
    check_weight_order(case)


@once
@pytest.mark.parametrize(**by_case(CASES))
def test_build_by_shape_equals_build_by_call(case):
    check_build_by_shape(case)


@pytest.mark.parametrize(**by_case(CASES))
def test_sublayers_are_built(case):
    check_sublayers_are_built(case)


@pytest.mark.parametrize(**by_case(CASES))
def test_initial_weights_repeat_under_a_seed(case):
    layers = []
    for _ in range(2):
        keras.utils.set_random_seed(3)
        layers.append(create(case))
    for a, b in zip(layers[0].weights, layers[1].weights):
        assert_all_close(
            [keras.ops.convert_to_numpy(a)],
            [keras.ops.convert_to_numpy(b)],
            tolerance=0.0,
        )


@pytest.mark.parametrize(**by_case(CASES))
def test_equal_shapes_do_not_share_their_initial_values(case):
    keras.utils.set_random_seed(3)
    layer = create(case)
    seen = {}
    for weight in layer.weights:
        value = keras.ops.convert_to_numpy(weight)
        if value.size < 2 or (value == value.flat[0]).all():
            continue
        key = value.tobytes()
        assert key not in seen, f"{weight.path} starts as {seen[key]}"
        seen[key] = weight.path
