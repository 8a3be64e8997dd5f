"""The small causal transformer of the experiments on the next character."""

import keras

from keras_gating.experiments.characters import VOCABULARY
from keras_gating.experiments.digits_model import Positions


def transformer(attention, feed_forward, dim, layers, length, name):
    """A pre-norm model, characters `(B, T)` to logits `(B, T, VOCABULARY)`.

    Args:
        attention: function of a layer's name that makes a new one; it is
            called as `layer(x, x, use_causal_mask=True)`.
        feed_forward: function that makes a new feed-forward layer.
        dim: number of features.
        layers: number of blocks.
        length: T.
        name: of the model.
    """
    keras_layers = keras.layers
    inputs = keras.Input((length,), dtype="int32")
    x = keras_layers.Embedding(VOCABULARY, dim, name="embedding")(inputs)
    x = Positions(name="positions")(x)
    for i in range(layers):
        y = keras_layers.LayerNormalization(name=f"attention_norm_{i}")(x)
        y = attention(f"attention_{i}")(y, y, use_causal_mask=True)
        x = keras_layers.Add(name=f"attention_add_{i}")([x, y])
        y = keras_layers.LayerNormalization(name=f"feed_forward_norm_{i}")(x)
        y = feed_forward()(y)
        x = keras_layers.Add(name=f"feed_forward_add_{i}")([x, y])
    x = keras_layers.LayerNormalization(name="norm")(x)
    outputs = keras_layers.Dense(VOCABULARY, name="readout")(x)
    return keras.Model(inputs, outputs, name=name)


def residual_streams(model):
    """A model of the same layers that gives what each block adds up to.

    Args:
        model: a model that `transformer` made.

    Returns:
        A `keras.Model` with a list of outputs `(B, T, dim)`, after each
        attention and each feed-forward layer.
    """
    sums = [
        layer for layer in model.layers if isinstance(layer, keras.layers.Add)
    ]
    return keras.Model(model.input, [layer.output for layer in sums])
