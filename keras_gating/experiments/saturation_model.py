"""The network of the saturation experiment: one gated hidden layer."""

import keras
import numpy as np

from keras_gating.experiments.digits import Split
from keras_gating.experiments.digits_model import CLASSES
from keras_gating.experiments.digits_model import IMAGE
from keras_gating.layers import Gate

PIXELS = IMAGE**2
HIDDEN = 32


def build(activation):
    """A model of `readout(W x ⊙ g(V x))`, pixels `(B, 64)` to `(B, 10)`.

    The gate is its only nonlinearity. Its kernel starts by Glorot's rule, for
    the experiment to multiply.

    Args:
        activation: name of g in Keras.
    """
    inputs = keras.Input((PIXELS,))
    value = keras.layers.Dense(HIDDEN, name="value")(inputs)
    gate = Gate(
        activation=activation,
        kernel_initializer="glorot_uniform",
        name="gate",
    )
    gated = gate(value, source=inputs)
    outputs = keras.layers.Dense(CLASSES, name="readout")(gated)
    return keras.Model(inputs, outputs, name=activation)


def scale_start(model, scale):
    """Multiplies the gate's kernel; its bias is zero."""
    kernel, _ = model.get_layer("gate").get_weights()
    model.get_layer("gate").set_weights([scale * kernel, np.zeros(HIDDEN)])


def logits(model, inputs):
    """The gate's logits `(B, hidden)` in float64."""
    kernel, bias = model.get_layer("gate").get_weights()
    inputs, kernel, bias = (
        np.asarray(x, "float64") for x in (inputs, kernel, bias)
    )
    return inputs @ kernel + bias


class Images:
    """Centred pixels of one seed's split, with a mean square of 1.

    With Glorot's kernel the logits then spread by about 1.

    Args:
        seed: of the split.
    """

    def __init__(self, seed):
        split = Split(seed)
        train, test = (
            images.reshape(-1, PIXELS)
            for images in (split.train_images, split.test_images)
        )
        centre = train.mean(axis=0)
        size = np.sqrt(np.square(train - centre).mean())
        self.train, self.test = (
            np.float32((x - centre) / size) for x in (train, test)
        )
        self.train_labels = split.train_labels
        self.test_labels = split.test_labels
