"""Classes in the plane whose boundaries are straight or curved.

Points lie in the square from −1.5 to 1.5, which is also the patch on which
curvature is measured. Classes are balanced.
"""

import dataclasses
import math
import typing

import numpy as np

HALF_WIDTH = 1.5


@dataclasses.dataclass(frozen=True)
class Task:
    """One classification problem.

    Args:
        name: key of the task in the results.
        title: the task in words.
        draw: function of a NumPy generator and a number of points; returns
            points `(count, 2)` and whether they belong to the second class.
        points: number of points to train on.
        steps: of training, on all points.
        straight: whether a straight line separates the classes.
    """

    name: str
    title: str
    draw: typing.Callable
    points: int = 400
    steps: int = 1000
    straight: bool = False

    def data(self, seed, count):
        """Points `(count, 2)` and labels `(count,)` of one seed, float32."""
        rng = np.random.default_rng([seed, count])
        points, labels = self.draw(rng, count)
        return np.float32(points), np.float32(labels)


def _square(rng, count):
    return rng.uniform(-HALF_WIDTH, HALF_WIDTH, size=(count, 2))


def _linear(rng, count):
    x = _square(rng, count)
    return x, x @ (0.8, 0.6) > 0.0


def _circle(rng, count):
    x = _square(rng, count)
    # Half of the square's area is inside.
    return x, np.square(x).sum(axis=1) < 2.0 * HALF_WIDTH**2 / math.pi


def _xor(rng, count):
    x = _square(rng, count)
    return x, x[:, 0] * x[:, 1] > 0.0


def _checkerboard(rng, count):
    # Five fields of nine are of one class: half of all points are on these.
    labels = rng.permutation(count) % 2
    fields = np.array([[i, j] for i in range(3) for j in range(3)])
    kinds = fields.sum(axis=1) % 2
    chosen = [rng.choice(np.flatnonzero(kinds == label)) for label in labels]
    inside = rng.uniform(size=(count, 2))
    x = (fields[chosen] + inside) / 3.0
    return HALF_WIDTH * (2.0 * x - 1.0), labels == 1


def _moons(rng, count):
    labels = rng.permutation(count) % 2
    angle = rng.uniform(0.0, math.pi, size=count)
    x = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    x = np.where(labels[:, None] == 1, np.array([1.0, 0.5]) - x, x)
    x = x + rng.normal(scale=0.1, size=x.shape)
    return _clipped(x - np.array([0.5, 0.25])), labels == 1


def _spirals(turns, noise):
    def draw(rng, count):
        labels = rng.permutation(count) % 2
        # Even along the arm, which is about even in the square of the radius.
        part = np.sqrt(rng.uniform(0.02, 1.0, size=count))
        angle = 2.0 * math.pi * turns * part + math.pi * labels
        x = 1.4 * part[:, None] * np.stack([np.cos(angle), np.sin(angle)], 1)
        x = x + rng.normal(scale=noise, size=x.shape)
        return _clipped(x), labels == 1

    return draw


def _rings(rng, count):
    # Four rings of one area.
    square = rng.uniform(size=count)
    angle = rng.uniform(0.0, 2.0 * math.pi, size=count)
    x = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return 1.4 * np.sqrt(square)[:, None] * x, np.floor(4.0 * square) % 2 == 1


def _clipped(x):
    return np.clip(x, -HALF_WIDTH, HALF_WIDTH)


TASKS = (
    Task("linear", "linear", _linear, straight=True),
    Task("circle", "circle", _circle),
    Task("xor", "XOR quadrants", _xor),
    Task("moons", "moons", _moons),
    Task("spirals", "1-turn spirals", _spirals(1.0, 0.06)),
    Task("long_spirals", "1.75-turn spirals", _spirals(1.75, 0.04), 800, 2000),
    Task("checkerboard", "checkerboard 3 × 3", _checkerboard, 800, 2000),
    Task("rings", "rings", _rings, 800, 2000),
)
