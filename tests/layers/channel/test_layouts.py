"""Data formats, ranks and wrappers."""

import keras
import numpy as np
import pytest

from keras_gating.layers import CBAM
from keras_gating.layers import SpatialGate
from tests.gradients import gradients
from tests.layers.channel.common import KINDS
from tests.layers.channel.common import SHAPES
from tests.layers.channel.common import built
from tests.marks import once
from tests.utils import assert_close
from tests.utils import normal
from tests.utils import tensor
from tests.utils import to_numpy


def to_first(x):
    return np.moveaxis(x, -1, 1)


def to_last(x):
    return np.moveaxis(x, 1, -1)


@pytest.mark.parametrize(
    "batch", [pytest.param(1, marks=once), 2, pytest.param(5, marks=once)]
)
@pytest.mark.parametrize("rank", SHAPES)
@pytest.mark.parametrize("kind", KINDS)
def test_channels_first_is_the_transposed_channels_last(kind, rank, batch):
    x = normal(batch, *SHAPES[rank][1:])
    last = built(kind, x.shape)
    first = built(kind, to_first(x).shape, data_format="channels_first")
    for a, b in zip(last.weights, first.weights):
        np.testing.assert_array_equal(to_numpy(a), to_numpy(b))
    result = to_numpy(first(tensor(to_first(x))))
    assert_close(to_last(result), to_numpy(last(tensor(x))), 1e-6)


@pytest.mark.float64
@pytest.mark.parametrize("rank", SHAPES)
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_in_both_layouts(kind, rank):
    x, cotangent = (normal(*SHAPES[rank], seed=seed) for seed in (0, 1))
    last = built(kind, x.shape, dtype="float64")
    first = built(
        kind,
        to_first(x).shape,
        data_format="channels_first",
        dtype="float64",
    )
    _, (expected,), by_weight = gradients(last, [x], cotangent)
    _, (result,), by_weight_first = gradients(
        first, [to_first(x)], to_first(cotangent)
    )
    assert_close(to_last(result), expected, 1e-6)
    for a, b in zip(by_weight.values(), by_weight_first.values()):
        assert_close(b, a, 1e-6)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("data_format", ["channels_first", "channels_last"])
@pytest.mark.parametrize("kind", KINDS)
def test_few_channels_train_when_compiled(kind, data_format, channels):
    """One image of one channel, and sizes that equal the channels."""
    for shape in ((3, 3), (3, 3, 3)):
        shape = (*shape, channels)
        if data_format == "channels_first":
            shape = (channels, *shape[:-1])
        layer = kind(data_format=data_format)
        model = keras.Sequential([keras.Input(shape), layer])
        jit = keras.backend.backend() == "jax"
        model.compile("sgd", "mse", jit_compile=jit)
        for batch in (1, 3):
            x = normal(batch, *shape)
            assert np.isfinite(model.train_on_batch(x, x))
            assert_close(model.predict_on_batch(x), layer(tensor(x)), 1e-5)


@pytest.mark.parametrize("batch_norm", [False, True])
@pytest.mark.parametrize("data_format", ["channels_first", "channels_last"])
def test_batch_normalization_of_one_map(data_format, batch_norm):
    """Its statistics are those of the logits, whatever the layout."""
    x = normal(4, 6, 7, 3)
    layer = built(CBAM, x.shape, batch_norm=batch_norm)
    other = built(
        CBAM,
        to_first(x).shape,
        batch_norm=batch_norm,
        data_format="channels_first",
    )
    for training in (True, False):
        expected = to_numpy(layer(tensor(x), training=training))
        result = other(tensor(to_first(x)), training=training)
        assert_close(to_last(to_numpy(result)), expected, 1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_default_data_format(kind):
    before = keras.config.image_data_format()
    try:
        for data_format in ("channels_first", "channels_last"):
            keras.config.set_image_data_format(data_format)
            assert kind().data_format == data_format
    finally:
        keras.config.set_image_data_format(before)


@pytest.mark.parametrize("data_format", ["channels_first", "channels_last"])
@pytest.mark.parametrize("kind", KINDS)
def test_time_distributed_frames(kind, data_format):
    x = normal(2, 3, 4, 5, 6)
    layer = built(kind, x[:, 0].shape, data_format=data_format)
    result = to_numpy(keras.layers.TimeDistributed(layer)(tensor(x)))
    for frame in range(3):
        assert_close(result[:, frame], layer(tensor(x[:, frame])), 1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_other_ranks_and_unknown_channels(kind):
    layer = kind(data_format="channels_last")
    for shape in ((2, 3), (2, 3, 4, 5, 6, 7)):
        with pytest.raises(ValueError, match=rf"rank.*3, 4 or 5.*\({shape[0]}"):
            layer.build(shape)
    with pytest.raises(ValueError, match="channels must be known.*None"):
        layer.build((2, 3, None))
    if kind is not SpatialGate:
        layer.build((2, 3, 4))
        with pytest.raises(ValueError, match="axis -1.*value 4.*5"):
            layer(tensor(normal(2, 3, 5)))


def test_spatial_gate_takes_one_rank_and_any_channels():
    layer = built(SpatialGate, (2, 3, 4))
    assert layer(tensor(normal(2, 3, 9))).shape == (2, 3, 9)
    with pytest.raises(ValueError, match="expected ndim=3, found ndim=4"):
        layer(tensor(normal(2, 3, 4, 4)))
