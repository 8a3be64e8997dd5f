"""Arguments of a bias are refused where there is none."""

import pytest

from keras_gating import layers

LAYERS = {
    "Gate": {},
    "GLU": {"units": 3},
    "SwiGLU": {"units": 3},
    "FeedForward": {"hidden_dim": 3},
    "GatedFeedForward": {"hidden_dim": 3},
    "SqueezeExcite": {},
    "ChannelGate": {},
    "CBAM": {},
}
VALUES = {
    "bias_initializer": "ones",
    "bias_regularizer": "l2",
    "bias_constraint": "non_neg",
}


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("layer", LAYERS)
def test_inert_bias_argument(layer, name):
    make = getattr(layers, layer)
    arguments = {**LAYERS[layer], name: VALUES[name]}
    make(use_bias=True, **arguments)
    with pytest.raises(ValueError, match=f"`{name}` has no effect without"):
        make(use_bias=False, **arguments)
