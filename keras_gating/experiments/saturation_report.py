"""Tables and picture of the saturation experiment."""

import numpy as np

from keras_gating.experiments.figures import COLOURS
from keras_gating.experiments.figures import error_bars
from keras_gating.experiments.figures import figure
from keras_gating.experiments.saturation_slopes import ACTIVATIONS
from keras_gating.experiments.saturation_slopes import vanished_share
from keras_gating.experiments.tables import estimate_text
from keras_gating.experiments.tables import table
from keras_gating.experiments.verdicts import LEVEL
from keras_gating.experiments.verdicts import mark
from keras_gating.experiments.verdicts import print_verdicts

_SPREADS = np.geomspace(0.3, 30.0, 200)
# Solid: flat on both sides; dashed: on one; dotted: nowhere.
_BOTH_SIDES = ("sigmoid", "hard_sigmoid", "tanh", "softsign")


def print_saturation(console, results):
    """Prints exact shares, what was trained, and the conclusions."""
    exact = results.measurements["exact"]
    spreads = results.settings["spreads"]
    shown = table(
        "Slopes below 1 % of the largest, by spread of normal logits z",
        "gate",
        *(f"{spread:g}" for spread in spreads),
        *(f"{spread:g}, z < 0" for spread in spreads[2:]),
    )
    for entry in exact.values():
        shares = entry["vanished"] + entry["vanished_negative"][2:]
        shown.add_row(entry["title"], *(f"{share:.1%}" for share in shares))
    console.print(shown)
    shown = table(
        "Root mean square slope over the largest, at spread",
        "gate",
        *(f"{spread:g}" for spread in spreads),
        "largest",
    )
    for entry in exact.values():
        shown.add_row(
            entry["title"],
            *(f"{size:.2f}" for size in entry["relative_slope"]),
            f"{entry['largest_slope']:.3f}",
        )
    console.print(shown)
    _print_trained(console, results)
    print_verdicts(console, results.measurements["conclusions"])


def _print_trained(console, results):
    measured = results.measurements["activations"]
    count = f"{len(results.seeds)} seeds"
    for title, cell in (
        ("Vanished slopes, %, at the start → trained", _vanished),
        (
            "First gradient of the gate's kernel (share of gate and value)",
            _gradient,
        ),
        (f"Test accuracy, %, {count}", _accuracy),
    ):
        shown = table(
            title,
            "gate",
            *(f"{scale:g} × Glorot" for scale in results.settings["scales"]),
        )
        for activation in measured.values():
            shown.add_row(
                activation["title"], *map(cell, activation["scales"].values())
            )
        console.print(shown)
    console.print(
        "± is half the 95 % interval. ↑ ↓: more or less accurate than the "
        f"sigmoid at this scale, p below {LEVEL:g} after Holm's correction; "
        "·: no difference shown."
    )
    for activation in measured.values():
        entries = activation["scales"].values()
        if all("near_ends_end" in entry for entry in entries):
            shares = ", ".join(
                f"{100 * entry['near_ends_end']['estimate']:.1f}"
                for entry in entries
            )
            console.print(
                f"{activation['title']}: {shares} % of the trained values are "
                "next to 0 or 1, as a GateMonitor counts them."
            )


def _vanished(entry):
    start, end = (
        100 * entry[f"vanished_{when}"]["estimate"] for when in ("start", "end")
    )
    return f"{start:.1f} → {end:.1f}"


def _gradient(entry):
    share = entry["gradient_share"]["estimate"]
    if share == 0.0:
        return "0 (0.00)"
    norm = 10 ** entry["log10_gradient"]["estimate"]
    return f"{norm:.2f} ({share:.2f})"


def _accuracy(entry):
    text = estimate_text(entry["accuracy"], "{:.1f}", 100)
    if "differences" not in entry:
        return text
    return f"{text} {mark(entry['differences']['accuracy'])}"


def by_scale(results):
    """Vanished slopes against the spread; gradients and accuracy by scale."""
    measured = results.measurements["activations"]
    made = figure(13.0, 5.2)
    left, middle, right = made.subplots(1, 3)
    styles = _styles()
    for activation in ACTIVATIONS:
        if activation.name in measured:
            shares = [sum(vanished_share(activation, s)) for s in _SPREADS]
            # The hard sigmoid is as good as hidden behind tanh.
            width = 4 if activation.name == "hard_sigmoid" else 1.5
            left.plot(
                _SPREADS,
                100 * np.array(shares),
                linewidth=width,
                **styles[activation.name],
            )
    left.set_xscale("log")
    ticks = [0.3, 1, 3, 10, 30]
    left.set_xticks(ticks, [f"{tick:g}" for tick in ticks], minor=False)
    left.set_xticks([], minor=True)
    left.set_xlabel("spread of normal logits")
    left.set_ylabel("slopes below 1 % of the largest, %")
    _draw_trained(middle, results, styles, "gradient_share", 1)
    middle.set_ylim(bottom=0.0)
    middle.set_ylabel("gate's share of the first gradient, gate and value")
    _draw_trained(right, results, styles, "accuracy", 100)
    right.set_ylabel("test accuracy, %")
    for axis in (left, middle, right):
        axis.grid(alpha=0.3)
    handles, labels = left.get_legend_handles_labels()
    made.legend(handles, labels, loc="outside lower center", ncols=5)
    return made


def _styles():
    styles = {}
    for i, activation in enumerate(ACTIVATIONS):
        line = "-" if activation.name in _BOTH_SIDES else "--"
        colour = COLOURS[i % len(_BOTH_SIDES)]
        if activation.name == "linear":
            line, colour = ":", "black"
        styles[activation.name] = {
            "linestyle": line,
            "color": colour,
            "label": activation.title,
        }
    return styles


def _draw_trained(axis, results, styles, key, factor):
    measured = results.measurements["activations"]
    scales = results.settings["scales"]
    left_out = []
    for i, (name, activation) in enumerate(measured.items()):
        # Gates without a slope stay shut: a point far below all others.
        entries = {
            place: entry
            for place, entry in enumerate(activation["scales"].values())
            if entry["vanished_start"]["estimate"] < 1.0
        }
        if len(entries) < len(scales):
            left_out.append(activation["title"])
        means, spread = error_bars([e[key] for e in entries.values()], factor)
        # Side by side, so that the bars do not hide each other.
        shift = 0.05 * (i - (len(measured) - 1) / 2)
        axis.errorbar(
            np.array(list(entries)) + shift,
            means,
            spread,
            marker="o",
            markersize=4,
            capsize=2,
            linewidth=1,
            **styles[name],
        )
    axis.set_xticks(np.arange(len(scales)), [f"{s:g}" for s in scales])
    label = "start of the gate's kernel, × Glorot"
    if left_out:
        label += f"\n(left out: {', '.join(left_out)} from 0, which stays shut)"
    axis.set_xlabel(label)


PLOTS = {"saturation": by_scale}
