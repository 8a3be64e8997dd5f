"""`CurvatureGate`: the plain gate at 0, both directions from there, limits."""

import keras
import numpy as np
import pytest

from keras_gating import diagnostics
from keras_gating import functional
from keras_gating.layers import CurvatureGate
from keras_gating.layers import Gate
from tests.gradients import gradients
from tests.utils import assert_close
from tests.utils import normal
from tests.utils import to_numpy

CHARTS = ("gnomonic", "stereographic")


def constant(value, chart="stereographic", **arguments):
    """A stereographic gate with a gate of one fixed number."""
    return CurvatureGate(
        chart=chart,
        source="constant",
        activation="linear",
        bias_initializer=keras.initializers.Constant(value),
        **arguments,
    )


@pytest.mark.parametrize("granularity", ["elementwise", "headwise", "shared"])
def test_flat_is_the_plain_gate(granularity):
    context, query = normal(2, 3, 4, 6), normal(2, 3, 5, seed=1)
    plain = Gate(granularity=granularity, scale=1.5)
    curved = CurvatureGate(
        chart="stereographic", granularity=granularity, scale=1.5
    )
    expected = plain(context, source=query)
    curved(context, source=query)
    kernel, bias = plain.get_weights()
    weights = [normal(*kernel.shape, seed=2), normal(*bias.shape, seed=3)]
    plain.set_weights(weights)
    curved.set_weights([np.float32(0.0), *weights])
    expected = plain(context, source=query)
    assert_close(curved(context, source=query), to_numpy(expected), 1e-6)
    np.testing.assert_array_equal(to_numpy(CurvatureGate()(context)), context)


@pytest.mark.parametrize("k", [-1.0, -0.3, 0.5, 2.0])
def test_layers_are_their_formulas(k):
    x = 0.2 * normal(4, 3, 5)
    y = constant(0.7, curvature=k)(x)
    assert_close(y, to_numpy(functional.mobius_scale(0.7, x, k)), 1e-6)
    y = to_numpy(CurvatureGate(k, lift=True)(x))
    squares = np.sum(np.float64(x) ** 2, axis=-1, keepdims=True)
    q = np.sqrt(1.0 + k * squares)
    height = np.sqrt(abs(k)) * squares / (q * (1.0 + q))
    assert_close(y, np.concatenate([x / q, height], axis=-1), 1e-6)
    # All of it is on the sphere, or the hyperboloid, that touches 0.
    above = 1.0 / np.sqrt(abs(k)) - np.sign(k) * y[..., -1]
    form = np.sum(y[..., :-1] ** 2, axis=-1) + np.sign(k) * above**2
    assert_close(form, np.full(form.shape, 1.0 / k), 1e-5)


def test_curvature_leaves_zero_in_both_directions():
    """Four layers learn to be others, of curvature ±½, from 0."""
    keras.utils.set_random_seed(0)
    inputs = keras.Input((4,))
    x = 0.35 * normal(64, 4)
    layers, targets = [], []
    for k in (-0.5, 0.5):
        layers.append(CurvatureGate(lift=True, curvature_speed=2.0))
        targets.append(CurvatureGate(k, lift=True)(x))
        layers.append(constant(0.7))
        targets.append(constant(0.7, curvature=k)(x))
    model = keras.Model(inputs, [layer(inputs) for layer in layers])
    model.compile(keras.optimizers.Adam(0.03), ["mse"] * 4)
    targets = [to_numpy(y) for y in targets]
    model.fit(
        np.tile(x, (120, 1)),
        [np.tile(y, (120, 1)) for y in targets],
        batch_size=len(x),
        shuffle=False,
        verbose=0,
    )
    learnt = [layer.current_curvature() for layer in layers]
    np.testing.assert_allclose(learnt, [-0.5, -0.5, 0.5, 0.5], atol=0.02)
    # The weight of the faster ones has had half of the way to go.
    assert abs(to_numpy(layers[0].kappa) + 0.25) < 0.01


@pytest.mark.parametrize("policy", ["float32", "float16", "mixed_bfloat16"])
def test_large_inputs_train_and_stay_off_the_rim(policy):
    """Inputs up to 1e4 and curvatures that leave 0, to both sides."""
    x = normal(8, 4)
    x *= np.geomspace(1e-4, 1e4, 8)[:, None] / np.abs(x).max(1, keepdims=True)
    x = x.astype("float32")
    inputs = keras.Input((4,))
    layers, targets = [], []
    for chart in CHARTS:
        for target in (0.0, 1e4):
            layers.append(CurvatureGate(chart=chart, dtype=policy))
            targets.append(np.float32(target * np.sign(x)))
    model = keras.Model(inputs, [layer(inputs) for layer in layers])
    # The slope of a gate's kernel has two inputs as its factors: without a
    # scale of the loss it would overflow in float16, curved or not.
    model.compile(
        keras.optimizers.Adam(0.1),
        ["mae"] * 4,
        loss_weights=[1e-4] * 4,
        jit_compile=keras.config.backend() == "jax",
    )
    for _ in range(3):
        assert np.isfinite(model.train_on_batch(x, targets)).all()
    for weight in model.weights:
        assert np.isfinite(np.float32(to_numpy(weight))).all()
    curvatures = [layer.current_curvature() for layer in layers]
    assert min(curvatures) < -0.05 and max(curvatures) > 0.05
    for layer, k in zip(layers, curvatures):
        assert k != 0.0
        y = np.float32(to_numpy(keras.ops.cast(layer(x), "float32")))
        assert np.isfinite(y).all()
        if k < 0.0 and layer.chart == "stereographic":
            radius = np.sqrt(-k) * np.linalg.norm(y, axis=-1)
            assert radius.max() < 1.0 - 4e-4


@pytest.mark.parametrize("chart", CHARTS)
@pytest.mark.parametrize("k", [-1e-8, 0.0, 1e-8, -2.0])
def test_slopes_are_finite(chart, k):
    layer = CurvatureGate(k, chart=chart)
    x = np.float32([[0, 0, 0], [1e4, 1e4, -1e4], [0.5, 0.5, 0.0]])
    layer.build(x.shape)
    outputs, (slope,), weights = gradients(layer, [x], np.ones((3, 3)))
    for array in (outputs, slope, *weights.values()):
        assert np.isfinite(array).all()
    assert all(np.any(array != 0.0) for array in weights.values())


def test_a_fixed_curvature_and_a_frozen_layer():
    def trained(**arguments):
        layer = CurvatureGate(-0.5, chart="stereographic", **arguments)
        layer.build((None, 3))
        return [
            weight.path.split("/")[-1] for weight in layer.trainable_weights
        ]

    assert trained() == ["kappa", "kernel", "bias"]
    assert trained(curvature_trainable=False) == ["kernel", "bias"]
    assert trained(trainable=False) == []


def test_a_frozen_layer_is_made_from_its_configuration():
    layer = CurvatureGate(-0.5, curvature_speed=2.0)
    layer.trainable = False
    copy = CurvatureGate.from_config(layer.get_config())
    assert copy.curvature_speed == 2.0 and not copy.trainable


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"curvature": float("nan")}, "curvature=nan"),
        ({"curvature": "flat"}, "curvature='flat'"),
        ({"curvature": 10**400}, "curvature=1000"),
        ({"curvature": -1e40}, "curvature=-1e"),
        ({"curvature": 1.0, "curvature_speed": 1e-50}, "speed=1e-50"),
        ({"curvature": 1.0, "curvature_speed": 1e60}, r"speed=1e\+60"),
        ({"chart": "klein"}, "chart='klein'"),
        ({"curvature_speed": 0.0}, "curvature_speed=0.0"),
        ({"curvature_speed": 2.0, "curvature_trainable": False}, "no effect"),
        ({"granularity": "elementwise"}, "`granularity` has no effect"),
        ({"activation": "tanh"}, "`activation` has no effect"),
        ({"rank": 2}, "`rank` has no effect"),
        ({"dropout": 0.5}, "`dropout` has no effect"),
        ({"bias_initializer": "ones"}, "`bias_initializer` has no effect"),
        ({"lift": True, "chart": "stereographic"}, "has a lift"),
    ],
)
def test_arguments_without_effect_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        CurvatureGate(**arguments)


def test_bad_input_is_refused():
    layer = CurvatureGate()
    with pytest.raises(ValueError, match="needs weights"):
        layer.current_curvature()
    with pytest.raises(ValueError, match="no `source`"):
        layer(normal(2, 3), source=normal(2, 3))
    layer(normal(2, 3))
    with pytest.raises(ValueError, match=r"3 features.*\(2, 4\)"):
        layer(normal(2, 4))
    with pytest.raises(ValueError, match=r"rank 2 or more.*\(3,\)"):
        CurvatureGate().build((3,))


def test_recordings_see_the_gate():
    seen = []
    x = 0.3 * normal(2, 5, 3)
    mask = np.ones((2, 5), "bool")
    layers = [CurvatureGate(-1.0, name="g"), constant(0.7, name="s")]
    with functional.record_into(lambda *observed: seen.append(observed)):
        for layer in layers:
            layer(x, mask=mask)
    (path, values, recorded), (other, constants, _) = seen
    assert path == "g" and other == "s"
    np.testing.assert_array_equal(to_numpy(recorded), mask)
    squares = np.sum(x * x, axis=-1, keepdims=True)
    assert_close(values, 1.0 / np.sqrt(1.0 - squares), 1e-6)
    assert_close(constants, np.full((1,), 0.7), 1e-6)
    # One value a vector, and none of them between 0 and 1 by nature.
    statistics = diagnostics.gate_statistics(layers[0], x)["g"]
    assert statistics["count"] == 10 and not statistics["bounded"]
    np.testing.assert_allclose(statistics["mean"], to_numpy(values).mean())
    assert diagnostics.gate_variables(layers[0]) == [layers[0].kappa]


@pytest.mark.parametrize("filling", [np.nan, np.inf])
@pytest.mark.parametrize("chart", CHARTS)
def test_padding_does_not_reach_the_gradients(chart, filling):
    """Those of weights are the ones of the batch without its padding."""
    layer = CurvatureGate(-0.5, chart=chart)
    layer.build((2, 3, 4))
    x, cotangent = normal(2, 3, 4), normal(2, 3, 4, seed=1)
    mask = np.array([[True] * 3, [True, False, False]])
    x[~mask], cotangent[~mask] = filling, 0.0
    _, _, weights = gradients(layer, [x], cotangent, mask=mask)
    x, cotangent = x[mask][None], cotangent[mask][None]
    _, _, expected = gradients(layer, [x], cotangent)
    for path, gradient in expected.items():
        assert_close(weights[path], gradient, 1e-5)


def test_a_mask_of_more_axes_than_the_source():
    layer = CurvatureGate(0.5, chart="stereographic")
    x, source = normal(2, 3, 2, 4), normal(2, 3, 5)
    mask = np.ones((2, 3, 2), bool)
    mask[:, 1, 0] = mask[:, 2] = False
    source[:, 2] = np.nan
    y = to_numpy(layer(x, source=source, mask=mask))
    assert np.isfinite(y[:, :2]).all()
