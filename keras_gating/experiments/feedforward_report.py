"""Tables and picture of the feed-forward experiment."""

import numpy as np

from keras_gating.experiments.figures import COLOURS
from keras_gating.experiments.figures import error_bars
from keras_gating.experiments.figures import figure
from keras_gating.experiments.tables import bounds_text
from keras_gating.experiments.tables import estimate_text
from keras_gating.experiments.tables import table


def print_feedforward(console, results):
    """Prints losses, paired differences and the published ones."""
    arms = results.measurements["arms"]
    shown = table(
        f"Next-character loss in nats, {len(results.seeds)} seeds, and "
        "log-perplexities of Shazeer 2020",
        "feed-forward",
        "loss",
        "parameters",
        "ms a step",
        "65k steps",
        "524k steps",
    )
    for arm in arms.values():
        seconds = arm["seconds_per_step"]
        shown.add_row(
            arm["title"],
            estimate_text(arm["loss"], "{:.4f}"),
            f"{arm['parameters']:,}",
            "–" if seconds is None else f"{1e3 * seconds:.1f}",
            *(f"{loss:.3f}" for loss in arm["published"]),
        )
    console.print(shown)
    shown = table(
        "Paired differences of the loss",
        "first minus second",
        "mean",
        "95 % interval",
        "first is",
        "65k steps",
        "524k steps",
    )
    for entry in results.measurements["differences"]:
        shown.add_row(
            f"{arms[entry['first']]['title']} − "
            f"{arms[entry['second']]['title']}",
            f"{entry['estimate']:+.4f}",
            bounds_text(entry, "{:+.4f}"),
            entry["verdict"],
            *(f"{loss:+.3f}" for loss in entry["published"]),
        )
    console.print(shown)
    console.print(
        "The published figures are of T5-base on C4 and not ours; intervals "
        "are of one comparison each."
    )


def losses(results):
    """Loss of each seed and arm, and published differences beside ours."""
    arms = list(results.measurements["arms"].values())
    made = figure(11.0, 4.4)
    left, right = made.subplots(1, 2, width_ratios=(3, 2))
    places = np.arange(len(arms))
    values = np.array([arm["loss"]["values"] for arm in arms])
    left.plot(places, values, "o-", color="0.75", markersize=3, linewidth=1)
    for gated, colour in ((False, COLOURS[4]), (True, COLOURS[0])):
        chosen = [i for i, arm in enumerate(arms) if arm["gated"] == gated]
        means, spread = error_bars([arms[i]["loss"] for i in chosen])
        left.errorbar(
            places[chosen],
            means,
            spread,
            fmt="D",
            color=colour,
            capsize=5,
            label="gated" if gated else "not gated",
        )
    left.set_xticks(places, [arm["title"] for arm in arms], rotation=30)
    left.set_ylabel("loss, nats a character")
    left.set_title("each line one seed; means with 95 % intervals", fontsize=10)
    left.grid(axis="y", alpha=0.3)
    left.legend()
    _draw_published(right, results)
    return made


def _draw_published(axis, results):
    arms = results.measurements["arms"]
    entries = [
        entry
        for entry in results.measurements["differences"]
        if entry["second"] == "relu"
    ]
    axis.set_title("differences from ReLU", fontsize=10)
    axis.margins(x=0.15)
    axis.axhline(0.0, color="0.6", linewidth=1)
    axis.axvline(0.0, color="0.6", linewidth=1)
    axis.set_xlabel("published, T5-base on C4, 524k steps")
    axis.set_ylabel("here, nats a character")
    axis.grid(alpha=0.3)
    if not entries:
        return
    means, spread = error_bars(entries)
    published = [entry["published"][-1] for entry in entries]
    axis.errorbar(
        published, means, spread, fmt="o", color=COLOURS[0], capsize=3
    )
    for entry, x, y in zip(entries, published, means):
        axis.annotate(
            arms[entry["first"]]["title"],
            (x, y),
            xytext=(5, 4),
            textcoords="offset points",
            fontsize=9,
        )


PLOTS = {"feedforward": losses}
