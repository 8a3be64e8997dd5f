"""One compiled step, what it leaves behind, dropout and seeds."""

import inspect

import keras
import numpy as np
import pytest

from tests.cases import CASES
from tests.contract import case as effects
from tests.contract.helpers import assert_all_close
from tests.contract.helpers import by_case
from tests.contract.helpers import copy_weights
from tests.contract.helpers import counted_calls
from tests.contract.helpers import create
from tests.contract.helpers import differ
from tests.contract.helpers import draw
from tests.contract.helpers import functional_model
from tests.contract.helpers import input_shapes
from tests.contract.helpers import model_inputs
from tests.contract.helpers import outputs
from tests.contract.helpers import take_step
from tests.contract.helpers import train_on
from tests.marks import once
from tests.utils import random_weights
from tests.utils import relative_path
from tests.utils import to_numpy

# Compiling for torch takes a C++ compiler; its graphs have tests of their own.
COMPILED = {"jit_compile": keras.backend.backend() != "torch"}
DROPOUTS = [
    (case, name, argument)
    for case in CASES
    for name, argument in case.arguments.items()
    if argument.changes == effects.TRAINING_OUTPUTS and name != "seed"
]
BY_DROPOUT = {
    "argnames": ("case", "kwargs"),
    "argvalues": [
        (case, {**argument.companions, name: argument.value, "seed": 7})
        for case, name, argument in DROPOUTS
    ],
    "ids": [f"{case.id}-{name}" for case, name, _ in DROPOUTS],
}


def kept_tensors(layer):
    """Where attributes of the layer or its children hold tensors."""
    found, seen = set(), set()

    def visit(value, path):
        if id(value) in seen or isinstance(value, keras.Variable):
            return
        if keras.ops.is_tensor(value) or isinstance(value, keras.KerasTensor):
            found.add(path)
            return
        if isinstance(value, dict):
            children = value.items()
        elif isinstance(value, (list, tuple, set)):
            children = enumerate(value)
        elif isinstance(value, keras.layers.Layer):
            children = vars(value).items()
        elif inspect.isfunction(value) and value.__closure__:
            children = enumerate(value.__closure__)
        elif type(value).__name__ == "cell":
            children = [("cell", value.cell_contents)]
        else:
            return
        seen.add(id(value))
        for name, child in children:
            # Where torch keeps the variables of the layer.
            if name not in ("_parameters", "_torch_params", "_buffers"):
                visit(child, f"{path}.{name}")

    visit(layer, layer.name)
    return found


def check_training_step(case):
    """Every weight moves, nothing stays behind; then eager, then resized."""
    layer = random_weights(create(case))
    before = {relative_path(layer, w): to_numpy(w) for w in layer.weights}
    tensors = kept_tensors(layer)
    values = draw(case)
    model = functional_model(case, layer, values)
    model.compile(keras.optimizers.SGD(0.5), "mse", **COMPILED)
    calls = counted_calls(layer)
    losses = [train_on(case, layer, model, values)]
    calls.clear()
    losses.append(train_on(case, layer, model, values))
    # To make a target takes a call; the step itself is not traced again.
    assert len(calls) == (1 if COMPILED["jit_compile"] else 2)
    assert np.isfinite(losses).all() and losses[0] != losses[1]
    idle = {
        relative_path(layer, weight)
        for weight in layer.weights
        if not differ(
            [to_numpy(weight)], [before[relative_path(layer, weight)]]
        )
    }
    assert idle == set(case.idle_weights), f"idle weights: {sorted(idle)}"
    twin = copy_weights(layer, create(case))
    for sizes in ({}, {2: 6}, dict.fromkeys(case.lengths, 9)):
        values = draw(case, sizes=sizes, seed=1)
        expected = outputs(case, twin, values)
        assert_all_close(outputs(case, layer, values), expected)
        compiled = model.predict_on_batch(model_inputs(values))
        assert_all_close([compiled], expected, tolerance=1e-5)
    left = kept_tensors(layer) - tensors
    assert not left, f"tensors on the layer: {sorted(left)}"


@pytest.mark.parametrize(**by_case(CASES))
def test_compiled_training_step(case):
    check_training_step(case)


@once
@pytest.mark.parametrize(**by_case(CASES))
def test_initial_weights_train(case):
    """From its own start, too, every weight moves within two steps.

    A weight behind zeros that never leave zero has a gradient of exactly 0.
    """
    keras.utils.set_random_seed(1)
    layer = create(case)
    before = [to_numpy(weight) for weight in layer.weights]
    model = take_step(case, layer, run_eagerly=True)
    train_on(case, layer, model, draw(case))
    for weight, old in zip(layer.weights, before):
        if relative_path(layer, weight) not in case.idle_weights:
            assert differ([to_numpy(weight)], [old], 0.0), weight.path


@pytest.mark.parametrize("when", ["constructor", "attribute"])
@pytest.mark.parametrize(**by_case(CASES))
def test_frozen_layer_stays_as_it_is(case, when):
    layer = create(case, trainable=when != "constructor")
    if when == "attribute":
        layer.trainable = False
    assert not layer.trainable_weights
    model = functional_model(case, layer)
    names = [weight.path for weight in model.trainable_weights]
    assert not names, f"the model would train {names}"
    loaded = keras.Model.from_config(model.get_config())
    assert not loaded.trainable_weights


@pytest.mark.parametrize(**by_case(CASES))
def test_summary(case):
    layer = create(case)
    lines = []
    functional_model(case, layer).summary(
        print_fn=lambda text, **_: lines.append(text), line_length=150
    )
    text = "\n".join(lines)
    assert layer.name in text
    assert f"{layer.count_params():,}" in text


@pytest.mark.parametrize(**BY_DROPOUT)
def test_dropout_acts_in_training_only(case, kwargs):
    name = next(n for n in kwargs if n.endswith("dropout"))
    layer = random_weights(create(case, **kwargs))
    plain = random_weights(create(case, **{**kwargs, name: 0.0}))
    expected = outputs(case, plain)
    assert_all_close(outputs(case, layer), expected)
    assert_all_close(outputs(case, layer, training=False), expected)
    first = outputs(case, layer, training=True)
    assert differ(first, expected)
    assert differ(outputs(case, layer, training=True), first)


@pytest.mark.parametrize(**BY_DROPOUT)
def test_seed_reproduces_after_from_config(case, kwargs):
    layer = create(case, **kwargs)
    twin = case.layer.from_config(layer.get_config())
    twin.build(*input_shapes(case))
    random_weights(layer)
    random_weights(twin)
    for _ in range(2):
        expected = outputs(case, layer, training=True)
        assert_all_close(outputs(case, twin, training=True), expected)


@pytest.mark.parametrize(**BY_DROPOUT)
def test_two_epochs_with_dropout_repeat(case, kwargs):
    values = draw(case)
    inputs = model_inputs(values)
    runs = []
    for _ in range(2):
        layer = random_weights(create(case, **kwargs))
        target = np.ones(outputs(case, layer, values)[0].shape, "float32")
        model = functional_model(case, layer, values)
        model.compile(keras.optimizers.SGD(0.1), "mse", **COMPILED)
        model.fit(inputs, target, epochs=2, verbose=0, shuffle=False)
        eager = outputs(case, layer, values, training=True)
        runs.append([to_numpy(w) for w in layer.weights] + eager)
    assert_all_close(runs[0], runs[1])


@pytest.mark.parametrize(**by_case([c for c in CASES if c.single_input]))
def test_time_distributed(case):
    layer = random_weights(create(case))
    shape = input_shapes(case)[0]
    rng = np.random.default_rng(0)
    steps = rng.normal(size=(shape[0], 3, *shape[1:])).astype("float32")
    wrapper = keras.layers.TimeDistributed(layer)
    result = to_numpy(wrapper(steps))
    name = next(iter(case.inputs))
    for step in range(3):
        expected = outputs(case, layer, {name: steps[:, step]})
        assert_all_close([result[:, step]], expected)
    symbol = wrapper(keras.Input((None, *shape[1:])))
    assert tuple(symbol.shape) == (None, None, *expected[0].shape[1:])
