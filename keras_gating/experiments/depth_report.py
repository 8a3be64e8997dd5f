"""Tables and pictures of the depth experiment."""

import numpy as np

from keras_gating.experiments.figures import COLOURS
from keras_gating.experiments.figures import error_bars
from keras_gating.experiments.figures import figure
from keras_gating.experiments.tables import estimate_text
from keras_gating.experiments.tables import table

_MARKS = {"higher": " ↑", "lower": " ↓"}


def print_depth(console, results):
    """Prints explained variance and gradient ratios by depth."""
    arms = results.measurements["arms"]
    depths = [f"{depth} blocks" for depth in results.settings["depths"]]
    shown = table(
        f"Depth: share of the variance explained, {len(results.seeds)} seeds",
        "blocks",
        *depths,
    )
    for arm in arms.values():
        shown.add_row(arm["title"], *(_cell(e) for e in arm["depths"].values()))
    console.print(shown)
    console.print(
        "± is half the 95 % interval. ↑ ↓: more or less than the post-norm "
        "block, seed by seed; ·: no difference shown."
    )
    shown = table(
        "Gradient norm of the first block over that of the last, at the start",
        "blocks",
        *depths,
    )
    for arm in arms.values():
        shown.add_row(
            arm["title"],
            *(
                f"{10 ** e['log10_gradient_ratio']['estimate']:.1e}"
                for e in arm["depths"].values()
            ),
        )
    console.print(shown)


def _cell(entry):
    text = estimate_text(entry["explained"], "{:.2f}")
    if "difference" not in entry:
        return text
    return text + _MARKS.get(entry["difference"]["verdict"], " ·")


def by_depth(results):
    """Explained variance and gradient ratio of every arm against depth."""
    arms = results.measurements["arms"]
    depths = results.settings["depths"]
    made = figure(12.0, 5.4)
    left, right = made.subplots(1, 2, sharex=True)
    for i, arm in enumerate(arms.values()):
        style = {
            "color": COLOURS[i % len(COLOURS)],
            "linestyle": ("-", "--", ":")[i // len(COLOURS)],
            "marker": "os^Dv<>"[i % 7],
            "markersize": 5,
            "capsize": 3,
            "label": arm["title"],
        }
        for axis, key in (
            (left, "explained"),
            (right, "log10_gradient_ratio"),
        ):
            entries = [arm["depths"][str(depth)][key] for depth in depths]
            means, spread = error_bars(entries)
            axis.errorbar(depths, means, spread, **style)
    left.set_ylabel("share of the variance explained")
    right.set_ylabel("log10 of gradient norm, first block / last block")
    right.axhline(0.0, color="0.7", linewidth=1, zorder=0)
    for axis in (left, right):
        axis.set_xticks(depths)
        axis.set_xlabel("blocks")
        axis.grid(alpha=0.3)
    handles, labels = left.get_legend_handles_labels()
    made.legend(handles, labels, loc="outside lower center", ncols=4)
    return made


def curves(results):
    """Training curves of all seeds at the greatest depth."""
    arms = list(results.measurements["arms"].values())
    depth = str(results.settings["depths"][-1])
    columns = min(5, len(arms))
    rows = -(-len(arms) // columns)
    made = figure(2.5 * columns + 0.8, 2.1 * rows + 1.0)
    grid = made.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    for axis, arm in zip(grid.ravel(), arms):
        curve = arm["depths"][depth]["curve"]
        axis.plot(
            curve["steps"],
            np.array(curve["explained"]),
            color=COLOURS[0],
            linewidth=1,
        )
        axis.set_title(arm["title"], fontsize=8)
        axis.set_ylim(-0.25, 1.05)
        axis.grid(alpha=0.3)
    for axis in grid.ravel()[len(arms) :]:
        axis.set_axis_off()
    made.supxlabel("steps", fontsize=10)
    made.supylabel("share of the variance explained", fontsize=10)
    made.suptitle(f"{depth} blocks, a line for each seed", fontsize=11)
    return made


PLOTS = {"depth": by_depth, "depth_curves": curves}
