"""Statistics of the gates of a trained model."""

import numpy as np


def head_statistics(statistics, path):
    """Mean, spread and closed and open shares of each head.

    Args:
        statistics: `GateStatistics` with the default thresholds.
        path: path of a layer whose gates are between 0 and 1.

    Returns:
        A dictionary of lists with one number for each head, and the counts of
        a histogram over all heads, its bins on [0, 1].
    """
    heads = statistics[path]["heads"]
    counts, _ = statistics.histogram(path)
    return {
        **{
            name: [head[key] for head in heads]
            for name, key in (
                ("mean", "mean"),
                ("spread", "spread"),
                ("share_below_0.1", "share_low"),
                ("share_above_0.9", "share_high"),
            )
        },
        "histogram": counts.sum(axis=0).tolist(),
    }


def pool(statistics):
    """Statistics over the heads of one layer in several models together.

    Args:
        statistics: what `head_statistics` gave for each model; all of them
            from equally many values.

    Returns:
        A dictionary of numbers, and the summed histogram.
    """
    means = np.concatenate([s["mean"] for s in statistics])
    spreads = np.concatenate([s["spread"] for s in statistics])
    mean = means.mean()
    # Variance within the heads and between their means add up.
    variance = np.mean(spreads**2) + np.mean((means - mean) ** 2)
    return {
        "mean": float(mean),
        "spread": float(np.sqrt(variance)),
        "lowest_head_mean": float(means.min()),
        "highest_head_mean": float(means.max()),
        **{
            share: float(np.mean([s[share] for s in statistics]))
            for share in ("share_below_0.1", "share_above_0.9")
        },
        "histogram": np.sum([s["histogram"] for s in statistics], 0).tolist(),
    }
