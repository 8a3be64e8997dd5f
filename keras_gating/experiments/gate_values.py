"""Statistics of the gates of a trained model."""

import numpy as np
from keras import ops

from keras_gating.functional import record_into

BINS = 40


def record_gates(model, inputs):
    """Values of every gate of `model` on `inputs`.

    Args:
        model: a model with gates.
        inputs: one batch.

    Returns:
        A dictionary from the gate's path to an array, `(B, T, heads, size)`.
    """
    recorded = {}

    def keep(path, gate, mask):
        recorded[path] = ops.convert_to_numpy(gate)

    with record_into(keep):
        model(inputs, training=False)
    return recorded


def head_statistics(gates):
    """Mean, spread and closed and open shares of each head.

    Args:
        gates: `(B, T, heads, size)`, values between 0 and 1.

    Returns:
        A dictionary of lists with one number for each head, and the counts of
        a histogram over all heads with `BINS` bins on [0, 1].
    """
    heads = gates.shape[2]
    by_head = np.moveaxis(gates.astype("float64"), 2, 0).reshape(heads, -1)
    counts, _ = np.histogram(by_head, bins=BINS, range=(0.0, 1.0))
    return {
        "mean": by_head.mean(axis=1).tolist(),
        "spread": by_head.std(axis=1).tolist(),
        "share_below_0.1": (by_head < 0.1).mean(axis=1).tolist(),
        "share_above_0.9": (by_head > 0.9).mean(axis=1).tolist(),
        "histogram": counts.tolist(),
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
