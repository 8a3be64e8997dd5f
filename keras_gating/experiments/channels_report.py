"""Tables and picture of the channels experiment."""

import numpy as np

from keras_gating.experiments.figures import COLOURS
from keras_gating.experiments.figures import error_bars
from keras_gating.experiments.figures import figure
from keras_gating.experiments.tables import estimate_text
from keras_gating.experiments.tables import print_differences
from keras_gating.experiments.tables import table

_COLOUR = {
    None: "0.4",
    "se": COLOURS[0],
    "eca": COLOURS[2],
    "cbam": COLOURS[4],
}


def print_channels(console, results):
    """Prints accuracies with costs, and paired differences."""
    arms = results.measurements["arms"]
    plain = next(iter(arms.values()))
    shown = table(
        f"Digits, convolutional: test accuracy, {len(results.seeds)} seeds",
        "gate",
        "accuracy",
        "parameters",
        "more than first",
        "operations",
        "more than first",
        "ms a step",
    )
    for arm in arms.values():
        shown.add_row(
            arm["title"],
            estimate_text(arm["accuracy"], "{:.2f}", 100) + " %",
            f"{arm['parameters']:,}",
            f"{arm['parameters'] / plain['parameters'] - 1:+.2%}",
            f"{arm['operations']:,}",
            f"{arm['operations'] / plain['operations'] - 1:+.2%}",
            f"{1e3 * arm['seconds_per_step']:.1f}",
        )
    console.print(shown)
    print_differences(
        console,
        "Paired differences of the accuracy, in percentage points",
        results,
        "{:+.2f}",
        factor=100,
    )
    console.print(
        "Operations: multiplications and additions for one image. Intervals "
        "are of one comparison each; splits of different seeds overlap."
    )


def accuracy_by_cost(results):
    """Differences from no gate, and accuracy against added parameters."""
    arms = results.measurements["arms"]
    plain = next(iter(arms.values()))
    made = figure(11.5, 4.4)
    left, right = made.subplots(1, 2, width_ratios=(3, 2))
    entries = [
        entry
        for entry in results.measurements["differences"]
        if entry["second"] == "none"
    ]
    left.axvline(0.0, color="0.5", linewidth=1)
    for place, entry in enumerate(reversed(entries)):
        (mean,), spread = error_bars([entry], 100)
        colour = _COLOUR[arms[entry["first"]]["gate"]]
        left.errorbar(
            mean, place, xerr=spread, fmt="o", color=colour, capsize=4
        )
    left.set_yticks(
        np.arange(len(entries)),
        [arms[entry["first"]]["title"] for entry in reversed(entries)],
    )
    left.set_xlabel(
        "accuracy minus that without a gate, percentage points\n"
        "(95 % intervals of paired differences)"
    )
    left.grid(axis="x", alpha=0.3)
    for arm in arms.values():
        (mean,), spread = error_bars([arm["accuracy"]], 100)
        right.errorbar(
            max(arm["parameters"] - plain["parameters"], 0),
            mean,
            spread,
            fmt="o",
            color=_COLOUR[arm["gate"]],
            capsize=4,
        )
    right.set_xscale("symlog", linthresh=1)
    right.set_xlim(left=-0.3)
    right.set_xlabel("parameters of the gates")
    right.set_ylabel("test accuracy, %")
    right.grid(alpha=0.3)
    for gate, title in (
        (None, "no gate"),
        ("se", "SE"),
        ("eca", "ECA"),
        ("cbam", "CBAM"),
    ):
        right.plot([], [], "o", color=_COLOUR[gate], label=title)
    right.legend()
    return made


PLOTS = {"channels": accuracy_by_cost}
