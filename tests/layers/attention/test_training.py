"""Training: dropout and seeds, compiled and eager calls, torch.compile."""

import keras
import numpy as np
import pytest

from keras_gating.layers import GatedAttention
from tests.layers.attention.common import attention
from tests.layers.attention.common import gated_and_ungated
from tests.utils import assert_close
from tests.utils import normal
from tests.utils import tensor
from tests.utils import to_numpy

torch_only = pytest.mark.skipif(
    keras.backend.backend() != "torch", reason="torch.compile is torch's own"
)


def fitted(config, weights):
    """Weights and losses after two epochs of a layer from its config."""
    layer = GatedAttention.from_config(config)
    inputs = keras.Input((5, 8))
    model = keras.Model(inputs, layer(inputs, inputs))
    model.set_weights(weights)
    model.compile(keras.optimizers.SGD(0.1), "mse")
    x, y = normal(6, 5, 8, seed=1), normal(6, 5, 8, seed=2)
    history = model.fit(x, y, epochs=2, batch_size=2, shuffle=False, verbose=0)
    # Eager after compiled: nothing traced may have stayed behind.
    assert np.isfinite(to_numpy(layer(x, x, training=True))).all()
    return model.get_weights(), history.history["loss"]


DROPOUT = {"dropout": 0.4, "gate_dropout": 0.3, "seed": 5}


def test_two_epochs_with_dropout_are_reproducible():
    config = GatedAttention(2, 4, **DROPOUT).get_config()
    first = GatedAttention.from_config(config)
    inputs = keras.Input((5, 8))
    start = keras.Model(inputs, first(inputs, inputs)).get_weights()
    weights, losses = fitted(config, start)
    again, losses_again = fitted(config, start)
    assert np.isfinite(losses).all()
    np.testing.assert_allclose(losses, losses_again, rtol=1e-6)
    for one, other in zip(weights, again):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
    _, unseeded = fitted({**config, "seed": 6}, start)
    assert np.abs(np.subtract(losses, unseeded)).max() > 1e-6


@pytest.mark.parametrize("name", ["dropout", "gate_dropout"])
def test_dropout_is_drawn_in_training_only(name):
    x = normal(2, 5, 8)
    layer = attention(x, x, **{name: 0.5})
    inference = to_numpy(layer(x, x))
    np.testing.assert_array_equal(
        to_numpy(layer(x, x, training=False)), inference
    )
    first = to_numpy(layer(x, x, training=True))
    second = to_numpy(layer(x, x, training=True))
    assert np.abs(first - inference).max() > 1e-3
    assert np.abs(first - second).max() > 1e-3


def test_dropout_preserves_the_mean():
    """Inverted dropout, on the probabilities and on the gate."""
    x = normal(1, 3, 8)
    layer = attention(x, x, **DROPOUT)
    batch = np.repeat(x, 4000, axis=0)
    mean = to_numpy(layer(batch, batch, training=True)).mean(axis=0)
    assert_close(mean, to_numpy(layer(x, x))[0], 0.1)


def tensors_on(layer):
    """Attributes of a layer or its children that hold a tensor."""
    own = {"_parameters", "_buffers", "_torch_params", "_modules"}
    found = []
    for part in layer._flatten_layers():
        for name, value in vars(part).items():
            if name in own or isinstance(value, keras.layers.Layer):
                continue
            is_nest = isinstance(value, (list, tuple, dict, set))
            leaves = keras.tree.flatten(value) if is_nest else [value]
            for leaf in leaves:
                # TensorFlow counts variables as tensors.
                is_variable = isinstance(leaf, keras.Variable)
                if keras.ops.is_tensor(leaf) and not is_variable:
                    found.append((part.name, name))
    return found


@gated_and_ungated
def test_no_tensor_stays_on_the_layer(use_gate):
    options = {"dropout": 0.3, "rope_max_wavelength": 50.0}
    inputs = keras.Input((None, 8))
    layer = GatedAttention(2, 4, use_gate=use_gate, **options)
    call = {"use_causal_mask": True, "return_attention_scores": True}
    outputs = layer(inputs, inputs, **call)
    assert not tensors_on(layer)
    model = keras.Model(inputs, outputs)
    compiled = model.predict(normal(4, 5, 8), verbose=0)[0]
    assert not tensors_on(layer)
    eager = layer(normal(4, 5, 8), normal(4, 5, 8), **call)[0]
    assert_close(compiled, eager, 1e-5)
    other = normal(3, 7, 8, seed=1)
    eager = layer(other, other, **call, training=True)[0]
    assert tuple(eager.shape) == (3, 7, 8)
    cache = layer.init_cache(3, 9)
    layer(other, other, cache=cache, cache_update_index=0)
    assert not tensors_on(layer)
    eager = layer(other, other, **call)[0]
    assert_close(model.predict(other, verbose=0)[0], eager, 1e-5)


@torch_only
@gated_and_ungated
@pytest.mark.parametrize("way", ["plain", "causal", "padded", "mask", "rotary"])
def test_one_graph_under_torch_compile(way, use_gate):
    import torch

    x = normal(2, 5, 8)
    arguments = {}
    if way == "rotary":
        arguments = {
            "num_heads": 4,
            "num_key_value_heads": 2,
            "rope_max_wavelength": 100.0,
        }
    call = {
        "plain": {},
        "rotary": {"use_causal_mask": True},
        "causal": {"use_causal_mask": True},
        "padded": {
            "query_mask": tensor(np.array([[1, 1, 1, 0, 0]] * 2, bool)),
            "value_mask": tensor(np.array([[1, 1, 1, 0, 0]] * 2, bool)),
        },
        "mask": {"attention_mask": tensor(np.tril(np.ones((5, 5), bool)))},
    }[way]
    layer = attention(x, x, use_gate=use_gate, **arguments)

    def f(x):
        return layer(x, x, **call)

    kernels = []

    def backend(graph, inputs):
        kernels.extend(
            node
            for node in graph.graph.nodes
            if "scaled_dot_product" in str(node.target)
        )
        return graph

    torch._dynamo.reset()
    x = tensor(x)
    # With `fullgraph`, a graph that breaks is an error.
    compiled = torch.compile(f, fullgraph=True, backend=backend)
    assert_close(compiled(x), f(x), 1e-6)
    # Causality alone needs no mask, in a graph either.
    (kernel,) = kernels
    is_causal = kernel.kwargs.get("is_causal", False)
    assert is_causal == ("use_causal_mask" in call)
    has_mask = kernel.kwargs.get("attn_mask") is not None
    assert has_mask == (way in ("padded", "mask"))


@torch_only
def test_a_step_of_decoding_is_one_graph():
    import torch

    x = normal(2, 1, 8)
    layer = attention(
        x, x, num_heads=4, num_key_value_heads=2, rope_max_wavelength=100.0
    )

    def step(x, cache, index):
        return layer(
            x,
            x,
            use_causal_mask=True,
            cache=cache,
            cache_update_index=index,
            donate_cache=True,
        )

    torch._dynamo.reset()
    x, index = tensor(x), torch.tensor(3)
    compiled = torch.compile(step, fullgraph=True, backend="eager")
    with torch.no_grad():
        actual, _ = compiled(x, layer.init_cache(2, 6), index)
        expected, _ = step(x, layer.init_cache(2, 6), index)
    assert_close(actual, expected, 1e-6)


@gated_and_ungated
def test_activity_regularizer_has_one_meaning(use_gate):
    """It regularises the outputs of the four projections, nothing else."""
    x = normal(2, 5, 8)
    regularized = {"activity_regularizer": "l2"}
    layer = attention(x, x, use_gate=use_gate, **regularized)
    layer(x, x)
    losses = [float(to_numpy(loss)) for loss in layer.losses]
    peer = keras.layers.MultiHeadAttention(2, 4, **regularized)
    peer.build(x.shape, x.shape)
    for name in ("query", "key", "value", "output"):
        weights = getattr(layer, f"{name}_dense").get_weights()
        getattr(peer, f"{name}_dense").set_weights(weights)
    peer(x, x)
    expected = [float(to_numpy(loss)) for loss in peer.losses]
    assert len(losses) == len(expected) == 4
    # Projections come first in both; a gate changes what is projected last.
    np.testing.assert_allclose(losses[:3], expected[:3], rtol=1e-5)
    assert np.isclose(losses[3], expected[3], rtol=1e-5) != use_gate
