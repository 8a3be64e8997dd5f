"""Points, maps and covariances that do not fit, and backends without jvp."""

import os
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
from keras import ops

from keras_gating import geometry
from keras_gating.geometry import surfaces
from tests.geometry.maps import points
from tests.geometry.maps import quadratic
from tests.marks import once
from tests.utils import tensor

ROOT = Path(__file__).parents[2]
F = quadratic(2, 3)
X = points(4, 2)


@pytest.mark.parametrize(
    "x", [None, "points", [["a", "b"]], 1.0, np.ones((3, 0))]
)
def test_points(x):
    with pytest.raises(ValueError, match="`x`"):
        geometry.jacobian(F, x)


def test_dimensions():
    with pytest.raises(ValueError, match=r"\(4, 3\)"):
        geometry.gaussian_curvature(quadratic(3, 4), points(4, 3))
    with pytest.raises(ValueError, match="dtype=bool"):
        geometry.jacobian(F, np.ones((4, 2), bool))
    with pytest.raises(ValueError, match="dtype=complex64"):
        geometry.jacobian(F, np.ones((4, 2), "complex64"))
    with pytest.raises(ValueError, match="fewer dimensions"):
        geometry.scalar_curvature(lambda x: x[:, :1], X)


@pytest.mark.parametrize("name", ["u", "v"])
@pytest.mark.parametrize("bad", [np.ones(3), np.ones((5, 2)), "u", 1.0])
def test_directions(name, bad):
    vectors = {"u": np.ones(2), "v": np.ones(2), name: bad}
    with pytest.raises(ValueError, match=f"`{name}`"):
        geometry.sectional_curvature(F, X, **vectors)
    with pytest.raises(ValueError, match="`direction`"):
        geometry.curve_curvature(F, X, bad)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x[:, 0],
        lambda x: ops.sum(x),
        lambda x: x[None],
        lambda x: ops.transpose(x),
        lambda x: (x, x),
        lambda x: None,
        lambda x: ops.cast(x, "int32"),
        lambda x: ops.cast(x, "float16"),
        lambda x: ops.cast(x, "bfloat16"),
    ],
)
def test_maps(f):
    with pytest.raises(ValueError, match="`f` must"):
        geometry.gaussian_curvature(f, X)


def test_errors_inside_the_map_are_its_own():
    def f(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        geometry.jacobian(f, X)
    with pytest.raises(ValueError, match="`f`"):
        geometry.jacobian("saddle", X)


@pytest.mark.parametrize(
    "covariance",
    [
        "unit",
        1.0,
        np.ones((2, 3)),
        np.ones((1, 3, 3)),
        np.array([1.0, 0.0, 1.0]),
        np.ones((3, 3)),
        np.array([1.0, np.nan, 1.0]),
        np.arange(9.0).reshape(3, 3),
        np.ones(4),
        np.eye(2),
        [],
        np.ones(3) * 1j,
    ],
    ids=str,
)
def test_covariances(covariance):
    with pytest.raises(ValueError, match="covariance"):
        geometry.gaussian_curvature(F, X, covariance)


@pytest.mark.parametrize("batch_size", [0, -2, 1.5, "4", True])
def test_batch_size(batch_size):
    with pytest.raises(ValueError, match="batch_size"):
        geometry.jacobian(F, X, batch_size=batch_size)


@pytest.mark.parametrize("backend", ["numpy", "openvino"])
def test_backends_without_forward_mode(monkeypatch, backend):
    monkeypatch.setattr(keras.config, "backend", lambda: backend)
    saddle = surfaces.saddle()
    for call in (
        lambda: geometry.gaussian_curvature(F, X),
        lambda: geometry.metric(F, X),
        lambda: geometry.total_curvature(saddle, saddle.bounds),
    ):
        with pytest.raises(ValueError) as error:
            call()
        assert f"'{backend}'" in str(error.value)
        assert "jax, tensorflow, torch" in str(error.value)


_EVERY_FUNCTION = """
import numpy as np
from keras import ops
from keras_gating import geometry
from keras_gating.geometry import surfaces

f, x, u, v = surfaces.saddle(), np.zeros((1, 2)), [1.0, 0.0], [0.0, 1.0]
for call in (
    lambda: geometry.jacobian(f, x),
    lambda: geometry.hessian(f, x),
    lambda: geometry.metric(f, x),
    lambda: geometry.christoffel_symbols(f, x),
    lambda: geometry.second_fundamental_form(f, x),
    lambda: geometry.gaussian_curvature(f, x),
    lambda: geometry.curvature_scale(f, x),
    lambda: geometry.sectional_curvature(f, x, u, v),
    lambda: geometry.ricci_curvature(f, x),
    lambda: geometry.scalar_curvature(f, x),
    lambda: geometry.riemann_tensor(f, x),
    lambda: geometry.mean_curvature(f, x),
    lambda: geometry.curve_curvature(f, x, u),
    lambda: geometry.total_curvature(f, f.bounds, 4),
    lambda: geometry.total_bending(f, f.bounds, 4),
    lambda: geometry.geodesic(f, u, v),
    lambda: geometry.geodesic_triangle(f, u, v, [1.0, 1.0]),
):
    try:
        call()
    except ValueError as error:
        print(error)
delta = geometry.gromov_hyperbolicity(np.eye(4))
print(float(ops.convert_to_numpy(delta)))
"""


@once
@pytest.mark.parametrize("backend", ["numpy", "openvino"])
def test_running_on_a_backend_without_forward_mode(backend):
    pytest.importorskip(backend)
    run = subprocess.run(
        [sys.executable, "-c", _EVERY_FUNCTION],
        env={**os.environ, "KERAS_BACKEND": backend, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    *messages, distance = run.stdout.splitlines()
    assert len(messages) == 17
    for message in messages:
        assert f"'{backend}'" in message
        assert "jax, tensorflow, torch" in message
    assert float(distance) == 0.0


@pytest.mark.parametrize(
    "call",
    [
        lambda f: geometry.gaussian_curvature(f, X),
        lambda f: geometry.scalar_curvature(f, X),
        lambda f: geometry.sectional_curvature(f, X, [1.0, 0.0], [0.0, 1.0]),
        lambda f: geometry.second_fundamental_form(f, X),
        lambda f: geometry.christoffel_symbols(f, X),
    ],
)
def test_maps_of_rank_one_are_nan(call):
    def line(x):
        s = ops.sum(x, axis=-1, keepdims=True)
        return ops.concatenate([s, s * s, ops.exp(s)], axis=-1)

    assert np.isnan(ops.convert_to_numpy(call(line))).all()


def test_parallel_directions_are_nan():
    u = points(4, 2, seed=1)
    for v in (u, -2.0 * u, 0.0 * u):
        k = geometry.sectional_curvature(F, X, u, v)
        assert np.isnan(ops.convert_to_numpy(k)).all()
    still = geometry.curve_curvature(F, X, [0.0, 0.0])
    assert np.isnan(ops.convert_to_numpy(still)).all()


def test_the_degenerate_rule():
    """σ_min ≤ √ε σ_max is NaN, at every scale of the map."""
    threshold = float(np.sqrt(np.finfo("float32").eps))
    cases = [(b, s) for b in (0.5, 2.0) for s in (1e-4, 1.0, 1e4)]
    factors = [[s, b * threshold * s, s, s] for b, s in cases]
    factors = tensor(factors, "float32")
    expected = [below < 1.0 for below, _ in cases]

    def f(x):  # another one at each of the points
        y = ops.concatenate([x, x[:, :1] ** 2], axis=-1)
        return y * factors[:, : y.shape[-1]]

    k = geometry.gaussian_curvature(f, np.zeros((6, 2), "float32"))
    np.testing.assert_array_equal(np.isnan(ops.convert_to_numpy(k)), expected)
    s = geometry.scalar_curvature(f, np.zeros((6, 3), "float32"))
    np.testing.assert_array_equal(np.isnan(ops.convert_to_numpy(s)), expected)


def test_tangent_spaces_on_the_null_cone_are_nan():

    def plane(x):
        return ops.concatenate([x, x[:, :1]], axis=-1)

    null = geometry.gaussian_curvature(plane, X, np.array([1.0, 1.0, -1.0]))
    assert np.isnan(ops.convert_to_numpy(null)).all()
    fine = geometry.gaussian_curvature(plane, X, np.array([1.0, 1.0, -4.0]))
    np.testing.assert_array_equal(ops.convert_to_numpy(fine), 0.0)
