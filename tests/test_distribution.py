"""Weights split over devices give the numbers of whole ones."""

import json
import os
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest

from keras_gating import distribution
from keras_gating import layers
from tests.utils import assert_close
from tests.utils import tensor

ROOT = Path(__file__).parents[1]


def mesh(batch=1, model=4):
    devices = [f"cpu:{i}" for i in range(batch * model)]
    return keras.distribution.DeviceMesh(
        (batch, model), ("batch", "model"), devices
    )


class Seen(distribution._LayoutMap):
    """A layout map that remembers what it was asked for."""

    def __init__(self, *args):
        super().__init__(*args)
        self.axes = {}

    def __getitem__(self, key):
        layout = super().__getitem__(key)
        self.axes[key] = layout and layout.axes
        return layout


def layouts_of(layer, *shapes, model=4, then=None):
    """Axes by path of the layer's weights, as each one is created."""
    seen = Seen(mesh(model=model), "model")
    add_weight = keras.layers.Layer.add_weight

    def asking(self, *args, **kwargs):
        weight = add_weight(self, *args, **kwargs)
        seen[weight.path]
        return weight

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keras.layers.Layer, "add_weight", asking)
        layer.build(*shapes)
        if then is not None:
            then()
    prefix = layer.name + "/"
    return {k.removeprefix(prefix): axes for k, axes in seen.axes.items()}


HEADS, BIAS = (None, "model"), ("model",)


def test_gates_are_split_like_their_heads():
    layer = layers.GatedAttention(8, 2, gate_site=("output", "key"))
    assert layouts_of(layer, (None, 3, 6), (None, 3, 6)) == {
        **{
            f"{name}/{weight}": axes
            for name in (
                "query",
                "key",
                "value",
                "gate/projection",
                "key_gate/projection",
            )
            for weight, axes in (("kernel", HEADS), ("bias", BIAS))
        },
        "attention_output/kernel": ("model",),
        "attention_output/bias": None,
    }


def test_few_heads_are_copied():
    layer = layers.GatedAttention(
        8, 2, num_key_value_heads=2, gate_site="value", gate_rank=3
    )
    axes = layouts_of(layer, (None, 3, 6), (None, 3, 6))
    for name in ("key", "value", "value_gate/projection"):
        assert axes[f"{name}/kernel"] is axes[f"{name}/bias"] is None
    assert axes["value_gate/reduction/kernel"] is None
    assert axes["query/kernel"] == HEADS


def test_hidden_features_are_split():
    hidden = (None, None, "model")
    shape = (None, 3, 6)
    assert layouts_of(layers.GEGLU(8, use_bias=True), shape) == {
        "projection/kernel": hidden,
        "projection/bias": HEADS,
    }
    assert layouts_of(layers.GatedFeedForward(8), shape) == {
        "hidden/projection/kernel": hidden,
        "projection/kernel": ("model",),
    }
    unit = layouts_of(layers.GatedAttentionUnit(key_dim=4), (None, 3, 8))
    assert {path for path, axes in unit.items() if axes} == {
        "hidden/kernel",
        "hidden/bias",
        "output/kernel",
    }
    gate = layers.Gate(source="constant")
    assert layouts_of(gate, (None, 3, 8)) == {"bias": BIAS}


def test_names_of_users_do_not_matter():
    shape = (None, 3, 8)
    layer = layers.FeedForward(8, name="query")
    assert layouts_of(layer, shape)["projection/kernel"] == ("model",)
    layer = layers.Gate(name="attention_output")
    assert layouts_of(layer, shape)["projection/kernel"] == HEADS


def test_kernels_that_are_packed_are_copied():
    layer = layers.GLU(8)
    axes = layouts_of(
        layer, (None, 3, 6), then=lambda: layer.projection.quantize("int4")
    )["projection/kernel"]
    # Older releases of Keras keep the axes of the kernel.
    is_packed = len(layer.weights[0].shape) < 3
    assert axes == (None if is_packed else (None, None, "model"))


def test_attention_of_keras_is_split_by_its_heads():
    """And what has its names alone is not."""
    shape = (None, 3, 8)
    layer = keras.layers.MultiHeadAttention(4, 2)
    axes = layouts_of(layer, shape, shape)
    for name in ("query", "key", "value"):
        assert axes[f"{name}/kernel"] == HEADS and axes[f"{name}/bias"] == BIAS
    assert axes["attention_output/kernel"] == ("model",)
    layer = keras.layers.MultiHeadAttention(2, 2)
    assert not any(layouts_of(layer, shape, shape).values())
    layer = keras.layers.GroupQueryAttention(2, 8, 2)
    axes = layouts_of(layer, shape, shape)
    assert axes["query/kernel"] == HEADS
    assert axes["key/kernel"] is axes["value/bias"] is None
    with pytest.raises(ValueError, match=r"Axis 1 of '.*query/kernel'.*size 6"):
        layouts_of(keras.layers.MultiHeadAttention(6, 2), shape, shape)
    head = keras.Sequential([keras.layers.Dense(1, name="value")])
    assert set(layouts_of(head, (None, 8)).values()) == {None}


def test_sizes_that_cannot_be_divided():
    layer = layers.GatedAttention(6, 2)
    with pytest.raises(ValueError, match="Axis 1 of '.*query/kernel'.*4 dev"):
        layouts_of(layer, (None, 3, 6), (None, 3, 6))


def test_entries_of_users_go_first():
    layouts = distribution.layout_map(mesh())
    assert layouts["any/query/kernel"].axes == HEADS
    assert layouts["any/dense/kernel"] is None
    assert layouts["value/kernel"] is None
    layouts[".*query/kernel"] = (None, None, "model")
    assert layouts["any/query/kernel"].axes == (None, None, "model")


def test_bad_input():
    with pytest.raises(ValueError, match="Received: device_mesh='cpu'"):
        distribution.layout_map("cpu")
    with pytest.raises(ValueError, match="'batch', 'model'.*'heads'"):
        distribution.layout_map(mesh(), "heads")


@pytest.fixture(scope="module")
def report():
    if keras.config.backend() != "jax":
        pytest.skip("Keras shards on JAX")
    flags = os.environ["XLA_FLAGS"] + " --xla_force_host_platform_device_count"
    process = subprocess.run(
        [sys.executable, "-m", "tests.sharded"],
        env={**os.environ, "XLA_FLAGS": flags + "=8", "JAX_PLATFORMS": "cpu"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout.splitlines()[-1])


@pytest.mark.parametrize("way", ["tensor", "data", "both"])
def test_sharded_equals_whole(report, way):
    """Outputs, losses, and weights after two steps, and so gradients."""
    # To a bias of keys without positions the softmax is blind.
    assert set(report["still"]) <= {"headwise/key/bias"}
    assert report[way]["error"] < 1e-5


def test_each_device_keeps_its_part(report):
    whole = report["whole"]["bytes"]
    assert report["data"]["bytes"] == whole
    # As the guide says.
    assert round(report["both"]["bytes"] / whole, 2) == 0.31
    assert round(report["tensor"]["bytes"] / whole, 2) == 0.19
    # What an optimizer keeps of a weight lies where the weight does.
    assert report["tensor"]["momentum"] < 1.1 * report["tensor"]["bytes"]
    shapes = report["both"]["shapes"]
    assert shapes["attention/query/kernel"] == [16, 2, 4]
    assert shapes["attention/gate/projection/kernel"] == [16, 2, 4]
    assert shapes["attention/key/kernel"] == [16, 2, 4]
    assert shapes["headwise/gate/projection/kernel"] == [16, 2, 1]
    assert shapes["gated/hidden/projection/kernel"] == [16, 2, 8]


def test_weights_that_are_made_in_a_call_are_split(report):
    """Keras initializes these after the call."""
    assert report["both"]["called"] == {
        "attention/query/kernel": [16, 2, 4],
        "attention/key/kernel": [16, 2, 4],
        "attention/gate/projection/kernel": [16, 2, 4],
        "attention/value/kernel": [16, 2, 4],
        "attention/attention_output/kernel": [2, 4, 16],
        "constant/bias": [4],
    }


@pytest.mark.skipif(keras.config.backend() != "torch", reason="is of torch")
def test_data_parallel_on_torch(tmp_path):
    """Two processes with halves of a batch take the steps of one with all."""
    from tests import replicated

    process = subprocess.run(
        [sys.executable, "-m", "tests.replicated", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert process.returncode == 0, process.stderr
    first, second = (
        list(np.load(tmp_path / f"{rank}.npz").values()) for rank in range(2)
    )
    model = replicated.make_model()
    count = len(model.trainable_weights)
    for weight, value in zip(model.trainable_weights, first[:count]):
        weight.assign(value)
    x, y = tensor(replicated.X), tensor(replicated.Y)
    expected = replicated.train(model, model, x, y)
    assert len(expected) == (2 + replicated.STEPS) * count
    for a, b, whole in zip(first, second, expected, strict=True):
        np.testing.assert_array_equal(a, b)
        # A bias of keys, to which a softmax is blind, has rounding alone.
        assert_close(a, whole, 1e-5, scale=1e-3)
