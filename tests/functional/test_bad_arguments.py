"""Functions refuse what does not fit, in words instead of a backend's error."""

import keras
import numpy as np
import pytest

from keras_gating import functional
from tests.utils import normal

pytestmark = pytest.mark.skipif(
    keras.config.backend() != "torch", reason="The same on all backends."
)

X = normal(2, 3, 4)
HEADS = normal(2, 3, 2, 4)
ATTENTION = {"query": HEADS, "key": HEADS, "value": HEADS}
QUADRATIC = {"query": X, "key": X, "value": X}
CHUNKED = {"queries": (X, X), "keys": (X, X), "value": X, "chunk_size": 2}
ROTARY = {"x": X, "positions": np.arange(3)}
CASES = [
    (functional.apply_gate, {"inputs": X, "logits": X}, change)
    for change in (
        {"inputs": "x"},
        {"inputs": X.astype("complex64")},
        {"logits": normal(2, 3, 5)},
        {"logits": normal(2, 2, 3, 4)},
        {"scale": 0},
        {"scale": "2"},
        {"dropout": 1.0},
        {"mask": np.ones((2, 4), bool)},
        {"mask": np.ones((3, 3), bool)},
        {"mask": np.ones((2, 3, 3), bool)},
        {"mask": True},
        {"product_dtype": "int32"},
    )
]
CASES += [
    (functional.dot_product_attention, ATTENTION, change)
    for change in (
        {"is_causal": "yes"},
        {"return_scores": 2},
        {"query": normal(2, 3, 4)},
        {"key": normal(3, 3, 2, 4)},
        {"value": normal(2, 4, 2, 4)},
        {"mask": np.ones((2, 2, 3, 4), bool)},
        {"mask": np.array(True)},
    )
]
CASES += [
    (functional.quadratic_attention, QUADRATIC, change)
    for change in (
        {"is_causal": 0.0},
        {"key": normal(2, 3, 5)},
        {"value": normal(2, 4, 4)},
        {"mask": np.ones((2, 4, 3), bool)},
        {"mask": np.ones((3, 3), bool)},
        {"key_mask": np.ones((2, 4), bool)},
        {"offset": 1.5},
        {"divisor": "length"},
        {"divisor": None},
        {"divisor": X},
    )
]
CASES += [
    (functional.mixed_chunk_attention, CHUNKED, change)
    for change in (
        {"queries": X},
        {"keys": (X, normal(2, 3, 5))},
        {"value": normal(2, 4, 4)},
        {"key_mask": np.ones((2, 4), bool)},
        {"is_causal": None},
        {"divisors": ("visible", np.arange(1.0, 5.0))},
        {"divisors": ("length", "visible")},
        {"divisors": (float("nan"), 2)},
    )
]
CASES += [
    (functional.apply_rotary, ROTARY, change)
    for change in (
        {"positions": np.arange(4)},
        {"axis": 3},
        {"axis": "1"},
        {"width": 2.0},
        {"max_wavelength": float("inf")},
    )
]
CASES += [
    (functional.glu, {"inputs": X}, {"gate_first": -1}),
    (functional.glu, {"inputs": X}, {"limit": 0}),
    (functional.glu, {"inputs": X}, {"axis": [1]}),
    (functional.gnomonic, {"inputs": X, "curvature": 0.5}, {"lift": "yes"}),
    (functional.gnomonic, {"inputs": X}, {"curvature": "flat"}),
    (functional.mobius_add, {"x": X, "curvature": 1.0}, {"y": normal(2, 5)}),
    (functional.mobius_scale, {"x": X, "curvature": 1.0}, {"gate": normal(5)}),
    (
        functional.stereographic_distance,
        {"x": X, "y": X},
        {"curvature": normal(5, 1)},
    ),
    (
        functional.offset_scale,
        {"inputs": X, "offset": normal(2, 4)},
        {"scale": normal(2, 5)},
    ),
    (functional.relative_position_bucket, {"distance": 3}, {"num_buckets": 3}),
    (functional.relative_position_bucket, {}, {"distance": 1.5}),
    (
        functional.relative_position_bias,
        {"table": normal(32), "num_queries": 3},
        {"num_keys": -1},
    ),
    (
        functional.relative_position_bias,
        {"table": normal(32), "num_queries": 3, "num_keys": 3},
        {"max_distance": 0},
    ),
    (functional.causal_mask, {"source_shape": (3,)}, {"target_shape": 3}),
    (
        functional.sliding_window_mask,
        {"target_length": 3, "source_length": 3},
        {"window": 0},
    ),
    (functional.as_boolean_mask, {}, {"mask": "yes"}),
    (functional.AttentionLayout.resolve, {"axes": None}, {"rank": 2}),
    (functional.AttentionLayout.resolve, {"rank": 4}, {"axes": 1}),
    (functional.relu2, {}, {"x": 1j}),
]


@pytest.mark.parametrize(("function", "arguments", "change"), CASES)
def test_bad_argument(function, arguments, change):
    (name,) = change
    with pytest.raises(ValueError, match=f"{name}.*Received|Received.*{name}"):
        function(**{**arguments, **change})


def test_what_fits_runs():
    """The cases are bad for what they change alone."""
    for function, arguments in (
        (functional.dot_product_attention, ATTENTION),
        (functional.quadratic_attention, QUADRATIC),
        (functional.mixed_chunk_attention, CHUNKED),
        (functional.apply_rotary, ROTARY),
    ):
        function(**arguments)


@pytest.mark.parametrize("x", [True, 2])
def test_activations_take_flags_and_integers_as_floats(x):
    assert float(functional.relu2(x)) == float(x) ** 2
    assert 0.0 < float(functional.laplace(x)) <= 1.0
