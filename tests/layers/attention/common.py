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


def attention(query, value, key=None, gate_input=None, **arguments):
    """A `GatedAttention` built for these arrays, with random weights."""
    arguments = {"num_heads": 2, "key_dim": 4, **arguments}
    layer = GatedAttention(**arguments)
    shapes = {"query_shape": query.shape, "value_shape": value.shape}
    if key is not None:
        shapes["key_shape"] = key.shape
    if gate_input is not None:
        shapes["gate_input_shape"] = gate_input.shape
    layer.build(**shapes)
    return random_weights(layer)


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
        for variable in layer.weights:
            if f"/{name}_norm/" in variable.path:
                shift = variable.path.endswith("beta")
                add(f"{name}_{'shift' if shift else 'scale'}", variable)
    return weights


def embed(ids, width=8, seed=0):
    """Vectors that carry a Keras mask, 0 being padding."""
    ids = np.asarray(ids)
    embedding = keras.layers.Embedding(
        int(ids.max()) + 1, width, mask_zero=True
    )
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
