"""Half precision, the explicit path, and derivatives of any order."""

import keras
import numpy as np
import pytest

from keras_gating import _backend
from keras_gating import functional
from keras_gating.layers import GatedAttention
from tests.layers.attention.common import attention
from tests.layers.attention.common import gated_and_ungated
from tests.layers.attention.common import reference_weights
from tests.reference.attention import gated_attention
from tests.utils import assert_close
from tests.utils import normal
from tests.utils import tensor
from tests.utils import to_numpy

MASK = np.array([[1, 1, 0, 1], [1, 1, 1, 0], [0, 1, 1, 1], [1, 1, 1, 1]], bool)
CALLS = {
    "plain": {},
    "causal": {"use_causal_mask": True},
    "mask": {"attention_mask": MASK},
    "padding": {"value_mask": np.array([[1, 1, 1, 0]] * 2, bool)},
}


@pytest.mark.parametrize("dtype", ["float16", "mixed_float16"])
@pytest.mark.parametrize("call", ["plain", "causal", "mask"])
@pytest.mark.parametrize("use_gate", [True, False], ids=["gated", "ungated"])
def test_query_is_scaled_before_the_product(use_gate, call, dtype):
    """With q = k = 48 and 64 features q k is 147456, beyond float16."""
    layer = GatedAttention(1, 64, use_gate=use_gate, dtype=dtype)
    x = np.ones((2, 4, 48), "float16")
    layer.build(x.shape, x.shape)
    for name in ("query", "key", "value", "output"):
        kernel = getattr(layer, f"{name}_dense").kernel
        kernel.assign(np.ones(kernel.shape))
    # Equal values: the context is 48 wherever it looks; a fresh gate is 1/2.
    expected = 48.0 * 64 * (0.5 if use_gate else 1.0)
    for scores in (False, True):
        output = layer(x, x, **CALLS[call], return_attention_scores=scores)
        output = to_numpy(output[0] if scores else output)
        np.testing.assert_allclose(output, expected, rtol=1e-3)


@gated_and_ungated
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("call", CALLS)
def test_half_precision_eager_and_compiled(call, dtype, use_gate):
    x = normal(2, 4, 8)
    layer = attention(x, x, use_gate=use_gate, dtype=dtype)
    expected, _ = gated_attention(
        reference_weights(layer),
        x,
        x,
        num_heads=2,
        key_dim=4,
        use_gate=use_gate,
        **CALLS[call],
    )
    tolerance = 1e-2 if dtype == "float16" else 5e-2
    eager = layer(x, x, **CALLS[call])
    assert keras.backend.standardize_dtype(eager.dtype) == dtype
    assert_close(np.float32(to_numpy(eager)), expected, tolerance)
    compiled = _backend.compiled(lambda x: layer(x, x, **CALLS[call]))
    output = np.float32(to_numpy(compiled(tensor(x, dtype))))
    assert_close(output, expected, tolerance)


@gated_and_ungated
def test_predict_in_float16(use_gate):
    x = normal(2, 4, 8)
    inputs = keras.Input((4, 8))
    layer = GatedAttention(2, 4, use_gate=use_gate, dtype="float16")
    model = keras.Model(inputs, layer(inputs, inputs, use_causal_mask=True))
    output = np.float32(model.predict(x, verbose=0))
    expected = np.float32(to_numpy(layer(x, x, use_causal_mask=True)))
    assert_close(output, expected, 1e-2)


@gated_and_ungated
@pytest.mark.parametrize("call", CALLS)
def test_explicit_path_gives_the_same_numbers(call, use_gate):
    x = normal(2, 4, 8)
    layer = attention(x, x, use_gate=use_gate)
    free = layer(x, x, **CALLS[call])
    with functional.explicit_attention():
        demanded = layer(x, x, **CALLS[call])
    assert_close(demanded, free, 1e-5)


def _derivatives(layer, x, direction, use_gate, call, step=1e-3):
    """First and second directional derivatives, by differences in float64."""
    weights = reference_weights(layer)

    def f(x):
        output, _ = gated_attention(
            weights, x, x, num_heads=2, key_dim=4, use_gate=use_gate, **call
        )
        return output

    x, direction = np.float64(x), step * np.float64(direction)
    ahead, here, behind = f(x + direction), f(x), f(x - direction)
    first = (ahead - behind) / (2.0 * step)
    return first, (ahead - 2.0 * here + behind) / step**2


@gated_and_ungated
@pytest.mark.parametrize("call", CALLS)
def test_forward_mode_on_the_explicit_path(call, use_gate):
    x, direction = normal(2, 4, 8, seed=1), normal(2, 4, 8, seed=2)
    layer = attention(x, x, use_gate=use_gate)
    first, _ = _derivatives(layer, x, direction, use_gate, CALLS[call])

    def f(x):
        return layer(x, x, **CALLS[call])

    with functional.explicit_attention():
        _, tangent = keras.ops.jvp(f, (tensor(x),), (tensor(direction),))
    assert_close(tangent, first, 1e-4)


@gated_and_ungated
@pytest.mark.parametrize("call", CALLS)
def test_second_derivatives_inside_a_compiled_function(call, use_gate):
    x, direction = normal(2, 4, 8, seed=1), normal(2, 4, 8, seed=2)
    layer = attention(x, x, use_gate=use_gate)
    _, expected = _derivatives(layer, x, direction, use_gate, CALLS[call])

    def first(x, direction):
        def f(x):
            return layer(x, x, **CALLS[call])

        return keras.ops.jvp(f, (x,), (direction,))[1]

    def second(x, direction):
        def g(x):
            return first(x, direction)

        return keras.ops.jvp(g, (x,), (direction,))[1]

    with functional.explicit_attention():
        actual = _backend.compiled(second)(tensor(x), tensor(direction))
    assert_close(actual, expected, 1e-4)


@pytest.mark.parametrize("child", ["query_norm", "key_norm"])
def test_rotary_embedding_of_two_dtypes(child):
    """A policy map may let query and key be normalized in different ones."""
    x = normal(1, 600, 8)
    arguments = {
        "query_key_normalization": "rms",
        "rope_max_wavelength": 1e4,
        "name": "layer",
    }
    policy = keras.dtype_policies.DTypePolicyMap(
        default_policy="float32",
        policy_map={f"layer/{child}": keras.DTypePolicy("mixed_bfloat16")},
    )
    layer = attention(x, x, **arguments, dtype=policy)
    plain = attention(x, x, **arguments)
    plain.set_weights(layer.get_weights())
    assert_close(layer(x, x), plain(x, x), 1e-2)
    query, key = (tensor(normal(1, 600, 2, 4)) for _ in range(2))
    narrow = keras.ops.cast(query, "bfloat16")
    _, actual = layer._rotated(narrow, key, 0)
    _, expected = layer._rotated(key, key, 0)
    assert_close(actual, expected, 1e-6)
