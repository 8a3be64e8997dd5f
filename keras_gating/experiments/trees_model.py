"""The spaces of the trees experiment, and how they are embedded."""

import builtins
import dataclasses
import math
from collections.abc import Callable

import keras
import numpy as np
from keras import ops

from keras_gating.experiments.precision import float_type
from keras_gating.experiments.selection import entries_by_name
from keras_gating.functional import exp0
from keras_gating.functional import stereographic_distance

# The curvature of the arm that is fixed below 0, where edges have length 1.
NEGATIVE = -1.0
# Points of the controls, and how far from their middle they are drawn.
DRAWN = 25
DRAWN_WITHIN = 2.5
NOISE = 0.02
# How many times faster than points curvature moves.
SPEED = 3.0


@dataclasses.dataclass(frozen=True)
class Space:
    """Points and the distances between them.

    Args:
        name: key of the space in the results.
        title: the space in words.
        distances: function `(seed, dimension)` that returns them, `(n, n)`.
        curvature: the curvature that must come back, or `None`.
    """

    name: str
    title: str
    distances: Callable
    curvature: float | None = None


@dataclasses.dataclass(frozen=True)
class Arm:
    """What the curvature of an embedding does.

    Args:
        name: key of the arm in the results.
        title: the arm in words.
        short: the same for the head of a table.
        learnt: whether the curvature trains.
        warm: whether it is 0 during the first third of the steps.
        sign: of the curvature, if it is fixed.
    """

    name: str
    title: str
    short: str
    learnt: bool = False
    warm: bool = True
    sign: int = 0


ARMS = (
    Arm("flat", "κ = 0", "κ = 0"),
    Arm("negative", "κ fixed, negative", "κ < 0", sign=-1),
    Arm("positive", "κ fixed, positive", "κ > 0", sign=1),
    Arm("learnt", "κ learnt, flat start", "learnt", learnt=True),
    Arm("cold", "κ learnt at once", "at once", learnt=True, warm=False),
)


def graph_distances(parents_or_edges, count):
    """Lengths of the shortest paths of a connected graph, `(n, n)`.

    Args:
        parents_or_edges: pairs of nodes.
        count: n.
    """
    distances = np.full((count, count), np.inf)
    np.fill_diagonal(distances, 0.0)
    for a, b in parents_or_edges:
        distances[a, b] = distances[b, a] = 1.0
    for k in range(count):
        through = distances[:, k, None] + distances[None, k]
        distances = np.minimum(distances, through)
    return distances


def balanced_tree(branches, depth):
    """Distances of the tree in which every node but the last has branches."""
    count = sum(branches**level for level in range(depth + 1))
    edges = [((child - 1) // branches, child) for child in range(1, count)]
    return graph_distances(edges, count)


def exceptions_tree():
    """Distances of Python's built-in exceptions, by inheritance."""
    classes = [
        value
        for value in vars(builtins).values()
        if isinstance(value, type) and issubclass(value, BaseException)
    ]
    # Some have two names.
    classes = list(dict.fromkeys(classes))
    place = {one: i for i, one in enumerate(classes)}
    edges = [
        (place[one.__base__], i)
        for one, i in place.items()
        if one is not BaseException
    ]
    return graph_distances(edges, len(classes))


def cycle(count):
    """Distances around a cycle."""
    return graph_distances([(i, (i + 1) % count) for i in range(count)], count)


def grid(side):
    """Distances on a square grid, along its lines."""
    place = np.arange(side * side).reshape(side, side)
    pairs = [(place[1:], place[:-1]), (place[:, 1:], place[:, :-1])]
    edges = [e for a, b in pairs for e in zip(a.ravel(), b.ravel())]
    return graph_distances(edges, side * side)


def drawn(curvature):
    """Points of a space of this curvature, uniform in direction and distance.

    Returns:
        A function `(seed, dimension)` that returns their distances.
    """

    def distances(seed, dimension):
        rng = np.random.default_rng(seed)
        v = rng.normal(size=(DRAWN, dimension))
        v /= np.linalg.norm(v, axis=-1, keepdims=True)
        v *= rng.uniform(0.0, DRAWN_WITHIN / 2.0, size=(DRAWN, 1))
        x = exp0(ops.convert_to_tensor(v, dtype=float_type()), curvature)
        between = stereographic_distance(x[:, None], x, curvature)
        return np.float64(ops.convert_to_numpy(between))

    return distances


def _graph(make, *arguments):
    return lambda seed, dimension: make(*arguments)


SPACES = (
    Space("hyperbolic", "points, κ = −0.5", drawn(-0.5), -0.5),
    Space("plane", "points, κ = 0", drawn(0.0), 0.0),
    Space("sphere", "points, κ = 0.25", drawn(0.25), 0.25),
    Space("binary", "binary tree, depth 4", _graph(balanced_tree, 2, 4)),
    Space("ternary", "ternary tree, depth 3", _graph(balanced_tree, 3, 3)),
    Space("exceptions", "Python's exceptions", _graph(exceptions_tree)),
    Space("cycle", "cycle of 24", _graph(cycle, 24), (2.0 * math.pi / 24) ** 2),
    Space("grid", "grid, 5 × 5", _graph(grid, 5)),
)


def start(distances, dimension, seed):
    """Tangent vectors `(n, dimension)`: classical scaling, and noise.

    Equal branches of a tree would start in one place without it. Lengths are
    half of the distances, as the metric of the model has it.
    """
    squares = np.square(distances)
    centred = squares - squares.mean(axis=0)
    centred = -0.5 * (centred - centred.mean(axis=1, keepdims=True))
    values, vectors = np.linalg.eigh((centred + centred.T) / 2.0)
    scales = np.sqrt(np.maximum(values[-dimension:], 0.0))
    noise = np.random.default_rng(seed).normal(size=(len(squares), dimension))
    return 0.5 * vectors[:, -dimension:] * scales + NOISE * noise


class Embedding(keras.layers.Layer):
    """Embeddings of spaces, side by side, each with a curvature of its own.

    Points are `exp₀` of tangent vectors, so that any weights are points. A
    run's distortion is the root of the mean of `(d / target − 1)²` over all
    pairs.

    Args:
        targets: distances, `(runs, n, n)`.
        arms: the `Arm` of each run.
        positive: the curvature of each run of the arm that is fixed above 0.
        start: initial tangent vectors, `(runs, n, dimension)`.

    Call arguments:
        inputs: `(1, 2)`: what share of a fixed curvature holds, and whether
            those that start flat are released.

    Returns:
        Mean squares of the relative errors, `(1, runs)`.
    """

    def __init__(self, targets, arms, positive, start, **kwargs):
        super().__init__(**kwargs)
        self._pairs = np.triu_indices(targets.shape[-1], 1)
        self._inverse = 1.0 / targets[:, *self._pairs]

        def column(values):
            return np.array(list(values), "float64")[:, None, None]

        self._fixed = column(
            {-1: NEGATIVE, 0: 0.0, 1: above}[arm.sign]
            for arm, above in zip(arms, positive)
        )
        self._warm = column(arm.learnt and arm.warm for arm in arms)
        self._cold = column(arm.learnt and not arm.warm for arm in arms)
        self.tangent = self.add_weight(
            name="tangent",
            shape=start.shape,
            initializer=lambda shape, dtype: ops.convert_to_tensor(
                start, dtype=dtype
            ),
        )
        self.kappa = self.add_weight(
            name="kappa", shape=(len(arms), 1, 1), initializer="zeros"
        )

    def call(self, inputs):
        x, curvature = self.points(inputs[0, 0], inputs[0, 1])
        first, second = (ops.take(x, nodes, axis=1) for nodes in self._pairs)
        distances = stereographic_distance(first, second, curvature)
        errors = distances * self._tensor(self._inverse) - 1.0
        return ops.mean(ops.square(errors), axis=-1)[None]

    def points(self, share=1.0, released=1.0):
        """Points `(runs, n, dimension)` and curvatures `(runs, 1, 1)`."""
        learnt = self._tensor(self._warm) * released + self._tensor(self._cold)
        curvature = share * self._tensor(self._fixed) + (
            SPEED * learnt * self.kappa
        )
        return exp0(ops.convert_to_tensor(self.tangent), curvature), curvature

    def _tensor(self, array):
        return ops.convert_to_tensor(array, dtype=self.compute_dtype)


def spaces_by_name(names=None):
    """Returns the spaces called `names`, all of them by default."""
    return entries_by_name(SPACES, names, "trees")
