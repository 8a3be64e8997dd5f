"""One graph for every layer, and the same gradients when it is recomputed."""

import os

import keras
import numpy as np
import pytest

from tests.cases import ONE_EACH
from tests.contract.helpers import apply
from tests.contract.helpers import assert_all_close
from tests.contract.helpers import by_case
from tests.contract.helpers import copy_weights
from tests.contract.helpers import counted_calls
from tests.contract.helpers import create
from tests.contract.helpers import draw
from tests.contract.helpers import input_shapes
from tests.contract.helpers import outputs
from tests.contract.helpers import take_step
from tests.gradients import gradients
from tests.utils import normal
from tests.utils import random_weights
from tests.utils import tensor
from tests.utils import to_numpy

BACKEND = keras.config.backend()


def is_array(x):
    return isinstance(x, np.ndarray)


@pytest.mark.skipif(BACKEND != "torch", reason="torch.compile is torch's own")
# The compiler makes an instance of every function with a gradient of its own.
@pytest.mark.filterwarnings("ignore:.*Function.* should not be instantiated")
@pytest.mark.parametrize(**by_case(ONE_EACH))
def test_one_graph_under_torch_compile(case):
    """With `fullgraph` a graph that breaks is an error."""
    import torch

    layer = random_weights(create(case))
    values = draw(case)
    expected = outputs(case, layer, values)
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph.forward

    torch._dynamo.reset()
    compiled = torch.compile(
        lambda tensors: apply(case, layer, tensors),
        fullgraph=True,
        backend=backend,
    )
    tensors = {name: tensor(x) for name, x in values.items() if is_array(x)}
    for _ in range(2):
        result = keras.tree.flatten(compiled({**values, **tensors}))
        assert_all_close([to_numpy(x) for x in result], expected)
    # Two calls of equal shapes, one graph.
    assert len(graphs) == 1


@pytest.mark.skipif(
    BACKEND != "torch" or "TORCH_INDUCTOR" not in os.environ,
    reason="takes a C++ compiler and a minute a layer: TORCH_INDUCTOR=1",
)
# Warnings of the compiler about itself, which the tests make errors.
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(**by_case(ONE_EACH))
def test_step_compiled_for_torch(case):
    """With `jit_compile=True` a step changes the weights as without."""
    import torch

    torch._dynamo.reset()
    layer = random_weights(create(case))
    other = copy_weights(layer, create(case))
    take_step(case, layer, jit_compile=True)
    take_step(case, other, jit_compile=False)
    weights = [[to_numpy(w) for w in x.weights] for x in (layer, other)]
    assert_all_close(*weights, tolerance=1e-5)


@pytest.mark.parametrize(**by_case(ONE_EACH))
def test_rematerialization_keeps_gradients(case):
    """Within `keras.RematScope` the layer runs twice and computes the same."""
    layer = random_weights(create(case))
    with keras.RematScope(mode="full"):
        other = create(case)
    copy_weights(layer, other)
    calls = counted_calls(other)
    inputs = [normal(*shape, seed=1) for shape in input_shapes(case)]
    cotangent = normal(*layer(*map(tensor, inputs)).shape, seed=2)
    expected = gradients(layer, inputs, cotangent)
    result = gradients(other, inputs, cotangent)
    # torch computes again when it gets to the gradient; the others trace.
    assert BACKEND != "torch" or len(calls) == 2
    for one, two in zip(result, expected):
        leaves = [keras.tree.flatten(x) for x in (one, two)]
        assert_all_close(*leaves, tolerance=1e-5)
