"""Angles between the steps of a trajectory."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_gating import _backend
from keras_gating import geometry
from tests.geometry.maps import numpy64
from tests.utils import assert_close
from tests.utils import tensor


def regular_polygon(sides, dtype="float64"):
    angles = 2 * np.pi * np.arange(sides + 1) / sides
    points = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    return points.astype(dtype)


@pytest.mark.parametrize(
    "dtype, tolerance",
    [
        pytest.param("float32", 1e-6, id="float32"),
        pytest.param("float64", 1e-14, id="float64", marks=pytest.mark.float64),
    ],
)
def test_turns_of_every_size(dtype, tolerance):
    turns = np.array(
        [0.0, 1e-6, 1e-3, 0.1, 0.7, 1.2, np.pi / 2, 2.0, 3.0, 3.141, np.pi]
    )
    directions = np.stack([np.cos(turns), np.sin(turns)], axis=-1)
    first = np.broadcast_to([1.0, 0.0], directions.shape)
    steps = np.stack([0.0 * first, 3.0 * first, 0.5 * directions], axis=1)
    angles = geometry.straightening(np.cumsum(steps, axis=1).astype(dtype))
    assert angles.shape[-1] == 1
    assert keras.backend.standardize_dtype(angles.dtype) == dtype
    # What rounding leaves of a small step after a long one.
    error = np.abs(numpy64(angles)[:, 0] - turns)
    assert error.max() < tolerance


def test_polygons_in_batches():
    seven = regular_polygon(7, "float32")
    angles = numpy64(geometry.straightening(np.stack([seven, 5 * seven])))
    assert angles.shape == (2, 6)
    assert_close(angles, np.full((2, 6), 2 * np.pi / 7), 1e-5)
    assert tuple(geometry.straightening(seven).shape) == (6,)


def test_many_dimensions_against_the_arccosine():
    x = np.random.default_rng(0).normal(size=(3, 10, 40)).astype("float32")
    steps = np.diff(np.float64(x), axis=1)
    steps /= np.linalg.norm(steps, axis=-1, keepdims=True)
    expected = np.arccos(np.sum(steps[:, 1:] * steps[:, :-1], axis=-1))
    assert_close(geometry.straightening(x), expected, 1e-6)


def test_steps_without_length_have_no_direction():
    x = [[0.0, 0.0], [1.0, 0.0], [1.0, 0.0], [1.0, 1.0], [1.0, 2.0], [2.0, 2.0]]
    angles = numpy64(geometry.straightening(x))
    np.testing.assert_array_equal(np.isnan(angles), [True, True, False, False])
    assert_close(angles[2:], [0.0, np.pi / 2], 1e-6)


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_steps_of_any_size(scale):
    x = (scale * regular_polygon(5)).astype("float32")
    angles = geometry.straightening(x)
    assert_close(angles, np.full(4, 2 * np.pi / 5), 1e-5)


def test_integers_and_half_precision():
    corner = [[0, 0], [1, 0], [1, 1]]
    for dtype in ("int32", "float16", "bfloat16"):
        x = ops.cast(ops.convert_to_tensor(corner), dtype)
        assert_close(geometry.straightening(x), [np.pi / 2], 1e-6)


def test_part_of_a_loss():
    """Gradients exist, at straight and at turning points too."""
    x = tensor(
        [[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [3.0, 0.5], [2.0, 0.0]], "float32"
    )
    direction = tensor(np.eye(5, 2, k=-3), "float32")

    def slope(x, direction):
        return ops.jvp(geometry.straightening, (x,), (direction,))[1]

    slopes = numpy64(_backend.compiled(slope)(x, direction))
    shift = 1e-3 * numpy64(direction)
    above, below = (
        numpy64(geometry.straightening((numpy64(x) + s).astype("float32")))
        for s in (shift, -shift)
    )
    assert slopes[0] == 0.0
    expected = (above - below)[1:2] / 2e-3
    assert_close(slopes[1:2], expected, 1e-2)
    assert np.isfinite(slopes).all()


@pytest.mark.parametrize(
    "trajectory, message",
    [
        (np.zeros((2, 3)), r"three points.*\(2, 3\)"),
        (np.zeros(5), r"\(5,\)"),
        (np.zeros((3, 2), "bool"), "dtype=bool"),
    ],
)
def test_bad_trajectories(trajectory, message):
    with pytest.raises(ValueError, match=message):
        geometry.straightening(trajectory)
