"""Layers and tensors made from a case."""

import functools
import warnings

import keras
import numpy as np

from tests.contract.case import Option
from tests.contract.case import Same
from tests.contract.case import Tensor
from tests.utils import random_weights
from tests.utils import tensor
from tests.utils import to_numpy

NO_OPTIONS = Option("no_options", {})


def by_case(cases):
    """Arguments of `pytest.mark.parametrize` for a test of every case."""
    return {
        "argnames": "case",
        "argvalues": cases,
        "ids": [case.id for case in cases],
    }


def by_option(cases):
    """The same for every case with every one of its options."""
    pairs = [(c, o) for c in cases for o in c.options_with_none]
    return {
        "argnames": ("case", "option"),
        "argvalues": pairs,
        "ids": [f"{case.id}-{option.id}" for case, option in pairs],
    }


def input_shapes(case):
    """Shapes of the required call arguments, in their order."""
    shapes = []
    for spec in case.inputs.values():
        if isinstance(spec, Same):
            spec = case.inputs[spec.name]
        shapes.append(spec.shape)
    return shapes


def create(case, **kwargs):
    """A layer of the case that is built by shapes."""
    layer = case.layer(**{**case.kwargs, **kwargs})
    layer.build(*input_shapes(case))
    return layer


def create_for(case, option, **kwargs):
    """A layer built by a call with `option`, and the call's values.

    Options such as a `key` of its own width belong to the build, while a cache
    must come from a built layer.
    """
    layer = case.layer(**{**case.kwargs, **kwargs})
    if callable(option.arguments):
        layer.build(*input_shapes(case))
    values = draw(case, option, layer)
    apply(case, layer, values)
    return random_weights(layer), values


def draw(case, option=NO_OPTIONS, layer=None, sizes=None, seed=0):
    """Arrays (and plain values) for a call, by argument name."""
    rng = np.random.default_rng(seed)
    specification = {**case.inputs, **option.specification(layer)}
    return keras.tree.map_structure(
        lambda leaf: _draw(leaf, rng, sizes or {}), specification
    )


def _draw(leaf, rng, sizes):
    if keras.ops.is_tensor(leaf):
        leaf = to_numpy(leaf)
    if isinstance(leaf, np.ndarray) and sizes:
        return np.zeros(_resized(leaf.shape, sizes), leaf.dtype)
    if not isinstance(leaf, Tensor):
        return leaf
    shape = _resized(leaf.shape, sizes)
    if leaf.dtype == "bool":
        mask = rng.random(shape) < 0.6
        mask[..., 0] = True
        return mask
    if leaf.dtype.startswith("int"):
        return np.zeros(shape, leaf.dtype)
    return rng.normal(size=shape).astype(leaf.dtype)


def _resized(shape, sizes):
    return tuple(sizes.get(size, size) for size in shape)


def apply(case, layer, values, **call):
    """Calls `layer` with the values by name; arrays become tensors."""
    values = {**keras.tree.map_structure(_as_tensor, values), **call}
    for name, value in values.items():
        if isinstance(value, Same):
            values[name] = values[value.name]
    inputs = [values.pop(name) for name in case.inputs]
    return layer(*inputs, **values)


def _as_tensor(leaf):
    return tensor(leaf) if isinstance(leaf, np.ndarray) else leaf


def outputs(case, layer, values=None, **call):
    """The flat list of outputs, as arrays."""
    values = draw(case) if values is None else values
    result = apply(case, layer, values, **call)
    return [to_numpy(x) for x in keras.tree.flatten(result)]


def loosened(case, shape):
    """The shape with `None` for the batch and every length."""
    batch, *rest = shape
    batch = None if batch == batch_size(case) else batch
    rest = [None if size in case.lengths else size for size in rest]
    return (None if batch in case.lengths else batch, *rest)


def batch_size(case):
    return input_shapes(case)[0][0]


def functional_model(case, layer, values=None, loose=True):
    """A model of one call; its inputs are the arrays among `values`.

    Feed it with `model_inputs(values)`.
    """
    values = draw(case) if values is None else values

    def symbolic(leaf):
        if not isinstance(leaf, np.ndarray):
            return leaf
        shape = leaf.shape
        if loose and shape:
            shape = loosened(case, shape)
        return keras.Input(batch_shape=shape, dtype=leaf.dtype.name)

    symbols = keras.tree.map_structure(symbolic, values)
    inputs = [
        leaf
        for leaf in keras.tree.flatten(symbols)
        if isinstance(leaf, keras.KerasTensor)
    ]
    return keras.Model(inputs, apply(case, layer, symbols))


def model_inputs(values):
    """The arrays among `values`, in the order of the model's inputs."""
    leaves = keras.tree.flatten(values)
    return [leaf for leaf in leaves if isinstance(leaf, np.ndarray)]


def copy_weights(source, target):
    """Copies weights of all dtypes by position."""
    assert len(source.weights) == len(target.weights)
    for a, b in zip(source.weights, target.weights):
        assert tuple(a.shape) == tuple(b.shape), (a.path, a.shape, b.shape)
        b.assign(to_numpy(a).astype("float32"))
    return target


def assert_all_close(actual, expected, tolerance=1e-6):
    """Lists of arrays agree, relative to the largest expected magnitude."""
    assert len(actual) == len(expected)
    for a, b in zip(actual, expected):
        assert a.shape == b.shape, (a.shape, b.shape)
        a, b = np.float64(a), np.float64(b)
        scale = max(np.abs(b).max(initial=0.0), 1e-30)
        assert np.isfinite(b).all()
        error = np.abs(a - b).max(initial=0.0) / scale
        assert error <= tolerance, f"relative error {error:.2e}"


def differ(first, second, tolerance=1e-5):
    """Whether two lists of arrays differ in length, shape, dtype or value."""
    if len(first) != len(second):
        return True
    for a, b in zip(first, second):
        if a.shape != b.shape or a.dtype != b.dtype:
            return True
        if a.dtype.kind not in "fiub" and a.dtype.name != "bfloat16":
            if not np.array_equal(a, b):
                return True
            continue
        a, b = np.float64(a), np.float64(b)
        scale = max(np.abs(b).max(initial=0.0), 1e-30)
        if np.abs(a - b).max(initial=0.0) > tolerance * scale:
            return True
    return False


def counted_calls(layer):
    """A list that grows whenever the Python code of `layer.call` runs."""
    calls = []
    call = layer.call

    @functools.wraps(call)
    def counted(*args, **kwargs):
        calls.append(layer.name)
        return call(*args, **kwargs)

    layer.call = counted
    return calls


def take_step(case, layer, values=None, **compile_arguments):
    """Trains a model around `layer` on one batch once; returns the model.

    The learning rate is large, so that one step is seen in every weight.
    """
    values = draw(case) if values is None else values
    model = functional_model(case, layer, values)
    model.compile(keras.optimizers.SGD(0.5), "mse", **compile_arguments)
    train_on(case, layer, model, values)
    return model


def train_on(case, layer, model, values):
    """One step on one batch with a target of random numbers; the loss."""
    shape = outputs(case, layer, values)[0].shape
    target = np.random.default_rng(1).normal(size=shape).astype("float32")
    with warnings.catch_warnings():
        # Which is what a frozen layer is to show.
        warnings.filterwarnings("ignore", ".*not have any trainable weights")
        return float(model.train_on_batch(model_inputs(values), target))
