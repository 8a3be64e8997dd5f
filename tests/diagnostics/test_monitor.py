"""What GateMonitor logs, warns of and does while a model is fitted."""

import csv
import json
import sys

import keras
import numpy as np
import pytest

from keras_gating.diagnostics import GateMonitor
from keras_gating.layers import Gate
from tests.utils import normal
from tests.utils import to_numpy
from tests.worlds import World

BACKEND = keras.config.backend()
X = normal(12, 4)
# Eight batches an epoch would do nothing that these three do not.
FIT = {"batch_size": 4, "verbose": 0, "shuffle": False}


def two_gates(rate=0.5, **arguments):
    """A compiled model of a sigmoid gate and one that knows no bounds."""
    inputs = keras.Input((4,))
    first = Gate(name="first", **arguments)
    second = Gate(name="second", activation="tanh", bias_initializer="ones")
    outputs = second(first(inputs))
    model = keras.Model(inputs, outputs)
    model.compile(keras.optimizers.SGD(rate), "mse")
    return model


def shut(rate=0.0):
    """The same, the first gate shut at any number."""
    return two_gates(rate, bias_initializer=keras.initializers.Constant(-50.0))


def fit(model, monitor, epochs=2, *others):
    return model.fit(
        X, 1.0 - X, epochs=epochs, callbacks=[monitor, *others], **FIT
    ).history


class Weights(keras.callbacks.Callback):
    """Copies of all weights after each batch, by number of batches."""

    def __init__(self):
        super().__init__()
        self.seen = {}

    def on_train_batch_end(self, batch, logs=None):
        self.seen[len(self.seen) + 1] = [
            to_numpy(weight) for weight in self.model.weights
        ]


def statistics(weights, x, low=0.01, high=0.99):
    """What is to be logged for `two_gates` with these weights, from NumPy."""
    first_kernel, first_bias, second_kernel, second_bias = map(
        np.float64, weights
    )
    first = 1.0 / (1.0 + np.exp(-(x @ first_kernel + first_bias)))
    second = np.tanh((x * first) @ second_kernel + second_bias)
    return {
        "gate/first/mean": first.mean(),
        "gate/first/spread": first.std(),
        "gate/first/share_low": (first < low).mean(),
        "gate/first/share_high": (first > high).mean(),
        "gate/second/mean": second.mean(),
        "gate/second/spread": second.std(),
        "gate/second/share_negative": (second < 0.0).mean(),
    }


def test_logs_are_those_of_the_weights_at_that_moment(tmp_path):
    model = two_gates(kernel_initializer="glorot_uniform")
    # What was compiled before must not be in the way.
    model.predict(X, verbose=0)
    data = normal(7, 4, seed=1)
    thresholds = {"low": 0.45, "high": 0.55}
    monitor = GateMonitor(data, update_freq=2, batch_size=3, **thresholds)
    # The weights are copied after the look, which has to ask for them itself.
    weights = Weights()
    log = tmp_path / "log.csv"
    history = fit(model, monitor, 2, weights, keras.callbacks.CSVLogger(log))
    assert monitor.looks == [2, 3, 4, 6]
    expected = {
        step: statistics(own, np.float64(data), **thresholds)
        for step, own in weights.seen.items()
    }
    assert set(monitor.history) == set(expected[2])
    for key, found in monitor.history.items():
        wanted = [expected[step][key] for step in monitor.looks]
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
        assert history[key] == [found[1], found[3]]
    # The gates moved, also between two looks of one epoch.
    assert len(set(monitor.history["gate/first/mean"])) == 4
    assert 0.0 < monitor.history["gate/first/share_low"][-1] < 1.0
    with open(log) as file:
        rows = list(csv.DictReader(file))
    np.testing.assert_allclose(
        [float(row["gate/second/mean"]) for row in rows],
        history["gate/second/mean"],
    )


def test_statistics_are_chosen_and_runs_continue():
    model = two_gates()
    monitor = GateMonitor(X, statistics=["spread"])
    history = fit(model, monitor, epochs=1)
    assert set(history) == {"loss", "gate/first/spread", "gate/second/spread"}
    again = fit(model, monitor, epochs=2)
    assert monitor.looks == [3, 6, 9]
    assert monitor.history["gate/first/spread"] == [
        *history["gate/first/spread"],
        *again["gate/first/spread"],
    ]


def test_a_saturated_gate_warns_once_and_stops_the_training():
    model = shut()
    monitor = GateMonitor(X, action="stop", patience=2)
    with pytest.warns(RuntimeWarning) as caught:
        history = fit(model, monitor, epochs=5)
    (message,) = [
        str(warning.message)
        for warning in caught
        if warning.category is RuntimeWarning
    ]
    for words in (
        "'first' is saturated after 3 batches",
        "100.0% of its values are below 0.01 and 0.0% above 0.99",
        "Lower the learning rate",
        "normalize",
        "initializer",
        "activation",
    ):
        assert words in message
    assert len(history["loss"]) == 2
    # Another training is told again, and may be stopped in an epoch.
    monitor = GateMonitor(X, action="stop", update_freq=1)
    with pytest.warns(RuntimeWarning, match="after 1 batches"):
        fit(model, monitor, epochs=5)
    assert monitor.looks == [1]


def test_a_gate_that_is_not_finite_warns_and_stops_the_training():
    model = two_gates(0.0)
    model.get_layer("first").weights[1].assign([np.nan, 0.0, 0.0, 0.0])
    with pytest.warns(RuntimeWarning, match="100.0% of its values"):
        history = fit(model, GateMonitor(X, action="stop"), epochs=5)
    assert len(history["loss"]) == 1


def test_patience_is_about_looks_in_a_row():
    model = shut()

    def open_in_the_second_epoch(epoch, logs):
        bias = 0.0 if epoch == 1 else -50.0
        model.get_layer("first").projection.bias.assign([bias] * 4)

    others = keras.callbacks.LambdaCallback(
        on_epoch_begin=open_in_the_second_epoch
    )
    monitor = GateMonitor(X, action="stop", patience=2)
    with pytest.warns(RuntimeWarning, match="saturated"):
        history = fit(model, monitor, 5, others)
    assert history["gate/first/share_low"] == [1.0, 0.0, 1.0, 1.0]


def test_a_gate_saturates_from_the_given_share_on():
    # Half of the features shut, the other half wide open, one in between.
    bias = np.array([-50.0, -50.0, 50.0, 0.0])
    model = two_gates(
        0.0, bias_initializer=lambda shape, dtype: keras.ops.array(bias, dtype)
    )
    with pytest.warns(RuntimeWarning, match="50.0% .* and 25.0% above"):
        fit(model, GateMonitor(X, saturation=0.75), epochs=1)
    # Warnings are errors here.
    fit(model, GateMonitor(X, saturation=0.76), epochs=1)


def test_lowers_the_learning_rate():
    model = shut(rate=0.1)
    monitor = GateMonitor(X, action="reduce_lr", factor=0.5, min_lr=0.03)
    with pytest.warns(RuntimeWarning, match="saturated"):
        history = fit(model, monitor, epochs=3)
    np.testing.assert_allclose(
        history["learning_rate"], [0.1, 0.05, 0.03], rtol=1e-6
    )
    rate = to_numpy(model.optimizer.learning_rate)
    np.testing.assert_allclose(rate, 0.03, rtol=1e-6)


def test_lowers_the_learning_rate_between_two_batches():
    inputs = keras.Input((4,))
    gate = Gate(bias_initializer=keras.initializers.Constant(-50.0))
    model = keras.Model(inputs, keras.layers.Dense(1)(gate(inputs)))
    # The gradient of the last bias is 1, so each step is the learning rate.
    model.compile(keras.optimizers.SGD(0.1), lambda y, outputs: outputs)
    monitor = GateMonitor(
        X, update_freq=1, action="reduce_lr", factor=0.5, patience=2
    )
    weights = Weights()
    with pytest.warns(RuntimeWarning, match="saturated"):
        model.fit(X, X[:, :1], callbacks=[monitor, weights], **FIT)
    biases = [own[-1].item() for own in weights.seen.values()]
    np.testing.assert_allclose(biases, [-0.1, -0.2, -0.25], rtol=1e-6)


def test_a_schedule_cannot_be_lowered():
    schedule = keras.optimizers.schedules.ExponentialDecay(0.1, 10, 0.9)
    for optimizer in (
        keras.optimizers.SGD(schedule),
        keras.optimizers.SGD(lambda: 0.1),
        keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(schedule)),
    ):
        model = two_gates()
        model.compile(optimizer, "mse")
        monitor = GateMonitor(X, action="reduce_lr")
        with pytest.raises(ValueError, match="neither a schedule nor") as error:
            fit(model, monitor)
        assert type(optimizer).__name__ in str(error.value)


def test_batches_of_a_generator_are_kept():
    model = two_gates(rate=0.0)
    generator = ((X[i : i + 3], None) for i in range(0, 12, 3))
    monitor = GateMonitor(generator, steps=3)
    history = fit(model, monitor, epochs=2)
    expected = statistics(
        [to_numpy(weight) for weight in model.weights], np.float64(X[:9])
    )
    for key, value in expected.items():
        np.testing.assert_allclose(history[key], [value] * 2, atol=1e-6)


@pytest.mark.parametrize(
    ("words", "data", "steps"),
    [
        ("NoneType", None, None),
        ("empty", np.zeros((0, 4)), None),
        ("ended early.*0 batches, steps=1", iter([]), 1),
        ("ended early.*2 batches, steps=3", iter([X, X]), 3),
        ("pass `steps`", iter([X]), None),
        ("steps=0", X, 0),
    ],
)
def test_refuses_bad_data(words, data, steps):
    with pytest.raises(ValueError, match=words):
        GateMonitor(data, steps=steps)


def test_refuses_a_model_without_gates():
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(4)])
    model.compile("sgd", "mse")
    with pytest.raises(ValueError, match="no gates.*Sequential"):
        fit(model, GateMonitor(X))


@pytest.mark.parametrize(
    "arguments",
    [
        {"log_dir": 5},
        {"log_dir": "gs://bucket/logs"},
        {"update_freq": 0},
        {"update_freq": "batch"},
        {"update_freq": True},
        {"batch_size": 0},
        {"statistics": "mean"},
        {"statistics": ["median"]},
        {"low": 0.0},
        {"low": 0.9, "high": 0.1},
        {"saturation": 0.0},
        {"saturation": 1.5},
        {"action": "halt"},
        {"action": "stop", "patience": 0},
        {"action": "reduce_lr", "factor": 1.0},
        {"action": "reduce_lr", "factor": 0.0},
        {"action": "reduce_lr", "min_lr": -1.0},
        # These have no effect.
        {"patience": 2},
        {"action": "stop", "factor": 0.5},
        {"action": "stop", "min_lr": 0.1},
    ],
)
def test_refuses_bad_arguments(arguments):
    name, value = list(arguments.items())[-1]
    with pytest.raises(ValueError) as error:
        GateMonitor(X, **arguments)
    assert f"`{name}`" in str(error.value)
    quoted = value[0] if name == "statistics" and value != "mean" else value
    assert f"{name}={quoted!r}" in str(error.value)


def test_says_how_to_install_tensorboard(monkeypatch, tmp_path):
    class Missing:
        @staticmethod
        def find_spec(name, path=None, target=None):
            if name.partition(".")[0] == "tensorboard":
                raise ModuleNotFoundError(name="tensorboard")

    monkeypatch.setattr(sys, "meta_path", [Missing, *sys.meta_path])
    for name in [n for n in sys.modules if n.startswith("tensorboard")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ImportError, match=r"keras-gating\[tensorboard\]"):
        GateMonitor(X, log_dir=tmp_path)


_PROGRAM = """
import json, sys
import keras
import numpy as np
from keras_gating import diagnostics, layers

inputs = keras.Input((4,))
model = keras.Model(inputs, layers.Gate(name="g")(inputs))
model.compile("sgd", "mse")
x = np.random.default_rng(0).normal(size=(12, 4)).astype("float32")
monitor = diagnostics.GateMonitor(x, log_dir="logs/gates", update_freq=2)
model.fit(x, 1 - x, batch_size=4, epochs=2, verbose=0, callbacks=[monitor])
loaded = "tensorflow" in sys.modules
kernel, bias = (np.asarray(keras.ops.convert_to_numpy(w), "float64")
                for w in model.weights)

from tensorboard.backend.event_processing import event_accumulator
events = event_accumulator.EventAccumulator("logs/gates")
events.Reload()
(last,) = events.Histograms("gate/g")[-1:]
print(json.dumps({
    "tensorflow": loaded,
    "looks": monitor.looks,
    "history": monitor.history,
    "events": {
        tag: [(event.step, event.value) for event in events.Scalars(tag)]
        for tag in events.Tags()["scalars"]
    },
    "gates": (1 / (1 + np.exp(-(x @ kernel + bias)))).ravel().tolist(),
    "histogram": {
        "step": last.step,
        "limits": last.histogram_value.bucket_limit,
        "counts": last.histogram_value.bucket,
        "sums": [last.histogram_value.num, last.histogram_value.sum,
                 last.histogram_value.sum_squares],
    },
}))
"""


def test_event_files_are_written_without_tensorflow(tmp_path):
    pytest.importorskip("tensorboard")
    others = {"jax", "tensorflow", "torch"} - {BACKEND}
    world = World(tmp_path, hidden=others)
    process = world.run("-c", _PROGRAM, KERAS_BACKEND=BACKEND)
    assert process.returncode == 0, process.stderr
    seen = json.loads(process.stdout.splitlines()[-1])
    assert seen["tensorflow"] == (BACKEND == "tensorflow")
    assert seen["looks"] == [2, 3, 4, 6]
    assert set(seen["events"]) == {
        f"gate/g/{name}"
        for name in ("mean", "spread", "share_low", "share_high")
    }
    for tag, found in seen["events"].items():
        steps, values = zip(*found)
        assert list(steps) == seen["looks"]
        np.testing.assert_allclose(values, seen["history"][tag], rtol=1e-6)
    gates = np.array(seen["gates"])
    last = seen["history"]["gate/g/mean"][-1]
    np.testing.assert_allclose(last, gates.mean(), rtol=1e-6)
    histogram = seen["histogram"]
    assert histogram["step"] == 6
    edges = [0.0, *histogram["limits"]]
    counts, _ = np.histogram(gates, edges)
    np.testing.assert_array_equal(histogram["counts"], counts)
    np.testing.assert_allclose(
        histogram["sums"], [48, gates.sum(), np.square(gates).sum()], rtol=1e-5
    )


def test_logs_are_of_the_gates_of_the_last_look():
    monitor = GateMonitor(X, statistics=["mean"])
    fit(two_gates(), monitor, 1)
    inputs = keras.Input((4,))
    other = keras.Model(inputs, Gate(name="third")(inputs))
    other.compile("sgd", "mse")
    assert sorted(fit(other, monitor, 1)) == ["gate/third/mean", "loss"]
