"""Blocks of rows give the numbers and gradients of the whole."""

import itertools

import numpy as np
import pytest

from keras_gating import _backend
from keras_gating import functional
from keras_gating.diagnostics import record_gates
from keras_gating.functional import quadratic
from keras_gating.functional import relative_position
from tests.gradients import gradients
from tests.layers.attention_unit.common import unit
from tests.marks import once
from tests.utils import assert_close
from tests.utils import normal
from tests.utils import random_weights
from tests.utils import tensor
from tests.utils import to_numpy

X = normal(2, 11, 6)
FORMS = {
    "relu2-t5": {"position": "t5"},
    "laplace": {"attention_activation": "laplace", "divisor": "length"},
    "softmax": {"attention_activation": "softmax"},
}
MASKS = {
    "full": {},
    "causal": {"use_causal_mask": True},
    "padding": {
        "mask": np.arange(11) < np.array([[11], [7]]),
        "use_causal_mask": True,
    },
    "pairs": {
        "attention_mask": np.random.default_rng(0).random((11, 11)) < 0.6
    },
}


EVERYWHERE = [("relu2-t5", "padding"), ("laplace", "pairs")]


@pytest.mark.parametrize(
    ("form", "masks"),
    [
        pytest.param(*pair, marks=() if pair in EVERYWHERE else once)
        for pair in itertools.product(FORMS, MASKS)
    ],
)
def test_gradients_are_those_of_the_whole(form, masks):
    call = {
        name: tensor(x) if isinstance(x, np.ndarray) else x
        for name, x in MASKS[masks].items()
    }
    results = []
    for block_size in (None, 4):
        layer = unit(X, **FORMS[form], block_size=block_size)
        output, (for_input,), for_weights = gradients(
            layer, [X], normal(*X.shape, seed=1), **call
        )
        results.append([output, for_input, *for_weights.values()])
    for actual, expected in zip(*reversed(results), strict=True):
        assert_close(actual, expected, 1e-5)


@once
@pytest.mark.parametrize("block_size", [1, 5, 6, 10, 11, 50])
def test_sizes_of_blocks(block_size):
    whole, blocks = unit(X, block_size=None), unit(X, block_size=block_size)
    call = {"use_causal_mask": True}
    assert_close(blocks(X, **call), whole(X, **call), 1e-5)


def test_compiled():
    layer = unit(X, block_size=4, position="t5")
    compiled = _backend.compiled(lambda x: layer(x, use_causal_mask=True))
    expected = layer(X, use_causal_mask=True)
    assert_close(compiled(tensor(X)), expected, 1e-5)


def test_training_step_compiled():
    import keras

    losses = []
    for block_size in (None, 4):
        layer = unit(X, block_size=block_size, position="t5", norm_first=True)
        model = keras.Sequential([keras.Input(X.shape[1:]), layer])
        random_weights(layer)
        jit = keras.backend.backend() != "torch"
        model.compile(keras.optimizers.SGD(0.1), "mse", jit_compile=jit)
        target = normal(*X.shape, seed=2)
        losses.append([model.train_on_batch(X, target) for _ in range(3)])
    assert losses[0][2] < losses[0][0]
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-5)


def test_automatic_blocks(monkeypatch):
    """Beyond length 2048, in blocks of at most 256."""
    sizes = []
    map_row_blocks = quadratic.map_row_blocks

    def record(function, rows, shared, block_size):
        sizes.append(block_size)
        return map_row_blocks(function, rows, shared, block_size)

    monkeypatch.setattr(quadratic, "map_row_blocks", record)
    layer = unit(X, expansion_factor=0.5)
    for length in (2048, 2049):
        layer(normal(1, length, 6))
    assert sizes == [256]


def rows_of_gates(layer, monkeypatch):
    """Collects the numbers of rows that gates of a unit are made for."""
    rows = []
    finished = layer._finished

    def record(context, source, *args, **kwargs):
        rows.append(source.shape[1])
        return finished(context, source, *args, **kwargs)

    monkeypatch.setattr(layer, "_finished", record)
    return rows


@pytest.mark.parametrize("norm_first", [False, True])
def test_gates_are_made_block_by_block(norm_first, monkeypatch):
    layer = unit(X, block_size=4, norm_first=norm_first)
    rows = rows_of_gates(layer, monkeypatch)
    layer(X)
    # Traced once by some backends.
    assert set(rows) == {4}


@pytest.mark.parametrize("reason", ["recorded", "dropout", "regularized"])
def test_who_looks_inside_gets_the_whole(reason, monkeypatch):
    import keras

    arguments = {"dropout": 0.5} if reason == "dropout" else {}
    layer = unit(X, block_size=4, **arguments)
    rows = rows_of_gates(layer, monkeypatch)
    whole = unit(X, block_size=None)
    whole.set_weights(layer.get_weights())
    expected = to_numpy(whole(X))
    if reason == "recorded":
        with record_gates(layer) as record:
            output = layer(X)
        (values,) = record.values()
        assert values.calls[0].shape == (2, 11, layer.hidden_dim)
        assert_close(output, expected, 1e-5)
    elif reason == "dropout":
        assert np.abs(to_numpy(layer(X, training=True)) - expected).max() > 1e-3
    else:
        layer.output_dense.activity_regularizer = keras.regularizers.L2(0.1)
        assert_close(layer(X), expected, 1e-5)
        assert len(layer.losses) == 1
    assert not rows


def test_automatic_blocks_equal_the_whole():
    x = normal(1, 2049, 6)
    whole = unit(x, block_size=None, position="t5")
    blocks = unit(x, position="t5")
    call = {"use_causal_mask": True}
    assert_close(to_numpy(blocks(x, **call)), whole(x, **call), 1e-5)


@pytest.mark.parametrize(
    ("form", "masks"), [("relu2-t5", "padding"), ("softmax", "pairs")]
)
def test_prefixes_are_the_whole(form, masks, monkeypatch):
    """Causal rows that leave later keys out lose nothing that they see."""
    call = {
        name: tensor(x) if isinstance(x, np.ndarray) else x
        for name, x in MASKS[masks].items()
    } | {"use_causal_mask": True}
    attend, taken = quadratic._attend_to_prefixes, []
    monkeypatch.setattr(
        quadratic,
        "_attend_to_prefixes",
        lambda *args: taken.append(args) or attend(*args),
    )
    results = []
    for shortest in (100, 4):
        assert not taken
        monkeypatch.setattr(quadratic, "SHORTEST_IN_PREFIXES", shortest)
        output, (for_input,), for_weights = gradients(
            unit(X, **FORMS[form]), [X], normal(*X.shape, seed=1), **call
        )
        results.append([output, for_input, *for_weights.values()])
    assert taken
    for actual, expected in zip(*reversed(results), strict=True):
        assert_close(actual, expected, 1e-5)


def test_long_causal_rows():
    """From some length on in prefixes, without being asked."""
    length = quadratic.SHORTEST_IN_PREFIXES + 77
    query, key, value = normal(3, 1, length, 4)
    table = normal(32)
    actual = functional.quadratic_attention(
        query, key, value, is_causal=True, position_bias=tensor(table)
    )
    position = np.arange(length)
    distance = position - position[:, None]
    bucket = functional.relative_position_bucket(distance, is_causal=True)
    scores = query[0] @ key[0].T / 2.0 + table[to_numpy(bucket)]
    weights = np.where(distance <= 0, np.maximum(scores, 0.0) ** 2, 0.0)
    expected = weights @ value[0] / (position[:, None] + 1)
    assert_close(actual[0], expected, 1e-5)


@pytest.mark.parametrize("is_causal", [False, True])
def test_bias_in_blocks_of_rows(is_causal, monkeypatch):
    """Of sizes that do not divide the rows, and with an offset."""
    table = tensor(normal(32))
    biases = []
    for many in (100, 4):
        monkeypatch.setattr(relative_position, "MANY_ROWS", many)
        biases.append(
            functional.relative_position_bias(table, 13, 29, 7, is_causal)
        )
    assert_close(biases[1], to_numpy(biases[0]), 1e-6)
