"""Every constructor argument is stored, documented and does something."""

import inspect
import json
import re

import keras
import numpy as np
import pytest

from tests.cases import CASES
from tests.contract import case as effects
from tests.contract.helpers import apply
from tests.contract.helpers import assert_all_close
from tests.contract.helpers import by_case
from tests.contract.helpers import copy_weights
from tests.contract.helpers import create
from tests.contract.helpers import differ
from tests.contract.helpers import draw
from tests.contract.helpers import outputs
from tests.contract.helpers import take_step
from tests.marks import once
from tests.utils import random_weights
from tests.utils import relative_path
from tests.utils import to_numpy

# Nothing of it depends on the backend.
pytestmark = once
# What every layer takes through `**kwargs` and Keras itself stores.
LAYER_ARGUMENTS = {
    "name": effects.Argument("other", effects.WEIGHT_NAMES),
    "trainable": effects.Argument(False, effects.WEIGHTS_AFTER_STEP),
    "dtype": effects.Argument("float16"),
}
OBJECTS = {
    "initializer": keras.initializers,
    "regularizer": keras.regularizers,
    "constraint": keras.constraints,
    "activation": keras.activations,
}
# Chosen among names of our own, which Keras does not know.
OWN_NAMES = {"attention_activation"}
CASES_WITH_ARGUMENTS = [case for case in CASES if case.arguments]
ARGUMENTS = [
    (case, name)
    for case in CASES_WITH_ARGUMENTS
    for name in {**case.arguments, **LAYER_ARGUMENTS}
]


def constructor_arguments(layer):
    """Names in the signatures that a call of the class reaches."""
    names = []
    for owner in layer.__mro__:
        if owner is keras.layers.Layer:
            return [*names, *LAYER_ARGUMENTS]
        if "__init__" not in vars(owner):
            continue
        parameters = list(inspect.signature(owner.__init__).parameters.values())
        names += [
            p.name
            for p in parameters[1:]
            if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
        ]
        if all(p.kind is not p.VAR_KEYWORD for p in parameters):
            return names
    return names


def documented_arguments(layer):
    """Names in the Args sections of the class and its bases."""
    names = set()
    for owner in layer.__mro__:
        if owner is keras.layers.Layer:
            break
        text = inspect.cleandoc(owner.__doc__ or "")
        section = re.search(r"^Args:\n((?:[ ]+.*\n|\n)*)", text + "\n", re.M)
        if section is None:
            continue
        entries = re.findall(
            r"^    (\S+):((?:.*\n)(?:     .*\n)*)", section[1], re.M
        )
        for name, description in entries:
            names.add(name)
            if name == "**kwargs":
                names.update(re.findall(r"`(\w+)`", description))
    return names


def check_arguments_are_listed(case):
    names = constructor_arguments(case.layer)
    assert len(names) > len(LAYER_ARGUMENTS)
    config = case.layer(**case.kwargs).get_config()
    missing = [name for name in names if name not in config]
    assert not missing, f"not in the config: {missing}"
    described = documented_arguments(case.layer)
    missing = [name for name in names if name not in described]
    assert not missing, f"not in the docstring: {missing}"
    entries = set(LAYER_ARGUMENTS).union(
        *(c.arguments for c in (case, *CASES) if c.layer is case.layer)
    )
    missing = [name for name in names if name not in entries]
    assert not missing, f"without an entry in the case: {missing}"


def check_argument(case, name):
    argument = {**LAYER_ARGUMENTS, **case.arguments}[name]
    base = {"name": case.id, **case.kwargs, **argument.companions}
    changed = {**base, name: argument.value}
    if argument.changes == effects.RAISES:
        measure(case, base, effects.OUTPUTS, argument.call)
        with pytest.raises(ValueError):
            measure(case, changed, effects.OUTPUTS, argument.call)
        return
    reference = measure(case, base, argument.changes, argument.call)
    again = measure(case, base, argument.changes, argument.call)
    assert not differ(again, reference), "the measurement does not repeat"
    result = measure(case, changed, argument.changes, argument.call)
    assert differ(result, reference), f"{name!r} changes nothing"


def measure(case, kwargs, changes, call):
    """What the layer shows of an argument, as a list of arrays."""
    keras.utils.set_random_seed(1)
    layer = create(case, **kwargs)
    if changes == effects.WEIGHT_NAMES:
        return [np.array([weight.path for weight in layer.weights])]
    if changes == effects.INITIAL_OUTPUTS:
        return outputs(case, layer, **call)
    random_weights(layer)
    if changes == effects.TRAINING_OUTPUTS:
        return outputs(case, layer, training=True, **call)
    result = outputs(case, layer, **call)
    if changes == effects.LOSSES:
        return [np.array([to_numpy(loss) for loss in layer.losses])]
    if changes == effects.WEIGHTS_AFTER_STEP:
        take_step(case, layer, run_eagerly=True)
        return [to_numpy(weight) for weight in layer.weights]
    assert changes == effects.OUTPUTS
    return result


def check_config_is_what_was_passed(case, name):
    argument = {**LAYER_ARGUMENTS, **case.arguments}[name]
    kwargs = {**case.kwargs, **argument.companions, name: argument.value}
    layer = case.layer(**kwargs)
    config = layer.get_config()
    value = as_stored(name, argument.value)
    assert config[name] == value and type(config[name]) is type(value)
    restored = json_round_trip(layer)
    assert restored.get_config() == config
    apply(case, layer, draw(case), **argument.call)
    assert layer.get_config() == config, "the config changed when building"


def as_stored(name, value):
    """The value of an argument as the configuration holds it."""
    module = OBJECTS.get(name.rpartition("_")[2])
    if name in OWN_NAMES:
        module = None
    if name == "dtype":
        module = keras.dtype_policies
    if module is None or value is None:
        return value
    return module.serialize(module.get(value))


def json_round_trip(layer):
    text = json.dumps(keras.saving.serialize_keras_object(layer))
    return keras.saving.deserialize_keras_object(json.loads(text))


def check_round_trip(case):
    layer = random_weights(create(case))
    expected = outputs(case, layer)
    config = layer.get_config()
    once = type(layer).from_config(config)
    assert once.get_config() == config
    twice = type(layer).from_config(once.get_config())
    assert twice.get_config() == config
    for copy in (twice, json_round_trip(layer)):
        assert type(copy) is type(layer)
        assert copy.get_config() == config
        apply(case, copy, draw(case))
        copy_weights(layer, copy)
        assert_all_close(outputs(case, copy), expected)


def check_public_attributes(case):
    layer = create(case)
    config = layer.get_config()
    for name in constructor_arguments(case.layer):
        if name in LAYER_ARGUMENTS or name in case.private:
            continue
        assert hasattr(layer, name), f"no attribute {name!r}"
        # `None` may stand for a size that the attribute tells.
        if config[name] is not None:
            assert as_stored(name, getattr(layer, name)) == config[name]


@pytest.mark.parametrize(**by_case(CASES_WITH_ARGUMENTS))
def test_every_argument_is_listed(case):
    check_arguments_are_listed(case)


def test_every_class_has_arguments():
    classes = {case.layer for case in CASES}
    assert classes == {case.layer for case in CASES_WITH_ARGUMENTS}


@pytest.mark.parametrize(
    ("case", "name"), ARGUMENTS, ids=[f"{c.id}-{n}" for c, n in ARGUMENTS]
)
def test_every_argument_does_something(case, name):
    check_argument(case, name)


@pytest.mark.parametrize(
    ("case", "name"),
    [
        (case, name)
        for case, name in ARGUMENTS
        if case.arguments.get(name, LAYER_ARGUMENTS.get(name)).changes
        != effects.RAISES
    ],
    ids=lambda value: getattr(value, "id", value),
)
def test_config_is_what_was_passed(case, name):
    check_config_is_what_was_passed(case, name)


@pytest.mark.parametrize(**by_case(CASES))
def test_config_round_trip(case):
    check_round_trip(case)


@pytest.mark.parametrize(**by_case(CASES))
def test_public_attributes(case):
    check_public_attributes(case)


@pytest.mark.parametrize(**by_case(CASES))
def test_registered_name(case):
    name = keras.saving.get_registered_name(case.layer)
    assert name == case.registered_name
    assert keras.saving.get_registered_object(name) is case.layer


@pytest.mark.parametrize(**by_case(CASES))
def test_weight_names_do_not_depend_on_the_layers_name(case):
    first, second = create(case, name="one"), create(case, name="two")
    paths = [relative_path(first, weight) for weight in first.weights]
    assert paths == [relative_path(second, weight) for weight in second.weights]
