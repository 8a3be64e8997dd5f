"""Parts that the pictures of all experiments share.

`matplotlib.figure.Figure` is used directly: no window system is chosen and
nothing global is set.
"""

from keras_gating.experiments.extras import require

# Okabe and Ito's palette, which colour-blind readers can tell apart.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9")


def figure(width, height):
    """An empty figure of so many inches."""
    made = require("matplotlib.figure").Figure
    return made(figsize=(width, height), layout="constrained")


def error_bars(bounds, factor=1.0):
    """Estimates of dictionaries and how far their intervals reach.

    Args:
        bounds: dictionaries with `estimate`, `low` and `high`; without an
            interval the bar has no length.
        factor: on all of them.

    Returns:
        `estimates` and `(below, above)`, for `Axes.errorbar`.
    """
    estimates = [factor * b["estimate"] for b in bounds]
    below, above = (
        [
            0.0 if b["low"] is None else factor * abs(b[key] - b["estimate"])
            for b in bounds
        ]
        for key in ("low", "high")
    )
    return estimates, (below, above)
