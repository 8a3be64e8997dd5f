import math

import numpy as np
import pytest

from keras_gating import geometry
from keras_gating.experiments import trees
from keras_gating.experiments import trees_task
from keras_gating.experiments.precision import float_type
from keras_gating.experiments.trees_model import NOISE
from keras_gating.experiments.trees_model import balanced_tree
from keras_gating.experiments.trees_model import cycle
from keras_gating.experiments.trees_model import drawn
from keras_gating.experiments.trees_model import exceptions_tree
from keras_gating.experiments.trees_model import grid
from keras_gating.experiments.trees_model import start
from keras_gating.experiments.trees_report import geodesic
from tests.experiments.reporting import check_difference
from tests.experiments.reporting import check_mean
from tests.experiments.reporting import check_reports
from tests.marks import once

TOLERANCE = {"float64": 1e-9, "float32": 1e-4}


def test_distances_are_those_of_the_graphs():
    around = np.abs(np.arange(24)[:, None] - np.arange(24))
    np.testing.assert_array_equal(cycle(24), np.minimum(around, 24 - around))
    rows, columns = np.divmod(np.arange(25), 5)
    along = np.abs(rows[:, None] - rows) + np.abs(columns[:, None] - columns)
    np.testing.assert_array_equal(grid(5), along)
    binary, classes = balanced_tree(2, 4), exceptions_tree()
    assert binary.shape == (31, 31) and binary.max() == 8.0
    # The first and the last leaf, two neighbours, and the root.
    np.testing.assert_array_equal(binary[[15, 15, 0], [30, 16, 30]], [8, 2, 4])
    assert balanced_tree(3, 3).shape == (40, 40)
    assert len(classes) > 60
    for tree in (binary[:15, :15], classes[::4, ::4]):
        delta = geometry.gromov_hyperbolicity(distances=tree)
        assert float(delta) == 0.0


def test_drawn_points_have_the_distances_of_their_space():
    """On the sphere and the hyperboloid, by NumPy from the same vectors."""
    for k in (-0.5, 0.0, 0.25):
        rng = np.random.default_rng(3)
        v = rng.normal(size=(25, 5))
        direction = v / np.linalg.norm(v, axis=-1, keepdims=True)
        far = rng.uniform(0.0, 1.25, size=(25, 1)) * 2.0
        if k == 0.0:
            x = far * direction
            expected = np.linalg.norm(x[:, None] - x, axis=-1)
        else:
            root = math.sqrt(abs(k))
            sin, cos, arc = (
                (np.sin, np.cos, np.arccos)
                if k > 0
                else (np.sinh, np.cosh, np.arccosh)
            )
            x = np.concatenate(
                [sin(root * far) * direction, cos(root * far)], 1
            )
            signs = np.append(np.ones(5), np.sign(k))
            inner = np.einsum("ai,bi,i->ab", x, x, signs) * np.sign(k)
            low, high = (-1.0, 1.0) if k > 0 else (1.0, np.inf)
            expected = arc(np.clip(inner, low, high)) / root
        distances = drawn(k)(3, 5)
        # Arcs of cosines near 1 lose half of the digits.
        atol = 1e-6 if float_type() == "float64" else 1e-3
        np.testing.assert_allclose(distances, expected, atol=atol)


def test_the_start_is_classical_scaling():
    x = np.random.default_rng(0).normal(size=(20, 3))
    distances = np.linalg.norm(x[:, None] - x, axis=-1)
    v = start(distances, 3, seed=1)
    # The metric at the origin is four times that of the coordinates.
    started = 2.0 * np.linalg.norm(v[:, None] - v, axis=-1)
    assert np.abs(started - distances).max() < 20 * NOISE
    assert np.abs(started - distances).max() > 0.0


def test_tokens_are_those_of_the_path_to_a_leaf(monkeypatch):
    monkeypatch.setattr(trees_task, "NOISE", 0.0)
    rng = np.random.default_rng(0)
    nodes = trees_task.node_vectors(rng)
    tokens, labels = trees_task.sequences(rng, 200, nodes)
    apart = np.linalg.norm(tokens[:, :, None] - nodes, axis=-1)
    assert apart.min(axis=-1).max() < 1e-6
    seen = apart.argmin(axis=-1)
    tree = balanced_tree(2, trees_task.DEPTH)
    leaf = labels + trees_task.LEAVES - 1
    steps = tree[leaf[:, None], seen]
    # A node of the path is as far from the leaf as it is above it, and the
    # root, which all paths share, is left out.
    assert set(np.unique(steps)) == {0.0, 1.0, 2.0, 3.0}
    np.testing.assert_array_equal(steps + tree[0][seen], trees_task.DEPTH)
    assert set(labels) == set(range(trees_task.LEAVES))


def entry(known, distortion, curvature):
    return {
        "space": "a",
        "title": "a",
        "dimension": 2,
        "known_curvature": known,
        "arms": {
            "learnt": {
                "distortion": {"values": distortion},
                "curvature": {"values": curvature},
            }
        },
    }


def test_conclusions_can_fail():
    found = trees.conclude(
        [
            entry(-0.5, [0.001, 0.001, 0.2], [-0.5, -0.7, -0.5]),
            entry(0.25, [0.2], [0.25]),
            entry(None, [0.3, 0.1], [2.0, -3.0]),
        ]
    )
    first, second = found["controls"]
    assert (first["runs"], first["without_distortion"]) == (3, 2)
    assert first["recovered"] == 1
    assert first["largest_error"] == pytest.approx(0.2)
    assert second["recovered"] == 0 and second["largest_error"] is None
    assert found["signs"][0]["curvature"] == -3.0


@once
def test_measurements_are_what_they_say(tmp_path):
    results = trees.run(
        seeds=2,
        quick=True,
        spaces=["cycle"],
        dimensions=(2,),
        task_arms=["sigmoid", "flat"],
    )
    (embedded,) = results.measurements["embeddings"]
    picture = results.arrays["pictures"]["cycle"]
    distances = picture["distances"]
    pairs = np.triu_indices(24, 1)
    tolerance = TOLERANCE[float_type()]
    assert results.settings["dtype"] == float_type()
    for name, arm in embedded["arms"].items():
        check_mean(arm["distortion"])
        points, k = picture["arms"][name]
        assert arm["curvature"]["values"][0] == k
        a, b = (points[nodes] for nodes in pairs)
        # The chordal formula: sin² or sinh² of half of the distance.
        squares = np.sum((a - b) ** 2, -1) / (
            (1.0 + k * np.sum(a * a, -1)) * (1.0 + k * np.sum(b * b, -1))
        )
        lengths = 2.0 * np.sqrt(squares)
        if k != 0.0:
            root = math.sqrt(abs(k))
            arc = np.arcsin if k > 0 else np.arcsinh
            lengths = 2.0 * arc(root * np.sqrt(squares)) / root
        errors = lengths / distances[pairs] - 1.0
        np.testing.assert_allclose(
            arm["distortion"]["values"][0],
            np.sqrt(np.mean(errors**2)),
            rtol=1e3 * tolerance,
        )
    curvature = {
        name: arm["curvature"]["values"]
        for name, arm in embedded["arms"].items()
    }
    assert curvature["flat"] == [0.0, 0.0] and curvature["negative"] == [-1, -1]
    np.testing.assert_allclose(curvature["positive"], (math.pi / 12) ** 2)
    assert min(curvature["learnt"]) > 0.0 and min(curvature["cold"]) > 0.0
    check_difference(
        embedded["learnt_minus_flat"],
        embedded["arms"]["learnt"]["distortion"],
        embedded["arms"]["flat"]["distortion"],
    )
    arms = results.measurements["task"]["arms"]
    # A curvature fixed at 0 is the plain gate, run by run.
    np.testing.assert_allclose(
        arms["flat"]["loss"]["values"], arms["sigmoid"]["loss"]["values"]
    )
    assert arms["flat"]["parameters"] == arms["sigmoid"]["parameters"] + 1
    assert arms["sigmoid"]["curvature"] is None
    assert arms["flat"]["curvature"]["values"] == [0.0, 0.0]
    text = check_reports(results, tmp_path)
    assert "cycle of 24, 2 dimensions: 2 of 2" in text or "0 of 2" in text
    assert "no difference shown" in text
    line = geodesic(points[0], points[1], k)
    np.testing.assert_allclose(line[[0, -1]], points[:2], atol=1e-4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"seeds": 0}, "seeds=0"),
        ({"spaces": ["torus"]}, "torus"),
        ({"task_arms": ["klein"]}, "klein"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        trees.run(**arguments)
