"""From merged moments to the numbers that are reported."""

import numpy as np


def summarized(path, moments):
    """The dictionary of one layer, see `gate_statistics`.

    Args:
        path: path of the layer, for the message.
        moments: `Moments`.
    """
    if moments.count == 0:
        raise ValueError(
            "There is no real position among the data: all are padding. "
            f"Received: no value of {path!r}"
        )
    heads = [_head(moments, head) for head in range(len(moments.mean))]
    mean = moments.mean.mean()
    variance = moments.squares.mean() / moments.count
    # Variance within the heads and between their means add up.
    variance += np.square(moments.mean - mean).mean()
    pooled = {
        "bounded": moments.bounded,
        "count": moments.count * len(heads),
        "mean": float(mean),
        "spread": float(np.sqrt(variance)),
        "lowest": float(moments.lowest.min()),
        "highest": float(moments.highest.max()),
    }
    for name in heads[0]:
        if name not in pooled:
            pooled[name] = float(np.mean([head[name] for head in heads]))
    return {**pooled, "heads": heads}


def _head(moments, head):
    count, nonfinite = moments.count, moments.nonfinite[head]
    lowest, highest = moments.lowest[head], moments.highest[head]
    numbers = {
        "count": count,
        "mean": float(moments.mean[head]),
        "spread": float(np.sqrt(moments.squares[head] / count)),
        "lowest": float(lowest.min()),
        "highest": float(highest.max()),
        "share_nonfinite": float(nonfinite / count),
    }
    if nonfinite:
        # Comparisons with NaN are false, which would look like a healthy gate.
        count, lowest, highest = np.nan, lowest * np.nan, highest * np.nan
    if not moments.bounded:
        return {
            **numbers,
            "share_negative": float(moments.negative[head] / count),
        }
    return {
        **numbers,
        "share_low": float(moments.below[head] / count),
        "share_high": float(moments.above[head] / count),
        "dead": _share(highest, highest < moments.low),
        "open": _share(lowest, lowest > moments.high),
        "entropy": float(moments.entropy[head] / count),
    }


def _share(bounds, is_so):
    """Share of features, NaN if that of any is unknown."""
    return float(np.where(np.isnan(bounds), np.nan, is_so).mean())
