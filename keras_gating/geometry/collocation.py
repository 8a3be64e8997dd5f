"""Newton's method for the geodesic equation, on Gauss nodes of many curves.

A curve on `t ∈ [0, 1]` is its acceleration `a` at the nodes of a mesh, a
polynomial on each of its elements. With the double integrals `B` of these,
`c = start + t·velocity + B a` and `c' = velocity + B' a`. The integrals vanish
at t = 0 (initial values) or at both ends (boundary values, the velocity being
`end − start`), and at each node `a` equals what the equation demands there.

In this integral form the linear systems are well conditioned, which those of
differentiation matrices are not. The arithmetic here is NumPy's, in 64 bits;
only the equation is evaluated by the backend.
"""

import functools
import typing

import numpy as np
from numpy.polynomial import legendre

# Of an element. The error falls with the 16th power of its length and faster.
NODES = 16
_ITERATIONS = 12
# Numbers in the linear systems that are solved together.
_BLOCK_SIZE = 2**23


class Reference(typing.NamedTuple):
    """Gauss nodes on [0, 1], and matrices on the values at them."""

    nodes: np.ndarray  # (m,)
    weights: np.ndarray  # (m,)
    transform: np.ndarray  # to the coefficients of Legendre's polynomials
    tail: np.ndarray  # to the part of the last quarter of degrees
    once: np.ndarray  # to the integral from 0 to each node
    twice: np.ndarray  # to the double integral


@functools.cache
def reference():
    x, weights = legendre.leggauss(NODES)
    values = legendre.legvander(x, NODES - 1)
    transform = (values * weights[:, None]).T
    transform = transform * (np.arange(NODES) + 0.5)[:, None]
    high = 3 * NODES // 4
    once, twice = (legendre.legval(x, c).T for c in integrals(transform))
    return Reference(
        (x + 1.0) / 2.0,
        weights / 2.0,
        transform,
        values[:, high:] @ transform[high:],
        once,
        twice,
    )


def integrals(coefficients):
    """Single and double integrals from τ = 0 of series along the first axis."""
    once = legendre.legint(coefficients, lbnd=-1, scl=0.5, axis=0)
    return once, legendre.legint(once, lbnd=-1, scl=0.5, axis=0)


class Rule(typing.NamedTuple):
    """The meshes of n curves, with m nodes each, for one kind of problem."""

    breaks: np.ndarray  # (n, elements + 1)
    nodes: np.ndarray  # (n, m)
    weights: np.ndarray  # (n, m)
    position: np.ndarray  # B, (n, m, m)
    velocity: np.ndarray  # B', (n, m, m)
    start: np.ndarray  # B' at t = 0, (n, m)

    def of(self, curves):
        return Rule(*(a[curves] for a in self))


def rule(breaks, boundary):
    """`breaks` are those of the elements, `(n, elements + 1)`, from 0 to 1."""
    n, elements = len(breaks), breaks.shape[1] - 1
    lengths = np.diff(breaks)
    element = reference()
    nodes = breaks[:, :-1, None] + lengths[..., None] * element.nodes
    weights = lengths[..., None] * element.weights
    nodes, weights = (a.reshape(n, -1) for a in (nodes, weights))
    # ∫ (t − s) a(s) ds: a Gauss sum over the elements before that of t.
    number = np.repeat(np.arange(elements), NODES)
    before = number[:, None] > number
    velocity = before * weights[:, None, :]
    position = velocity * (nodes[:, :, None] - nodes[:, None, :])
    for e, length in enumerate(lengths.T[..., None, None]):
        own = slice(e * NODES, (e + 1) * NODES)
        velocity[:, own, own] = length * element.once
        position[:, own, own] = length**2 * element.twice
    start = np.zeros_like(weights)
    if boundary:
        start = -weights * (1.0 - nodes)
        velocity = velocity + start[:, None, :]
        position = position + nodes[:, :, None] * start[:, None, :]
    return Rule(breaks, nodes, weights, position, velocity, start)


class Solution(typing.NamedTuple):
    """What `correct` returns, one row a curve.

    `residual`, `tail` and `turning` are lengths relative to the speed.
    """

    acceleration: np.ndarray  # (n, m, k)
    converged: np.ndarray  # (n,)
    direct: np.ndarray  # whether it has passed no conjugate point, (n,)
    residual: np.ndarray  # of the equation, (n,)
    tail: np.ndarray  # the part of high degree, at most, (n,)
    turning: np.ndarray  # the acceleration, (n, m)
    squares: np.ndarray  # ⟨c', c'⟩ at the nodes, (n, m)
    majorants: np.ndarray  # the largest with all signs positive, (n,)


def no_solution(guess):
    n, m, _ = guess.shape
    return Solution(
        guess.copy(),
        np.zeros(n, bool),
        np.zeros(n, bool),
        np.full(n, np.inf),
        np.full(n, np.inf),
        np.full((n, m), np.nan),
        np.full((n, m), np.nan),
        np.full(n, np.nan),
    )


def correct(field, start, velocity, guess, rule):
    """Newton's method, which gives up unless it contracts from the start on.

    Sizes are lengths in the metric relative to the speed, which do not depend
    on the chart. A first correction above twice the speed, or one above half
    of the one before, says that the guess was too far away: what Newton's
    method might find from there need not be the geodesic that was meant.
    """
    found = no_solution(guess)
    active, before = np.arange(len(guess)), np.full(len(guess), 4.0)
    for _ in range(_ITERATIONS):
        if not active.size:
            break
        mesh = rule.of(active)
        a, v = found.acceleration[active], velocity[active, None]
        x = start[active, None] + mesh.nodes[..., None] * v + mesh.position @ a
        v = v + mesh.velocity @ a
        state = field.linearized(x, v)
        change = _newton_step(state, mesh, state.acceleration - a)
        speed = _lengths(state, v)
        found.acceleration[active] += change
        found.residual[active] = _size(state, state.acceleration - a, speed)
        found.tail[active] = _size(state, _tail(a + change, mesh), speed)
        found.turning[active] = _ratios(state, a + change, speed)
        tangents = np.einsum("nmij,nmj->nmi", state.upper, v)
        found.squares[active] = np.einsum(
            "nmi,nmij,nmj->nm", tangents, state.gram, tangents
        )
        found.majorants[active] = speed.max(axis=1) ** 2
        size = _size(state, mesh.velocity @ change, speed)
        small = size <= field.tolerance
        found.converged[active] = small
        found.direct[active[small]] = _is_direct(
            state.of(small), mesh.of(small)
        )
        contracts = size <= before[active] / 2.0  # False for NaN
        before[active] = size
        active = active[contracts & ~small]
    return found


def _lengths(state, vectors):
    vectors = np.einsum("nmij,nmj->nmi", state.upper, vectors)
    return np.linalg.norm(vectors, axis=-1)


def _ratios(state, vectors, speed):
    return _lengths(state, vectors) / np.where(speed > 0.0, speed, 1.0)


def _size(state, vectors, speed):
    return _ratios(state, vectors, speed).max(axis=1)


def _tail(acceleration, mesh):
    """What high degrees change the velocity by along an element, at most."""
    n, m, k = acceleration.shape
    elements = acceleration.reshape(n, m // NODES, NODES, k)
    tail = reference().tail @ elements
    lengths = np.diff(mesh.breaks)[..., None, None]
    return (lengths * tail).reshape(n, m, k)


def _blocks(state, rule):
    """Curves and their linear systems, as many at a time as memory allows."""
    n, m, k = state.acceleration.shape
    finite = np.isfinite(state.acceleration).all(axis=(1, 2))
    curves, block = np.flatnonzero(finite), max(1, _BLOCK_SIZE // (m * k) ** 2)
    for i in range(0, len(curves), block):
        part = curves[i : i + block]
        yield (
            part,
            np.eye(m * k)
            - sum(
                np.einsum("nmij,nml->nmilj", a[part], b[part]).reshape(
                    -1, m * k, m * k
                )
                for a, b in (
                    (state.by_position, rule.position),
                    (state.by_velocity, rule.velocity),
                )
            ),
        )


def _newton_step(state, rule, residual):
    """The change of the acceleration, NaN where there is none."""
    n, m, k = residual.shape
    change = np.full((n, m * k), np.nan)
    for part, matrices in _blocks(state, rule):
        sides = residual[part].reshape(-1, m * k, 1)
        try:
            change[part] = np.linalg.solve(matrices, sides)[..., 0]
        except np.linalg.LinAlgError:
            # Exactly singular, between points that are conjugate.
            change[part] = (np.linalg.pinv(matrices) @ sides)[..., 0]
    return change.reshape(n, m, k)


def _is_direct(state, rule):
    """Whether geodesics have passed no conjugate point, on a surface.

    The determinant of the linear system is 1 for a short geodesic and 0
    between conjugate points; passing one of them changes its sign.
    """
    direct = np.zeros(len(state.acceleration), bool)
    for part, matrices in _blocks(state, rule):
        direct[part] = np.linalg.slogdet(matrices).sign > 0.0
    return direct
