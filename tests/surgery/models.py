"""Small models with attention and with convolutions, and their inputs."""

import keras
import numpy as np
from keras import layers

from tests.utils import to_numpy

# Padding behind, in front, everywhere, nowhere.
IDS = np.array(
    [
        [4, 7, 2, 9, 0, 0],
        [0, 0, 3, 5, 8, 1],
        [0, 0, 0, 0, 0, 0],
        [6, 1, 9, 2, 3, 5],
    ],
    "int32",
)


def transformer(**attention):
    """Two layers, on padded tokens: one that sees all, one causal one."""
    tokens = keras.Input((None,), dtype="int32", name="tokens")
    x = layers.Embedding(10, 8, mask_zero=True, name="embedding")(tokens)
    first = layers.MultiHeadAttention(2, 4, name="first", **attention)
    # No normalization between this sum and the next attention.
    x = layers.Add(name="sum")([x, first(x, x)])
    second = layers.MultiHeadAttention(2, 4, name="second", **attention)
    y = second(x, x, use_causal_mask=True)
    x = layers.LayerNormalization(name="norm")(x + y)
    return scattered(keras.Model(tokens, layers.Dense(3, name="head")(x)))


@keras.saving.register_keras_serializable("tests.surgery")
class Block(layers.Layer):
    """A block of a transformer that makes its layers in the constructor."""

    def __init__(self, heads=2, **kwargs):
        super().__init__(**kwargs)
        self.heads = heads
        self.attention = layers.MultiHeadAttention(heads, 4, name="attention")
        self.norm = layers.LayerNormalization(name="norm")
        self.supports_masking = True

    def call(self, inputs):
        x = self.attention(inputs, inputs, use_causal_mask=True)
        return self.norm(inputs + x)

    def get_config(self):
        return {**super().get_config(), "heads": self.heads}


@keras.saving.register_keras_serializable("tests.surgery")
class Holder(layers.Layer):
    """Attention in lists, dictionaries, tuples, models and other layers."""

    def build(self, shape):
        inputs = keras.Input(shape[1:])
        attention = layers.MultiHeadAttention(1, 3, name="in_model")
        outputs = attention(inputs, inputs)
        self.model = keras.Model(inputs, outputs + inputs, name="model")
        self.blocks = [layers.Dense(8, name="dense"), Block(name="block_1")]
        cross = layers.MultiHeadAttention(2, 3, dropout=0.1, name="cross")
        self.named = {"cross": (cross,)}
        self.again = cross
        cross.build(shape, shape)

    def call(self, inputs, mask=None):
        x = self.model(inputs)
        for block in self.blocks:
            x = block(x)
        if mask is not None:
            mask = mask[:, None, :]
        return x + self.named["cross"][0](x, inputs, attention_mask=mask)


def with_holder():
    tokens = keras.Input((6,), dtype="int32")
    x = layers.Embedding(10, 8, mask_zero=True)(tokens)
    x = Block(name="block")(x)
    return scattered(keras.Model(tokens, Holder(name="holder")(x)))


def residual(data_format="channels_last"):
    """Two residual branches: behind a convolution, and behind nothing."""
    channels_last = data_format == "channels_last"
    axis = -1 if channels_last else 1
    image = keras.Input((6, 6, 3) if channels_last else (3, 6, 6))
    x = image
    for number, shortcut in enumerate((True, False)):
        y = x
        for part in "ab":
            name = f"block{number}{part}"
            y = layers.Conv2D(
                8,
                3,
                padding="same",
                data_format=data_format,
                name=f"{name}_conv",
            )(y)
            y = layers.BatchNormalization(axis=axis, name=f"{name}_bn")(y)
            y = layers.ReLU(name=f"{name}_relu")(y) if part == "a" else y
        if shortcut:
            x = layers.Conv2D(8, 1, data_format=data_format, name="short")(x)
            x = layers.BatchNormalization(axis=axis, name="short_bn")(x)
        x = layers.Activation("silu")(layers.Add()([x, y]))
    x = layers.GlobalAveragePooling2D(data_format=data_format)(x)
    return scattered(keras.Model(image, layers.Dense(2, name="head")(x)))


def scattered(model, seed=0):
    """Gives every weight and statistic of a model a value that shows."""
    rng = np.random.default_rng(seed)
    for weight in model.weights:
        noise = rng.normal(scale=0.3, size=weight.shape)
        is_variance = weight.path.endswith(("variance", "gamma"))
        weight.assign(np.exp(noise) if is_variance else noise)
    return model


def outputs(model, *inputs):
    tensors = keras.tree.map_structure(
        keras.ops.convert_to_tensor, list(inputs)
    )
    result = model(tensors[0] if len(tensors) == 1 else tensors)
    return [np.float32(to_numpy(x)) for x in keras.tree.flatten(result)]


def assert_same_function(model, other, *inputs, tolerance=1e-5):
    """Equal outputs, up to a share of the largest."""
    for expected, actual in zip(
        outputs(model, *inputs), outputs(other, *inputs), strict=True
    ):
        scale = np.max(np.abs(expected))
        assert np.isfinite(scale)
        assert np.max(np.abs(actual - expected)) <= tolerance * scale


def values(variables):
    return {x.path: to_numpy(x) for x in variables}
