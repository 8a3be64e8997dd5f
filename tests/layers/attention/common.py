"""What the tests of attention share."""

import keras
import numpy as np
import pytest

from keras_gating.layers import GatedAttention
from tests.utils import random_weights
from tests.utils import relative_path
from tests.utils import to_numpy

GATES = {
    "output": "gate",
    "value": "value_gate",
    "key": "key_gate",
    "query": "query_gate",
    "projection": "projection_gate",
}

gated_and_ungated = pytest.mark.parametrize(
    "use_gate", [True, False], ids=["gated", "ungated"]
)


def attention(query, value, key=None, seed=0, **arguments):
    """A `GatedAttention` built for these arrays, with random weights."""
    arguments = {"num_heads": 2, "key_dim": 4, **arguments}
    layer = GatedAttention(**arguments)
    shapes = [x.shape for x in (query, value, key) if x is not None]
    layer.build(*shapes)
    return random_weights(layer, seed)


def reference_weights(layer):
    """The weights of a layer as `tests.reference.attention` takes them."""
    weights = {}

    def add(name, variable):
        weights[name] = np.float64(to_numpy(variable))

    for child in ("query", "key", "value", "output"):
        dense = getattr(layer, f"{child}_dense")
        path = "attention_output" if child == "output" else child
        for variable in dense.weights:
            add(f"{path}/{variable.name}", variable)
    for site, name in GATES.items():
        gate = getattr(layer, f"{site}_gate", None)
        for variable in gate.weights if gate is not None else ():
            add(f"{name}/{relative_path(gate, variable)}", variable)
    for name in ("query", "key", "context"):
        scale = [w for w in layer.weights if f"{name}_norm" in w.path]
        if scale:
            (variable,) = scale
            add(f"{name}_normalization", variable)
    return weights


def embed(ids, width=8, seed=0):
    """Vectors that carry a Keras mask, 0 being padding."""
    ids = np.asarray(ids)
    embedding = keras.layers.Embedding(int(ids.max()) + 1, width, mask_zero=True)
    embedding.build()
    random_weights(embedding, seed)
    return embedding(ids)


def keras_mask(x):
    """The Keras mask of a tensor as an array, or `None`."""
    mask = getattr(x, "_keras_mask", None)
    return None if mask is None else to_numpy(mask)


def without_mask(x):
    """The same numbers as a tensor that carries no mask."""
    return keras.ops.convert_to_tensor(to_numpy(x))
