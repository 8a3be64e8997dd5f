"""`GatedAttentionBlock` against its composition in NumPy."""

import keras
import numpy as np
import pytest

from keras_gating.layers import GatedAttentionBlock
from tests.gradients import finite
from tests.gradients import gradients
from tests.layers.attention.common import embed
from tests.layers.attention.common import keras_mask
from tests.layers.attention.common import reference_weights
from tests.layers.attention.common import without_mask
from tests.reference.attention import gated_attention
from tests.utils import assert_close
from tests.utils import normal
from tests.utils import random_weights
from tests.utils import tensor
from tests.utils import to_numpy

ALLOWED = np.array([[1, 0, 1, 1], [1, 1, 0, 1], [0, 1, 1, 0], [1, 1, 1, 1]])
PADDING = np.array([[1, 1, 1, 1], [1, 1, 0, 0]], bool)
CALLS = {
    "plain": {},
    "causal": {"use_causal_mask": True},
    "mask": {"attention_mask": ALLOWED > 0},
    "padding": {"mask": PADDING},
    "all": {
        "attention_mask": ALLOWED > 0,
        "use_causal_mask": True,
        "mask": PADDING,
    },
}
both_orders = pytest.mark.parametrize(
    "norm_first", [False, True], ids=["post_norm", "pre_norm"]
)


def block(shape, **arguments):
    layer = GatedAttentionBlock(**{"num_heads": 2, "key_dim": 4, **arguments})
    layer.build(shape)
    return random_weights(layer)


def layer_norm(x, layer):
    gamma, beta = (np.float64(to_numpy(w)) for w in layer.weights)
    centred = x - x.mean(-1, keepdims=True)
    deviation = np.sqrt((centred**2).mean(-1, keepdims=True) + layer.epsilon)
    return centred / deviation * gamma + beta


def expected(layer, x, mask=None, gate_source="query_context", **call):
    """Normalization, attention, residual, in the order of the layer."""
    x = np.float64(x)
    norm_first = layer.norm_first
    z = layer_norm(x, layer.normalization) if norm_first else x
    y, _ = gated_attention(
        reference_weights(layer.attention),
        z,
        z,
        num_heads=layer.num_heads,
        key_dim=layer.key_dim,
        gate_source=gate_source,
        query_mask=mask,
        value_mask=mask,
        **call,
    )
    y = x + y
    return y if norm_first else layer_norm(y, layer.normalization)


def call_arguments(call):
    return {
        name: tensor(value) if isinstance(value, np.ndarray) else value
        for name, value in call.items()
    }


@both_orders
@pytest.mark.parametrize("call", CALLS)
def test_formula(call, norm_first):
    x = normal(2, 4, 6)
    layer = block(x.shape, norm_first=norm_first)
    result = to_numpy(layer(tensor(x), **call_arguments(CALLS[call])))
    target = expected(layer, x, **CALLS[call])
    rows = PADDING if "mask" in CALLS[call] else np.ones((2, 4), bool)
    assert_close(result[rows], target[rows], 1e-5)


def test_gate_reads_input_and_context():
    """Its kernel is as wide as both, and each half has its say."""
    x = normal(2, 4, 6)
    layer = block(x.shape)
    kernel = layer.attention.output_gate.projection.kernel
    assert tuple(kernel.shape) == (6 + 2 * 4, 2, 4)
    both = to_numpy(layer(tensor(x)))
    for rows in (slice(6), slice(6, None)):
        value = to_numpy(kernel)
        changed = value.copy()
        changed[rows] = 0.0
        kernel.assign(changed)
        assert np.abs(to_numpy(layer(tensor(x))) - both).max() > 1e-3
        kernel.assign(value)


def test_weights_are_those_of_attention_and_normalization():
    layer = block((2, 4, 6))
    attention, norm = layer.attention, layer.normalization
    assert layer.weights == [*attention.weights, *norm.weights]
    assert layer.dropout == attention.dropout == 0.0
    # q, k and v; the gate; the output; the scale and shift of the norm.
    count = 3 * (6 + 1) * 8 + (6 + 8 + 1) * 8 + (8 + 1) * 6 + 2 * 6
    assert layer.count_params() == count


@both_orders
def test_arguments_of_gated_attention(norm_first):
    x = normal(2, 4, 6)
    layer = block(
        x.shape,
        norm_first=norm_first,
        num_heads=4,
        num_key_value_heads=2,
        gate_source="query",
        gate_granularity="headwise",
        context_normalization="rms",
        normalization_epsilon=0.01,
    )
    assert layer.normalization.epsilon == 0.01
    assert layer.attention.normalization_epsilon == 0.01
    target = expected(
        layer,
        x,
        gate_source="query",
        num_key_value_heads=2,
        gate_granularity="headwise",
        context_normalization="rms",
        normalization_epsilon=0.01,
    )
    assert_close(layer(tensor(x)), target, 1e-5)


@both_orders
@pytest.mark.parametrize("extra", ["nothing", "attention_mask", "padding"])
@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_causal_outputs_do_not_see_later_positions(dropout, extra, norm_first):
    x = normal(2, 5, 6)
    layer = block(x.shape, norm_first=norm_first, dropout=dropout)
    call = {"use_causal_mask": True}
    if extra == "attention_mask":
        call["attention_mask"] = tensor(np.ones((2, 5, 5), bool))
    elif extra == "padding":
        call["mask"] = tensor(np.ones((2, 5), bool))
    changed = x.copy()
    changed[:, -1] += 3.0
    first = to_numpy(layer(tensor(x), **call))
    second = to_numpy(layer(tensor(changed), **call))
    assert_close(second[:, :-1], first[:, :-1], 1e-6)
    assert np.abs(second[:, -1] - first[:, -1]).max() > 1e-3


@both_orders
@pytest.mark.parametrize("filling", [0.0, 1e4, np.nan])
@pytest.mark.parametrize("causal", [False, True])
def test_padded_rows_are_invisible(causal, filling, norm_first):
    x = normal(2, 4, 6)
    x[~PADDING] = filling
    layer = block(x.shape, norm_first=norm_first)
    result = to_numpy(
        layer(tensor(x), mask=tensor(PADDING), use_causal_mask=causal)
    )
    for row, length in enumerate(PADDING.sum(1)):
        alone = layer(tensor(x[row : row + 1, :length]), use_causal_mask=causal)
        assert_close(result[row : row + 1, :length], alone, 1e-5)


@both_orders
def test_keras_mask_with_an_attention_mask(norm_first):
    """Keras hands the mask over under another name then."""
    ids = np.array([[1, 2, 3, 4], [5, 6, 0, 0]])
    x = embed(ids)
    layer = block(x.shape, norm_first=norm_first)
    allowed = tensor(ALLOWED > 0)
    by_keras = layer(x, attention_mask=allowed)
    np.testing.assert_array_equal(keras_mask(by_keras), PADDING)
    plain = without_mask(x)
    explicit = layer(plain, attention_mask=allowed, mask=tensor(PADDING))
    assert_close(by_keras, explicit, 1e-6)
    other = to_numpy(layer(plain, attention_mask=allowed))
    assert np.abs(other - to_numpy(explicit))[PADDING].max() > 1e-3
    assert keras_mask(x) is not None


@both_orders
def test_dropout_acts_in_training_only(norm_first):
    x = tensor(normal(2, 4, 6))
    layer = block(x.shape, norm_first=norm_first, dropout=0.5, seed=3)
    plain = block(x.shape, norm_first=norm_first)
    before = to_numpy(plain(x))
    assert_close(layer(x), before, 1e-6)
    assert_close(layer(x, training=False), before, 1e-6)
    first = to_numpy(layer(x, training=True))
    second = to_numpy(layer(x, training=True))
    assert np.abs(first - before).max() > 1e-3
    assert np.abs(first - second).max() > 1e-3
    twin = GatedAttentionBlock.from_config(layer.get_config())
    twin.build(x.shape)
    random_weights(twin)
    assert_close(twin(x, training=True), first, 1e-6)


def test_dropout_is_on_what_is_added():
    """With all of it gone, about, a pre-norm block is the identity there."""
    x = normal(64, 4, 6)
    layer = block(x.shape, norm_first=True, dropout=0.9, seed=1)
    added = to_numpy(layer(tensor(x), training=True)) - x
    assert (added == 0).mean() == pytest.approx(0.9, abs=0.05)


@both_orders
def test_many_blocks_keep_the_signal(norm_first):
    """Each half-open gate halves what it is given, the residual does not."""
    x = normal(2, 4, 16)
    y, plain = tensor(x), tensor(x)
    for _ in range(12):
        layer = GatedAttentionBlock(2, 8, norm_first=norm_first)
        y = layer(y)
        plain = layer.attention(plain, plain)
    assert to_numpy(y).std() > 0.5
    assert to_numpy(plain).std() < 1e-2
    layer = block(x.shape, norm_first=norm_first)
    output, (for_input,), for_weights = gradients(layer, [x], np.ones_like(x))
    assert finite([output, for_input]) and finite(for_weights)


def test_rank_4():
    x = normal(2, 3, 4, 6)
    layer = block(x.shape, attention_axes=2)
    target = expected(layer, x, attention_axes=2)
    assert_close(layer(tensor(x)), target, 1e-5)


def test_trains_in_a_compiled_model():
    inputs = keras.Input((None, 6))
    outputs = GatedAttentionBlock(2, 4, dropout=0.1, seed=1)(
        inputs, use_causal_mask=True
    )
    model = keras.Model(inputs, outputs)
    jit = keras.backend.backend() == "jax"
    model.compile(keras.optimizers.Adam(0.01), "mse", jit_compile=jit)
    x = normal(8, 4, 6)
    first = model.train_on_batch(x, np.tanh(x))
    for _ in range(30):
        last = model.train_on_batch(x, np.tanh(x))
    assert last < 0.8 * first


BAD = {
    "heads": ({"num_heads": 0}, "num_heads.*0"),
    "size": ({"key_dim": -1}, "key_dim.*-1"),
    "dropout": ({"dropout": 1.0}, r"dropout.*1\.0"),
    "epsilon": ({"normalization_epsilon": 0}, "normalization_epsilon.*0"),
    "output": ({"output_shape": 8}, "output_shape=8"),
    "unknown": ({"gate_sites": "value"}, "gate_sites"),
    "site": ({"gate_site": "value"}, "gate_source"),
}


@pytest.mark.parametrize("arguments, message", BAD.values(), ids=BAD)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        GatedAttentionBlock(**{"num_heads": 2, "key_dim": 4, **arguments})


def test_bad_inputs():
    layer = GatedAttentionBlock(2, 4)
    with pytest.raises(ValueError, match=r"\(2, 6\)"):
        layer(tensor(normal(2, 6)))
    layer = block((2, 4, 6))
    with pytest.raises(ValueError, match=r"attention_mask.*\(2, 4\)"):
        layer(
            tensor(normal(3, 4, 6)),
            attention_mask=tensor(np.ones((2, 4), bool)),
        )
