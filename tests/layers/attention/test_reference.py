"""`GatedAttention` against the NumPy reference, option by option."""

import keras
import pytest

from tests.layers.attention.common import attention
from tests.layers.attention.common import reference_weights
from tests.layers.attention.reference_cases import GRID
from tests.layers.attention.reference_cases import SIZES
from tests.reference.attention import gated_attention
from tests.utils import assert_close
from tests.utils import normal
from tests.utils import tensor


def compare(shapes, call, arguments, dtype, tolerance):
    """Fused and explicit; `tolerance` tells by path."""
    arrays = {
        name: normal(*shape, seed=seed, dtype=dtype)
        for seed, (name, shape) in enumerate(shapes.items(), 1)
    }
    arguments = {**SIZES, **arguments}
    call = call()
    gate_input = call.get("gate_input")
    layer = attention(**arrays, gate_input=gate_input, dtype=dtype, **arguments)
    expected, probabilities = gated_attention(
        reference_weights(layer), **arrays, **arguments, **call
    )
    inputs = {name: tensor(array) for name, array in arrays.items()}
    if gate_input is not None:
        call["gate_input"] = tensor(gate_input, dtype)
    output = layer(**inputs, **call)
    assert_close(output, expected, tolerance["fused"])
    # The scores take the explicit path: the same numbers.
    output, scores = layer(**inputs, **call, return_attention_scores=True)
    assert_close(output, expected, tolerance["explicit"])
    if arguments.get("masked_rows") != "uniform":
        assert_close(scores, probabilities, tolerance["explicit"])


def float64_tolerance(arguments):
    """1e-10 wherever Keras itself keeps float64.

    On JAX its sine, cosine, tanh and variance are float32, on PyTorch its
    variance; on both, its mean (hence its RMS normalisation) and its fused
    attention compute in float32 and are off by some 1e-7.
    """
    backend = keras.backend.backend()
    normalizations = {
        arguments.get("context_normalization"),
        arguments.get("query_key_normalization"),
    }
    functions = (
        arguments.get("rope_max_wavelength") is not None
        or arguments.get("gate_activation") == "tanh"
    )
    explicit = 1e-10
    if backend == "tensorflow" and arguments.get("gate_activation") == "gelu":
        explicit = 1e-8  # its √2 passes through float32
    if backend != "tensorflow" and "rms" in normalizations:
        explicit = 1e-6
    if backend != "tensorflow" and "layer" in normalizations:
        explicit = 1e-5
    if backend == "jax" and functions:
        explicit = 1e-5
    fused = max(explicit, 1e-10 if backend == "tensorflow" else 1e-6)
    return {"fused": fused, "explicit": explicit}


@pytest.mark.parametrize("shapes, call, arguments", GRID)
def test_equals_reference_in_float32(shapes, call, arguments):
    tolerance = {"fused": 1e-5, "explicit": 1e-5}
    compare(shapes, call, arguments, "float32", tolerance)


@pytest.mark.float64
@pytest.mark.parametrize("shapes, call, arguments", GRID)
def test_equals_reference_in_float64(shapes, call, arguments):
    tolerance = float64_tolerance(arguments)
    compare(shapes, call, arguments, "float64", tolerance)
