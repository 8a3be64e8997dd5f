"""A small model with gates of several kinds, and its gates by hand."""

import keras
import numpy as np

from keras_gating import layers
from tests.utils import random_weights
from tests.utils import to_numpy

LENGTH, HEADS, SIZE = 5, 2, 3
PATHS = ("attention/gate", "glu", "swiglu", "squeeze")


BATCH = 3  # one size throughout, since each is compiled anew


def sequences():
    """Two batches of tokens; 0 is padding, in the last row all there is."""
    rng = np.random.default_rng(0)
    tokens = rng.integers(1, 9, size=(2 * BATCH, LENGTH))
    for row, length in enumerate((5, 2, 3, 4, 1, 0)):
        tokens[row, length:] = 0
    return tokens


def in_batches(model, tokens):
    """What a model gives for `sequences()`."""
    return np.concatenate(
        [to_numpy(model(batch)) for batch in np.split(tokens, 2)]
    )


def model():
    """Embedding → gated attention → GLU → SwiGLU → squeeze-and-excitation."""
    tokens = keras.Input((LENGTH,), dtype="int32")
    x = keras.layers.Embedding(9, 6, mask_zero=True, name="embedding")(tokens)
    attention = layers.GatedAttention(
        HEADS, SIZE, gate_scale=2.0, name="attention"
    )
    x = attention(x, x, use_causal_mask=True)
    x = layers.GLU(4, name="glu")(x)
    x = layers.SwiGLU(4, name="swiglu")(x)
    squeeze = layers.SqueezeExcite(
        units=2, data_format="channels_last", name="squeeze"
    )
    return random_weights(keras.Model(tokens, squeeze(x)))


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def gates_by_hand(model, tokens):
    """`(positions, heads, features)` of each gate, from formulas.

    What a layer gets is read off the model; its gate is not.
    """
    real = tokens != 0
    inputs = {}
    for name, before in (
        ("attention/gate", "embedding"),
        ("glu", "attention"),
        ("swiglu", "glu"),
        ("squeeze", "swiglu"),
    ):
        part = keras.Model(model.input, model.get_layer(before).output)
        inputs[name] = np.float64(in_batches(part, tokens))
    weights = {
        name: [
            np.float64(to_numpy(weight))
            for weight in model.get_layer(name).weights
        ]
        for name in ("glu", "swiglu", "squeeze")
    }
    kernel, bias = (
        np.float64(to_numpy(weight))
        for weight in model.get_layer("attention").output_gate.weights
    )
    made = {}
    logits = np.einsum("btd,dhf->bthf", inputs["attention/gate"], kernel) + bias
    made["attention/gate"] = sigmoid(logits)[real]
    for name in ("glu", "swiglu"):
        kernel, bias = weights[name]
        logits = (inputs[name] @ kernel[:, 1] + bias[1])[real]
        gate = sigmoid(logits)
        made[name] = (gate * logits if name == "swiglu" else gate)[:, None]
    first, first_bias, last, last_bias = weights["squeeze"]
    total = np.where(real[..., None], inputs["squeeze"], 0.0).sum(axis=1)
    mean = total / np.maximum(real.sum(axis=1), 1)[:, None]
    hidden = np.maximum(mean @ first + first_bias, 0.0)
    # Of a sequence of padding the mean is 0, and the gate is one of a sample.
    made["squeeze"] = sigmoid(hidden @ last + last_bias)[:, None]
    return made
