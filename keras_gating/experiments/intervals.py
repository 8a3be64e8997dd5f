"""Intervals of confidence, and what may be concluded from them."""

import math
import statistics
from typing import NamedTuple

from keras_gating.experiments.extras import require


class Interval(NamedTuple):
    """An estimate and the interval around it.

    `low` and `high` are `None` when one observation gives no interval.
    """

    estimate: float
    low: float | None
    high: float | None
    confidence: float
    observations: int


def wilson_interval(successes, trials, confidence=0.95):
    """Interval of a share, by Wilson's score.

    `(p + z²/2n ± z √(p(1 − p)/n + z²/4n²)) / (1 + z²/n)`, with `p` the share
    of `n` trials and `z` the normal quantile. Unlike the normal interval it is
    right for shares of 0 and 1 and stays within them.

    Args:
        successes: how many trials succeeded.
        trials: how many there were, at least one.
        confidence: between 0 and 1.

    Returns:
        An `Interval` around `successes / trials`.

    Example:

    >>> from keras_gating.experiments.intervals import wilson_interval
    >>> share, low, high, *_ = wilson_interval(0, 20)
    >>> share, low, round(high, 3)
    (0.0, 0.0, 0.161)
    """
    if trials < 1 or not 0 <= successes <= trials:
        raise ValueError(
            "`trials` must be at least 1 and `successes` between 0 and "
            f"`trials`. Received: successes={successes}, trials={trials}"
        )
    z = statistics.NormalDist().inv_cdf(0.5 + _check(confidence) / 2.0)
    share = successes / trials
    weight = z * z / trials
    centre = share + weight / 2.0
    half = z * math.sqrt(
        share * (1.0 - share) / trials + weight / (4.0 * trials)
    )
    # At the ends the bound is exact, and rounding must not move it.
    low = 0.0 if successes == 0 else (centre - half) / (1.0 + weight)
    high = 1.0 if successes == trials else (centre + half) / (1.0 + weight)
    return Interval(share, low, high, confidence, trials)


def mean_interval(values, confidence=0.95):
    """Interval of a mean, by Student's t.

    Args:
        values: independent observations, at least one.
        confidence: between 0 and 1.

    Returns:
        An `Interval` around the mean; without bounds for one observation.
    """
    values = [float(value) for value in values]
    if not values:
        raise ValueError("`values` must not be empty. Received: []")
    mean = statistics.fmean(values)
    count = len(values)
    if count == 1:
        return Interval(mean, None, None, _check(confidence), 1)
    quantile = require("scipy.special").stdtrit(
        count - 1, 0.5 + _check(confidence) / 2.0
    )
    half = float(quantile) * statistics.stdev(values) / math.sqrt(count)
    return Interval(mean, mean - half, mean + half, confidence, count)


def paired_difference(first, second, confidence=0.95):
    """Interval of the mean of `first − second`, pair by pair.

    Args:
        first: one observation a pair.
        second: the other ones, in the same order.
        confidence: between 0 and 1.

    Returns:
        An `Interval` around the mean difference.
    """
    if len(first) != len(second):
        raise ValueError(
            "Pairs need two sequences of one length. Received: lengths "
            f"{len(first)} and {len(second)}"
        )
    differences = [float(a) - float(b) for a, b in zip(first, second)]
    return mean_interval(differences, confidence)


def verdict(difference):
    """What an interval of a difference allows to say, in words."""
    if difference.low is None:
        return "one seed: no interval, nothing shown"
    if difference.low <= 0.0 <= difference.high:
        return "inside its interval: no difference shown"
    return "higher" if difference.estimate > 0.0 else "lower"


def _check(confidence):
    if not 0.0 < confidence < 1.0:
        raise ValueError(
            "`confidence` must lie between 0 and 1. Received: "
            f"confidence={confidence}"
        )
    return confidence
