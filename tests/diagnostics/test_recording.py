"""Which gates are recorded, and what is left behind: nothing."""

import functools
import inspect
import threading

import keras
import numpy as np
import pytest

from keras_gating import functional
from keras_gating import geometry
from keras_gating import layers
from keras_gating.diagnostics import gate_statistics
from keras_gating.diagnostics import record_gates
from tests.diagnostics import models
from tests.utils import assert_close
from tests.utils import random_weights
from tests.utils import tensor
from tests.utils import to_numpy

METHODS = ("make_train_function", "make_test_function", "make_predict_function")


@functools.cache
def model():
    return models.model()


def assert_clean(recorded=None):
    """No hook of a recording is in place any more."""
    assert not set(METHODS) & set(vars(keras.Model))
    assert not getattr(functional.recording._state, "entries", ())
    for layer in recorded._flatten_layers() if recorded is not None else ():
        assert "_compute_attention" not in vars(layer)


def test_values_are_those_of_gates_by_hand():
    tokens = models.sequences()
    expected = models.gates_by_hand(model(), tokens)
    with record_gates(model()) as record:
        outputs = models.in_batches(model(), tokens)
    assert list(record) == list(models.PATHS)
    for path, gates in expected.items():
        assert_close(record[path].by_head, gates, 1e-5)
    gate = record["attention/gate"]
    # All there is: padding, in the shape of the layer.
    assert gate.calls[1].shape == (3, 5, models.HEADS, models.SIZE)
    np.testing.assert_array_equal(gate.masks[1], tokens[3:] != 0)
    assert gate.values.shape == ((tokens != 0).sum(), models.HEADS, models.SIZE)
    np.testing.assert_array_equal(np.asarray(gate), gate.values)
    assert gate.is_bounded and not record["swiglu"].is_bounded
    assert gate.layer is model().get_layer("attention").output_gate
    again = models.in_batches(model(), tokens)
    np.testing.assert_array_equal(outputs, again)
    assert_clean(model())
    with pytest.raises(KeyError, match="no such.*attention/gate, glu"):
        record["no such"]


def test_every_call_of_a_layer_is_kept():
    shared = layers.GLU(3, name="shared")
    inputs = keras.Input((3,))
    twice = random_weights(keras.Model(inputs, shared(shared(inputs))))
    x = np.random.default_rng(0).normal(size=(4, 3)).astype("float32")
    with record_gates(twice) as record:
        twice(x)
        twice(x[:1])
    calls = record["shared"].calls
    assert [len(call) for call in calls] == [4, 4, 1, 1]
    assert not np.allclose(calls[0], calls[1])
    np.testing.assert_allclose(calls[0][:1], calls[2], rtol=1e-5)
    assert len(record["shared"].values) == 10


class Nested(keras.Model):
    """Makes its layers late, gives two one name, and has a gate of its own."""

    def __init__(self):
        super().__init__(name="nested")
        self.first = keras.Sequential(
            [keras.layers.Dense(3), layers.GLU(3, name="same")]
        )
        self.others = [layers.Gate(name="same"), layers.Gate(name="same")]

    def build(self, input_shape):
        self.late = layers.SwiGLU(3, name="late")
        self.scale = self.add_weight(shape=(3,), initializer="ones", name="w")

    def call(self, inputs):
        x = self.late(self.first(inputs))
        for gate in self.others:
            x = gate(x)
        return functional.apply_gate(x, x * self.scale, "tanh", owner=self)


def test_subclassed_models_and_equal_paths():
    nested = Nested()
    x = np.random.default_rng(0).normal(size=(4, 2)).astype("float32")
    with record_gates(nested) as record:  # not even built
        nested(x)
    calls = {path: len(gate.calls) for path, gate in record.items()}
    assert len(calls) == 5 and set(calls.values()) == {1}
    owners = {id(gate.layer) for gate in record.values()}
    assert owners == {
        id(layer)
        for layer in (
            nested,
            nested.late,
            nested.first.layers[1],
            *nested.others,
        )
    }
    assert sum(path.endswith("same#2") for path in calls) == 1
    with record_gates(nested) as again:
        nested(x)
        nested(x)
    assert {path: len(gate.calls) for path, gate in again.items()} == {
        path: 2 for path in calls
    }
    assert_clean(nested)


def test_only_layers_of_the_model_and_all_contexts():
    first, second = layers.GLU(2, name="first"), layers.GLU(2, name="second")
    both = keras.Sequential([first, second])
    x = np.ones((3, 2), "float32")
    with record_gates(both) as outer, record_gates(second) as inner:
        both(x)
        with functional.record_into(None):
            both(x)
        layers.GLU(2)(x)
    assert {len(gate.calls) for gate in outer.values()} == {1}
    assert len(outer) == 2 and list(inner) == [second.path]
    with pytest.raises(ValueError, match="No gate of the model was called"):
        with record_gates(first):
            second(x)
    assert_clean(both)


def test_recordings_that_end_in_another_order():
    gate = layers.Gate(name="gate")
    x = np.ones((2, 3), "float32")
    gate(x)
    first, second = record_gates(gate), record_gates(gate)
    records = [context.__enter__() for context in (first, second)]
    gate(x)
    first.__exit__(None, None, None)
    gate(x)
    second.__exit__(None, None, None)
    gate(x)
    assert [len(record["gate"].calls) for record in records] == [1, 2]
    assert_clean(gate)


class Positions(keras.layers.Layer):
    """A gate with one value for each position, and no axis of features."""

    def __init__(self):
        super().__init__(name="positions")
        self.supports_masking = True

    def call(self, inputs, mask=None):
        logits = keras.ops.mean(inputs, axis=-1)
        return functional.apply_gate(
            inputs[..., 0], logits, mask=mask, owner=self
        )


def test_gates_of_layers_of_ones_own():
    own = Positions()
    x = np.random.default_rng(0).normal(size=(2, 3, 4)).astype("float32")
    mask = np.array([[1, 1, 1], [1, 0, 0]], "bool")
    with record_gates(own) as record:
        own(x, mask=mask)
    gate = record["positions"]
    expected = models.sigmoid(np.float64(x).mean(axis=-1))[mask]
    np.testing.assert_allclose(gate.values, expected, rtol=1e-5)
    assert gate.by_head.shape == (4, 1, 1)


def test_a_model_without_gates():
    plain = keras.Sequential([keras.Input((2,)), keras.layers.Dense(2)])
    with pytest.raises(ValueError, match="no gates"):
        with record_gates(plain, scores=True):
            raise AssertionError("too late")

    class Own(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = keras.layers.Dense(2)

        def call(self, inputs):
            return self.dense(inputs)

    own = Own()
    # Whether it has gates shows only when it is called.
    with pytest.raises(ValueError, match="no gates"):
        with record_gates(own):
            own(np.ones((2, 2)))
    off = layers.GatedAttention(1, 2, use_gate=False)
    with pytest.raises(ValueError, match="no gates"):
        with record_gates(off):
            raise AssertionError("too late")
    unbuilt = layers.GatedFeedForward(4)
    with record_gates(unbuilt) as record:
        unbuilt(np.ones((2, 3)))
    assert len(record) == 1


def test_nothing_is_left_after_an_exception():
    x = np.ones((1, 4, 6), "float32")
    attention = layers.GatedAttention(2, 3, name="attention")
    attention(x, x)
    with pytest.raises(RuntimeError, match="of the caller"):
        with record_gates(attention, scores=True) as record:
            attention(x, x)
            raise RuntimeError("of the caller")
    assert len(record) == len(record.scores) == 1
    assert_clean(attention)


def test_curvature_is_measured_unseen():
    layer = layers.GLU(3, name="glu")
    points = np.random.default_rng(0).normal(size=(4, 2)).astype("float32")
    with record_gates(layer) as record:
        layer(points)
        geometry.gaussian_curvature(layer, points)
    assert len(record["glu"].calls) == 1


def compiled(function):
    """What a user would compile a function with."""
    backend = keras.config.backend()
    if backend == "jax":
        import jax

        return jax.jit(function)
    if backend == "tensorflow":
        import tensorflow as tf

        return tf.function(function)
    import torch

    return torch.compile(function, backend="eager", fullgraph=True)


def test_traced_calls_are_errors():
    layer = layers.GLU(3, name="glu")
    x = tensor(np.ones((2, 3), "float32"))
    layer(x)
    traced = compiled(lambda x: layer(x))
    with pytest.raises(Exception, match="eager calls only"):
        with record_gates(layer):
            traced(x)
    assert_clean(layer)
    # Nothing is wrong with it afterwards, nor with a recording before it.
    np.testing.assert_allclose(to_numpy(traced(x)), to_numpy(layer(x)), 1e-6)
    with record_gates(layer) as record:
        layer(x)
    assert len(record["glu"].calls) == 1
    # What was compiled before is noticed.
    with pytest.raises(Exception, match="No gate of the model|eager calls"):
        with record_gates(layer):
            traced(x)
    assert_clean(layer)


def test_only_recordings_guard_the_steps_of_models():
    layer = layers.GLU(3, name="glu")
    x = np.ones((4, 2), "float32")
    layer(x)
    seen = []

    def batches():
        seen.append(set(METHODS) & set(vars(keras.Model)))
        yield x

    # It calls the layer itself: no step of a model can get in between.
    gate_statistics(layer, batches(), steps=1, progress=False)
    assert seen == [set()]
    before = {name: getattr(keras.Model, name) for name in METHODS}
    with record_gates(layer):
        for name, method in before.items():
            guarded = getattr(keras.Model, name)
            assert guarded is not method
            assert inspect.signature(guarded) == inspect.signature(method)
            assert guarded.__qualname__ == method.__qualname__
        layer(x)
    assert_clean(layer)


class Callback(keras.callbacks.Callback):
    """Records from within a compiled `fit`."""

    def __init__(self, x):
        super().__init__()
        self.x = x
        self.means = []

    def on_train_batch_end(self, batch, logs=None):
        with record_gates(self.model) as record:
            self.model(self.x)
        (gate,) = record.values()
        self.means.append(gate.values.mean())


def without_compiler(monkeypatch):
    """On torch: quick, and no compiler of C++ is needed."""
    if keras.config.backend() == "torch":
        import torch

        monkeypatch.setattr(torch, "compile", lambda function: function)


@functools.cache
def fitted():
    inner = layers.GLU(1, name="glu")
    outer = keras.Sequential([keras.Input((3,)), inner], name="outer")
    random_weights(outer)
    outer.compile(
        keras.optimizers.SGD(0.5), "mse", jit_compile=True, run_eagerly=False
    )
    return outer, inner


class InnerCallback(keras.callbacks.Callback):
    """Records a part of the model that is fitted."""

    def __init__(self, inner, x):
        super().__init__()
        self.inner = inner
        self.x = x
        self.records = []

    def on_train_batch_end(self, batch, logs=None):
        if keras.config.backend() == "jax":
            for observe in (
                lambda: record_gates(self.inner).__enter__(),
                lambda: gate_statistics(self.inner, self.x, progress=False),
            ):
                with pytest.raises(ValueError, match="jax_state_sync.*2 of"):
                    observe()
            assert_clean(self.inner)
            self.model.jax_state_sync()
        with record_gates(self.inner) as record:
            self.inner(self.x)
        self.records.append(record[self.inner.path].values)


@pytest.mark.filterwarnings("ignore:.*torch.compile.*")
def test_parts_of_a_model_that_is_fitted(monkeypatch):
    outer, inner = fitted()
    without_compiler(monkeypatch)
    x, y = np.ones((4, 3), "float32"), np.zeros((4, 1), "float32")
    callback = InnerCallback(inner, x)
    outer.fit(x, y, batch_size=2, verbose=0, callbacks=[callback])
    before, after = callback.records
    assert not np.allclose(before, after)
    with record_gates(inner) as record:
        outer(x)
    np.testing.assert_array_equal(record[inner.path].values, after)


@pytest.mark.filterwarnings("ignore:.*torch.compile.*")
def test_compiled_steps_are_errors(monkeypatch):
    outer, inner = fitted()
    without_compiler(monkeypatch)
    x, y = np.ones((4, 3), "float32"), np.zeros((4, 1), "float32")
    callback = Callback(x)
    outer.fit(x, y, batch_size=2, verbose=0, callbacks=[callback])
    # Of the weights of each step.
    assert len(callback.means) == 2 and callback.means[0] != callback.means[1]
    outer.predict(x, verbose=0)
    before = [to_numpy(weight) for weight in outer.weights]
    # They have been traced: nothing but the context can notice them now.
    for call in (
        lambda: outer.fit(x, y, verbose=0),
        lambda: outer.evaluate(x, y, verbose=0),
        lambda: outer.predict(x, verbose=0),
        lambda: outer.train_on_batch(x, y),
    ):
        for recorded in (outer, inner):
            with pytest.raises(ValueError, match="compiled .* step of 'outer'"):
                with record_gates(recorded):
                    call()
            assert_clean(outer)
    for weight, old in zip(outer.weights, before):
        np.testing.assert_array_equal(to_numpy(weight), old)
    with record_gates(inner) as record:
        # What happens in another thread is none of its business.
        thread = threading.Thread(target=outer.predict, args=(x, None, 0))
        thread.start()
        thread.join()
        inner(x)
    assert len(record[inner.path].calls) == 1
    other = layers.GLU(2, name="other")
    with record_gates(other) as record:
        outer.predict(x, verbose=0)  # another model may do as it likes
        other(x)
    assert list(record) == ["other"]
    outer.predict(x, verbose=0)
    outer.compile("sgd", "mse", run_eagerly=True)
    with record_gates(outer) as record:
        outer.fit(x, y, batch_size=2, verbose=0)
    assert len(record[inner.path].calls) == 2
    assert_clean(outer)
