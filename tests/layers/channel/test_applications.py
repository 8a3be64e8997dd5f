"""Gates put into the networks of `keras.applications`, random weights."""

import itertools

import keras
import numpy as np
import pytest

from keras_gating.layers import CBAM
from keras_gating.layers import ECA
from keras_gating.layers import SqueezeExcite
from tests.marks import once
from tests.utils import assert_close
from tests.utils import normal
from tests.utils import to_numpy

KINDS = (SqueezeExcite, ECA, CBAM)
# The network, and how the last normalization of a branch is called.
NETWORKS = {
    "MobileNetV3Small": ({"include_preprocessing": False}, "_project_bn"),
    "ResNet50": ({}, "_3_bn"),
}


def insert_gates(model, ending):
    """A copy with the three kinds of gates in turn, each as the identity."""
    kinds = itertools.cycle(KINDS)
    gates = []

    def call(layer, *args, **kwargs):
        outputs = layer(*args, **kwargs)
        if not layer.name.endswith(ending):
            return outputs
        kind = next(kinds)
        gates.append(
            kind(
                gate_scale=2.0,
                gate_initializer="zeros",
                name=f"{layer.name}_{kind.__name__.lower()}",
            )
        )
        return gates[-1](outputs)

    gated = keras.models.clone_model(model, call_function=call)
    for layer in model.layers:
        if layer.weights:
            gated.get_layer(layer.name).set_weights(layer.get_weights())
    return gated, gates


@pytest.mark.parametrize(
    "network",
    [
        pytest.param("MobileNetV3Small", marks=once),
        pytest.param(
            "ResNet50",
            marks=pytest.mark.skipif(
                keras.backend.backend() == "jax",
                reason="177 layers take minutes to compile",
            ),
        ),
    ],
)
def test_gates_in_an_application(network, tmp_path):
    arguments, ending = NETWORKS[network]
    build = getattr(keras.applications, network)
    model = build(weights=None, input_shape=(32, 32, 3), classes=4, **arguments)
    gated, gates = insert_gates(model, ending)
    assert len(gates) == {"MobileNetV3Small": 11, "ResNet50": 16}[network]
    added = sum(gate.count_params() for gate in gates)
    assert gated.count_params() == model.count_params() + added

    # Two or three images would be too few to normalize with.
    x, y = normal(8, 32, 32, 3), np.arange(8) % 4
    before = to_numpy(model(x, training=False))
    assert_close(gated(x, training=False), before, 1e-5)

    # Compiling 177 layers as one takes more than a minute, so on TensorFlow
    # they are trained layer by layer.
    eager = network == "ResNet50"
    gated.compile(
        keras.optimizers.SGD(1e-3),
        "sparse_categorical_crossentropy",
        run_eagerly=eager,
        jit_compile=not eager and keras.backend.backend() == "jax",
    )
    assert np.isfinite(gated.train_on_batch(x, y))
    for gate in gates:
        assert any(to_numpy(weight).any() for weight in last_kernels(gate))

    path = tmp_path / "gated.keras"
    gated.save(path)
    loaded = keras.models.load_model(path)
    expected = to_numpy(gated(x, training=False))
    assert_close(loaded(x, training=False), expected, 1e-5)


def last_kernels(gate):
    """Those that started at zero."""
    if isinstance(gate, CBAM):
        return [
            *last_kernels(gate.channel_gate),
            gate.spatial_gate.convolution.kernel,
        ]
    layer = gate.convolution if isinstance(gate, ECA) else gate.expansion
    return [layer.kernel]
