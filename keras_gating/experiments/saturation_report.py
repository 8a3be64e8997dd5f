"""Tables and picture of the saturation experiment."""

import numpy as np

from keras_gating.experiments.figures import COLOURS
from keras_gating.experiments.figures import error_bars
from keras_gating.experiments.figures import figure
from keras_gating.experiments.saturation_slopes import ACTIVATIONS
from keras_gating.experiments.saturation_slopes import vanished_share
from keras_gating.experiments.tables import estimate_text
from keras_gating.experiments.tables import table
from keras_gating.experiments.verdicts import print_verdicts

_MARKS = {"higher": " ↑", "lower": " ↓"}
_SPREADS = np.geomspace(0.3, 30.0, 200)


def print_saturation(console, results):
    """Prints exact shares, what was trained, and the conclusions."""
    exact = results.measurements["exact"]
    spreads = results.settings["spreads"]
    shown = table(
        "Slopes below 1 % of the largest, normal logits of spread",
        "gate",
        *(f"{spread:g}" for spread in spreads),
        *(f"{spread:g}, < 0" for spread in spreads[2:]),
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
    count = f"{len(results.seeds)} seeds"
    for title, cell in (
        ("Vanished slopes, at the start → trained", _vanished),
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
        for activation in results.measurements["activations"].values():
            shown.add_row(
                activation["title"], *map(cell, activation["scales"].values())
            )
        console.print(shown)
    console.print(
        "± is half the 95 % interval. ↑ ↓: more or less accurate than the "
        "sigmoid at this scale, seed by seed; ·: no difference shown."
    )


def _vanished(entry):
    start, end = (
        entry[f"vanished_{when}"]["estimate"] for when in ("start", "end")
    )
    return f"{start:.1%} → {end:.1%}"


def _gradient(entry):
    norm = 10 ** entry["log10_gradient"]["estimate"]
    return f"{norm:.2g} ({entry['gradient_share']['estimate']:.2f})"


def _accuracy(entry):
    text = estimate_text(entry["accuracy"], "{:.1f}", 100)
    if "differences" not in entry:
        return text
    return text + _MARKS.get(entry["differences"]["accuracy"]["verdict"], " ·")


def by_scale(results):
    """Vanished slopes against the spread; gradients and accuracy by scale."""
    measured = results.measurements["activations"]
    scales = results.settings["scales"]
    made = figure(13.0, 5.0)
    left, middle, right = made.subplots(1, 3)
    styles = {
        activation.name: {
            "color": COLOURS[i % len(COLOURS)],
            "linestyle": ("-", "--")[i // len(COLOURS)],
            "label": activation.title,
        }
        for i, activation in enumerate(ACTIVATIONS)
    }
    for activation in ACTIVATIONS:
        if activation.name in measured:
            shares = [sum(vanished_share(activation, s)) for s in _SPREADS]
            left.plot(
                _SPREADS, 100 * np.array(shares), **styles[activation.name]
            )
    left.set_xscale("log")
    left.set_xlabel("spread of normal logits")
    left.set_ylabel("slopes below 1 % of the largest, %")
    places = np.arange(len(scales))
    for axis, key, factor in (
        (middle, "gradient_share", 1),
        (right, "accuracy", 100),
    ):
        for i, (name, activation) in enumerate(measured.items()):
            entries = [e[key] for e in activation["scales"].values()]
            means, spread = error_bars(entries, factor)
            # Side by side, so that the bars do not hide each other.
            shift = 0.05 * (i - (len(measured) - 1) / 2)
            axis.errorbar(
                places + shift,
                means,
                spread,
                marker="o",
                markersize=4,
                capsize=2,
                linewidth=1,
                **styles[name],
            )
        axis.set_xticks(places, [f"{scale:g}" for scale in scales])
        axis.set_xlabel("start of the gate's kernel, × Glorot")
    middle.set_ylabel("gate's share of the first gradient, gate and value")
    right.set_ylabel("test accuracy, %")
    for axis in (left, middle, right):
        axis.grid(alpha=0.3)
    handles, labels = left.get_legend_handles_labels()
    made.legend(handles, labels, loc="outside lower center", ncols=5)
    return made


PLOTS = {"saturation": by_scale}
