"""Compiled maps are used again, and only while nothing has changed."""

import dataclasses

import keras
import numpy as np
import pytest
from keras import ops

from keras_gating import _backend
from keras_gating import geometry
from keras_gating import layers
from tests.geometry.maps import numpy64
from tests.geometry.maps import points
from tests.utils import tensor

FACTOR = 1.0


def slope(f, n=2):
    """The first derivative of a map that multiplies."""
    return numpy64(geometry.jacobian(f, np.ones((n, 1), "float32")))[0, 0, 0]


def dense(**arguments):
    layer = keras.layers.Dense(1, use_bias=False, **arguments)
    layer.build((None, 1))
    layer.kernel.assign([[3.0]])
    return layer


def test_weights_of_a_layer():
    layer = dense()
    assert slope(layer) == 3.0
    layer.kernel.assign([[5.0]])
    assert slope(layer) == 5.0


def test_weights_behind_a_function():
    layer = dense()

    def f(x):
        return layer(x)

    assert slope(f) == 3.0
    layer.kernel.assign([[5.0]])
    assert slope(f) == 5.0


def test_weights_after_a_training_step():
    model = keras.Sequential([keras.Input((1,)), dense()])
    model.compile(optimizer=keras.optimizers.SGD(0.1), loss="mse")
    before = slope(model)
    model.fit(np.ones((4, 1)), np.zeros((4, 1)), verbose=0)
    after = numpy64(model.layers[-1].kernel)[0, 0]
    assert before == 3.0 and after != 3.0
    np.testing.assert_allclose(slope(model), after, rtol=1e-6)


class Holder:
    """Something that says nothing about what is in it."""

    def __init__(self, value):
        self.value = value


class Scaled(keras.Layer):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor
        self.held = Holder(1.0)

    def call(self, x):
        return x * self.factor * self.held.value


@dataclasses.dataclass(frozen=True)
class Map:
    weights: np.ndarray

    def __call__(self, x):
        return x * float(self.weights[0])


def test_attributes_of_layers_and_objects():
    layer = Scaled(2.0)
    assert slope(layer) == 2.0
    layer.factor = 3.0
    assert slope(layer) == 3.0
    layer.held.value = 2.0
    assert slope(layer) == 6.0
    frozen = Map(np.array([2.0]))
    assert slope(frozen) == 2.0
    frozen.weights[0] = 4.0
    assert slope(frozen) == 4.0
    holder = Holder(2.0)

    def method(x):
        return holder.value * x

    assert slope(method) == 2.0
    holder.value = 7.0
    assert slope(method) == 7.0


def test_arrays_and_names(monkeypatch):
    array = np.array([2.0], "float32")
    values = [2.0]
    number = 2.0

    def f(x):
        return x * ops.convert_to_tensor(array)

    def g(x):
        return x * values[0]

    def h(x):
        return x * number

    def k(x):
        return x * FACTOR

    def defaults(x, factor=values):
        return x * factor[0]

    assert [slope(a) for a in (f, g, h, k)] == [2.0, 2.0, 2.0, 1.0]
    assert slope(defaults) == 2.0
    array[0] = values[0] = number = 3.0
    monkeypatch.setitem(globals(), "FACTOR", 4.0)
    assert [slope(a) for a in (f, g, h, k)] == [3.0, 3.0, 3.0, 4.0]
    assert slope(defaults) == 3.0


def test_an_equal_map_traced_again_after_its_twin_has_changed():
    def maker():
        array = np.array([2.0], "float32")
        return array, lambda x: x * ops.convert_to_tensor(array)

    first, f = maker()
    assert slope(f) == 2.0
    _, g = maker()
    first[0] = 9.0
    # Known under the same description, but not for this many points.
    assert slope(g, n=5) == 2.0
    assert slope(f, n=5) == 9.0


def test_state_of_keras_objects():
    optimizer = keras.optimizers.SGD(2.0)

    def f(x):
        return x * optimizer.learning_rate

    assert slope(f) == 2.0
    optimizer.learning_rate = 3.0
    assert slope(f) == 3.0


def test_values_of_a_surrounding_scope():
    layer = dense()
    holder = Holder(layer)
    for f in (layer, lambda x: layer(x), lambda x: holder.value(x)):
        scope = keras.StatelessScope(
            [(layer.kernel, tensor([[4.0]], "float32"))]
        )
        with scope:
            assert slope(f) == 4.0
        assert slope(f) == 3.0


@pytest.mark.skipif(
    keras.config.backend() == "torch", reason="nothing is compiled"
)
def test_compiled_once_while_nothing_changes(monkeypatch):
    count = []
    compiled = _backend.compiled
    monkeypatch.setattr(
        _backend,
        "compiled",
        lambda f, **kwargs: count.append(0) or compiled(f, **kwargs),
    )
    x = points(3, 2)
    inputs = keras.Input((2,))
    gated = layers.Gate(name="gate")(keras.layers.Dense(3)(inputs))
    functional = keras.Model(inputs, gated)
    attention = layers.GatedAttention(1, 2)
    context = tensor(points(3, 4, 5))
    weights = tensor(points(2, 3))
    maps = [
        keras.Sequential(
            [
                keras.layers.Dense(4, activation="gelu"),
                keras.layers.LayerNormalization(),
                keras.layers.Dropout(0.5),
            ]
        ),
        functional,
        lambda x: attention(x[:, None, :], context)[:, 0],
        lambda x: ops.tanh(ops.einsum("ni,id->nd", x, weights)),
    ]
    for f in maps:
        first = geometry.jacobian(f, x)
        before = len(count)
        for variable in getattr(f, "trainable_variables", []):
            variable.assign(2.0 * variable)
        again = geometry.jacobian(f, x)
        assert len(count) == before
        assert first.shape == again.shape
    # The same code and constants, written as a new function each time.
    before = len(count)
    for _ in range(3):
        geometry.jacobian(lambda x: ops.exp(x) * weights[:, 0], x)
    assert len(count) == before + 1
