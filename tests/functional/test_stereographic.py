"""Vectors in spaces of constant curvature: identities, peers and the rim."""

import math

import keras
import numpy as np
import pytest

from keras_gating import functional
from tests.gradients import gradients
from tests.oracles import load
from tests.oracles import part
from tests.utils import assert_close
from tests.utils import normal
from tests.utils import tensor
from tests.utils import to_numpy

CURVATURES = (-1.0, -0.3, 0.0, 0.5, 2.0)
PRECISIONS = [
    ("float32", 1e-5),
    pytest.param("float64", 1e-12, marks=pytest.mark.float64),
]
HALF = ("float16", "bfloat16")
# What points of each dtype keep from the rim, as the docstring says.
MARGINS = {"float16": 0.02, "bfloat16": 0.02, "float32": 1e-3}
ORACLES = load("stereographic")
FUNCTIONS = {
    "exp0": functional.exp0,
    "log0": functional.log0,
    "scale": lambda x, k, gate: functional.mobius_scale(gate, x, k),
    "add": lambda x, k, y: functional.mobius_add(x, y, k),
    "distance": lambda x, k, y: functional.stereographic_distance(x, y, k),
    "gnomonic": functional.gnomonic,
}


def points(count=20, size=0.5, seed=0, dtype="float64"):
    """Points of three features at distances up to `size`."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, 3))
    x /= np.linalg.norm(x, axis=-1, keepdims=True)
    return (size * rng.uniform(0.02, 1.0, (count, 1)) * x).astype(dtype)


class Function(keras.layers.Layer):
    """A function as a layer, for its gradients."""

    def __init__(self, function, **kwargs):
        super().__init__(**kwargs)
        self.function = function
        self.built = True

    def call(self, x, curvature, other=None):
        further = () if other is None else (other,)
        return self.function(x, curvature, *further)


def differentiated(name, inputs, cotangent, dtype="float64"):
    """Output and gradients in the order of the inputs."""
    layer = Function(FUNCTIONS[name], dtype=dtype)
    return gradients(layer, inputs, cotangent)[:2]


@pytest.mark.parametrize(("dtype", "tolerance"), PRECISIONS)
@pytest.mark.parametrize("k", CURVATURES)
def test_identities(k, dtype, tolerance):
    x, y = points(dtype=dtype), points(seed=1, dtype=dtype)
    a, b = np.array([[0.7], [0.45]], dtype)
    zero = np.zeros_like(x)

    def scale(gate, point):
        return functional.mobius_scale(gate, point, k)

    def add(first, second):
        return functional.mobius_add(first, second, k)

    def distance(first, second):
        return functional.stereographic_distance(first, second, k)

    def same(actual, expected):
        assert keras.backend.standardize_dtype(actual.dtype) == dtype
        assert_close(actual, expected, tolerance, scale=1.0)

    same(scale(np.ones(1, dtype), x), x)
    same(scale(np.zeros(1, dtype), x), zero)
    same(scale(a, scale(b, x)), scale(a * b, x))
    same(scale(a + b, x), add(scale(a, x), scale(b, x)))
    same(distance(zero, scale(a, x)), a * to_numpy(distance(zero, x)))
    same(functional.exp0(functional.log0(x, k), k), x)
    # The length of the geodesic along a tangent vector at the origin.
    along = 2.0 * np.linalg.norm(to_numpy(functional.log0(x, k)), axis=-1)
    same(distance(zero, x), along)
    same(add(-x, add(x, y)), y)
    same(add(x, zero), x)
    same(distance(x, y), to_numpy(distance(y, x)))
    # The step from x to y is as long as the way between them, wherever both
    # are moved by a step from the left.
    same(distance(zero, add(-x, y)), to_numpy(distance(x, y)))
    moved = to_numpy(distance(add(0.5 * y, x), add(0.5 * y, y)))
    same(distance(x, y), moved)
    if k == 0.0:
        same(scale(a, x), a * x)
        same(add(x, y), x + y)
        same(distance(x, y), 2.0 * np.linalg.norm(x - y, axis=-1))


@pytest.mark.float64
@pytest.mark.parametrize("k", [-3.0, -1e-3, -1e-9, 1e-9, 1e-3, 2.0])
def test_closed_forms(k):
    """Tangents and arctangents of NumPy, from zero to far out."""
    root = math.sqrt(abs(k))
    tan, arctan = (np.tan, np.arctan) if k > 0 else (np.tanh, np.arctanh)
    lengths = np.geomspace(1e-6, 0.1, 20) / root
    lengths = np.append(lengths, np.linspace(0.1, 1.5, 60) / root)
    direction = np.array([0.6, 0.0, -0.8])
    v = lengths[:, None] * direction
    expected = tan(root * lengths) / root
    x = functional.exp0(v, k)
    # Near a quarter turn the tangent has a pole.
    error = np.abs(to_numpy(x) @ direction / expected - 1.0)
    assert np.all(error < 1e-13 * np.maximum(1.0, root * expected))
    lengths = lengths / 1.6
    v = to_numpy(functional.log0(lengths[:, None] * direction, k))
    expected = arctan(root * lengths) / root
    assert_close(v @ direction / expected, np.ones(80), 1e-12)


def test_every_case_of_the_peer_is_here():
    names = {case["function"] for case in ORACLES[1]["cases"].values()}
    assert names == set(FUNCTIONS) - {"gnomonic"}


@pytest.mark.float64
@pytest.mark.parametrize("case", ORACLES[0])
def test_equals_geoopt(case):
    """Outputs and gradients of `geoopt.Stereographic` 0.5.1 in float64.

    Twenty random points each: `mobius_add`, `mobius_scalar_mul`, `expmap0`,
    `logmap0` and `dist`, with the gradients of `sum(out * cot)`, by k too
    except at k = 0, which geoopt does not learn from.
    """
    arrays, about = ORACLES[0][case], ORACLES[1]["cases"][case]
    given, expected = part(arrays, "in"), part(arrays, "gin")
    inputs = [given.pop("x"), np.array(about["curvature"]), *given.values()]
    names = ["x", "curvature", *given]
    outputs, slopes = differentiated(about["function"], inputs, arrays["cot"])
    assert_close(outputs, arrays["out"], 1e-10)
    for name, slope in zip(names, slopes):
        if name in expected:
            assert_close(slope, expected[name], 1e-8)


@pytest.mark.float64
@pytest.mark.parametrize("name", FUNCTIONS)
def test_slope_in_the_curvature_at_zero_is_the_difference_quotient(name):
    x, y = points(size=1.5), points(size=1.5, seed=1)
    further = {"scale": [y[:, :1]], "add": [y], "distance": [y]}.get(name, [])
    function, step = FUNCTIONS[name], 1e-5

    def value(k):
        return to_numpy(function(tensor(x), k, *map(tensor, further)))

    cotangent = np.random.default_rng(2).normal(size=value(0.0).shape)
    _, slopes = differentiated(name, [x, np.array(0.0), *further], cotangent)
    quotient = (value(step) - value(-step)) / (2.0 * step)
    np.testing.assert_allclose(
        slopes[1], np.sum(quotient * cotangent), rtol=1e-7
    )
    assert abs(slopes[1]) > 1e-3
    # And there is no step in it.
    assert_close(value(1e-13), value(-1e-13), 1e-12)


@pytest.mark.parametrize("k", [-4.0, -1e-6, 0.0, 1e-6, 4.0])
@pytest.mark.parametrize("dtype", ["float32", *HALF])
def test_far_points_stay_off_the_rim(dtype, k):
    x = points(size=1e4)
    x[:3] = [[0.0, 0.0, 0.0], [1e4, 1e4, 1e4], [1e-4, 0.0, 0.0]]
    x = keras.ops.cast(x, dtype)
    moved = {
        "exp0": functional.exp0(x, k),
        "log0": functional.log0(x, k),
        "scale": functional.mobius_scale(0.5, x, k),
        "add": functional.mobius_add(x, -0.3 * x, k),
        "gnomonic": functional.gnomonic(x, k, lift=True),
    }
    for name, y in moved.items():
        assert keras.backend.standardize_dtype(y.dtype) == dtype
        y = np.float64(to_numpy(keras.ops.cast(y, "float32")))
        # A sphere has all lengths, half precision does not.
        representable = dtype != "float16" or k <= 0.0
        assert not np.isnan(y).any()
        assert np.isfinite(y).all() or not representable, name
        if k < 0.0 and name in ("exp0", "scale", "add"):
            radius = np.linalg.norm(y, axis=-1) * math.sqrt(-k)
            assert radius.max() <= 1.0 - MARGINS[dtype] / 2.0
            assert radius.max() > 0.95 or name != "exp0"
    distance = functional.stereographic_distance(x, 0.0 * x, k)
    assert np.isfinite(to_numpy(keras.ops.cast(distance, "float32"))).all()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_slopes_are_finite_at_the_rim_at_zero_and_where_points_meet(name):
    x = [[0, 0, 0], [0.6, 0.8, 0], [1e4, 0, 0], [-1.5, 0, 0], [1e-30, 0, 0]]
    x = np.tile(np.float32(x), (6, 1))
    k = np.repeat(np.float32([-1.0, 0.0, 1.0]), 10)[:, None]
    # The point itself, and the one on the other side.
    met = np.tile(np.repeat(np.float32([1.0, -1.0]), 5), 3)[:, None] * x
    further = {"scale": np.ones_like(k), "add": met, "distance": met}
    inputs = [x, k, *([further[name]] if name in further else [])]
    shape = (30,) if name == "distance" else (30, 3)
    outputs, slopes = differentiated(name, inputs, np.ones(shape), "float32")
    for array in (outputs, *slopes):
        assert np.isfinite(array).all()


def test_opposite_points_are_half_the_way_around():
    x = points(dtype="float32")
    for k in (0.5, 2.0):
        opposite = -x / (k * np.sum(x * x, axis=-1, keepdims=True))
        distance = functional.stereographic_distance(x, opposite, k)
        expected = np.full(len(x), math.pi / math.sqrt(k))
        # Where a distance is longest it hides a displacement's square.
        assert_close(distance, expected, 1e-3)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_sums_opposite_to_the_origin_are_far_from_it(dtype):
    """Their numbers cancel: unless seen to, they may end at the origin."""
    x = points(200, size=2.0)
    for k in (0.5, 2.0):
        y = x / (k * np.sum(x * x, axis=-1, keepdims=True))
        total = functional.mobius_add(x.astype(dtype), y.astype(dtype), k)
        lengths = np.linalg.norm(np.float64(to_numpy(total)), axis=-1)
        angles = 2.0 * np.arctan(math.sqrt(k) * lengths)
        way = math.pi * (1.0 - MARGINS[dtype])
        np.testing.assert_allclose(angles, way, atol=1e-3)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_one_curvature_a_vector(name):
    """Three curvatures would be read as one for each feature."""
    x = points(3, dtype="float32")
    further = (x,) if name in ("scale", "add", "distance") else ()
    with pytest.raises(ValueError, match=r"curvature.shape=\(3,\)"):
        FUNCTIONS[name](x, np.ones(3, "float32"), *further)


def test_a_curvature_for_each_vector():
    x = points(len(CURVATURES), dtype="float32")
    k = np.float32(CURVATURES)[:, None]
    for name in ("exp0", "log0", "gnomonic"):
        together = to_numpy(FUNCTIONS[name](x, k))
        for i, one in enumerate(CURVATURES):
            alone = FUNCTIONS[name](x[i], one)
            assert_close(together[i], to_numpy(alone), 1e-6)


@pytest.mark.parametrize("size", [1e16, 1e20, 1e30])
def test_vectors_whose_squares_float32_does_not_hold(size):
    x = np.float32([[0.6 * size, 0.8 * size], [-size, 0.0], [0.3, 0.4]])
    unit = x / np.linalg.norm(np.float64(x), axis=-1, keepdims=True)
    origin = np.zeros_like(x)

    def value(name, k, *further):
        return to_numpy(getattr(functional, name)(*further, k))

    for k in (0.0, -2.0, 2.0):
        for name in ("exp0", "log0", "gnomonic"):
            assert np.isfinite(value(name, k, x)).all()
    assert_close(value("gnomonic", 0.0, x), x, 1e-6)
    assert_close(value("log0", 0.0, x), x, 1e-6)
    assert_close(value("mobius_add", 0.0, x, x), 2.0 * x, 1e-6)
    distance = value("stereographic_distance", 0.0, x, -x)
    assert_close(distance, 4.0 * np.linalg.norm(np.float64(x), axis=-1), 1e-6)
    # The hemisphere's rim, and the point opposite to the origin.
    far = value("gnomonic", 4.0, x)[:2]
    assert_close(far, 0.5 * unit[:2], 1e-6)
    far = value("stereographic_distance", 4.0, x, origin)[:2]
    # The angle there is known to the root of float32's precision.
    assert_close(far, np.full(2, np.pi / 2.0), 1e-3)
    lifted = functional.gnomonic(x, 4.0, lift=True)
    assert_close(to_numpy(lifted)[:2, 2], np.full(2, 0.5), 1e-6)


def test_slopes_far_out():
    x = np.float32([[6e19, 8e19, 0.0], [0.0, -1e20, 0.0]])
    for k in (-1.0, 0.0, 1.0):
        kappa = np.full((2, 1), k, "float32")
        _, slopes = differentiated("gnomonic", [x, kappa], 0.0 * x, "float32")
        for slope in slopes:
            assert np.isfinite(slope).all()


def test_one_point_scaled_by_several_gates():
    x, gates = 0.3 * normal(4, 2), np.array([0.0, 0.5, 1.0], "float32")
    together = functional.mobius_scale(gates[:, None, None], x, -1.0)
    for gate, result in zip(gates, to_numpy(together), strict=True):
        alone = functional.mobius_scale(gate, x, -1.0)
        assert_close(result, alone, 1e-6)
