"""Inputs and flags of all layers: what is none is refused, and quoted."""

import keras
import numpy as np
import pytest

from keras_gating import layers
from tests.utils import normal
from tests.utils import random_weights
from tests.utils import to_numpy

X = normal(2, 3, 4)
LAYERS = {
    "Gate": {},
    "CurvatureGate": {"chart": "stereographic"},
    "GLU": {"units": 3},
    "FeedForward": {"hidden_dim": 3},
    "GatedFeedForward": {"hidden_dim": 3},
    "SqueezeExcite": {},
    "ECA": {},
    "CBAM": {},
    "GatedAttention": {"num_heads": 2, "key_dim": 4},
    "GatedAttentionBlock": {"num_heads": 2, "key_dim": 4},
    "GatedAttentionUnit": {"key_dim": 4},
}
once = pytest.mark.skipif(
    keras.config.backend() != "torch", reason="The same on all backends."
)


def make(name, **arguments):
    return getattr(layers, name)(**LAYERS[name], **arguments)


def call(layer, x, **arguments):
    inputs = (x, x) if isinstance(layer, layers.GatedAttention) else (x,)
    return layer(*inputs, **arguments)


@once
@pytest.mark.parametrize("is_built", [False, True])
@pytest.mark.parametrize("name", LAYERS)
def test_inputs_that_are_none(name, is_built):
    layer = make(name)
    if is_built:
        call(layer, X)
    for x in ("x", 3.0, None, [1.0], {}, object()):
        with pytest.raises(ValueError, match="must be a tensor or an array"):
            call(layer, x)
    for x in (X.astype("complex64"), X.astype(str), X.astype(object)):
        with pytest.raises(ValueError, match="must hold real numbers"):
            call(layer, x)


@pytest.mark.parametrize("name", LAYERS)
def test_integers_are_floats(name):
    x = np.arange(24).reshape(2, 3, 4) % 5
    layer = make(name)
    call(layer, x)
    random_weights(layer)
    expected = to_numpy(call(layer, x.astype("float32")))
    np.testing.assert_array_equal(to_numpy(call(layer, x)), expected)


@once
def test_integers_keep_their_mask():
    x = keras.ops.convert_to_tensor(np.ones((2, 3, 4), "int32"))
    mask = keras.ops.convert_to_tensor([[True, False, True]] * 2)
    x._keras_mask = mask
    assert layers.Gate()(x)._keras_mask is mask


@once
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("Gate", {"use_bias": "no"}),
        ("Gate", {"seed": -1}),
        ("Gate", {"seed": 2**32}),
        ("Gate", {"scale": 1e300}),
        ("CurvatureGate", {"curvature_trainable": 2}),
        ("GLU", {"gate_first": "yes"}),
        ("GatedFeedForward", {"use_bias": 0.0}),
        ("SqueezeExcite", {"use_bias": None}),
        ("ECA", {"b": 1e300}),
        ("CBAM", {"light": "no"}),
        ("GatedAttention", {"use_gate": "yes"}),
        ("GatedAttention", {"flash_attention": 1.0}),
        ("GatedAttention", {"output_shape": 2**31}),
        ("GatedAttention", {"rope_fraction": True}),
        ("GatedAttentionBlock", {"norm_first": []}),
        ("GatedAttentionUnit", {"expansion_factor": 1e300}),
        ("GatedAttentionUnit", {"divisor": np.array([1.0, 2.0])}),
    ],
    ids=str,
)
def test_arguments_that_are_none(name, arguments):
    (argument,) = arguments
    with pytest.raises(ValueError, match=f"`{argument}`.*Received: "):
        make(name, **arguments)


@once
@pytest.mark.parametrize(
    ("layer", "x"),
    [
        (layers.ECA(gamma=1e-30), X),
        (layers.GatedAttentionUnit(expansion_factor=1e30), X),
        (layers.SpatialGate(), X[:, :0]),
        (layers.ChannelGate(), X[..., :0]),
        (layers.GLU(3), X[..., :0]),
    ],
    ids=lambda x: getattr(x, "name", ""),
)
def test_sizes_that_no_weight_has(layer, x):
    with pytest.raises(ValueError, match="Received: "):
        layer(x)


@once
@pytest.mark.parametrize("name", [x for x in LAYERS if "Attention" in x])
def test_flags_of_a_call(name):
    layer = make(name)
    for flag in ("yes", 2, None, X):
        with pytest.raises(ValueError, match="`use_causal_mask` must be"):
            call(layer, X, use_causal_mask=flag)


@once
def test_zero_and_one_are_flags():
    assert layers.GLU(3, use_bias=0).use_bias is False
    layer = make("GatedAttention")
    causal = call(layer, X, use_causal_mask=1, return_attention_scores=1)[1]
    assert np.all(to_numpy(causal)[..., 0, 1:] == 0.0)


@once
@pytest.mark.parametrize("name", [x for x in LAYERS if "Attention" not in x])
def test_masks_that_do_not_fit(name):
    layer = make(name)
    call(layer, X, mask=np.ones((2, 3), bool))
    for mask in (np.ones((2, 4), bool), np.ones((3, 3), bool), "yes"):
        with pytest.raises(ValueError, match="`mask`"):
            call(layer, X, mask=mask)


@once
def test_source_of_another_width():
    gate = layers.Gate()
    gate(X, source=normal(2, 3, 7))
    with pytest.raises(ValueError, match=r"source of 7 features.*\(2, 3, 6\)"):
        gate(X, source=normal(2, 3, 6))


@pytest.mark.parametrize("name", LAYERS)
def test_empty_batch(name):
    if name == "CBAM" and keras.config.backend() == "tensorflow":
        pytest.skip("Conv1D of Keras keeps all channels of an empty batch.")
    further = {"chunk_size": 2} if name == "GatedAttentionUnit" else {}
    layer = make(name, **further)
    assert call(layer, X).shape[0] == 2
    assert call(layer, X[:0]).shape[0] == 0


@once
@pytest.mark.parametrize("chunk_size", [None, 2])
def test_caches_that_are_none(chunk_size):
    layer = layers.GatedAttentionUnit(key_dim=4, chunk_size=chunk_size)
    layer.build(X.shape)
    cache = layer.init_cache(2, 5)
    for name, x in cache.items():
        for bad in (None, "x", keras.ops.cast(x, "complex64"), x[None]):
            with pytest.raises(ValueError, match=name):
                layer(
                    X,
                    use_causal_mask=True,
                    cache={**cache, name: bad},
                    cache_update_index=0,
                )
