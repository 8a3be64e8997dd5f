"""What the tests of channel gates share."""

import numpy as np

from keras_gating.layers import CBAM
from keras_gating.layers import ECA
from keras_gating.layers import ChannelGate
from keras_gating.layers import SpatialGate
from keras_gating.layers import SqueezeExcite
from tests.utils import random_weights
from tests.utils import to_numpy

KINDS = (SqueezeExcite, ECA, ChannelGate, SpatialGate, CBAM)
SHAPES = {3: (2, 6, 5), 4: (2, 6, 7, 5), 5: (2, 3, 4, 6, 5)}


def built(kind, shape, seed=0, **arguments):
    layer = kind(**{"data_format": "channels_last", **arguments})
    layer.build(shape)
    return random_weights(layer, seed)


def weights(layer):
    """The layer's weights as float64 arrays, in order."""
    return [np.float64(to_numpy(weight)) for weight in layer.weights]
