"""Gromov's δ against values by hand and the definition with four points."""

import itertools

import numpy as np
import pytest

from keras_gating import geometry
from keras_gating.geometry import hyperbolicity
from tests.geometry.maps import numpy64
from tests.utils import assert_close


def path_distances(n):
    positions = np.arange(float(n))
    return np.abs(positions[:, None] - positions)


def cycle(n):
    distances = path_distances(n)
    return np.minimum(distances, n - distances)


def tree(n, seed=0):
    """Distances in a random tree with edges of random length."""
    rng = np.random.default_rng(seed)
    distances = np.zeros((n, n))
    for i in range(1, n):
        parent, edge = rng.integers(i), rng.uniform(0.5, 2.0)
        distances[i, :i] = distances[:i, i] = distances[parent, :i] + edge
    return distances


def four_point(distances):
    """Half the difference of the two largest sums, over all quadruples."""
    worst = 0.0
    for i, j, k, m in itertools.combinations(range(len(distances)), 4):
        d = distances
        sums = sorted([d[i, j] + d[k, m], d[i, k] + d[j, m], d[i, m] + d[j, k]])
        worst = max(worst, (sums[2] - sums[1]) / 2)
    return worst


def euclidean(points):
    difference = points[..., :, None, :] - points[..., None, :, :]
    return np.sqrt(np.sum(difference**2, axis=-1))


@pytest.mark.parametrize(
    "distances, expected",
    [
        (cycle(4), 1.0),
        (cycle(5), 0.5),
        (cycle(8), 2.0),
        (path_distances(6), 0.0),
        (1.0 - np.eye(5), 0.0),
        (np.zeros((1, 1)), 0.0),
        (np.zeros((3, 3)), 0.0),
    ],
    ids=["C4", "C5", "C8", "path", "star", "point", "coinciding"],
)
def test_graphs(distances, expected):
    assert float(geometry.gromov_hyperbolicity(distances=distances)) == expected


def test_a_tree_is_flat_in_this_sense():
    delta = geometry.gromov_hyperbolicity(distances=tree(30))
    assert abs(float(delta)) < 1e-5


def test_unit_square():
    square = [[0.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 0.0]]
    delta = geometry.gromov_hyperbolicity(square)
    assert_close(delta, np.sqrt(2) - 1, 1e-6)


@pytest.mark.float64
def test_unit_square_in_float64():
    square = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, 0.0]])
    for arguments in ({"points": square}, {"distances": euclidean(square)}):
        delta = geometry.gromov_hyperbolicity(**arguments)
        assert_close(delta, np.sqrt(2) - 1, 1e-14)


def test_is_the_four_point_condition():
    points = np.random.default_rng(0).normal(size=(14, 3)).astype("float32")
    expected = four_point(euclidean(np.float64(points)))
    assert_close(geometry.gromov_hyperbolicity(points), expected, 1e-5)


def test_one_base_point_is_within_a_factor_of_two():
    points = np.random.default_rng(1).normal(size=(20, 2)).astype("float32")
    exact = float(geometry.gromov_hyperbolicity(points))
    each = [
        float(geometry.gromov_hyperbolicity(points, base_point=i))
        for i in range(20)
    ]
    assert max(each) == exact
    assert exact <= 2 * min(each) + 1e-6
    assert len(set(each)) > 1
    last = geometry.gromov_hyperbolicity(points, base_point=-1)
    assert float(last) == each[-1]


def test_relative_to_the_diameter():
    points = np.random.default_rng(2).normal(size=(12, 3)).astype("float32")
    distances = euclidean(np.float64(points))
    expected = 2 * four_point(distances) / distances.max()
    for scale in (1.0, 7.0):
        relative = geometry.gromov_hyperbolicity(scale * points, relative=True)
        assert_close(relative, expected, 1e-5)
    nothing = geometry.gromov_hyperbolicity(np.zeros((3, 2)), relative=True)
    assert np.isnan(float(nothing))


def test_leading_axes():
    points = np.random.default_rng(3).normal(size=(2, 3, 8, 2))
    points = points.astype("float32")
    many = numpy64(geometry.gromov_hyperbolicity(points))
    assert many.shape == (2, 3)
    tables = geometry.gromov_hyperbolicity(
        distances=euclidean(points), relative=True
    )
    assert tuple(tables.shape) == (2, 3)
    one = geometry.gromov_hyperbolicity(points[1, 2])
    assert float(one) == many[1, 2]


def test_in_blocks_of_base_points(monkeypatch):
    points = np.random.default_rng(4).normal(size=(13, 2)).astype("float32")
    at_once = float(geometry.gromov_hyperbolicity(points))
    # Five at a time, which does not divide 13.
    monkeypatch.setattr(hyperbolicity, "_BLOCK_SIZE", 5 * 13**2)
    assert float(geometry.gromov_hyperbolicity(points)) == at_once


def without_symmetry():
    distances = cycle(5)
    distances[0, 1] = 1.5
    return distances


def without_triangle_inequality():
    distances = cycle(6)
    distances[0, 1] = distances[1, 0] = 9.0
    return distances


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({}, "Exactly one"),
        ({"points": np.eye(2), "distances": np.eye(2)}, "Exactly one"),
        ({"distances": np.zeros((2, 3))}, r"square.*\(2, 3\)"),
        ({"distances": np.zeros(4)}, r"two axes.*\(4,\)"),
        ({"points": np.zeros((0, 3))}, r"empty.*\(0, 3\)"),
        ({"distances": -cycle(4)}, "negative.*-2"),
        ({"distances": without_symmetry()}, "symmetric.*0.5"),
        ({"distances": cycle(4) + np.eye(4)}, "itself.*1.0"),
        ({"distances": without_triangle_inequality()}, "triangle inequality"),
        ({"distances": np.full((2, 2), np.nan)}, "finite"),
        ({"points": np.array([[np.inf], [0.0]])}, "finite"),
        ({"points": np.eye(3), "base_point": 3}, "base_point=3"),
        ({"points": np.eye(3), "base_point": -4}, "base_point=-4"),
        ({"points": np.eye(3), "base_point": 0.5}, "base_point=0.5"),
        ({"points": ["one"]}, "points"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        geometry.gromov_hyperbolicity(**arguments)
