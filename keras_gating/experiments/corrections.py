"""Significance of paired differences, and what many of them cost."""

import math
import statistics

from keras_gating.experiments.extras import require


def paired_p_value(first, second):
    """Two-sided p of the mean of `first − second`, by Student's t.

    Args:
        first: one observation a pair.
        second: the other ones, in the same order.

    Returns:
        A number from 0 to 1, or `None` for a single pair. Pairs that do not
        differ at all give 1, and those that all differ by the same give 0.

    Example:

    >>> from keras_gating.experiments.corrections import paired_p_value
    >>> round(paired_p_value([1.0, 2.0, 4.0], [0.0, 0.0, 1.0]), 4)
    0.0742
    """
    differences = [float(a) - float(b) for a, b in zip(first, second)]
    count = len(differences)
    if count < 2:
        return None
    mean = statistics.fmean(differences)
    spread = statistics.stdev(differences)
    if spread == 0.0:
        return 1.0 if mean == 0.0 else 0.0
    t = abs(mean) / spread * math.sqrt(count)
    return float(2.0 * require("scipy.special").stdtr(count - 1, -t))


def holm(p_values):
    """Holm's step-down correction of several p-values.

    The i-th smallest of m is multiplied by `m − i + 1`, and none may fall
    below a smaller one. The chance of any false finding at all stays below
    the level that the results are compared with.

    Args:
        p_values: numbers from 0 to 1, or `None` for tests that were not
            possible; these do not count.

    Returns:
        The adjusted values in the same order.

    Example:

    >>> from keras_gating.experiments.corrections import holm
    >>> holm([0.01, 0.5, 0.03])
    [0.03, 0.5, 0.06]
    """
    known = [(p, i) for i, p in enumerate(p_values) if p is not None]
    adjusted: list = [None] * len(p_values)
    largest = 0.0
    for rank, (p, i) in enumerate(sorted(known)):
        largest = max(largest, min(1.0, (len(known) - rank) * p))
        adjusted[i] = largest
    return adjusted
