"""`GLU` and its variants against the formula, and what its users trip over."""

import keras
import numpy as np
import pytest

from keras_gating import functional
from keras_gating.functional.glu import clamp
from keras_gating.layers import GEGLU
from keras_gating.layers import GLU
from keras_gating.layers import BilinearGLU
from keras_gating.layers import ReGLU
from keras_gating.layers import SwiGLU
from keras_gating.layers.initialization import StackedInitializer
from tests.reference import feed_forward as reference
from tests.utils import assert_close
from tests.utils import normal
from tests.utils import random_weights
from tests.utils import tensor
from tests.utils import to_numpy

VARIANTS = {
    "glu": (GLU, {}),
    "bilinear": (BilinearGLU, {}),
    "reglu": (ReGLU, {}),
    "geglu": (GEGLU, {}),
    "geglu_tanh": (GEGLU, {"approximate": True}),
    "swiglu": (SwiGLU, {}),
}


def built(kind, shape, **arguments):
    layer = kind(**arguments)
    layer.build(shape)
    return random_weights(layer)


def expected(layer, x, activation, **arguments):
    kernel, bias = (np.float64(to_numpy(w)) for w in layer.weights)
    return reference.glu(np.float64(x), kernel, bias, activation, **arguments)


@pytest.mark.parametrize("gate_first", [False, True])
@pytest.mark.parametrize("variant", VARIANTS)
def test_formula(variant, gate_first):
    """`act(gate) ⊙ value` with weights that tell the halves apart."""
    kind, arguments = VARIANTS[variant]
    x = normal(2, 5, 7)
    layer = built(kind, x.shape, units=6, gate_first=gate_first, **arguments)
    activation = reference.ACTIVATIONS[variant]
    result = expected(layer, x, activation, gate_first=gate_first)
    assert_close(layer(x), result, 1e-6)
    other = expected(layer, x, activation, gate_first=not gate_first)
    if variant != "bilinear":
        assert np.abs(result - other).max() > 0.1
    # The activation of the product, as a slip has it, is something else.
    kernel, bias = (np.float64(to_numpy(w)) for w in layer.weights)
    product = np.prod([x @ kernel[:, i] + bias[i] for i in (0, 1)], axis=0)
    if variant != "bilinear":
        assert np.abs(result - activation(product)).max() > 0.1


# A bias of shape (2, 1) next to two positions, or of (2, units) next to units.
@pytest.mark.parametrize("units", [1, 2, 3])
@pytest.mark.parametrize(
    "shape",
    [(4, 3), (2, 3), (2, 2, 3), (2, 3, 3), (3, 2, 2, 3), (2, 2, 3, 4, 5)],
)
def test_ranks_and_coinciding_sizes(shape, units):
    x = normal(*shape)
    layer = built(GLU, shape, units=units)
    result = expected(layer, x, reference.sigmoid)
    assert_close(layer(x), result, 1e-6)
    symbolic = keras.Input(shape[1:])
    model = keras.Model(symbolic, layer(symbolic))
    assert_close(model(tensor(x)), result, 1e-6)


@pytest.mark.parametrize(
    ("gate", "value", "product"), [(-20.0, 3.0, -1.24e-7), (20.0, 9.0, 48.9554)]
)
def test_limit(gate, value, product):
    """The gate is clamped from above only, the value on both sides."""
    layer = SwiGLU(1, limit=7.0, kernel_initializer="zeros")
    layer.build((None, 1))
    _, bias = layer.weights
    for sign in (1.0, -1.0):
        bias.assign([[sign * value], [gate]])
        output = float(to_numpy(layer(np.zeros((1, 1), "float32")))[0, 0])
        assert output == pytest.approx(sign * product, rel=3e-3, abs=0)
    packed = tensor(np.array([value, gate], "float32"))
    output = float(functional.glu(packed, "silu", limit=7.0)[0])
    assert output == pytest.approx(product, rel=3e-3, abs=0)


@pytest.mark.parametrize(
    "dtype",
    [
        "float16",
        "bfloat16",
        "float32",
        pytest.param("float64", marks=pytest.mark.float64),
    ],
)
def test_limit_keeps_the_dtype(dtype):
    values = keras.ops.cast(
        tensor(np.linspace(-9.0, 9.0, 5, dtype="float32")), dtype
    )
    for result in clamp(values, values, 7.0):
        assert keras.backend.standardize_dtype(result.dtype) == dtype


def test_product_of_float16_in_float32():
    """silu(255.875) · 261.75 is 66975.3, beyond the 65504 of float16."""
    bias = [[261.75], [255.875]]
    outputs = {}
    for product_dtype in (None, "float32"):
        layer = SwiGLU(
            1,
            product_dtype=product_dtype,
            kernel_initializer="zeros",
            dtype="float16",
        )
        layer.build((None, 1))
        layer.weights[1].assign(bias)
        outputs[product_dtype] = layer(np.zeros((1, 1), "float16"))
    assert np.isinf(to_numpy(outputs[None]))
    result = outputs["float32"]
    assert keras.backend.standardize_dtype(result.dtype) == "float32"
    assert float(to_numpy(result)[0, 0]) == pytest.approx(
        255.875 * 261.75, rel=1e-6
    )
    packed = tensor(np.array([261.75, 255.875], "float16"))
    product = functional.glu(packed, "silu", product_dtype="float32")
    assert float(product[0]) == pytest.approx(255.875 * 261.75, rel=1e-6)
    symbol = layer(keras.Input((1,), dtype="float16"))
    assert symbol.dtype == "float32"


def test_exact_and_tanh_gelu_are_distinct():
    gates = np.linspace(-4, 4, 801)
    packed = tensor(np.stack([np.ones(801), gates], -1).astype("float32"))
    results = {}
    for approximate, gelu in (
        (False, reference.gelu),
        (True, reference.gelu_tanh),
    ):
        layer = built(GEGLU, (801, 1), units=1, approximate=approximate)
        layer.weights[0].assign([[[0.0], [1.0]]])
        layer.weights[1].assign([[1.0], [0.0]])
        result = to_numpy(layer(gates[:, None].astype("float32")))[:, 0]
        np.testing.assert_allclose(result, gelu(gates), rtol=0, atol=1e-6)
        by_function = functional.glu(packed, layer.activation)
        assert_close(by_function, result[:, None], 1e-6)
        results[approximate] = result
    difference = np.abs(results[True] - results[False]).max()
    assert 4e-4 < difference < 5e-4


@pytest.mark.parametrize("axis", [1, -1, 2])
@pytest.mark.parametrize("gate_first", [False, True])
def test_function_halves_an_axis(axis, gate_first):
    x = normal(2, 6, 4)
    value, gate = np.split(np.float64(x), 2, axis=axis)
    if gate_first:
        value, gate = gate, value
    result = functional.glu(tensor(x), axis=axis, gate_first=gate_first)
    assert_close(result, value * reference.sigmoid(gate), 1e-6)


@pytest.mark.parametrize(
    ("shape", "axis"),
    [((2, 5), -1), ((3, 4), 0), ((2, 1), 1), ((2, 4), 2), ((2, 4), -3)],
)
def test_odd_splits_are_one_kind_of_error(shape, axis):
    with pytest.raises(ValueError, match=rf"even.*\({shape[0]}.*axis={axis}"):
        functional.glu(tensor(normal(*shape)), axis=axis)


def test_unknown_split_is_the_same_error():
    with pytest.raises(ValueError, match="even.*None.*axis=1"):
        functional.glu(keras.Input((None, 4)), axis=1)


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="graphs of TensorFlow"
)
def test_unknown_split_in_a_graph():
    import tensorflow as tf

    graph = tf.function(
        lambda x: functional.glu(x, axis=1),
        input_signature=[tf.TensorSpec((2, None, 4), "float32")],
    )
    with pytest.raises(ValueError, match="even.*None.*axis=1"):
        graph(tf.zeros((2, 6, 4)))


@pytest.mark.parametrize("seed", [None, 3, "generator"])
def test_each_half_is_initialized_by_itself(seed):
    """Glorot's variance is 2 / (d + units); by the packed shape it is less."""
    if seed == "generator":
        seed = keras.random.SeedGenerator(3)
    layer = GLU(
        60, kernel_initializer=keras.initializers.GlorotNormal(seed=seed)
    )
    layer.build((None, 80))
    value, gate = np.moveaxis(to_numpy(layer.weights[0]), 1, 0)
    for half in (value, gate):
        assert half.std() == pytest.approx(np.sqrt(2 / 140), rel=0.05)
    assert abs(np.corrcoef(value.ravel(), gate.ravel())[0, 1]) < 0.1


def test_seeded_halves_are_those_of_the_initializer():
    initializer = keras.initializers.GlorotUniform(seed=3)
    kernel = StackedInitializer(initializer)((8, 2, 4))
    assert_close(kernel[:, 0], initializer((8, 4)), 0.0)
    following = keras.initializers.GlorotUniform(seed=4)
    assert_close(kernel[:, 1], following((8, 4)), 0.0)
    copy = StackedInitializer.from_config(
        StackedInitializer(initializer).get_config()
    )
    assert_close(copy((8, 2, 4)), kernel, 0.0)


def test_gate_values_are_recorded():
    layer = built(SwiGLU, (2, 3, 4), units=5, name="unit")
    seen = []
    mask = np.array([[True, True, False], [True, False, False]])
    with functional.record_into(lambda *values: seen.append(values)):
        layer(tensor(normal(2, 3, 4)), mask=tensor(mask))
    ((path, gate, recorded),) = seen
    assert path == "unit" and tuple(gate.shape) == (2, 3, 5)
    np.testing.assert_array_equal(to_numpy(recorded), mask)


BAD = {
    "units-0": (GLU, {"units": 0}, "units.*0"),
    "units-float": (SwiGLU, {"units": 2.5}, r"units.*2\.5"),
    "limit-0": (GLU, {"units": 2, "limit": 0}, "limit.*0"),
    "limit-negative": (GLU, {"units": 2, "limit": -7.0}, r"limit.*-7\.0"),
    "activation": (GLU, {"units": 2, "activation": "sigmoidal"}, "sigmoidal"),
    "product": (GLU, {"units": 2, "product_dtype": "int8"}, "product.*int8"),
    "fixed": (ReGLU, {"units": 2, "activation": "relu"}, "activation"),
}


@pytest.mark.parametrize("kind, arguments, message", BAD.values(), ids=BAD)
def test_bad_arguments(kind, arguments, message):
    with pytest.raises(ValueError, match=message):
        kind(**arguments)


@pytest.mark.parametrize("shape", [(4,), (2, None), (2, 3, None)])
def test_bad_build(shape):
    with pytest.raises(ValueError, match="rank 2.*features.*shape"):
        GLU(3).build(shape)


def test_other_features_than_built():
    layer = built(GLU, (2, 3, 4), units=5)
    for shape in ((2, 3, 6), (2, 4)):
        with pytest.raises(ValueError, match="expected"):
            layer(tensor(normal(*shape)))
