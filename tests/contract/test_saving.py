"""Saved layers come back: here, in a fresh process, under other backends."""

import copy
import importlib.util
import os
import pathlib
import pickle
import subprocess
import sys

import keras
import numpy as np
import pytest

from tests.cases import CASES
from tests.contract import load_saved
from tests.contract.case import Same
from tests.contract.helpers import assert_all_close
from tests.contract.helpers import by_case
from tests.contract.helpers import copy_weights
from tests.contract.helpers import create
from tests.contract.helpers import draw
from tests.contract.helpers import functional_model
from tests.contract.helpers import input_shapes
from tests.contract.helpers import model_inputs
from tests.contract.helpers import outputs
from tests.utils import random_weights

INSTALLED = [
    name
    for name in ("jax", "tensorflow", "torch")
    if importlib.util.find_spec(name)
]
# Round about: each backend reads what another one wrote.
NEXT = INSTALLED[(INSTALLED.index(keras.config.backend()) + 1) % len(INSTALLED)]
# These only infer. Torch alone asks them, since it has the least to compile.
INFERENCE = ("numpy", "openvino") if keras.config.backend() == "torch" else ()
SINGLE = [case for case in CASES if case.single_input]


@keras.saving.register_keras_serializable(package="tests")
class Owner(keras.layers.Layer):
    """A user's layer that owns a layer of the package; takes a list."""

    def __init__(self, inner, **kwargs):
        super().__init__(**kwargs)
        self.inner = inner

    def build(self, input_shape):
        # A layer that was saved after it was built comes back built.
        if not self.inner.built:
            self.inner.build(*input_shape)

    def call(self, inputs):
        return self.inner(*inputs)

    def compute_output_shape(self, input_shape):
        return self.inner.compute_output_shape(*input_shape)

    def get_config(self):
        inner = keras.saving.serialize_keras_object(self.inner)
        return {**super().get_config(), "inner": inner}

    @classmethod
    def from_config(cls, config):
        inner = keras.saving.deserialize_keras_object(config.pop("inner"))
        return cls(inner, **config)


def random_model(case, layer=None):
    layer = layer or create(case)
    model = functional_model(case, layer)
    random_weights(layer)
    return model


def run(model, case):
    inputs = model_inputs(draw(case))
    if isinstance(model, keras.Sequential):
        (inputs,) = inputs
    result = model(inputs)
    return [keras.ops.convert_to_numpy(x) for x in keras.tree.flatten(result)]


def check_save_and_load(case, model, folder):
    """`.keras`, and `.weights.h5` into a new model of the same config."""
    expected = run(model, case)
    path = str(folder / "model.keras")
    model.save(path)
    loaded = keras.models.load_model(path)
    assert_all_close(run(loaded, case), expected)
    path = str(folder / "model.weights.h5")
    model.save_weights(path)
    fresh = type(model).from_config(model.get_config())
    assert np.abs(run(fresh, case)[0] - expected[0]).max() > 1e-4
    fresh.load_weights(path)
    assert_all_close(run(fresh, case), expected)


@pytest.mark.parametrize(**by_case(CASES))
def test_functional_model(case, tmp_path):
    check_save_and_load(case, random_model(case), tmp_path)


@pytest.mark.parametrize(**by_case(SINGLE))
def test_sequential_model(case, tmp_path):
    layer = create(case)
    shape = input_shapes(case)[0]
    model = keras.Sequential([keras.Input(shape[1:]), layer])
    random_weights(layer)
    check_save_and_load(case, model, tmp_path)


@pytest.mark.parametrize(**by_case(CASES))
def test_inside_a_custom_layer(case, tmp_path):
    owner = Owner(case.layer(**case.kwargs))
    inputs = {
        name: keras.Input(spec.shape[1:])
        for name, spec in case.inputs.items()
        if not isinstance(spec, Same)
    }
    arguments = [
        inputs[spec.name if isinstance(spec, Same) else name]
        for name, spec in case.inputs.items()
    ]
    model = keras.Model(list(inputs.values()), owner(arguments))
    random_weights(owner)
    check_save_and_load(case, model, tmp_path)


@pytest.mark.parametrize(**by_case(CASES))
def test_model_config_and_clone(case):
    model = random_model(case)
    clone = keras.models.clone_model(model)
    copy_weights(model, clone)
    assert_all_close(run(clone, case), run(model, case))


@pytest.mark.parametrize("duplicate", ["deepcopy", "pickle"])
@pytest.mark.parametrize(**by_case(CASES))
def test_copies(case, duplicate):
    layer = random_weights(create(case))
    if duplicate == "pickle":
        twin = pickle.loads(pickle.dumps(layer))
    else:
        twin = copy.deepcopy(layer)
    assert twin is not layer
    assert twin.get_config() == layer.get_config()
    expected = outputs(case, layer)
    assert_all_close(outputs(case, twin), expected)
    for weight in twin.weights:
        weight.assign(np.zeros(weight.shape, "float32"))
    assert_all_close(outputs(case, layer), expected)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A folder with all cases, their inputs and their outputs."""
    folder = tmp_path_factory.mktemp("saved")
    for case in CASES:
        path = folder / f"{case.id}.keras"
        model = random_model(case)
        model.save(path)
        model.save_weights(path.with_suffix(".weights.h5"))
        np.savez(path.with_suffix(".npz"), *model_inputs(draw(case)))
        np.savez(path.with_suffix(".expected.npz"), *run(model, case))
    return folder


@pytest.fixture(scope="module", params=[NEXT, *INFERENCE])
def backend_elsewhere(request, saved):
    """A backend, after a new process of it has run all cases."""
    if request.param in INFERENCE:
        pytest.importorskip(request.param)
    root = pathlib.Path(__file__).parents[2]
    subprocess.run(
        [sys.executable, load_saved.__file__, str(saved)],
        env={
            **os.environ,
            "KERAS_BACKEND": request.param,
            "PYTHONPATH": str(root),
        },
        check=True,
        timeout=240,
    )
    return request.param


@pytest.mark.parametrize(**by_case(CASES))
def test_load_in_a_fresh_process(case, saved, backend_elsewhere):
    error = saved / f"{case.id}.{backend_elsewhere}.txt"
    assert not error.exists(), error.read_text()
    expected = np.load(saved / f"{case.id}.expected.npz")
    actual = np.load(saved / f"{case.id}.{backend_elsewhere}.npz")
    expected = list(expected.values())
    # Once with the weights of the model, once with those of the other file.
    assert_all_close(list(actual.values()), expected * 2, tolerance=1e-5)
