"""Geodesics against closed forms and an integrator of another kind."""

import keras
import numpy as np
import pytest
from keras import ops
from scipy.integrate import solve_ivp

from keras_gating import geometry
from tests.geometry.geodesic_maps import CYLINDER
from tests.geometry.geodesic_maps import DTYPES
from tests.geometry.geodesic_maps import PSEUDOSPHERE
from tests.geometry.geodesic_maps import SADDLE
from tests.geometry.geodesic_maps import angle
from tests.geometry.geodesic_maps import hyperbolic_distance
from tests.geometry.geodesic_maps import hyperboloid
from tests.geometry.geodesic_maps import pseudosphere_distance
from tests.geometry.geodesic_maps import sphere
from tests.geometry.geodesic_maps import sphere_point
from tests.geometry.maps import numpy64
from tests.marks import not_on_tensorflow
from tests.utils import assert_close

MINKOWSKI = np.array([1.0, 1.0, -1.0])


def uniform(low, high, *shape, dtype="float32", seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(low, high, size=shape).astype(dtype)


def saddle_curve(start, velocity, times):
    """`c'' = −∇z z_ij c'_i c'_j / (1 + |∇z|²)` with z = xy, by Runge–Kutta."""

    def equation(_, state):
        x, y, dx, dy = state
        factor = -2.0 * dx * dy / (1.0 + x * x + y * y)
        return [dx, dy, factor * y, factor * x]

    solution = solve_ivp(
        equation,
        (0.0, 1.0),
        [*np.float64(start), *np.float64(velocity)],
        method="DOP853",
        t_eval=times,
        rtol=1e-13,
        atol=1e-13,
    )
    return solution.y.T


@pytest.mark.parametrize("dtype, tolerance", DTYPES)
def test_great_circles(dtype, tolerance):
    # On one half of the sphere, where there is only one way.
    start, end = uniform(-0.7, 0.7, 2, 12, 2, dtype=dtype)
    curve = geometry.geodesic(sphere, start, end, steps=8)
    a, b = sphere_point(np.float64(start)), sphere_point(np.float64(end))
    distance = angle(a, b)
    assert_close(curve.length, distance, tolerance)
    # Equal steps along the circle.
    points = sphere_point(numpy64(curve.points))
    shares = np.arange(9) / 8
    assert_close(
        angle(points, a[:, None]), distance[:, None] * shares, 2 * tolerance
    )
    assert_close(
        angle(points, b[:, None]),
        distance[:, None] * shares[::-1],
        2 * tolerance,
    )
    assert curve.points.dtype == curve.velocities.dtype == curve.length.dtype
    assert keras.backend.standardize_dtype(curve.length.dtype) == dtype


@pytest.mark.parametrize("dtype, tolerance", DTYPES)
def test_a_velocity_against_an_integrator_of_another_kind(dtype, tolerance):
    start = np.array([-1.5, 0.5], dtype)
    velocity = np.array([4.0, -2.5], dtype)
    curve = geometry.geodesic(SADDLE, start, velocity=velocity, steps=5)
    expected = saddle_curve(start, velocity, np.arange(6) / 5)
    assert_close(curve.points, expected[:, :2], tolerance)
    assert_close(curve.velocities, expected[:, 2:], tolerance)
    gradient = np.float64([start[1], start[0]])
    rise = gradient @ velocity
    speed = np.sqrt(np.float64(velocity) @ velocity + rise**2)
    assert_close(curve.length, speed, tolerance)


@pytest.mark.parametrize("dtype, tolerance", DTYPES)
def test_both_problems_agree(dtype, tolerance):
    start, end = uniform(-2.0, 2.0, 2, 3, 2, dtype=dtype, seed=1)
    there = geometry.geodesic(SADDLE, start, end)
    again = geometry.geodesic(SADDLE, start, velocity=there.velocities[:, 0])
    # Saddles drive geodesics apart: errors of the velocity grow.
    for a, b in zip(there, again):
        assert_close(a, b, 20 * tolerance)


@not_on_tensorflow
@pytest.mark.parametrize("dtype, tolerance", DTYPES)
def test_pseudosphere_where_newton_needs_continuation(dtype, tolerance):
    start = np.array([[0.1, 0.0], [2.5, 0.0], [0.2, 0.0]], dtype)
    end = np.array([[0.1, 4.0], [0.2, 5.0], [0.3, 10.0]], dtype)
    curve = geometry.geodesic(PSEUDOSPHERE, start, end, steps=16)
    distance = pseudosphere_distance(np.float64(start), np.float64(end))
    # u comes from cosh u, which loses digits at the rim.
    assert_close(curve.length, distance, 5 * tolerance)
    # Half circles around points of the rim, far from the chart's line.
    points = numpy64(curve.points)
    across, height = points[..., 1], np.cosh(points[..., 0])
    first, last = points[:, 0], points[:, -1]
    heights = np.cosh(first[:, 0]) ** 2 - np.cosh(last[:, 0]) ** 2
    span = first[:, 1] - last[:, 1]
    centre = (heights / span + first[:, 1] + last[:, 1]) / 2
    squares = (across - centre[:, None]) ** 2 + height**2
    assert_close(squares, np.repeat(squares[:, :1], 17, axis=1), 10 * tolerance)
    assert height[-1, 8] > 5.0


@not_on_tensorflow
def test_a_long_way_over_a_saddle():
    # One element of the mesh is far too coarse: the curve turns at the centre.
    start, end = np.array([[-3.0, -3.0], [3.0, 4.0]], "float32")
    curve = geometry.geodesic(SADDLE, start, end, steps=10)
    points, velocities = numpy64(curve.points), numpy64(curve.velocities)
    # Errors grow along the way, so a little of it from each point.
    for i in range(10):
        expected = saddle_curve(points[i], velocities[i] / 10, [1.0])[0]
        assert_close(points[i + 1], expected[:2], 1e-4)
        assert_close(velocities[i + 1], 10 * expected[2:], 1e-3)


@pytest.mark.parametrize("dtype, tolerance", DTYPES)
def test_hyperbolic_space_in_an_indefinite_inner_product(dtype, tolerance):
    start, end = uniform(-0.65, 0.65, 2, 3, 2, dtype=dtype, seed=2)
    curve = geometry.geodesic(hyperboloid, start, end, covariance=MINKOWSKI)
    a, b = np.float64(start), np.float64(end)
    assert_close(curve.length, hyperbolic_distance(a, b), 3 * tolerance)
    # In the central projection geodesics are straight.
    away = numpy64(curve.points) - a[:, None]
    side = b - a
    bend = away[..., 0] * side[:, None, 1] - away[..., 1] * side[:, None, 0]
    assert np.abs(bend).max() < 2 * tolerance


@pytest.mark.parametrize("dtype, tolerance", DTYPES)
def test_parallels_meet_on_a_sphere_and_diverge_in_hyperbolic_space(
    dtype, tolerance
):
    # Two geodesics at right angles to a base line, a distance apart.
    half = 0.1
    for f, covariance, chart, distance, closed_form in (
        (
            sphere,
            None,
            np.tan(half / 2),
            lambda a, b: angle(sphere_point(a), sphere_point(b)),
            lambda s: 2 * np.arcsin(np.cos(s) * np.sin(half)),
        ),
        (
            hyperboloid,
            MINKOWSKI,
            np.tanh(half),
            hyperbolic_distance,
            lambda s: 2 * np.arcsinh(np.cosh(s) * np.sinh(half)),
        ),
    ):
        start = np.array([[chart, 0.0], [-chart, 0.0]], dtype)
        up = np.array([[0.0, 1.0], [0.0, 1.0]], dtype)
        g = numpy64(geometry.metric(f, start, covariance=covariance))
        up = (up / np.sqrt(g[:, 1, 1, None])).astype(dtype)
        curves = geometry.geodesic(
            f, start, velocity=up, covariance=covariance, steps=10
        )
        apart = distance(*numpy64(curves.points))
        assert_close(apart, closed_form(np.arange(11) / 10), 20 * tolerance)


def test_lines_of_a_developable_surface_go_around_with_the_chart():
    # The other way around would be shorter: 2π − 4.
    curve = geometry.geodesic(CYLINDER, [0.0, 0.0], end=[4.0, 3.0], steps=4)
    assert_close(curve.length, 5.0, 1e-6)
    expected = np.outer(np.arange(5) / 4, [4.0, 3.0])
    assert_close(curve.points, expected, 1e-6)


def test_straight_through_a_conjugate_point_it_goes_on():
    # Beyond the point opposite, along the great circle of the chart's line.
    start, end = np.array([[0.5, 0.0], [-2.5, 0.0]], "float32")
    curve = geometry.geodesic(sphere, start, end)
    shortest = angle(sphere_point(start), sphere_point(end))
    assert_close(curve.length, 2 * np.pi - shortest, 1e-5)
    # Before it, the shortest.
    before = geometry.geodesic(sphere, start, [-1.8, 0.1])
    expected = angle(sphere_point(start), sphere_point(np.array([-1.8, 0.1])))
    assert_close(before.length, expected, 1e-5)


def test_covariance_scales_the_axes():
    matrix = np.array([[2.0, 0.5], [0.5, 1.0]])
    difference = np.array([0.3, -0.8])
    expected = np.sqrt(difference @ np.linalg.inv(matrix) @ difference)
    for f in (lambda x: x, keras.layers.Identity()):
        curve = geometry.geodesic(
            f, [0.0, 0.0], end=difference, covariance=matrix
        )
        assert_close(curve.length, expected, 1e-6)


def test_broadcasting_and_steps():
    start = uniform(-1.0, 1.0, 4, 1, 2, seed=3)
    end = uniform(-1.0, 1.0, 3, 2, seed=4)
    many = geometry.geodesic(SADDLE, start, end, steps=3)
    assert tuple(many.points.shape) == (4, 3, 4, 2)
    assert tuple(many.velocities.shape) == (4, 3, 4, 2)
    assert tuple(many.length.shape) == (4, 3)
    one = geometry.geodesic(SADDLE, start[2, 0], end[1], steps=1)
    assert tuple(one.length.shape) == ()
    assert_close(one.length, many.length[2, 1], 1e-6)
    assert_close(one.velocities, many.velocities[2, 1, ::3], 1e-5)
    assert_close(one.points, np.stack([start[2, 0], end[1]]), 1e-6)


def test_no_way_at_all_has_no_length():
    point = np.array([0.4, -0.3], "float32")
    curve = geometry.geodesic(SADDLE, point, point)
    assert float(curve.length) == 0.0
    assert_close(curve.points, np.tile(point, (33, 1)), 1e-7)


def test_shorter_than_every_other_way_through_a_model():
    model = keras.Sequential(
        [
            keras.layers.Dense(8, activation="tanh"),
            keras.layers.Dense(5, activation="silu"),
        ]
    )
    start, end = np.array([[-1.0, -0.5], [1.0, 1.0]], "float32")
    for _ in range(2):
        curve = geometry.geodesic(model, start, end, steps=200)
        points = numpy64(curve.points)
        bump = np.sin(np.pi * np.arange(201) / 200)[:, None]
        lengths = []
        for shift in ([0, 0], [0.05, 0], [0, 0.05], [-0.05, 0], [0, -0.05]):
            image = numpy64(model((points + bump * shift).astype("float32")))
            lengths.append(np.linalg.norm(np.diff(image, axis=0), axis=1).sum())
        assert_close(lengths[0], curve.length, 1e-4)
        assert min(lengths[1:]) > lengths[0]
        # With other weights the same model is another surface.
        for variable in model.trainable_variables:
            variable.assign(1.3 * variable + 0.1)


def test_points_of_more_precision_than_the_model():
    layer = keras.layers.Dense(3, activation="tanh")
    start, end = np.array([[0.0, 0.0], [0.5, 1.0]])
    curve = geometry.geodesic(layer, start, end)
    single = geometry.geodesic(
        layer, start.astype("float32"), end.astype("float32")
    )
    assert_close(curve.length, single.length, 1e-6)


def test_creases_are_reported():
    def crease(x):
        return ops.stack([ops.relu(x[..., 0]), x[..., 1], x[..., 0]], axis=-1)

    for arguments in ({"end": [1.0, 0.5]}, {"velocity": [2.0, 0.5]}):
        with pytest.raises(RuntimeError, match="speed .* constant.*relu"):
            geometry.geodesic(crease, [-1.0, 0.0], **arguments)


def test_what_is_not_found_is_reported_with_its_residual():
    start = np.zeros((2, 3, 2), "float32")
    end = np.zeros((2, 3, 2), "float32")
    end[1, 2] = [1.5, 0.0]  # not on the chart, which ends at radius 1
    message = r"1 of 6 geodesics.*index \(1, 2\).*% of the way.*residual"
    with pytest.raises(RuntimeError, match=message):
        geometry.geodesic(hyperboloid, start, end, covariance=MINKOWSKI)
    # Over the rim, where the surface ends.
    with pytest.raises(RuntimeError, match="% of its parameter interval"):
        geometry.geodesic(PSEUDOSPHERE, [0.5, 0.0], velocity=[-5.0, 0.0])


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({}, "Exactly one of `end` and `velocity`"),
        ({"end": [0.0, 1.0], "velocity": [0.0, 1.0]}, "Exactly one"),
        ({"end": [0.0, 1.0, 2.0]}, r"'end': \(3,\)"),
        ({"end": np.zeros((0, 2))}, "none of them empty"),
        ({"end": [0.0, np.nan]}, "`end` must be finite"),
        ({"velocity": [np.inf, 0.0]}, "`velocity` must be finite"),
        ({"end": ["one", "two"]}, "`end`"),
        ({"end": [0.0, 1.0], "steps": 0}, "steps=0"),
        ({"end": [0.0, 1.0], "steps": 2.5}, "steps=2.5"),
        ({"end": [0.0, 1.0], "steps": True}, "steps=True"),
        ({"end": [0.0, 1.0], "covariance": np.eye(2)}, "covariance"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        geometry.geodesic(SADDLE, [0.5, 0.5], **arguments)


def test_leading_axes_that_do_not_fit():
    with pytest.raises(ValueError, match=r"'start': \(3, 2\).*'end': \(4, 2\)"):
        geometry.geodesic(SADDLE, np.zeros((3, 2)), np.zeros((4, 2)))
