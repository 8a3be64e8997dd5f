"""Tables and marks of experiments on the next character."""

import numpy as np

from keras_gating.experiments.figures import error_bars
from keras_gating.experiments.tables import NO_COLUMNS
from keras_gating.experiments.tables import estimate_text
from keras_gating.experiments.tables import print_differences
from keras_gating.experiments.tables import table


def print_losses(
    console, results, what, title="", of_arms=NO_COLUMNS, of_pairs=NO_COLUMNS
):
    """Prints losses by arm, then their paired differences.

    Args:
        console: a `rich.console.Console`.
        results: the `Results`.
        what: the title of the first column, what an arm is.
        title: continues that of the table of losses.
        of_arms: `(titles, function)`, further columns of that table and their
            cells for an arm.
        of_pairs: the same of the table of differences.
    """
    titles, cells = of_arms
    shown = table(
        f"Next-character loss in nats, {len(results.seeds)} seeds{title}",
        what,
        "loss",
        "parameters",
        "ms a step",
        *titles,
    )
    for arm in results.measurements["arms"].values():
        seconds = arm["seconds_per_step"]
        shown.add_row(
            arm["title"],
            estimate_text(arm["loss"], "{:.4f}"),
            f"{arm['parameters']:,}",
            "–" if seconds is None else f"{1e3 * seconds:.1f}",
            *cells(arm),
        )
    console.print(shown)
    print_differences(
        console,
        "Paired differences of the loss",
        results,
        "{:+.4f}",
        further=of_pairs,
    )


def draw_losses(axis, arms, kinds, capsize):
    """Draws the losses of all seeds, means and intervals on top.

    Args:
        axis: where to.
        arms: the entries of the arms.
        kinds: `(label, colour, places)` of groups of arms.
        capsize: of the intervals, in points.
    """
    places = np.arange(len(arms))
    values = np.array([arm["loss"]["values"] for arm in arms])
    axis.plot(places, values, "o-", color="0.75", markersize=3, linewidth=1)
    for label, colour, chosen in kinds:
        if not chosen:
            continue
        means, spread = error_bars([arms[i]["loss"] for i in chosen])
        axis.errorbar(
            places[chosen],
            means,
            spread,
            fmt="D",
            color=colour,
            capsize=capsize,
            label=label,
        )
    axis.set_ylabel("loss, nats a character")
    axis.set_title("each line one seed; means with 95 % intervals", fontsize=10)
    axis.legend()
