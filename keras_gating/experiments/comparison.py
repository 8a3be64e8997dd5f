"""Means of arms and paired differences between them, as plain numbers."""

from keras_gating.experiments.intervals import mean_interval
from keras_gating.experiments.intervals import paired_difference
from keras_gating.experiments.intervals import verdict


def bounds(interval):
    """What a JSON file keeps of an `Interval`."""
    return {
        "estimate": interval.estimate,
        "low": interval.low,
        "high": interval.high,
    }


def mean(values):
    """Mean of one number a seed, with its interval and the numbers."""
    values = [float(value) for value in values]
    return {"values": values, **bounds(mean_interval(values))}


def difference(first, second):
    """Interval of the mean of `first − second`, seed by seed, and a verdict.

    Args:
        first: one number a seed.
        second: the same of another arm, in the same order.
    """
    interval = paired_difference(first, second)
    return {**bounds(interval), "verdict": verdict(interval)}


def differences(measured, pairs, key):
    """Differences of one measure between pairs of arms, seed by seed.

    Args:
        measured: entries of arms by name.
        pairs: `(first, second)`, names of arms.
        key: of the measure in an entry, a dictionary with `values`.

    Returns:
        One dictionary for each pair of which both arms were measured.
    """
    return [
        {
            "first": first,
            "second": second,
            **difference(
                measured[first][key]["values"], measured[second][key]["values"]
            ),
        }
        for first, second in pairs
        if first in measured and second in measured
    ]
