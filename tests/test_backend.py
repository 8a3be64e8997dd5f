"""The functions that know a backend, on the current one."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_gating import _backend
from tests.utils import to_numpy

BACKEND = keras.config.backend()


def only_on(backend):
    return pytest.mark.skipif(BACKEND != backend, reason=f"is about {backend}")


def test_platform_is_where_tensors_live():
    expected = "cpu"
    if BACKEND == "jax":
        import jax

        expected = next(iter(ops.ones(1).devices())).platform
        assert expected == jax.devices()[0].platform
    elif BACKEND == "tensorflow":
        expected = ops.ones(1).device.rpartition("device:")[2][:3].lower()
    elif BACKEND == "torch":
        expected = ops.ones(1).device.type.replace("cuda", "gpu")
    assert _backend.platform() == expected


def test_compiled_computes_the_same():
    def function(x, pair):
        return {"sum": x + pair[0], "product": x * pair[1]}

    x, y, z = (ops.convert_to_tensor([1.0, 2.0]) * n for n in (1.0, 3.0, 5.0))
    outputs = _backend.compiled(function)(x, (y, z))
    np.testing.assert_allclose(to_numpy(outputs["sum"]), [4.0, 8.0])
    np.testing.assert_allclose(to_numpy(outputs["product"]), [5.0, 20.0])


def test_compiled_traces_once():
    calls = []

    def function(x):
        calls.append(None)
        return x + 1.0

    compiled = _backend.compiled(function)
    for value in (1.0, 2.0, 3.0):
        outputs = compiled(ops.convert_to_tensor([value]))
        np.testing.assert_allclose(to_numpy(outputs), [value + 1.0])
    assert len(calls) == (1 if BACKEND != "torch" else 3)


def test_compiled_passes_errors_on():
    compiled = _backend.compiled(lambda x: ops.reshape(x, (3,)))
    with pytest.raises((ValueError, TypeError, RuntimeError)):
        compiled(ops.ones(2))
    assert to_numpy(compiled(ops.ones((1, 3)))).shape == (3,)


def test_compiled_falls_back_where_xla_cannot_compile():
    # TensorFlow's XLA has no determinant.
    compiled = _backend.compiled(ops.linalg.det)
    for scale in (1.0, 2.0):
        determinant = compiled(scale * ops.eye(3))
        np.testing.assert_allclose(to_numpy(determinant), scale**3, rtol=1e-6)


@only_on("tensorflow")
def test_compiled_falls_back_inside_another_function():
    import tensorflow as tf

    compiled = _backend.compiled(ops.linalg.det)
    outer = tf.function(lambda x: compiled(x) + 1.0)
    np.testing.assert_allclose(outer(ops.eye(2)), 2.0)


@only_on("tensorflow")
def test_nested_forward_mode_is_right_in_compiled_functions():
    """Two examples that TensorFlow gets wrong eagerly, tensorflow#127753."""

    def second(f, x, u, v):
        return ops.jvp(lambda y: ops.jvp(f, (y,), (u,))[1], (x,), (v,))[1]

    def product(x):
        return x[0] * x[1]

    def cube(x):
        return (x[0] * x[0]) * x[0]

    axes = ops.eye(2)
    hessian = _backend.compiled(
        lambda x: ops.stack(
            [second(product, x, axes[i], axes[j]) for i, j in np.ndindex(2, 2)]
        )
    )
    np.testing.assert_allclose(
        hessian(ops.convert_to_tensor([0.3, 0.7])), [0.0, 1.0, 1.0, 0.0]
    )
    curvature = _backend.compiled(lambda x: second(cube, x, axes[0], axes[0]))
    np.testing.assert_allclose(
        curvature(ops.convert_to_tensor([0.3, 0.0])), 1.8, rtol=1e-6
    )


@pytest.mark.parametrize(
    "make",
    [
        lambda: 3,
        lambda: [1.0, 2.0],
        lambda: np.arange(3),
        lambda: ops.arange(3),
        lambda: ops.ones((2,), "bool"),
        lambda: ops.ones((2,), "bfloat16"),
        lambda: keras.Variable([1.0, 2.0]),
    ],
)
def test_concrete_reads_what_is_known(make):
    value = _backend.concrete(make())
    assert isinstance(value, np.ndarray)
    np.testing.assert_array_equal(value, to_numpy(make()))


def test_concrete_is_none_for_symbolic_tensors():
    assert _backend.concrete(keras.KerasTensor((2, 3))) is None
    seen = []

    class Probe(keras.layers.Layer):
        def call(self, inputs):
            seen.append(_backend.concrete(inputs))
            return inputs

    Probe()(keras.Input((3,)))
    assert seen and all(value is None for value in seen)


def traced_by_compile(function, x):
    _backend.compiled(function)(x)


def traced_by_gradient(function, x):
    import jax

    jax.grad(lambda y: ops.sum(function(y)))(x)


def traced_by_vectorized_map(function, x):
    ops.vectorized_map(function, ops.stack([x, x]))


def traced_by_jvp(function, x):
    import torch

    torch.func.jvp(function, (x,), (x,))


def traced_as_fake(function, x):
    from torch._subclasses import FakeTensorMode

    with FakeTensorMode() as mode:
        function(mode.from_tensor(x))


def traced_on_meta(function, x):
    function(x.to("meta"))


TRACERS = {
    "jax": [traced_by_compile, traced_by_gradient, traced_by_vectorized_map],
    "tensorflow": [traced_by_compile, traced_by_vectorized_map],
    "torch": [
        traced_by_jvp,
        traced_by_vectorized_map,
        traced_as_fake,
        traced_on_meta,
    ],
}


@pytest.mark.parametrize("trace", TRACERS.get(BACKEND, []))
def test_concrete_is_none_while_traced(trace):
    seen = []

    def function(x):
        seen.append(_backend.concrete(x))
        return x * 2.0

    trace(function, ops.ones(3))
    assert seen and all(value is None for value in seen)


@only_on("torch")
def test_concrete_breaks_no_graph():
    import torch

    def function(x):
        return x + (1.0 if _backend.concrete(x) is None else 2.0)

    explanation = torch._dynamo.explain(function)(ops.zeros(2))
    assert explanation.graph_count == 1
    assert explanation.graph_break_count == 0
    compiled = torch.compile(function, fullgraph=True, backend="eager")
    np.testing.assert_allclose(to_numpy(compiled(ops.zeros(2))), 1.0)

    class Module(torch.nn.Module):
        def forward(self, x):
            return function(x)

    exported = torch.export.export(Module(), (ops.zeros(2),)).module()
    np.testing.assert_allclose(to_numpy(exported(ops.zeros(2))), 1.0)
