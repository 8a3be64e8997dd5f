"""Logits and scores of ±1e4 in every precision: no NaN, no infinity."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_gating import layers
from tests.contract.test_dtypes import POLICIES
from tests.gradients import gradients
from tests.utils import normal
from tests.utils import relative_path

X = normal(2, 3, 4)
# Biases of logits that are ±1e4: the gate is the second half, if there is one.
LOGITS, SECOND = "logits", "logits of the second half"
# Kernels and offsets of which scores, or logits, of up to 1e4 come.
SCORES, KERNEL = 600.0, 1e5
CASES = {
    "gate": (layers.Gate, {}, {"projection/bias": LOGITS}),
    "gate_silu": (
        layers.Gate,
        {"activation": "silu"},
        {"projection/bias": LOGITS},
    ),
    "curvature_gate": (
        layers.CurvatureGate,
        {"chart": "stereographic", "curvature": -1.0},
        {"projection/bias": LOGITS},
    ),
    **{
        name.lower(): (
            getattr(layers, name),
            {"units": 3},
            {"projection/bias": SECOND},
        )
        for name in ("GLU", "BilinearGLU", "ReGLU", "SwiGLU", "GEGLU")
    },
    "feed_forward": (
        layers.GatedFeedForward,
        {"hidden_dim": 4, "use_bias": True},
        {"hidden/projection/bias": SECOND},
    ),
    "squeeze_excite": (
        layers.SqueezeExcite,
        {"ratio": 2},
        {"expansion/bias": LOGITS},
    ),
    "eca": (layers.ECA, {}, {"convolution/kernel": KERNEL}),
    "cbam": (
        layers.CBAM,
        {"ratio": 2, "kernel_size": 3},
        {"expansion/kernel": KERNEL, "convolution/kernel": KERNEL},
    ),
    "attention": (
        layers.GatedAttention,
        {
            "num_heads": 2,
            "key_dim": 4,
            "gate_site": ("output", "value", "key", "query"),
            "rope_max_wavelength": 100.0,
        },
        {
            "query/bias": SCORES,
            "key/bias": SCORES,
            **{
                f"{gate}/projection/bias": LOGITS
                for gate in ("/gate", "value_gate", "key_gate", "query_gate")
            },
        },
    ),
    "attention_block": (
        layers.GatedAttentionBlock,
        {"num_heads": 2, "key_dim": 4},
        {
            "query/bias": SCORES,
            "key/bias": SCORES,
            "gate/projection/bias": LOGITS,
        },
    ),
    **{
        f"unit_{name}": (
            layers.GatedAttentionUnit,
            {"key_dim": 4, **arguments},
            {weight: size},
        )
        for name, arguments, weight, size in (
            ("gate", {}, "hidden/bias", SECOND),
            ("relu2", {}, "query_key_offset", SCORES),
            (
                "laplace",
                {"attention_activation": "laplace"},
                "query_key_offset",
                SCORES,
            ),
            (
                "softmax",
                {"attention_activation": "softmax"},
                "query_key_offset",
                SCORES,
            ),
            ("chunked", {"chunk_size": 2}, "query_key_offset", SCORES),
        )
    },
}


class Every(keras.layers.Layer):
    """All of them on one input, so that one program is compiled."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.parts = [
            layer(**arguments, name=name, dtype=self.dtype_policy)
            for name, (layer, arguments, _) in CASES.items()
        ]

    def build(self, input_shape):
        for part in self.parts:
            part.build(*[input_shape] * num_inputs(part))

    def call(self, x):
        outputs = [part(*[x] * num_inputs(part)) for part in self.parts]
        return ops.concatenate([ops.reshape(y, (-1,)) for y in outputs])


def num_inputs(part):
    return 2 if isinstance(part, layers.GatedAttention) else 1


def to_extremes(part):
    rng = np.random.default_rng(0)
    found = set()
    for weight in part.weights:
        value = 0.1 * rng.normal(size=tuple(weight.shape))
        path = "/" + relative_path(part, weight)
        for suffix, size in CASES[part.name][2].items():
            if not path.endswith(suffix):
                continue
            found.add(suffix)
            if size in (LOGITS, SECOND):
                logits = np.where(value > 0, 1e4, -1e4)
                value = logits if size == LOGITS else [value[0], logits[1]]
            else:
                value = size * value
        weight.assign(np.asarray(value, "float32"))
    assert found == set(CASES[part.name][2]), part.name


# Compiling takes long there, and the other dtypes reach further.
ON_JAX = keras.config.backend() == "jax"


@pytest.mark.parametrize("policy", ["float16"] if ON_JAX else POLICIES)
def test_finite(policy):
    every = Every(dtype=policy)
    every.build(X.shape)
    for part in every.parts:
        to_extremes(part)
    sizes = [
        np.prod(part.compute_output_shape(*[X.shape] * num_inputs(part)))
        for part in every.parts
    ]
    cotangent = normal(sum(sizes)) / 10.0
    outputs, for_inputs, for_weights = gradients(
        every, [X], cotangent, compiled=True
    )
    pieces = np.split(np.float32(outputs), np.cumsum(sizes)[:-1])
    names = [part.name for part in every.parts]
    bad = [n for n, y in zip(names, pieces) if not np.isfinite(y).all()]
    bad += [
        path
        for path, gradient in for_weights.items()
        if not np.isfinite(np.float32(gradient)).all()
    ]
    assert bad == []
    assert np.isfinite(np.float32(for_inputs[0])).all()
