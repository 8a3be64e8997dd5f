"""What the tests of the gated attention unit share."""

from keras_gating.layers import GatedAttentionUnit
from tests.utils import random_weights


def unit(inputs, **arguments):
    """A `GatedAttentionUnit` built for this array, with random weights."""
    layer = GatedAttentionUnit(**{"key_dim": 4, **arguments})
    layer.build(inputs.shape)
    return random_weights(layer)
