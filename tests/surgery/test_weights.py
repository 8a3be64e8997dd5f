"""Weights of other libraries in our layers; `test_oracles` have the outputs."""

import sys

import keras
import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy

from keras_gating import layers
from keras_gating.surgery import copy_weights
from tests.layers.attention import keras_sources
from tests.surgery import layouts
from tests.surgery.layouts import TABLE
from tests.utils import random_weights
from tests.utils import tensor
from tests.utils import to_numpy
from tests.utils import weights_by_path

NAMES = list(layouts.make())


@pytest.fixture(scope="module", params=NAMES)
def layout(request):
    found = layouts.make()[request.param]
    random_weights(found.built(), seed=5)
    return found


@pytest.fixture(scope="module")
def llama():
    found = layouts.make()["llama_mlp"]
    found.built()
    return found


def refused(layout, checkpoint, match, prefix="", name=None):
    """Raises, and leaves the layer as it was."""
    before = weights_by_path(layout.layer)
    with pytest.raises(ValueError, match=match):
        copy_weights(layout.layer, checkpoint, name or layout.name, prefix)
    for path, array in weights_by_path(layout.layer).items():
        np.testing.assert_array_equal(array, before[path])


def test_each_weight_is_of_the_checkpoint(layout):
    """Nothing keeps the value it had, and buffers are reported."""
    before = weights_by_path(layout.layer)
    checkpoint = layout.checkpoint("model.layers.1.")
    # Another layer, whose name starts alike.
    checkpoint["model.layers.10.fc1.weight"] = np.ones(1)
    separator = "/" if layout.name == "keras" else "."
    if separator == "/":
        checkpoint = {k.replace(".", "/"): v for k, v in checkpoint.items()}
    prefix = separator.join(("model", "layers", "1"))
    passed = copy_weights(layout.layer, checkpoint, layout.name, prefix)
    assert set(passed) == {f"model.layers.1.{n}" for n in layout.buffers}
    after = weights_by_path(layout.layer)
    assert len(after) == len(layout.layer.weights)
    for path, array in after.items():
        assert np.all(array != before[path]), path
    # A prefix with its separator is the same.
    before = after
    copy_weights(
        layout.layer, checkpoint, layout.name, prefix=prefix + separator
    )
    for path, array in weights_by_path(layout.layer).items():
        np.testing.assert_array_equal(array, before[path])


def test_missing_and_misnamed_weights_are_refused(layout):
    checkpoint = layout.checkpoint()
    for name in layout.shapes:
        rest = {k: v for k, v in checkpoint.items() if k != name}
        refused(layout, rest, f"Missing: '{name}'; superfluous: none")
        misnamed = {**rest, name + "s": checkpoint[name]}
        refused(layout, misnamed, f"'{name}'; superfluous: '{name}s'")


def test_superfluous_weights_are_refused(layout):
    checkpoint = {**layout.checkpoint(), "lora_A.weight": np.ones((2, 2))}
    refused(layout, checkpoint, "none; superfluous: 'lora_A.weight'")


def test_shapes_that_do_not_fit_are_refused(layout):
    """Among them every kernel that is transposed, unless it is square."""
    checkpoint = layout.checkpoint()
    for name, array in checkpoint.items():
        if name not in layout.shapes:
            continue
        shape = array.shape
        longer = np.concatenate([array, array])
        match = rf"'{name}' of shape \({shape[0]},.*Received: shape \("
        refused(layout, {**checkpoint, name: longer}, match)
        if array.T.shape != shape:
            refused(layout, {**checkpoint, name: array.T}, match)
        refused(layout, {**checkpoint, name: array.ravel()[:0]}, match)


def test_nothing_is_assigned_when_the_last_weight_fails(layout):
    checkpoint = layout.checkpoint(seed=9)
    last = list(layout.shapes)[-1]
    codes = np.ones(layout.shapes[last], "int8")
    refused(layout, {**checkpoint, last: codes}, "quantized.*int8")


def test_halves_go_where_the_layer_has_its_gate():
    """Both orders of our kernel compute the same from one checkpoint."""
    x = np.random.default_rng(1).normal(size=(3, 4)).astype("float32")
    made = layouts.make()
    for name in (
        "llama_mlp",
        "t5_mlp",
        "timm_swiglu",
        "timm_glu_mlp",
        "timm_swiglu_packed",
    ):
        outputs = []
        for gate_first in (False, True):
            layer = layouts.feed_forward(gate_first=gate_first)
            layer.build((None, 4))
            copy_weights(layer, made[name].checkpoint(), name)
            outputs.append(to_numpy(layer(x)))
        np.testing.assert_allclose(*outputs, rtol=1e-5, atol=1e-6)


def test_glu_takes_the_halves_alone():
    weight = np.arange(24.0).reshape(6, 4)
    given = {"fc1.weight": weight, "fc1.bias": np.arange(6.0)}
    for kind in (layers.GLU, layers.SwiGLU):
        layer = kind(3)
        layer.build((None, 4))
        copy_weights(layer, given, "timm_glu_mlp")
        kernel, bias = map(to_numpy, layer.weights)
        np.testing.assert_array_equal(kernel[:, 0], weight[:3].T)
        np.testing.assert_array_equal(kernel[:, 1], weight[3:].T)
        np.testing.assert_array_equal(bias, [[0, 1, 2], [3, 4, 5]])
        copy_weights(layer, given, "timm_swiglu_packed")
        np.testing.assert_array_equal(
            to_numpy(layer.weights[0])[:, 1], weight[:3].T
        )
    with pytest.raises(ValueError, match="superfluous: 'fc2.weight'"):
        copy_weights(layer, {**given, "fc2.weight": weight}, "timm_glu_mlp")


def test_query_and_gate_are_packed_per_head():
    """Also where a head's value has another size than its key."""
    found = layouts.make()["qwen3_next"]
    layer, checkpoint = found.built(), found.checkpoint()
    copy_weights(layer, checkpoint, "qwen3_next")
    rows = checkpoint["q_proj.weight"]
    query = to_numpy(layer.query_dense.kernel)
    gate = to_numpy(layer.output_gate.projection.kernel)
    for head in range(4):
        start = 5 * head
        np.testing.assert_array_equal(query[:, head].T, rows[start:][:3])
        np.testing.assert_array_equal(gate[:, head].T, rows[start + 3 :][:2])
    np.testing.assert_allclose(
        to_numpy(layer.query_norm.scale),
        1.0 + checkpoint["q_norm.weight"],
        rtol=1e-6,
    )


def test_maps_go_in_the_order_of_the_layer():
    """The convolution reads mean and maximum in either order."""
    kernel = np.random.default_rng(0).normal(size=(1, 2, 3, 3))
    kernels = []
    for order in ("mean_max", "max_mean"):
        layer = layers.SpatialGate(3, map_order=order)
        layer.build((None, 6, 8, 8))
        copy_weights(layer, {"conv.conv.weight": kernel}, "timm_cbam")
        kernels.append(to_numpy(layer.convolution.kernel))
    np.testing.assert_allclose(kernels[0][..., 0, 0], kernel[0, 0], rtol=1e-6)
    np.testing.assert_allclose(kernels[0][..., 1, 0], kernel[0, 1], rtol=1e-6)
    np.testing.assert_array_equal(kernels[0], kernels[1][:, :, ::-1])


def test_linear_maps_and_convolutions_of_size_one_are_the_same():
    found = layouts.make()["timm_se"]
    layer, checkpoint = found.built(), found.checkpoint()
    copy_weights(layer, checkpoint, "timm_se")
    before = weights_by_path(layer)
    flat = {
        name: array.reshape(array.shape[:2])
        for name, array in checkpoint.items()
    }
    copy_weights(layer, flat, "timm_se")
    for path, array in weights_by_path(layer).items():
        np.testing.assert_array_equal(array, before[path])
    wide = {**flat, "fc1.weight": np.ones((4, 6, 3, 3))}
    refused(found, wide, r"shape \(4, 6, 3, 3\)")


@pytest.mark.parametrize("source", ["multi-head", "grouped"])
@pytest.mark.parametrize("arguments", [keras_sources.GATED, {}])
def test_keras_layers_and_lists_of_their_weights(source, arguments):
    x = np.random.default_rng(0).normal(size=(2, 5, 6)).astype("float32")
    theirs = keras_sources.built(source, x, x, **arguments)
    outputs = []
    for weights in (theirs, theirs.get_weights()):
        ours = layers.GatedAttention(
            4,
            4,
            num_key_value_heads=2 if source == "grouped" else None,
            use_gate=bool(arguments),
        )
        ours.build(x.shape, x.shape)
        assert copy_weights(ours, weights, "keras") == ()
        outputs.append(to_numpy(ours(x, x)))
    for output in outputs:
        np.testing.assert_allclose(
            output, to_numpy(theirs(x, x)), rtol=1e-4, atol=1e-5
        )
    with pytest.raises(ValueError, match="takes .* Received: 3 arrays"):
        copy_weights(ours, theirs.get_weights()[:3], "keras")


def test_keras_layers_that_are_refused(llama):
    x = np.zeros((1, 5, 6), "float32")
    ours = layers.GatedAttention(4, 4, use_gate=False)
    ours.build(x.shape, x.shape)
    theirs = keras_sources.built("multi-head", x, x)
    with pytest.raises(ValueError, match="below 'a/'.*superfluous: none"):
        copy_weights(ours, theirs, "keras", prefix="a")
    theirs.query_dense.enable_lora(1)
    with pytest.raises(ValueError, match="superfluous: 'query/lora_kernel_a"):
        copy_weights(ours, theirs, "keras")
    theirs.key_dense.quantize("int8")
    with pytest.raises(ValueError, match="quantized layer"):
        copy_weights(ours, theirs, "keras")
    dense = keras.layers.Dense(2)
    with pytest.raises(ValueError, match="MultiHeadAttention.*Received: Dense"):
        copy_weights(ours, dense, "keras")
    refused(llama, dense, "Only layout=.keras.*Received: Dense")
    refused(llama, [], "Only layout=.keras.*Received: list")


def saved(path, arrays):
    safetensors.numpy.save_file(arrays, path)
    return path


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "bfloat16"])
def test_safetensors(llama, tmp_path, dtype):
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
    arrays = {
        name: array.astype(kind)
        for name, array in llama.checkpoint("layers.0.").items()
    }
    # Another layer's, of a kind that cannot be copied.
    arrays["layers.1.codes"] = np.ones(3, "int8")
    path = saved(tmp_path / "model.safetensors", arrays)
    passed = copy_weights(llama.layer, path, "llama_mlp", "layers.0")
    assert passed == ()
    for name, dense in (("gate_proj", 1), ("up_proj", 0)):
        expected = arrays[f"layers.0.{name}.weight"].astype("float32").T
        kernel = to_numpy(llama.layer.hidden.projection.kernel)
        np.testing.assert_array_equal(kernel[:, dense], expected)
    refused(llama, str(path), "Missing: 'up_proj.weight'")


def test_other_files_are_refused(llama):
    refused(llama, "model.bin", r"\.safetensors.*Received: 'model.bin'")


def test_without_safetensors(llama, monkeypatch):
    monkeypatch.setitem(sys.modules, "safetensors", None)
    with pytest.raises(ImportError, match=r"keras-gating\[safetensors\]"):
        copy_weights(llama.layer, "model.safetensors", "llama_mlp")


def test_tensors_of_any_library(llama):
    torch = pytest.importorskip("torch")
    arrays = llama.checkpoint()
    for convert in (
        tensor,
        keras.Variable,
        lambda x: torch.nn.Parameter(torch.tensor(x)),
        lambda x: torch.tensor(x).bfloat16(),
        lambda x: x.astype(ml_dtypes.bfloat16),
        lambda x: x.tolist(),
    ):
        given = {name: convert(array) for name, array in arrays.items()}
        llama.layer.projection.kernel.assign(np.zeros((6, 5)))
        copy_weights(llama.layer, given, "llama_mlp")
        np.testing.assert_allclose(
            to_numpy(llama.layer.projection.kernel),
            arrays["down_proj.weight"].T,
            rtol=2**-8,
        )


def test_weights_take_the_dtype_of_the_layer():
    layer = layouts.feed_forward(dtype="bfloat16")
    layer.build((None, 4))
    arrays = layouts.make()["llama_mlp"].checkpoint()
    copy_weights(layer, arrays, "llama_mlp")
    assert layer.projection.kernel.dtype == "bfloat16"
    np.testing.assert_array_equal(
        to_numpy(keras.ops.cast(layer.projection.kernel, "float32")),
        arrays["down_proj.weight"].T.astype(ml_dtypes.bfloat16),
    )


def test_layers_and_arguments_that_are_refused(llama):
    arrays = llama.checkpoint()
    refused(llama, arrays, "`layout` must be one of", name="llama")
    refused(llama, arrays, "is for ECA. Received", name="timm_eca")
    refused(llama, arrays, "`prefix` must be a string", prefix=None)
    refused(llama, None, "`weights` must be a mapping.*Received: NoneType")
    unbuilt = layouts.feed_forward()
    with pytest.raises(ValueError, match="built=False"):
        copy_weights(unbuilt, arrays, "llama_mlp")
    for change, match in (
        (lambda layer: layer.enable_lora(1), "LoRA"),
        (lambda layer: layer.projection.quantize("int8"), "quantized layer"),
    ):
        layer = layouts.feed_forward()
        layer.build((None, 4))
        change(layer)
        with pytest.raises(ValueError, match=match):
            copy_weights(layer, arrays, "llama_mlp")


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"gate_site": "value"}, "one gate, on the attention output"),
        ({"gate_site": ("output", "key")}, "with gates: .'output', 'key'"),
        ({"gate_source": "split"}, "with gates: split"),
        ({"gate_source": "context"}, "gate_source='context'"),
        ({"gate_granularity": "headwise"}, "gate_granularity='headwise'"),
        ({"gate_rank": 2}, "gate_rank=2"),
        ({"context_normalization": "rms"}, "has nothing for.*context_norm"),
        ({"gate_use_bias": False}, "has nothing for.*query/bias"),
    ],
)
def test_attention_that_is_not_the_peers(arguments, match):
    layer = layers.GatedAttention(2, 4, **arguments)
    layer.build((None, None, 8), (None, None, 8))
    with pytest.raises(ValueError, match=match):
        copy_weights(layer, {}, "qwen3_next")


def test_attention_without_a_gate():
    layer = layers.GatedAttention(2, 4, use_gate=False)
    layer.build((None, None, 8), (None, None, 8))
    with pytest.raises(ValueError, match="gates: none"):
        copy_weights(layer, {}, "qwen3_next")
    with pytest.raises(ValueError, match="Missing: 'query/kernel'"):
        copy_weights(layer, {}, "keras")


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({}, "divisor=512.*Received: divisor='visible'"),
        ({"divisor": "length"}, "Received: divisor='length'"),
        ({"chunk_size": 4}, "divisor=4. Received: divisor='visible'"),
        ({"chunk_size": 4, "divisor": 8}, "Received: divisor=8"),
        ({"attention_activation": "softmax"}, "Received: 'softmax'"),
    ],
)
def test_units_that_are_not_the_peers(arguments, match):
    layer = layers.GatedAttentionUnit(key_dim=6, **arguments)
    layer.build((None, None, 4))
    with pytest.raises(ValueError, match=match):
        copy_weights(layer, {}, "flash_pytorch")


def test_position_bias_without_a_place():
    """The peer always has the table, so it may be there if it is zero."""
    found = layouts.make()["flash_pytorch"]
    found.layer = layers.GatedAttentionUnit(
        key_dim=6, norm_first=True, divisor=16
    )
    arrays = found.checkpoint()
    found.built()
    refused(found, arrays, 'position bias.*position="t5"')
    arrays[TABLE] = np.zeros((32, 1))
    assert copy_weights(found.layer, arrays, "flash_pytorch") == (TABLE,)
    del arrays[TABLE]
    assert copy_weights(found.layer, arrays, "flash_pytorch") == ()


def test_rotary_frequencies_are_those_of_the_layer():
    found = layouts.make()["flash_pytorch, chunked"]
    found.built()
    name = "rotary_pos_emb.freqs"
    arrays = found.checkpoint()
    # The first features of each head alone, and none at all.
    refused(
        found, {**arrays, name: arrays[name][:2]}, r"Received: shape \(2,\)"
    )
    refused(found, {**arrays, name: arrays[name] * 2}, "frequencies")
    rest = {k: v for k, v in arrays.items() if k != name}
    refused(found, rest, f"Missing: '{name}'")
