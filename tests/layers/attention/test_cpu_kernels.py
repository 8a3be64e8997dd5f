"""The forms of attention for CPUs compute what the explicit path does."""

import keras
import numpy as np
import pytest

from keras_gating._backend import on_torch
from keras_gating.functional import cpu_kernels
from keras_gating.functional import explicit_attention
from tests.gradients import gradients
from tests.layers.attention.common import attention
from tests.utils import assert_close
from tests.utils import normal
from tests.utils import tensor

BACKEND = keras.config.backend()
FORMS = {
    "jax": ("batched", "by_head"),
    "tensorflow": ("batched",),
    "torch": ("strided",),
}

X, CONTEXT = normal(2, 4, 6), normal(2, 5, 6, seed=1)
PADDING = np.ones((2, 5), bool)
PADDING[1, 3:] = False
# A mask of its own for every head, and a row that sees nothing.
PER_HEAD = np.random.default_rng(2).random((2, 4, 4, 5)) < 0.7
PER_HEAD[0, 2, 1] = False
CASES = {
    "causal, grouped": (
        {"num_key_value_heads": 2},
        [X, X],
        {"use_causal_mask": True},
    ),
    "padding, another size of values": (
        {"value_dim": 3},
        [X, CONTEXT],
        {"value_mask": PADDING},
    ),
    "a mask for every head": (
        {"masked_rows": "uniform"},
        [X, CONTEXT],
        {"attention_mask": PER_HEAD},
    ),
}


# From so many scores of a head on, torch gets copies.
@pytest.mark.parametrize("long", [2**22, 1] if BACKEND == "torch" else [2**22])
@pytest.mark.parametrize("case", CASES)
def test_values_and_gradients_are_those_of_the_explicit_path(
    case, long, monkeypatch
):
    monkeypatch.setattr(on_torch, "_LONG", long)
    arguments, inputs, call = CASES[case]
    layer = attention(*inputs, num_heads=4, **arguments)
    cotangent = normal(*X.shape, seed=3)
    with explicit_attention():
        expected = gradients(layer, inputs, cotangent, **call)
    used = []
    attend = cpu_kernels.attend
    monkeypatch.setattr(
        cpu_kernels, "attend", lambda *args: used.append(args) or attend(*args)
    )
    for form in FORMS[BACKEND]:
        monkeypatch.setattr(cpu_kernels, "choose", lambda *_, form=form: form)
        output, for_inputs, for_weights = gradients(
            layer, inputs, cotangent, **call
        )
        assert used.pop()[0] == form
        assert_close(output, expected[0], 1e-5)
        for actual, wanted in zip(for_inputs, expected[1]):
            assert_close(actual, wanted, 1e-5)
        for path, wanted in expected[2].items():
            assert_close(for_weights[path], wanted, 1e-5, scale=1.0)


def test_the_form_follows_from_backend_dtype_and_size():
    def choose(length, source_length, heads=1, dtype="float32"):
        query, key = (
            tensor(np.zeros((2, size, heads, 1), dtype))
            for size in (length, source_length)
        )
        return cpu_kernels.choose(query, key)

    chosen = [
        choose(511, 512, heads=9),
        choose(256, 1024, heads=7),
        choose(256, 1024, heads=8),
        choose(4, 4, dtype="float16"),
    ]
    assert (
        chosen
        == {
            "jax": ["batched", "batched", "by_head", None],
            "tensorflow": ["batched", "batched", "batched", None],
            "torch": ["strided", "strided", "strided", None],
        }[BACKEND]
    )
    if BACKEND == "jax":
        devices = keras.distribution.list_devices()[:1]
        with keras.distribution.DataParallel(devices=devices).scope():
            assert choose(4, 4) is None
