"""Models of nothing but Keras, for what fails with any layer."""

import keras
from keras import layers

from tests.export.side_by_side import SideBySide
from tests.export.side_by_side import Spec


def dense(x):
    return layers.Dense(3)(x)


def normalization(x):
    return layers.LayerNormalization()(x)


def gelu(x):
    return layers.Activation("gelu")(x)


def erf(x):
    return layers.Activation(keras.ops.erf)(x)


def plain(layer):
    """A model of one of these layers."""
    spec = Spec((None, 4), (2, 4), "float32")
    x = keras.Input(batch_shape=spec.shape, name="input_0")
    return SideBySide({spec: x}, {layer.__name__: (layer(x), [x])})
