"""Whether curvature goes with accuracy: correlations and their intervals."""

import numpy as np

from keras_gating.experiments.extras import require

FLOOR = 1e-3
RESAMPLES = 2000


def correlations(totals, accuracies, resamples=RESAMPLES):
    """Correlations of log10 ∫|K| dA with accuracy, each with its interval.

    *Pooled* over everything, they mix what an arm is like with what curvature
    does; within a task its mean is taken out, and within arm × task the mean
    of each arm on each task, so that only differences between seeds are left.
    The bootstrap takes seeds as clusters: it draws seeds, and with a seed all
    of its networks.

    Args:
        totals: ∫|K| dA, `(arms, tasks, seeds)`; NaN where it is unknown.
        accuracies: the same shape.
        resamples: of the bootstrap.

    Returns:
        By scope, `"pooled"`, `"within_task"` and `"within_arm_and_task"`,
        entries for `"pearson"` and `"spearman"` with `estimate`, `low` and
        `high`; all `None` where nothing varies.
    """
    x = np.log10(np.maximum(totals, FLOOR))
    y = np.where(np.isfinite(x), accuracies, np.nan)
    scopes = {
        "pooled": None,
        "within_task": (-3, -1),
        "within_arm_and_task": (-1,),
    }
    seeds = x.shape[-1]
    return {
        scope: {
            "pearson": _interval(pearson, x, y, axes, seeds, resamples),
            "spearman": _interval(spearman, x, y, axes, seeds, resamples),
        }
        for scope, axes in scopes.items()
    }


def pearson(x, y, axes):
    """Correlation of residuals, `(…,)` of `(…, arms, tasks, seeds)`.

    Args:
        x: numbers; NaN is left out, in `y` at the same places.
        y: other numbers.
        axes: over which means are taken out, or `None`.
    """
    return _correlation(_residuals(x, axes), _residuals(y, axes))


def spearman(x, y, axes):
    """The same of the ranks of residuals."""
    return _correlation(
        _ranks(_residuals(x, axes)), _ranks(_residuals(y, axes))
    )


def bootstrap(statistic, count, resamples=RESAMPLES, confidence=0.95):
    """Percentile interval of a statistic over resampled clusters.

    Args:
        statistic: function of the indices of clusters, `(resamples, count)`;
            returns `(resamples,)`.
        count: number of clusters.
        resamples: how often they are drawn.
        confidence: between 0 and 1.

    Returns:
        The bounds, `(low, high)`.
    """
    index = np.random.default_rng(0).integers(count, size=(resamples, count))
    values = statistic(index)
    values = values[np.isfinite(values)]
    if not values.size:
        return None, None
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(values, (tail, 1.0 - tail))
    return float(low), float(high)


def supported(entry):
    """Whether an interval lies above zero."""
    return entry["low"] is not None and entry["low"] > 0.0


def _interval(statistic, x, y, axes, seeds, resamples):
    def resampled(index):
        # A chunk at a time, since ranks need memory.
        return np.concatenate(
            [
                statistic(
                    np.moveaxis(x[..., part], 2, 0),
                    np.moveaxis(y[..., part], 2, 0),
                    axes,
                )
                for part in np.array_split(index, max(1, len(index) // 100))
            ]
        )

    estimate = float(statistic(x, y, axes))
    if not np.isfinite(estimate):
        return {"estimate": None, "low": None, "high": None}
    low, high = (None, None)
    if seeds > 1:
        low, high = bootstrap(resampled, seeds, resamples)
    return {"estimate": estimate, "low": low, "high": high}


def _residuals(x, axes):
    if axes is None:
        return x
    known = np.isfinite(x)
    count = np.maximum(known.sum(axis=axes, keepdims=True), 1)
    mean = np.where(known, x, 0.0).sum(axis=axes, keepdims=True) / count
    residuals = x - mean
    # What rounding leaves of numbers that are all the same has no rank.
    noise = 1e-12 * (1.0 + np.abs(mean))
    return np.where(np.abs(residuals) < noise, 0.0, residuals)


def _correlation(x, y):
    x, y = (a.reshape(*a.shape[:-3], -1) for a in (x, y))
    known = np.isfinite(x) & np.isfinite(y)
    count = np.maximum(known.sum(axis=-1, keepdims=True), 1)

    def centred(a):
        a = np.where(known, a, 0.0)
        mean = a.sum(axis=-1, keepdims=True) / count
        return np.where(known, a - mean, 0.0)

    x, y = centred(x), centred(y)
    size = np.sqrt(np.square(x).sum(-1) * np.square(y).sum(-1))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(size > 1e-12, (x * y).sum(-1) / size, np.nan)


def _ranks(x):
    """Mean ranks of all numbers, ties sharing one; NaN stays NaN."""
    rows = x.reshape(*x.shape[:-3], -1)
    ranks = require("scipy.stats").rankdata(rows, axis=-1, nan_policy="omit")
    return ranks.reshape(x.shape)
