"""Quantized models reload exactly, wherever the layer stands in them."""

import h5py
import keras
import numpy as np
import pytest

from keras_gating import layers
from keras_gating.layers import Gate
from keras_gating.layers import GatedAttention
from tests.utils import normal
from tests.utils import quantize
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


def side_by_side():
    """Every layer of the package, on one input."""
    last = {"data_format": "channels_last"}
    inputs = keras.Input(SHAPE)
    parts = [
        layers.BilinearGLU(8),
        layers.CBAM(4, 3, **last),
        layers.ChannelGate(4, **last),
        layers.CurvatureGate(chart="stereographic"),
        layers.ECA(**last),
        layers.FeedForward(8),
        layers.GEGLU(8),
        layers.GLU(8),
        layers.Gate(),
        layers.GatedAttentionBlock(2, 4),
        layers.GatedAttentionUnit(
            key_dim=4, chunk_size=3, position="t5", norm_first=True
        ),
        layers.GatedFeedForward(8),
        layers.ReGLU(8),
        layers.SpatialGate(3, **last),
        layers.SqueezeExcite(4, **last),
        layers.SwiGLU(8),
    ]
    names = {type(part).__name__ for part in parts}
    assert names == set(layers.__all__) - {"GatedAttention"}
    outputs = [part(inputs) for part in parts]
    return keras.Model(inputs, keras.layers.Concatenate()(outputs))


@pytest.mark.parametrize("mode", ["int8", "int4", "float8"])
@pytest.mark.parametrize(
    "make",
    [functional, sequential, deferred, nested, distributed, side_by_side],
)
def test_reloads_exactly(make, mode, tmp_path):
    model, x = make(), normal(2, *SHAPE)
    model(x)
    for number, weight in enumerate(model.weights):
        weight.assign(0.3 * normal(*weight.shape, seed=number))
    before = to_numpy(model(x))
    quantize(model, mode)
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
