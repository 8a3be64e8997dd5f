"""Low-rank updates of a whole model, which saving merges."""

import keras
import numpy as np
import pytest

from keras_gating import layers
from keras_gating import surgery
from tests.surgery.models import IDS
from tests.surgery.models import transformer
from tests.utils import assert_close
from tests.utils import normal
from tests.utils import quantize
from tests.utils import to_numpy


@pytest.fixture
def model():
    """Keras' attention, one with a gate, and more that has kernels."""
    return surgery.gate_attention(transformer(), select="second")


def trained(model):
    return {weight.path for weight in model.trainable_weights}


def draw_updates(model):
    """What training would do to the factors that start at zero."""
    for weight in model.weights:
        if weight.path.endswith("lora_kernel_b"):
            weight.assign(0.3 * normal(*weight.shape))


def saved(model, folder):
    model.save(folder / "model.keras")
    return keras.saving.load_model(folder / "model.keras")


@pytest.mark.parametrize("include_gates", [True, False])
def test_every_dense_kernel_gets_an_update(model, include_gates, tmp_path):
    paths, before = trained(model), to_numpy(model(IDS))
    gate = "second/gate/projection/kernel"
    kernels = {path for path in paths if path.endswith("/kernel")}
    assert gate in kernels
    kernels -= set() if include_gates else {gate}
    surgery.enable_lora(model, 2, include_gates=include_gates)
    assert trained(model) == (paths - kernels) | {
        path.removesuffix("kernel") + f"lora_kernel_{factor}"
        for path in kernels
        for factor in "ab"
    }
    assert_close(model(IDS), before, 1e-6)
    draw_updates(model)
    after = to_numpy(model(IDS))
    assert np.abs(after - before).max() > 0.1 * np.abs(before).max()
    loaded = saved(model, tmp_path)
    assert_close(loaded(IDS), after, 1e-5)
    # Keras stores the rank with a layer of its own that is no part of another.
    ours = {path for path in paths if not path.startswith("head")}
    assert {p for p in trained(loaded) if not p.startswith("head")} == ours


@pytest.mark.parametrize("first", ["lora", "quantization"])
def test_with_quantization(first, tmp_path):
    """Before and after it; saving quantizes the sum anew, as in Keras."""
    model = keras.Sequential([keras.Input((8,)), layers.GatedFeedForward(8)])
    x = normal(2, 8)
    if first == "quantization":
        quantize(model, "int8")
    before = to_numpy(model(x))
    surgery.enable_lora(model, 2)
    draw_updates(model)
    updated = to_numpy(model(x))
    assert np.abs(updated - before).max() > 0.1 * np.abs(before).max()
    if first == "lora":
        quantize(model, "int8")
    assert_close(model(x), updated, 0.05)
    assert_close(saved(model, tmp_path)(x), updated, 0.1)


def test_what_is_frozen_gets_no_update(model):
    model.get_layer("first").trainable = False
    surgery.enable_lora(model, 2)
    names = {path.split("/")[0] for path in trained(model) if "lora" in path}
    assert names == {"second", "head"}


def test_bad_input(model):
    before = trained(model)

    def refused(message, layer=model, **arguments):
        with pytest.raises(ValueError, match=message):
            surgery.enable_lora(layer, **{"rank": 2, **arguments})

    refused("Received: model=None", None)
    refused("rank=0", rank=0)
    refused("needs weights.*unit.built=False", layers.GLU(2, name="unit"))
    gate = layers.Gate(name="plain")
    gate.build((None, 3, 4))
    refused("none.* outside of gates. .*'plain'", gate, include_gates=False)
    gate.trainable = False
    refused("none that trains.*'plain'", gate)
    dense = model.get_layer("head")
    dense.kernel_constraint = keras.constraints.NonNeg()
    refused("'head' with kernel_constraint=.*NonNeg")
    dense.kernel_constraint = None
    dense.enable_lora(1)
    refused("once.*'head' with lora_rank=1")
    # Nothing has changed but this layer.
    assert trained(model) - before == {
        "head/lora_kernel_a",
        "head/lora_kernel_b",
    }
    unit = layers.SwiGLU(2, name="unit")
    unit.build((None, 3, 4))
    unit.projection.quantize("float8")
    refused("'unit/projection' with quantization_mode='float8'", unit)
