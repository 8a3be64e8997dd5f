"""Every kind of data that `fit` accepts gives the same statistics."""

import functools

import keras
import numpy as np
import pytest

from keras_gating import layers
from keras_gating.diagnostics import gate_statistics
from tests.utils import random_weights
from tests.utils import tensor

SIZE = 10
X = np.random.default_rng(0).normal(size=(SIZE, 3)).astype("float32")
Y = np.arange(SIZE)


@functools.cache
def model():
    inputs = keras.Input((3,), name="first")
    return random_weights(
        keras.Model(inputs, layers.GLU(2, name="glu")(inputs))
    )


@functools.cache
def expected():
    return gate_statistics(model(), X).as_dict()["glu"]


def assert_same(statistics):
    for name, value in expected().items():
        if name != "heads":
            assert statistics["glu"][name] == pytest.approx(value, abs=1e-6)


def parts(size=4):
    return [
        (X[start : start + size], Y[start : start + size])
        for start in range(0, SIZE, size)
    ]


class Batches(keras.utils.PyDataset):
    def __len__(self):
        return 3

    def __getitem__(self, index):
        return parts()[index]


class Endless(keras.utils.PyDataset):
    num_batches = None

    def __getitem__(self, index):
        return parts()[index % 3]


def dataset(repeats=1):
    tf = pytest.importorskip("tensorflow")
    return tf.data.Dataset.from_tensor_slices((X, Y)).batch(4).repeat(repeats)


def loader():
    torch = pytest.importorskip("torch")
    both = torch.utils.data.TensorDataset(torch.tensor(X), torch.tensor(Y))
    return torch.utils.data.DataLoader(both, batch_size=4)


def stream():
    """A loader without a length."""
    torch = pytest.importorskip("torch")

    class Samples(torch.utils.data.IterableDataset):
        def __iter__(self):
            return iter(zip(X, Y))

    return torch.utils.data.DataLoader(Samples(), batch_size=4)


def unknown():
    """A dataset that does not know its length."""
    return dataset().filter(lambda x, y: True)


@pytest.mark.parametrize(
    "data",
    [
        lambda: X,
        lambda: tensor(X),
        lambda: (X, Y),
        lambda: (X, Y, Y),
        Batches,
        dataset,
        unknown,
        loader,
        stream,
    ],
)
def test_kinds_of_data(data):
    assert_same(gate_statistics(model(), data(), batch_size=4))


@pytest.mark.parametrize(
    "data",
    [
        lambda: iter(parts()),
        lambda: (x for x, _ in parts()),
        lambda: dataset(repeats=-1),
        Endless,
    ],
)
def test_data_without_an_end_need_steps(data):
    assert_same(gate_statistics(model(), data(), steps=3))
    with pytest.raises(ValueError, match="pass `steps`.*steps=None"):
        gate_statistics(model(), data())


def test_steps_are_not_overrun():
    taken = iter(parts())
    statistics = gate_statistics(model(), taken, steps=2)
    assert statistics["glu"]["count"] == 8 * 2
    np.testing.assert_array_equal(next(taken)[1], Y[8:])
    few = gate_statistics(model(), X, batch_size=3, steps=2)
    assert few["glu"]["count"] == 6 * 2


@pytest.mark.parametrize(
    "data", [lambda: iter(parts()), lambda: X, unknown, Batches]
)
def test_data_that_end_early(data):
    with pytest.raises(ValueError, match="ended early.*3 batches, steps=4"):
        gate_statistics(model(), data(), batch_size=4, steps=4)


class Empty(Batches):
    def __len__(self):
        return 0


@pytest.mark.parametrize(
    "data",
    [
        lambda: X[:0],
        lambda: (X[:0], Y[:0]),
        lambda: dataset().take(0),
        lambda: unknown().take(0),
        Empty,
    ],
)
def test_empty_data(data):
    with pytest.raises(ValueError, match="empty"):
        gate_statistics(model(), data())


@pytest.mark.parametrize(
    "data, message",
    [
        (3.0, "must be.*Received: float"),
        ("text", "must be.*Received: str"),
        ((X, Y, Y, Y), "4 items"),
        ([X, X[:3]], "sizes"),
        (np.float32(3.0), "axis for the batch"),
        ({"first": "text"}, "must be.*Received: dict"),
        ([[1, 2], [3, 4]], r"`np.array\(data\)`. Received: a list of numbers"),
    ],
)
def test_what_is_no_data(data, message):
    with pytest.raises(ValueError, match=message):
        gate_statistics(model(), data)


@pytest.mark.parametrize("name", ["batch_size", "steps"])
def test_sizes_are_positive(name):
    with pytest.raises(ValueError, match=f"{name}=0"):
        gate_statistics(model(), X, **{name: 0})


def test_several_inputs():
    first, second = keras.Input((3,), name="a"), keras.Input((3,), name="b")
    both = keras.Model([first, second], layers.GLU(2)(first - second))
    both = random_weights(both)
    as_list = gate_statistics(both, ([X, 2 * X], Y)).as_dict()
    as_dict = gate_statistics(both, {"a": X, "b": 2 * X}).as_dict()
    assert as_list == as_dict
    swapped = gate_statistics(both, [2 * X, X]).as_dict()
    assert swapped != as_list


def test_progress_bar_counts_batches(capsys):
    gate_statistics(model(), X, batch_size=4, progress=True)
    assert "3/3" in capsys.readouterr().out
    gate_statistics(model(), X, batch_size=4)
    assert capsys.readouterr().out == ""


def test_dropout_is_off():
    inputs = keras.Input((3,))
    dropped = keras.layers.Dropout(0.9)(inputs)
    both = random_weights(keras.Model(inputs, layers.GLU(2)(dropped)))
    first, second = (gate_statistics(both, X).as_dict() for _ in range(2))
    assert first == second
