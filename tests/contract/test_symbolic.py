"""Symbolic shapes and dtypes are those of the eager results."""

import inspect

import keras
import numpy as np
import pytest

from tests.cases import CASES
from tests.contract.case import Same
from tests.contract.helpers import apply
from tests.contract.helpers import assert_all_close
from tests.contract.helpers import by_case
from tests.contract.helpers import by_option
from tests.contract.helpers import create
from tests.contract.helpers import create_for
from tests.contract.helpers import draw
from tests.contract.helpers import functional_model
from tests.contract.helpers import input_shapes
from tests.contract.helpers import loosened
from tests.contract.helpers import model_inputs
from tests.contract.helpers import outputs


def standard_dtype(x):
    return keras.backend.standardize_dtype(x.dtype)


def check_options_are_listed(cases):
    """Every optional call argument of a class is in some option of a case."""
    layer = create(cases[0])
    names = set(inspect.signature(layer.call).parameters)
    for case in cases:
        names -= set(case.inputs)
        for option in case.options:
            names -= set(option.specification(create(case)))
        if case.masked and case.single_input:
            # Keras fills these two; the tests of masks cover them.
            names -= {"mask", f"{case.masked[0]}_mask"}
    assert not names, f"call arguments without an option: {sorted(names)}"


def check_symbolic_equals_eager(case, option):
    layer, values = create_for(case, option)
    eager = keras.tree.flatten(apply(case, layer, values))
    for loose in (False, True):
        model = functional_model(case, layer, values, loose)
        symbolic = keras.tree.flatten(model.outputs)
        assert len(symbolic) == len(eager)
        for symbol, value in zip(symbolic, eager):
            shape = tuple(value.shape)
            shape = loosened(case, shape) if loose else shape
            assert tuple(symbol.shape) == shape
            assert standard_dtype(symbol) == standard_dtype(value)


def check_one_model_for_other_sizes(case, option):
    layer, values = create_for(case, option)
    model = functional_model(case, layer, values)
    sizes = {size: size + 4 for size in (*case.lengths, 2)}
    for resize in (None, sizes):
        values = draw(case, option, layer, resize, seed=1)
        expected = outputs(case, layer, values)
        inputs = model_inputs(values)
        actual = keras.tree.flatten(model(inputs))
        assert_all_close(
            [keras.ops.convert_to_numpy(x) for x in actual], expected
        )


@pytest.mark.parametrize("layer", sorted({c.layer for c in CASES}, key=str))
def test_every_call_argument_has_an_option(layer):
    check_options_are_listed([case for case in CASES if case.layer is layer])


@pytest.mark.parametrize(**by_case(CASES))
def test_all_sizes_are_distinct(case):
    """Otherwise an exchange of axes could go unseen."""
    specifications = case.inputs.values()
    shapes = [s.shape for s in specifications if not isinstance(s, Same)]
    shared = {size for shape in shapes for size in shape[:-1]}
    widths = [shape[-1] for shape in shapes]
    assert {2, *case.lengths} <= shared
    assert not shared.intersection(widths)
    assert len(set(widths)) == len(widths)
    for shape in shapes:
        assert shape[0] == 2 and len(set(shape)) == len(shape)


@pytest.mark.parametrize(**by_option(CASES))
def test_symbolic_equals_eager(case, option):
    check_symbolic_equals_eager(case, option)


@pytest.mark.parametrize(**by_option(CASES))
def test_one_model_for_other_batches_and_lengths(case, option):
    check_one_model_for_other_sizes(case, option)


@pytest.mark.parametrize(**by_case(CASES))
def test_compute_output_shape(case):
    layer = create(case)
    expected = outputs(case, layer)[0].shape
    shapes = input_shapes(case)
    assert tuple(layer.compute_output_shape(*shapes)) == expected
    loose = [loosened(case, shape) for shape in shapes]
    actual = layer.compute_output_shape(*loose)
    assert tuple(actual) == loosened(case, expected)


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16", "float16"])
@pytest.mark.parametrize(**by_case(CASES))
def test_compute_output_spec(case, dtype):
    layer = create(case, dtype=dtype)
    shapes = input_shapes(case)
    symbols = [keras.KerasTensor(shape, "float32") for shape in shapes]
    spec = layer.compute_output_spec(*symbols)
    assert standard_dtype(spec) == layer.compute_dtype
    assert tuple(spec.shape) == outputs(case, layer)[0].shape


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow",
    reason="only TensorFlow traces with unknown sizes",
)
@pytest.mark.parametrize(**by_option(CASES))
def test_graph_with_unknown_sizes(case, option):
    import tensorflow as tf

    layer, values = create_for(case, option)
    expected = outputs(case, layer, values)
    leaves = keras.tree.flatten(values)
    arrays = model_inputs(values)

    def run(*tensors):
        tensors = iter(tensors)
        filled = [
            next(tensors) if isinstance(leaf, np.ndarray) else leaf
            for leaf in leaves
        ]
        filled = keras.tree.pack_sequence_as(values, filled)
        return keras.tree.flatten(apply(case, layer, filled))

    signature = [
        tf.TensorSpec(loosened(case, a.shape) if a.shape else (), a.dtype)
        for a in arrays
    ]
    graph = tf.function(run, input_signature=signature)
    actual = graph(*[tf.constant(array) for array in arrays])
    assert_all_close([x.numpy() for x in actual], expected)
