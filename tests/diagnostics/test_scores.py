"""Attention probabilities against NumPy, and outputs that stay the same."""

import functools
import threading

import keras
import numpy as np
import pytest

from keras_gating import functional
from keras_gating.diagnostics import attention_sink
from keras_gating.diagnostics import record_gates
from keras_gating.diagnostics.attention import watch_attention
from keras_gating.layers import GatedAttention
from tests.diagnostics.test_recording import assert_clean
from tests.utils import assert_close
from tests.utils import random_weights
from tests.utils import to_numpy

B, T, HEADS, SIZE = 3, 5, 4, 3


def layer(kind, **arguments):
    if kind == "multi":
        return keras.layers.MultiHeadAttention(HEADS, SIZE, **arguments)
    if kind == "grouped":
        return keras.layers.GroupQueryAttention(SIZE, HEADS, 2, **arguments)
    return GatedAttention(HEADS, SIZE, num_key_value_heads=2, **arguments)


def kernels(layer):
    """Query and key projections, key heads repeated."""
    names = ("query_dense", "key_dense")
    made = []
    for name in names:
        dense = getattr(layer, name, None) or getattr(layer, f"_{name}")
        kernel, bias = (np.float64(to_numpy(w)) for w in dense.weights)
        repeats = HEADS // kernel.shape[1]
        made.append(
            [np.repeat(kernel, repeats, 1), np.repeat(bias, repeats, 0)]
        )
    return made


def by_hand(layer, x, visible):
    """Probabilities `(B, heads, T, S)`; `visible` is `(B, T, S)`."""
    query, key = (
        np.einsum("btd,dhf->bhtf", np.float64(x), kernel) + bias[:, None]
        for kernel, bias in kernels(layer)
    )
    scores = np.einsum("bhtf,bhsf->bhts", query, key) / np.sqrt(SIZE)
    weights = np.exp(scores) * visible[:, None]
    total = weights.sum(-1, keepdims=True)
    return weights / np.where(total > 0, total, 1.0)


@pytest.mark.parametrize("dropout", [0.0, 0.5])
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("kind", ["gated", "multi", "grouped"])
def test_probabilities_are_those_of_numpy(kind, is_causal, dropout):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(B, T, 6)).astype("float32")
    attention = layer(kind, dropout=dropout, name="attention")
    attention(x, x)
    random_weights(attention)
    mask = rng.uniform(size=(B, T, T)) < 0.7
    mask[1, 2] = False  # a query that sees nothing
    for given in (None, mask):
        arguments = {"attention_mask": given, "use_causal_mask": is_causal}
        before = to_numpy(attention(x, x, **arguments))
        with record_gates(attention, scores=True) as record:
            during = to_numpy(attention(x, x, **arguments))
        assert_close(during, before, 1e-6)
        visible = np.ones((B, T, T), "bool") if given is None else given
        if is_causal:
            visible = visible & np.tri(T, dtype="bool")
        (scores,) = record.scores["attention"].calls
        assert_close(scores, by_hand(attention, x, visible), 1e-5)
        assert scores.dtype == np.float32
        assert len(record) == (kind == "gated")
    assert_clean(attention)


def test_padding_and_sinks_in_a_model():
    tokens = np.array([[3, 1, 4, 1, 5], [2, 6, 5, 0, 0], [0, 0, 0, 0, 0]])
    inputs = keras.Input((T,), dtype="int32")
    x = keras.layers.Embedding(9, 6, mask_zero=True)(inputs)
    embed = keras.Model(inputs, x)
    first = layer("gated", masked_rows="uniform", name="first")
    second = layer("multi", name="second")
    x = first(x, x, use_causal_mask=True)
    model = random_weights(keras.Model(inputs, second(x, x)))
    before = to_numpy(model(tokens))
    with record_gates(model, scores=True) as record:
        after = to_numpy(model(tokens))
        model(tokens[:1])
    np.testing.assert_array_equal(before, after)
    assert list(record.scores) == ["first", "second"]
    real = tokens != 0
    visible = real[:, :, None] & real[:, None, :] & np.tri(T, dtype="bool")
    expected = by_hand(first, to_numpy(embed(tokens)), visible)
    scores, again = record.scores["first"].calls
    assert_close(scores, expected, 1e-5)
    assert_close(again, expected[:1], 1e-5)
    rows = record.scores["second"].calls[0].sum(-1)
    # Two forms of a layer agree on which rows there are.
    np.testing.assert_allclose(rows, np.repeat(real[:, None], HEADS, 1), 1e-5)
    sinks = attention_sink(record)
    # The first sequence was seen twice; padded queries do not count.
    shares = [expected[0, :, :, 0]] * 2 + [expected[1, :, :3, 0]]
    shares = np.concatenate(shares, axis=-1)
    assert_close(sinks["first"], shares.mean(-1), 1e-5)
    assert_clean(model)


def test_attention_over_several_axes():
    x = np.random.default_rng(0).normal(size=(2, 3, 4, 6)).astype("float32")
    inputs = keras.Input((3, 4, 6))
    names = {"multi": (1, 2), "gated": (2,)}
    y = inputs
    for kind, axes in names.items():
        y = layer(kind, attention_axes=axes, name=kind)(y, y)
    model = random_weights(keras.Model(inputs, y))
    with record_gates(model, scores=True) as record:
        model(x)
    for kind, shape, merged in (
        ("multi", (2, HEADS, 3, 4, 3, 4), (2, HEADS, 12, 12)),
        ("gated", (2, 3, HEADS, 4, 4), (6, HEADS, 4, 4)),
    ):
        own = record.scores[kind]
        assert own.calls[0].shape == shape
        (matrix,) = own.matrices()
        assert matrix.shape == merged
        np.testing.assert_allclose(matrix.sum(-1), 1.0, rtol=1e-5)
    assert attention_sink(record)["gated"].shape == (HEADS,)
    # The same as what the layer returns.
    query = to_numpy(x)
    _, returned = model.get_layer("multi")(
        query, query, return_attention_scores=True
    )
    assert_close(record.scores["multi"].calls[0], to_numpy(returned), 1e-5)


def test_half_precision_is_recorded_in_float32():
    attention = layer("multi", dtype="float16", name="attention")
    x = np.random.default_rng(0).normal(size=(1, 300, 6)).astype("float16")
    attention(x, x)
    with record_gates(attention, scores=True) as record:
        attention(x, x)
    (scores,) = record.scores["attention"].calls
    # Shares of 1/300 rounded to float16 would be off by 1e-4.
    np.testing.assert_allclose(scores.sum(-1), 1.0, rtol=1e-5)


class OwnScores(keras.layers.MultiHeadAttention):
    """Attends to the first key, and only there."""

    def _compute_attention(self, query, key, value, *args, **kwargs):
        batch, rows = query.shape[0], query.shape[1]
        scores = np.zeros((batch, HEADS, rows, rows), "float32")
        scores[..., 0] = 1.0
        scores = keras.ops.convert_to_tensor(scores)
        context = keras.ops.einsum("bhts,bshf->bthf", scores, value)
        return context, scores if kwargs.get("told", True) else None


class NoScores(OwnScores):
    def _compute_attention(self, query, key, value, *args, **kwargs):
        kwargs["told"] = False
        return super()._compute_attention(query, key, value, *args, **kwargs)


def test_layers_with_an_attention_of_their_own():
    x = np.random.default_rng(0).normal(size=(1, 3, 6)).astype("float32")
    own = OwnScores(HEADS, SIZE, name="own")
    own(x, x)
    with record_gates(own, scores=True) as record:
        own(x, x)
    np.testing.assert_array_equal(attention_sink(record)["own"], np.ones(HEADS))
    silent = NoScores(HEADS, SIZE, name="silent")
    silent(x, x)
    with pytest.raises(ValueError, match="gives no scores"):
        with record_gates(silent, scores=True):
            silent(x, x)
    assert_clean(silent)


def unchanged(method):
    """As many decorators are: `inspect` looks through it."""

    @functools.wraps(method)
    def call(*args, **kwargs):
        return method(*args, **kwargs)

    return call


class Renamed(keras.layers.MultiHeadAttention):
    """Half as sharp as Keras has it, under names of its own."""

    @unchanged
    def _compute_attention(self, q, k, v, mask=None, mode=None, told=False):
        q = functional.apply_gate(q, q * 0.0, "sigmoid", owner=self)
        return super()._compute_attention(q, k, v, mask, mode, told)


class Same(Renamed):
    """The same for the flag by name."""

    @unchanged
    def _compute_attention(
        self, q, k, v, mask=None, mode=None, return_attention_scores=False
    ):
        flag = return_attention_scores
        return super()._compute_attention(q, k, v, mask, mode, flag)


class Anonymous(Renamed):
    """The same without any names."""

    def _compute_attention(self, *args, **kwargs):
        return super()._compute_attention(*args, **kwargs)


@pytest.mark.parametrize("kind", [Renamed, Same, Anonymous])
def test_overrides_may_name_and_decorate_as_they_like(kind):
    x = np.random.default_rng(0).normal(size=(1, 3, 6)).astype("float32")
    own = kind(HEADS, SIZE, name="own")
    own(x, x)
    random_weights(own)
    mask = np.array([[[1, 1, 0], [0, 0, 0], [1, 1, 1]]], "bool")
    before = to_numpy(own(x, x, attention_mask=mask))
    with record_gates(own, scores=True) as record:
        after = to_numpy(own(x, x, attention_mask=mask))
    np.testing.assert_array_equal(before, after)
    for weight in own.query_dense.weights:
        weight.assign(weight * 0.5)
    (scores,) = record.scores["own"].calls
    assert_close(scores, by_hand(own, x, mask), 1e-5)
    # The gate was called twice, the second time for the scores alone.
    assert len(record["own"].calls) == 1
    assert_clean(own)


def test_contexts_nest_and_late_layers_are_errors():
    x = np.random.default_rng(0).normal(size=(1, 3, 6)).astype("float32")
    inputs = keras.Input((3, 6))
    attention = layer("gated", name="attention")
    model = keras.Model(inputs, attention(inputs, inputs))
    with record_gates(model, scores=True) as outer:
        with record_gates(attention, scores=True) as inner:
            model(x)
        model(x)
    assert len(inner.scores["attention"].calls) == 1
    assert len(outer.scores["attention"].calls) == 2
    np.testing.assert_array_equal(
        inner.scores["attention"].calls[0], outer.scores["attention"].calls[0]
    )
    assert_clean(model)

    class Late(keras.layers.Layer):
        def build(self, input_shape):
            self.attention = layer("multi")

        def call(self, x):
            return self.attention(x, x)

    late = Late()
    with pytest.raises(ValueError, match="too late"):
        with record_gates(late, scores=True):
            late(x)
    with record_gates(late, scores=True) as record:
        late(x)
    assert len(record.scores) == 1


def test_contexts_may_end_in_any_order():
    attention = layer("gated", name="attention")
    x = np.ones((1, 3, 6), "float32")
    attention(x, x)
    own = [watch_attention(attention, calls.append) for calls in ([], [])]
    own[0].__enter__()
    own[1].__enter__()
    own[0].__exit__(None, None, None)
    own[1].__exit__(None, None, None)
    assert_clean(attention)
    # A recording in another thread starts in this one, and outlasts it.
    entered, leave = threading.Event(), threading.Event()
    others = []

    def other():
        with record_gates(attention, scores=True) as record:
            others.append(record)
            attention(x, x)
            entered.set()
            leave.wait(60)
            attention(2.0 * x, x)
            attention(x, x)

    thread = threading.Thread(target=other)
    with record_gates(attention, scores=True) as record:
        thread.start()
        assert entered.wait(60)
        attention(x, x)
    leave.set()
    thread.join()
    assert_clean(attention)
    assert len(record.scores["attention"].calls) == 1
    assert len(others[0].scores["attention"].calls) == 3
    # One that someone has put there is there again.
    replaced = attention._compute_attention
    vars(attention)["_compute_attention"] = replaced
    with record_gates(attention, scores=True) as record:
        attention(x, x)
    assert len(record.scores["attention"].calls) == 1
    assert vars(attention).pop("_compute_attention") is replaced


def test_sinks_of_arrays():
    rng = np.random.default_rng(0)
    scores = rng.uniform(size=(2, 3, 4, 5))
    scores /= scores.sum(-1, keepdims=True)
    expected = scores[..., 0].mean(axis=(0, 2))
    np.testing.assert_allclose(attention_sink(scores), expected)
    np.testing.assert_allclose(
        attention_sink(scores, token=2, skip=1),
        scores[:, :, 1:, 2].mean(axis=(0, 2)),
    )
    scores[0, 1, 2] = 0.0  # a masked row
    rows = np.delete(scores[:, 1].reshape(8, 5), 2, axis=0)
    found = attention_sink([scores, scores])
    np.testing.assert_allclose(found[1], rows[:, 0].mean())
    np.testing.assert_allclose(found[[0, 2]], expected[[0, 2]])
    assert np.isnan(attention_sink(np.zeros((1, 1, 2, 2)))).all()


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"token": 5}, "token=5"),
        ({"token": -1}, "token=-1"),
        ({"skip": 4}, "skip=4"),
        ({"scores": np.ones((3, 4))}, r"scores.shape=\(3, 4\)"),
    ],
)
def test_bad_sinks(arguments, message):
    arguments = {"scores": np.ones((1, 2, 4, 5)), **arguments}
    with pytest.raises(ValueError, match=message):
        attention_sink(**arguments)


def test_a_record_without_scores():
    attention = layer("gated")
    x = np.ones((1, 3, 6), "float32")
    with record_gates(attention) as record:
        attention(x, x)
    with pytest.raises(ValueError, match="scores=True"):
        attention_sink(record)
    with pytest.raises(KeyError, match="Recorded: nothing"):
        record.scores["attention"]
