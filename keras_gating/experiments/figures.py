"""Parts that the pictures of all experiments share."""

from keras_gating.diagnostics.figures import COLOURS
from keras_gating.diagnostics.figures import draw_surface
from keras_gating.diagnostics.figures import figure
from keras_gating.diagnostics.figures import principal

__all__ = ["COLOURS", "draw_surface", "error_bars", "figure", "principal"]


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
