"""Quantized models reload exactly, wherever the layer stands in them."""

import warnings

import h5py
import keras
import numpy as np
import pytest

from keras_gating.layers import FeedForward
from keras_gating.layers import Gate
from keras_gating.layers import GatedAttention
from keras_gating.layers import GatedFeedForward
from keras_gating.layers import SqueezeExcite
from keras_gating.layers import SwiGLU
from tests.utils import normal
from tests.utils import to_numpy

SHAPE = (4, 8)


@keras.saving.register_keras_serializable("tests")
class Wrapper(keras.layers.Layer):
    """A user's layer around ours."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.attention = GatedAttention(
            4,
            4,
            gate_granularity="headwise",
            gate_site=("output", "value"),
            num_key_value_heads=2,
        )

    def build(self, input_shape):
        self.attention.build(input_shape, input_shape)

    def call(self, inputs):
        return self.attention(inputs, inputs)


def functional():
    inputs = keras.Input(SHAPE)
    layer = GatedAttention(4, 4, gate_site=("output", "key"), gate_rank=2)
    return keras.Model(inputs, layer(inputs, inputs))


def sequential():
    return keras.Sequential([keras.Input(SHAPE), Wrapper()])


def deferred():
    return keras.Sequential([Wrapper()])


def nested():
    inputs = keras.Input(SHAPE)
    return keras.Model(inputs, sequential()(inputs))


def distributed():
    gate = keras.layers.TimeDistributed(Gate(granularity="headwise"))
    return keras.Sequential([keras.Input(SHAPE), gate])


def without_attention():
    return keras.Sequential(
        [
            keras.Input(SHAPE),
            GatedFeedForward(8),
            FeedForward(8),
            SwiGLU(8),
            SqueezeExcite(4, data_format="channels_last"),
        ]
    )


@pytest.mark.parametrize("mode", ["int8", "int4", "float8"])
@pytest.mark.parametrize(
    "make",
    [functional, sequential, deferred, nested, distributed, without_attention],
)
def test_reloads_exactly(make, mode, tmp_path):
    model, x = make(), normal(2, *SHAPE)
    model(x)
    for number, weight in enumerate(model.weights):
        weight.assign(0.3 * normal(*weight.shape, seed=number))
    before = to_numpy(model(x))
    with warnings.catch_warnings():
        # Keras says of each layer without kernels that it has none.
        warnings.simplefilter("ignore")
        model.quantize(mode)
    quantized = to_numpy(model(x))
    assert np.any(quantized != before)
    assert np.abs(quantized - before).max() < 0.25 * np.abs(before).max()
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(to_numpy(loaded(x)), quantized)


def test_unquantized_files_hold_weights_alone(tmp_path):
    """Paths in saved files are those of the attributes, each weight once."""
    inputs = keras.Input(SHAPE)
    layer = GatedAttention(
        2,
        4,
        use_bias=False,
        gate_site=("output", "value", "key", "query", "projection"),
        context_normalization="rms",
        query_key_normalization="rms",
        name="attention",
    )
    model = keras.Model(inputs, layer(inputs, inputs))
    model.save_weights(tmp_path / "model.weights.h5")
    paths = []
    with h5py.File(tmp_path / "model.weights.h5") as file:
        file.visititems(
            lambda path, item: (
                paths.append(path) if isinstance(item, h5py.Dataset) else None
            )
        )
    start = "layers/gated_attention/"
    paths = [path[len(start) :] for path in paths if path.startswith(start)]
    assert sorted(paths) == sorted(
        f"{name}/vars/0"
        for name in (
            "query_dense",
            "key_dense",
            "value_dense",
            "output_dense",
            "output_gate/projection",
            "value_gate/projection",
            "key_gate/projection",
            "query_gate/projection",
            "projection_gate/projection",
            "query_norm",
            "key_norm",
            "context_norm",
        )
    )
