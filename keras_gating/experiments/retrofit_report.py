"""Tables, conclusions and pictures of gates in a trained network."""

import numpy as np

from keras_gating.experiments.figures import COLOURS
from keras_gating.experiments.figures import error_bars
from keras_gating.experiments.figures import figure
from keras_gating.experiments.tables import bounds_text
from keras_gating.experiments.tables import estimate_text
from keras_gating.experiments.tables import print_differences
from keras_gating.experiments.tables import table

# What float32 does to logits of this size.
_ROUNDING = 1e-3


def print_retrofit(console, results):
    """Prints losses before and after, and how far gates moved."""
    measured, settings = results.measurements, results.settings
    arms = measured["arms"]
    shown = table(
        f"Gates for a trained network, {len(results.seeds)} seeds: loss, nats",
        "arm",
        "Δ logits",
        "after surgery",
        "at the end",
        "parameters",
    )
    for arm in arms.values():
        shown.add_row(
            arm["title"],
            f"{max(arm['largest_change']['values']):.1e}",
            estimate_text(arm["start_loss"], "{:.3f}"),
            estimate_text(arm["loss"], "{:.3f}"),
            f"{arm['parameters']:,}",
        )
    console.print(shown)
    console.print(
        f"Before surgery: {settings['steps']} steps, loss "
        f"{estimate_text(measured['start'], '{:.4f}')}. Then "
        f"{settings['continued_steps']} steps in every arm, on the same "
        "batches. Δ logits is the greatest change by surgery. All gates but "
        "the open ones are 2σ. In the last three arms gates have "
        f"{settings['gate_rate']:g} times the learning rate, and without gates "
        "as many weights of the output projections have it."
    )
    shown = table(
        "Factors that the gates multiply by, at the end",
        "arm",
        "|factor − 1|",
        "moved",
        "below ½",
        "above 1½",
        "mean",
        "spread",
    )
    for arm in _gated(arms):
        shown.add_row(
            arm["title"],
            estimate_text(arm["distance"], "{:.3f}"),
            f"{arm['moved']['estimate']:.3f}",
            *(f"{arm[key]['estimate']:.1%}" for key in ("below", "above")),
            *(f"{arm[key]['estimate']:.3f}" for key in ("mean", "spread")),
        )
    console.print(shown)
    print_differences(
        console, "Paired differences of the loss", results, "{:+.4f}"
    )
    for conclusion in conclusions(results):
        console.print(f"• {conclusion}", highlight=False)


def conclusions(results):
    """What the measurements say, in sentences."""
    measured = results.measurements
    against = {
        entry["first"]: entry
        for entry in measured["differences"]
        if entry["second"] == "ungated"
    }
    for name, arm in measured["arms"].items():
        if "distance" not in arm:
            continue
        change = max(arm["largest_change"]["values"])
        kept = "keeps" if change < _ROUNDING else "changes"
        text = (
            f"“{arm['title']}” {kept} the function; its gates move by "
            f"{arm['moved']['estimate']:.3f} on average"
        )
        if name in against:
            entry = against[name]
            outcome = _OUTCOMES.get(entry["verdict"], "add nothing that shows")
            text += (
                f" and {outcome}, {entry['estimate']:+.4f} "
                f"{bounds_text(entry, '{:+.4f}')} nats"
            )
        yield f"{text}."


_OUTCOMES = {"higher": "raise the loss", "lower": "lower the loss"}


def _gated(arms):
    return [arm for arm in arms.values() if "distance" in arm]


def moves(results):
    """Where the gates end, and what they add."""
    arms = results.measurements["arms"]
    made = figure(11.0, 4.4)
    left, right = made.subplots(1, 2)
    for number, arm in enumerate(_gated(arms)):
        counts = np.array(arm["histogram"], "float64")
        edges = np.linspace(0.0, 2.0, len(counts) + 1)
        left.stairs(
            counts / counts.sum() / (edges[1] - edges[0]),
            edges,
            color=COLOURS[number],
            linewidth=1.5,
            linestyle="-" if number % 2 else "--",
            label=arm["title"],
        )
    left.axvline(1.0, color="0.6", linewidth=1)
    left.set_xlabel("factor of the gate at the end")
    left.set_ylabel("density, all seeds")
    left.legend(fontsize=8)
    entries = [
        entry
        for entry in results.measurements["differences"]
        if entry["second"] == "ungated"
    ]
    right.axhline(0.0, color="0.6", linewidth=1)
    right.set_ylabel("loss minus that without gates, nats")
    right.set_title("each dot one seed; means with 95 % intervals", fontsize=10)
    right.grid(axis="y", alpha=0.3)
    if not entries:
        return made
    places = np.arange(len(entries))
    plain = np.array(arms["ungated"]["loss"]["values"])
    for place, entry in zip(places, entries):
        gaps = np.array(arms[entry["first"]]["loss"]["values"]) - plain
        right.plot([place - 0.15] * len(gaps), gaps, "o", color="0.75")
    means, spread = error_bars(entries)
    right.errorbar(places, means, spread, fmt="D", color=COLOURS[0], capsize=4)
    right.set_xticks(
        places,
        [arms[entry["first"]]["title"] for entry in entries],
        rotation=20,
        ha="right",
        rotation_mode="anchor",
    )
    return made


PLOTS = {"retrofit": moves}
