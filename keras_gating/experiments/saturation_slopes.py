"""Slopes of gate activations, and how many of them vanish under normal logits.

`share(s) = P(|g'(s Z)| < 1 % of max |g'|)`, with `Z` standard normal. Nothing
is trained or drawn: the set where a slope is small is a few intervals, and the
normal distribution gives each its share.
"""

import dataclasses
import functools
import math
import typing

import numpy as np

from keras_gating.experiments.extras import require

# A slope below this share of the largest one counts as vanished.
VANISHED = 0.01

# Beyond its ends every slope here has settled, and between its points none
# crosses the threshold twice.
_GRID = np.linspace(-40.0, 40.0, 80001)
_BISECTIONS = 60
# Nodes on [−12 s, 12 s]; an even number, so that none is on a kink at 0.
_NODES = 240000


@dataclasses.dataclass(frozen=True)
class Activation:
    """A gate activation with its slope.

    Args:
        name: of the activation in Keras, its key in the results.
        title: the activation in words.
        slope: function of logits, an array, to slopes.
    """

    name: str
    title: str
    slope: typing.Callable


def _sigmoid(z):
    return require("scipy.special").expit(z)


def _density(z):
    return np.exp(-0.5 * np.square(z)) / math.sqrt(2.0 * math.pi)


def _gelu(z):
    return require("scipy.special").ndtr(z) + z * _density(z)


def _silu(z):
    return _sigmoid(z) * (1.0 + z * _sigmoid(-z))


ACTIVATIONS = (
    Activation("sigmoid", "sigmoid", lambda z: _sigmoid(z) * _sigmoid(-z)),
    Activation(
        "hard_sigmoid",
        "hard sigmoid",
        lambda z: np.where(np.abs(z) < 3.0, 1.0 / 6.0, 0.0),
    ),
    Activation(
        "tanh", "tanh", lambda z: 4.0 * _sigmoid(2 * z) * _sigmoid(-2 * z)
    ),
    Activation("softsign", "softsign", lambda z: (1.0 + np.abs(z)) ** -2.0),
    Activation("gelu", "GELU", _gelu),
    Activation("silu", "SiLU", _silu),
    Activation("softplus", "softplus", _sigmoid),
    Activation("relu", "ReLU", lambda z: np.where(z > 0.0, 1.0, 0.0)),
    Activation("linear", "none (bilinear)", np.ones_like),
)


@functools.lru_cache
def largest_slope(activation):
    """`max |g'|`, for softplus its least upper bound to rounding."""
    return float(np.abs(activation.slope(_GRID)).max())


def vanished(activation, logits):
    """Where `|g'|` is below 1 % of its maximum, as booleans."""
    bound = VANISHED * largest_slope(activation)
    return np.abs(activation.slope(np.float64(logits))) < bound


@functools.lru_cache
def intervals(activation):
    """The intervals of logits where the slope has vanished.

    Returns:
        Pairs `(low, high)` in increasing order; the outer ones reach to
        infinity.
    """
    flags = vanished(activation, _GRID)
    ends = [-math.inf] if flags[0] else []
    for i in np.flatnonzero(flags[1:] != flags[:-1]):
        ends.append(_crossing(activation, _GRID[i], _GRID[i + 1]))
    ends += [math.inf] if flags[-1] else []
    return tuple(zip(ends[::2], ends[1::2]))


def vanished_share(activation, spread):
    """Share of vanished slopes under normal logits, and that of either sign.

    Args:
        activation: an `Activation`.
        spread: standard deviation of the logits.

    Returns:
        `(negative, positive)`: the shares that negative and positive logits
        make up.
    """
    cdf = require("scipy.special").ndtr
    shares = [0.0, 0.0]
    for low, high in intervals(activation):
        middle = min(max(0.0, low), high)
        shares[0] += float(cdf(middle / spread) - cdf(low / spread))
        # As the lower tail, which does not round off.
        shares[1] += float(cdf(-middle / spread) - cdf(-high / spread))
    return tuple(shares)


def slope_size(activation, spread):
    """Root mean square of `g'(s Z)`: the gradient that a gate lets through.

    Args:
        activation: an `Activation`.
        spread: standard deviation `s` of the logits.
    """
    # Midpoints of 24 standard deviations: the rest is below 1e-30.
    z = (np.arange(_NODES) + 0.5) / _NODES * 24.0 - 12.0
    squares = np.square(activation.slope(spread * z)) * _density(z)
    return math.sqrt(float(squares.sum()) * 24.0 / _NODES)


def _crossing(activation, low, high):
    """Bisects the one change between two points of the grid."""
    start = vanished(activation, low)
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        if vanished(activation, middle) == start:
            low = middle
        else:
            high = middle
    return float(high)
