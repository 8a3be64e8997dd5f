"""The equation of geodesics, at many points of many curves."""

import typing

import numpy as np
from keras import ops

from keras_gating.geometry.covariance import EUCLIDEAN
from keras_gating.geometry.covariance import inner_product
from keras_gating.geometry.covariance import whiten
from keras_gating.geometry.derivatives import jacobian_at
from keras_gating.geometry.derivatives import second_derivative
from keras_gating.geometry.evaluation import as_numpy
from keras_gating.geometry.evaluation import example
from keras_gating.geometry.evaluation import program
from keras_gating.geometry.frames import frame_at
from keras_gating.geometry.frames import nan_unless

_SMALLEST_BATCH = 512


class State(typing.NamedTuple):
    """The equation at m points of n curves, and the metric there."""

    acceleration: np.ndarray  # c'' as the equation demands it, (n, m, k)
    by_position: np.ndarray  # its derivative, (n, m, k, k)
    by_velocity: np.ndarray  # (n, m, k, k)
    upper: np.ndarray  # |J v| = |upper v|, all signs positive, (n, m, k, k)
    gram: np.ndarray  # ⟨J v, J v⟩ is that of `upper v`, (n, m, k, k)

    def of(self, curves):
        return State(*(a[curves] for a in self))


class Field:
    """The equation of the geodesics of one map."""

    def __init__(self, f, x, covariance):
        # A model may compute in less precision than its points have.
        x = ops.cast(x, example(f, x[:1]).dtype)
        product = inner_product(covariance, x)
        self._shared = product["shared"]
        self._run = program(_equation, f, x, form=product["form"])
        self._dtype = np.dtype(ops.convert_to_numpy(x[:1]).dtype)
        epsilon = np.finfo(self._dtype).eps
        self._batch = None
        self._difference = epsilon ** (1 / 3)
        # What a correction may still change, and what high degrees may
        # contribute, both relative to the speed.
        self.tolerance = epsilon ** (2 / 3)
        self.resolution = epsilon ** (1 / 2)

    def linearized(self, x, v):
        """`State` at the points of curves, `(n, m, k)`.

        The equation is quadratic in the velocity, so that differences give
        that derivative without error. Those of the other set the speed of
        convergence only, not what it converges to.
        """
        n, m, k = x.shape
        spread = x.max(axis=1, keepdims=True) - x.min(axis=1, keepdims=True)
        steps = self._difference * self._floor(spread)
        turns = self._floor(np.abs(v).max(axis=1, keepdims=True))
        unit = np.eye(k)[:, None, None]
        shifted = [x + s * steps * unit for s in (1.0, -1.0)]
        # What is left of the steps in the precision of the map.
        shifted = [a.astype(self._dtype).astype("float64") for a in shifted]
        turned = [v + s * turns * unit for s in (1.0, -1.0)]
        xs = np.concatenate([x[None], *shifted, *[x + 0.0 * unit] * 2])
        vs = np.concatenate([v[None], *[v + 0.0 * unit] * 2, *turned])
        equation, upper, gram = self(xs, vs)
        forward, backward, left, right = np.split(equation[1:], 4)
        size = np.sum((shifted[0] - shifted[1]) * unit, axis=-1, keepdims=True)
        by_position = (forward - backward) / size
        # Zero next to where the map ends: still a direction to go on in.
        by_position = np.where(np.isfinite(by_position), by_position, 0.0)
        by_velocity = (left - right) / (
            2.0 * np.sum(turns * unit, -1, keepdims=True)
        )
        return State(
            equation[0],
            np.moveaxis(by_position, 0, -1),
            np.moveaxis(by_velocity, 0, -1),
            upper[0],
            gram[0],
        )

    def _floor(self, sizes):
        """Sizes by coordinate, none much below the largest or zero."""
        largest = sizes.max(axis=-1, keepdims=True)
        largest = np.where(largest > 0.0, largest, 1.0)
        return np.maximum(sizes, self._difference * largest)

    def __call__(self, x, v):
        """Acceleration, `upper` and `gram` of `State`, at points `(…, k)`."""
        leading, k = x.shape[:-1], x.shape[-1]
        x, v = (a.reshape(-1, k).astype(self._dtype) for a in (x, v))
        count = len(x)
        if self._batch is None:
            # A power of two: other numbers of curves will find it compiled.
            size = max(_SMALLEST_BATCH, 1 << (count - 1).bit_length())
            self._batch = min(size, self._run.batch_size)
        # Batches of one size throughout, so that one compilation does.
        missing = -count % self._batch
        x, v = (np.pad(a, ((0, missing), (0, 0)), mode="edge") for a in (x, v))
        parts = []
        for i in range(0, len(x), self._batch):
            batch = (
                ops.convert_to_tensor(a[i : i + self._batch]) for a in (x, v)
            )
            outputs = self._run(*batch, *self._shared)
            parts.append([as_numpy(y) for y in outputs])
        outputs = (np.concatenate(part)[:count] for part in zip(*parts))
        return tuple(y.reshape(*leading, *y.shape[1:]) for y in outputs)


def _equation(f, x, v, *shared, form=EUCLIDEAN):
    j, second = whiten(
        form, shared, jacobian_at(f, x), second_derivative(f, x, v, v)[1]
    )
    frame = frame_at(j, form, shared)
    acceleration = -ops.einsum(
        "nij,nj->ni", frame.inverse, frame.tangential(second)
    )
    gram = ops.einsum(
        "nai,naj->nij", frame.vectors, frame.signed(frame.vectors)
    )
    return (
        nan_unless(frame.regular, acceleration),
        nan_unless(frame.regular, frame.upper),
        gram,
    )
