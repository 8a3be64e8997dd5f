"""Boundary and initial value problems of the geodesic equation.

Both return the curves in pieces and a list of those that were not found.
"""

import typing

import numpy as np
from numpy.polynomial import legendre

from keras_gating.geometry.collocation import NODES
from keras_gating.geometry.collocation import correct
from keras_gating.geometry.collocation import integrals
from keras_gating.geometry.collocation import no_solution
from keras_gating.geometry.collocation import reference
from keras_gating.geometry.collocation import rule

# Meshes of a boundary problem have 1, 2, 4, … elements; more are rarely needed.
_MOST_ELEMENTS = 32
# Of the way to the end point: at a time, and on each of the finest meshes.
_SMALLEST_MOVE = 2.0**-8
_LEAST_PROGRESS = 2.0**-6
# Of the parameter interval of an initial value problem.
_SMALLEST_STRIDE = 2.0**-16
# What high degrees may contribute on the way, relative to the speed: a mesh
# that is too coarse has solutions of its own, not near any geodesic.
_ROUGH = 0.1


class Piece(typing.NamedTuple):
    """Some of the curves on `t ∈ [time, time + stride]`.

    `c = start + τ·velocity + ∬ acceleration` with `τ = (t − time) / stride`.
    """

    indices: np.ndarray  # of the curves, (n,)
    time: np.ndarray  # (n,)
    stride: np.ndarray  # (n,)
    start: np.ndarray  # (n, k)
    velocity: np.ndarray  # dc/dτ, (n, k)
    acceleration: np.ndarray  # d²c/dτ² at the Gauss nodes, (n, m, k)
    squares: np.ndarray  # ⟨dc/dt, dc/dt⟩ there, (n, m)
    majorants: np.ndarray  # the largest with all signs positive, (n,)

    def ends(self):
        """Position and dc/dτ at the end."""
        element = reference()
        once = np.einsum("m,nmk->nk", element.weights, self.acceleration)
        twice = np.einsum(
            "m,nmk->nk",
            element.weights * (1.0 - element.nodes),
            self.acceleration,
        )
        return self.start + self.velocity + twice, self.velocity + once

    def at(self, tau):
        """Position and dc/dτ at parameters `(n, p)`."""
        coefficients = reference().transform @ self.acceleration
        series = integrals(np.moveaxis(coefficients, 1, 0))
        tau = tau[..., None]
        once, twice = (
            legendre.legval(2.0 * tau - 1.0, c[:, :, None], tensor=False)
            for c in series
        )
        velocity = self.velocity[:, None]
        return (
            self.start[:, None] + tau * velocity + twice,
            velocity + once,
        )


class Failure(typing.NamedTuple):
    curve: int
    reached: float  # share of the way to the end point or of the interval
    residual: float


def boundary_problem(field, start, end):
    """Geodesics from `start` to `end`, `(n, k)` each.

    The end point moves from the start along the straight line of the chart, in
    strides from which Newton's method contracts and which pass no conjugate
    point: one stride where the geodesic is near that line. Where this finds no
    way to the end, strides may pass conjugate points.
    """
    pieces, failures = _boundary_problem(field, start, end, True)
    left = np.array([failure.curve for failure in failures], int)
    if left.size:
        others, failures = _boundary_problem(
            field, start[left], end[left], False
        )
        pieces += [p._replace(indices=left[p.indices]) for p in others]
        failures = [f._replace(curve=left[f.curve]) for f in failures]
    return pieces, failures


def _boundary_problem(field, start, end, direct):
    """Curves that need it get a finer mesh, or another one."""
    chord = end - start
    n, k = start.shape
    left, reached, tail = np.arange(n), np.zeros(n), np.full(n, np.inf)
    breaks, guess = np.tile([0.0, 1.0], (n, 1)), np.zeros((n, NODES, k))
    pieces, failures = [], []
    while True:
        mesh = rule(breaks, True)
        before = reached.copy()
        found, stuck = _follow(
            field, start[left], chord[left], guess, reached, mesh, direct
        )
        resolved = found.tail <= field.resolution
        good = found.converged & resolved
        pieces += _elements(left, start[left], chord[left], found, mesh, good)
        # A finer mesh is no help where the last curve was smooth.
        lost = stuck & (resolved | (reached == 0.0))
        elements = breaks.shape[1] - 1
        if elements == _MOST_ELEMENTS:
            moved = reached >= before + _LEAST_PROGRESS
            lost |= ~good & ~moved & ~(found.tail < tail / 2.0)
        failures += _failures(left, reached, found, lost)
        go_on = ~good & ~lost
        if not go_on.any():
            return pieces, failures
        finer = _mesh(
            mesh.of(go_on),
            found.turning[go_on],
            min(2 * elements, _MOST_ELEMENTS),
        )
        guess = _transfer(breaks[go_on], found.acceleration[go_on], finer)
        left, reached, breaks = left[go_on], reached[go_on], finer
        tail = np.where(found.converged, found.tail, np.inf)[go_on]


def _follow(field, start, chord, guess, reached, mesh, direct):
    """Moves the end points to the end; `reached` says how far, and is kept.

    Returns the last curves on this mesh, and whether strides became too small.
    """
    found = no_solution(guess)
    active, stride = np.arange(len(guess)), np.ones(len(guess))
    doubles, stuck = np.ones(len(guess), bool), np.zeros(len(guess), bool)
    while active.size:
        share, step = reached[active], stride[active]
        target = np.minimum(share + step, 1.0)
        solution = correct(
            field,
            start[active],
            target[:, None] * chord[active],
            found.acceleration[active],
            mesh.of(active),
        )
        rough = solution.converged & (solution.tail > _ROUGH)
        # At the end, a rough curve still tells where the mesh is too coarse.
        good = solution.converged & (~rough | (share == 1.0))
        good &= solution.direct | (not direct)
        for old, new in zip(found, solution):
            old[active[good]] = new[good]
        found.residual[active] = solution.residual
        found.converged[active[~good | (target < 1.0)]] = False
        short = ~good & (step < 2.0 * _SMALLEST_MOVE)
        # What a coarser mesh arrived at is no guess for this one.
        unseen = np.isinf(found.tail[active])
        again = ~good & unseen & ((share == 1.0) | (short & (share > 0.0)))
        found.acceleration[active[again]] = 0.0
        reached[active] = np.where(good, target, np.where(again, 0.0, share))
        stuck[active] = short & ~again & ~rough
        # Not longer at once where it had to be shorter just before.
        longer = np.where(doubles[active], 2.0, 1.0)
        step = step * np.where(good, longer, 0.5)
        stride[active] = np.where(again, 1.0, step)
        doubles[active] = good | again
        ended = (good & (target == 1.0)) | rough | stuck[active]
        active = active[~ended]
    return found, stuck


def _elements(left, start, chord, found, mesh, good):
    """The pieces of the curves that were found, one for each element."""
    start, velocity = start[good], chord[good]
    velocity = velocity + np.einsum(
        "nm,nmk->nk", mesh.start[good], found.acceleration[good]
    )
    pieces = []
    for e, stride in enumerate(np.diff(mesh.breaks[good]).T):
        own = slice(e * NODES, (e + 1) * NODES)
        factor = stride[:, None]
        pieces.append(
            Piece(
                left[good],
                mesh.breaks[good, e],
                stride,
                start,
                factor * velocity,
                factor[..., None] ** 2 * found.acceleration[good, own],
                found.squares[good, own],
                found.majorants[good],
            )
        )
        start, velocity = pieces[-1].ends()
        velocity = velocity / factor
    return pieces


def _failures(left, reached, found, poor):
    residual = np.where(found.converged, found.tail, found.residual)
    rows = zip(left[poor], reached[poor], residual[poor])
    return [Failure(*row) for row in rows]


def _mesh(mesh, turning, elements):
    """Breaks of elements that are short where the curves turn sharply.

    The length scale of a turn also counts next to it, growing with the
    distance: so far do its derivatives of high degree reach.
    """
    scale = 0.5 / (1.0 + np.nan_to_num(turning, posinf=0.0))
    distance = np.abs(mesh.nodes[:, :, None] - mesh.nodes[:, None, :])
    scale = (distance + scale[:, None, :]).min(axis=2)
    share = np.cumsum(mesh.weights / scale, axis=1)
    ends = (mesh.nodes[:, 1:] + mesh.nodes[:, :-1]) / 2.0
    breaks = np.tile(np.linspace(0.0, 1.0, elements + 1), (len(ends), 1))
    for row, known, end in zip(breaks, share, ends):
        known = np.concatenate([[0.0], known]) / known[-1]
        row[:] = np.interp(row, known, np.concatenate([[0.0], end, [1.0]]))
    return breaks


def _transfer(breaks, acceleration, finer):
    """Values of piecewise polynomials at the nodes of other meshes."""
    n, _, k = acceleration.shape
    nodes = rule(finer, True).nodes
    later = nodes[..., None] >= breaks[:, None, 1:-1]
    element = later.sum(axis=-1)
    left = np.take_along_axis(breaks, element, axis=1)
    right = np.take_along_axis(breaks, element + 1, axis=1)
    values = legendre.legvander(
        2.0 * (nodes - left) / (right - left) - 1.0, NODES - 1
    )
    coefficients = reference().transform @ acceleration.reshape(n, -1, NODES, k)
    coefficients = coefficients[np.arange(n)[:, None], element]
    return np.einsum("nmd,nmdk->nmk", values, coefficients)


def initial_problem(field, start, velocity):
    """Geodesics that leave `start` with `velocity`, `(n, k)` each.

    Each stride is as long as Newton's method and the nodes allow.
    """
    n, k = start.shape
    position, direction = start.copy(), velocity.copy()
    time, stride, active = np.zeros(n), np.ones(n), np.arange(n)
    pieces, failures = [], []
    mesh = rule(np.tile([0.0, 1.0], (n, 1)), False)
    while active.size:
        h = np.minimum(stride[active], 1.0 - time[active])[:, None]
        v = h * direction[active]
        guess = np.zeros((len(active), NODES, k))
        found = correct(field, position[active], v, guess, mesh.of(active))
        good = found.converged & (found.tail <= field.resolution)
        done = active[good]
        piece = Piece(
            done,
            time[done],
            h[good, 0],
            position[done],
            v[good],
            found.acceleration[good],
            found.squares[good] / h[good] ** 2,
            found.majorants[good] / h[good, 0] ** 2,
        )
        pieces.append(piece)
        position[done], v = piece.ends()
        direction[done] = v / h[good]
        time[done] += h[good, 0]
        easy = good & (found.tail <= 1e-3 * field.resolution)
        factor = np.where(easy, 2.0, np.where(good, 1.0, 0.5))
        stride[active] = h[:, 0] * factor
        lost = stride[active] < _SMALLEST_STRIDE
        failures += _failures(active, time[active], found, lost)
        active = active[~lost & (time[active] < 1.0)]
    return pieces, failures
