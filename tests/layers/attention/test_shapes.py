"""Shapes of attention, symbolic and eager, and the configuration."""

import keras
import numpy as np
import pytest

from keras_gating.layers import GatedAttention
from tests.layers.attention.common import attention
from tests.layers.attention.common import gated_and_ungated
from tests.utils import assert_close
from tests.utils import normal
from tests.utils import to_numpy

# B = 2, T = 5, S = 7, widths 6, 9, 10, Dk = 4, Dv = 8, N = 3: all distinct.
RANK3 = ((2, 5, 6), (2, 7, 9), (2, 7, 10))
RANK4 = ((2, 13, 5, 6), (2, 13, 7, 9), (2, 13, 7, 10))
OPTIONS = {
    "plain": {},
    "ungated": {"use_gate": False},
    "output-int": {"output_shape": 11},
    "output-tuple": {"output_shape": (11, 12)},
    "split": {"gate_source": "split"},
    "headwise": {"gate_granularity": "headwise"},
    "shared": {"gate_granularity": "shared"},
    "context": {"gate_source": "query_context"},
    "constant": {"gate_source": "constant"},
    "projection": {"gate_site": "projection", "output_shape": (11, 12)},
    "all-sites": {
        "gate_site": ("output", "value", "key", "query", "projection")
    },
    "rank": {"gate_rank": 2},
    "grouped": {"num_key_value_heads": 1},
    "normalised": {
        "context_normalization": "layer",
        "query_key_normalization": "rms",
    },
}


def sizes(**arguments):
    return {"num_heads": 3, "key_dim": 4, "value_dim": 8, **arguments}


def batch_of(shape, dropped):
    return tuple(None if axis in dropped else n for axis, n in enumerate(shape))


def agree(symbolic, eager):
    """The same shape wherever the symbolic one is known, and the dtype."""
    assert len(symbolic.shape) == len(eager.shape)
    for known, actual in zip(symbolic.shape, eager.shape):
        assert known in (None, actual), (symbolic.shape, eager.shape)
    eager_dtype = keras.backend.standardize_dtype(eager.dtype)
    assert keras.backend.standardize_dtype(symbolic.dtype) == eager_dtype


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("axes", ["rank3", None, 2, -2])
@pytest.mark.parametrize("dropped", [(), (0,), (0, 1, 2)])
def test_symbolic_equals_eager(dropped, axes, option):
    shapes = RANK3 if axes == "rank3" else RANK4
    axes = None if axes == "rank3" else axes
    dropped = [d for d in dropped if d < len(shapes[0]) - 1]
    arguments = sizes(**OPTIONS[option], attention_axes=axes)
    layer = GatedAttention(**arguments)
    inputs = [keras.Input(batch_shape=batch_of(s, dropped)) for s in shapes]
    symbolic = layer(*inputs)
    symbolic_with_scores = layer(*inputs, return_attention_scores=True)
    arrays = [normal(*shape, seed=i) for i, shape in enumerate(shapes)]
    eager = layer(*arrays)
    eager_with_scores = layer(*arrays, return_attention_scores=True)
    agree(symbolic, eager)
    for first, second in zip(symbolic_with_scores, eager_with_scores):
        agree(first, second)
    assert symbolic.shape[-1] is not None
    computed = layer.compute_output_shape(*shapes)
    assert tuple(computed) == tuple(eager.shape)
    if not dropped:
        assert tuple(symbolic.shape) == tuple(eager.shape)


@pytest.mark.parametrize(
    "axes, expected",
    [
        (None, (2, 3, 13, 5, 13, 7)),
        (2, (2, 13, 3, 5, 7)),
        (-2, (2, 13, 3, 5, 7)),
        ((1, 2), (2, 3, 13, 5, 13, 7)),
    ],
)
def test_shape_of_scores(axes, expected):
    arrays = [normal(*shape) for shape in RANK4]
    layer = GatedAttention(**sizes(), attention_axes=axes)
    inputs = [keras.Input(batch_shape=shape) for shape in RANK4]
    _, scores = layer(*inputs, return_attention_scores=True)
    assert tuple(scores.shape) == expected
    _, scores = layer(*arrays, return_attention_scores=True)
    assert tuple(scores.shape) == expected


def test_scores_of_cross_attention():
    layer = GatedAttention(**sizes())
    query, value = keras.Input((5, 6)), keras.Input((7, 9))
    _, scores = layer(query, value, return_attention_scores=True)
    assert scores.shape == (None, 3, 5, 7)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "mixed_bfloat16"])
def test_scores_have_the_compute_dtype(dtype):
    layer = GatedAttention(**sizes(), dtype=dtype)
    arrays = [normal(*shape) for shape in RANK3]
    output, scores = layer(*arrays, return_attention_scores=True)
    for x in (output, scores):
        assert keras.backend.standardize_dtype(x.dtype) == layer.compute_dtype


@gated_and_ungated
@pytest.mark.parametrize("value_dim", [6, 2])
def test_value_dim_differs_from_key_dim(value_dim, use_gate):
    """On the fused kernel, eager and compiled."""
    x, y = normal(2, 5, 8, seed=1), normal(2, 3, 8, seed=2)
    layer = attention(x, y, value_dim=value_dim, use_gate=use_gate)
    eager = layer(x, y)
    explicit, _ = layer(x, y, return_attention_scores=True)
    assert_close(eager, explicit, 1e-5)
    inputs = [keras.Input((5, 8)), keras.Input((3, 8))]
    model = keras.Model(inputs, layer(*inputs))
    assert_close(model.predict([x, y], verbose=0), eager, 1e-5)


@gated_and_ungated
@pytest.mark.parametrize(
    "option",
    [
        {},
        {"use_causal_mask": True},
        {"sliding_window": 2, "rope_max_wavelength": 100.0},
    ],
    ids=["plain", "causal", "window-rotary"],
)
def test_two_lengths_through_one_model(option, use_gate):
    option = dict(option)
    call = {"use_causal_mask": option.pop("use_causal_mask", False)}
    inputs = keras.Input((None, 8))
    layer = GatedAttention(2, 4, use_gate=use_gate, **option)
    model = keras.Model(inputs, layer(inputs, inputs, **call))
    for batch, length in ((2, 5), (3, 7), (1, 1)):
        x = normal(batch, length, 8)
        output = model.predict(x, verbose=0)
        assert output.shape == (batch, length, 8)
        assert_close(output, layer(x, x, **call), 1e-5)


def test_lengths_of_cross_attention_are_free():
    query, value = keras.Input((None, 6)), keras.Input((None, 9))
    layer = GatedAttention(**sizes())
    model = keras.Model([query, value], layer(query, value))
    for length, source in ((5, 7), (3, 2)):
        arrays = [normal(2, length, 6), normal(2, source, 9)]
        output = model.predict(arrays, verbose=0)
        assert_close(output, layer(*arrays), 1e-5)


@pytest.mark.parametrize("axes", [None, 1, -2, (1, 2), [2], (-3, -2)])
def test_configuration_is_what_was_passed(axes):
    layer = GatedAttention(**sizes(), attention_axes=axes)
    before = layer.get_config()
    kept = before["attention_axes"]
    as_tuple = (axes,) if isinstance(axes, int) else axes
    assert kept == axes or tuple(kept) == tuple(as_tuple)
    layer.build(RANK4[0], RANK4[0])
    assert layer.get_config() == before


@pytest.mark.parametrize("flash_attention", [None, False, True])
def test_flash_attention_round_trips(flash_attention):
    layer = GatedAttention(2, 4, flash_attention=flash_attention)
    config = layer.get_config()
    assert config["flash_attention"] is flash_attention
    restored = GatedAttention.from_config(config)
    assert restored.get_config()["flash_attention"] is flash_attention


def test_defaults_survive_a_round_trip():
    """`None` stays `None`: nothing is resolved in the configuration."""
    config = GatedAttention(2, 4).get_config()
    for name in (
        "value_dim",
        "num_key_value_heads",
        "attention_axes",
        "gate_initializer",
        "gate_use_bias",
        "output_shape",
        "seed",
    ):
        assert config[name] is None, name
    assert GatedAttention.from_config(config).get_config() == config


def test_outputs_follow_the_batch():
    x = normal(3, 5, 8)
    layer = attention(x, x)
    whole = layer(x, x)
    for i in range(3):
        one = np.asarray(x[i : i + 1])
        assert_close(whole[i : i + 1], layer(one, one), 1e-5)


def test_a_single_key_gets_all_the_weight():
    """On the explicit path too, without a warning of Keras."""
    layer = GatedAttention(2, 4)
    query, key = normal(2, 5, 8), normal(2, 1, 8, seed=1)
    expected = to_numpy(layer(query, key))
    output, scores = layer(query, key, return_attention_scores=True)
    assert_close(output, expected, 1e-6)
    np.testing.assert_array_equal(to_numpy(scores), 1.0)
