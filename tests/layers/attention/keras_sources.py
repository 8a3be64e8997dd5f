"""Attention layers of Keras, to be converted."""

import keras
import pytest

from tests.utils import random_weights

has_gate = pytest.mark.skipif(
    "use_gate" not in keras.layers.MultiHeadAttention(1, 1).get_config(),
    reason="gates came to Keras with 3.14",
)
has_window = pytest.mark.skipif(
    "sliding_window" not in keras.layers.MultiHeadAttention(1, 1).get_config(),
    reason="windows came to Keras later than 3.12",
)


def multi_head(**arguments):
    return keras.layers.MultiHeadAttention(
        **{"num_heads": 4, "key_dim": 4, **arguments}
    )


def grouped(**arguments):
    return keras.layers.GroupQueryAttention(
        **{
            "num_query_heads": 4,
            "head_dim": 4,
            "num_key_value_heads": 2,
            **arguments,
        }
    )


SOURCES = {
    "multi-head": (multi_head, {}),
    "grouped": (grouped, {}),
    "multi-query": (grouped, {"num_key_value_heads": 1}),
    "no-bias": (multi_head, {"use_bias": False}),
    "grouped-no-bias": (grouped, {"use_bias": False}),
    "dropout": (multi_head, {"dropout": 0.3}),
    "grouped-dropout": (grouped, {"dropout": 0.3}),
    "output-shape": (multi_head, {"output_shape": (3, 2)}),
    "axes": (multi_head, {"attention_axes": 1}),
}
GATED = pytest.param({"use_gate": True}, marks=has_gate, id="gated")
UNGATED = pytest.param({}, id="ungated")


def built(source, *arrays, **arguments):
    make, own = SOURCES[source]
    layer = make(**own, **arguments)
    layer.build(*[x.shape for x in arrays])
    return random_weights(layer)
