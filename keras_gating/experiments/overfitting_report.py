"""Tables and picture of the overfitting experiment."""

import numpy as np

from keras_gating.experiments.figures import COLOURS
from keras_gating.experiments.figures import error_bars
from keras_gating.experiments.figures import figure
from keras_gating.experiments.tables import estimate_text
from keras_gating.experiments.tables import table
from keras_gating.experiments.verdicts import LEVEL
from keras_gating.experiments.verdicts import mark
from keras_gating.experiments.verdicts import print_verdicts

_COLUMNS = (
    ("loss gap", "loss_gap", "{:+.2f}", 1),
    ("test loss", "test_loss", "{:+.2f}", 1),
    ("accuracy", "test_accuracy", "{:+.1f}", 100),
)


def print_overfitting(console, results):
    """Prints losses and accuracies, paired differences, and conclusions."""
    arms = results.measurements["arms"]
    settings = results.settings
    shown = table(
        f"Overfitting: {settings['training_images']} images to train on, "
        f"{settings['test_images']} to test, {len(results.seeds)} seeds",
        "encoder",
        "parameters",
        "train loss",
        "test loss",
        "accuracy, %",
    )
    for arm in arms.values():
        shown.add_row(
            arm["title"],
            f"{arm['parameters']:,}",
            f"{arm['train_loss']['estimate']:.3f}",
            estimate_text(arm["test_loss"], "{:.2f}"),
            estimate_text(arm["test_accuracy"], "{:.1f}", 100),
        )
    console.print(shown)
    differences = results.measurements["differences"]
    shown = table(
        "Paired differences, of the accuracy in percentage points",
        "first − second",
        *(c[0] for c in _COLUMNS),
    )
    for entries in zip(*(differences[key] for _, key, _, _ in _COLUMNS)):
        shown.add_row(
            _pair(arms, entries[0]),
            *(
                _cell(entry, form, factor)
                for entry, (_, _, form, factor) in zip(entries, _COLUMNS)
            ),
        )
    console.print(shown)
    least = min(arm["train_accuracy"]["estimate"] for arm in arms.values())
    console.print(
        "± is half the 95 % interval. ↑ ↓: p below "
        f"{LEVEL:g} after Holm's correction for all pairs; ·: no difference "
        "shown. wider: ungated, with as many parameters as gated. Of the "
        f"training images all encoders name at least {least:.1%} rightly."
    )
    print_verdicts(console, results.measurements["conclusions"])


def _pair(arms, entry):
    first, second = (arms[entry[key]]["title"] for key in ("first", "second"))
    return f"{first} − {second}"


def _cell(entry, form, factor):
    return f"{estimate_text(entry, form, factor)} {mark(entry)}"


def gaps(results):
    """Loss on both sets by arm, and paired differences of the accuracy."""
    arms = results.measurements["arms"]
    made = figure(12.0, 5.2)
    left, right = made.subplots(1, 2)
    places = np.arange(len(arms))[::-1]
    for key, title, colour in (
        ("train_loss", "training images", COLOURS[0]),
        ("test_loss", "test images", COLOURS[1]),
    ):
        means, spread = error_bars([arm[key] for arm in arms.values()])
        left.errorbar(
            means,
            places,
            xerr=spread,
            fmt="o",
            color=colour,
            capsize=3,
            label=title,
        )
    for place, arm in zip(places, arms.values()):
        ends = [arm[key]["estimate"] for key in ("train_loss", "test_loss")]
        left.plot(ends, [place, place], color="0.8", linewidth=4, zorder=0)
    left.set_yticks(places, [arm["title"] for arm in arms.values()])
    left.set_xlabel(
        "cross-entropy; the grey bar is the gap\n"
        "(wider: ungated, with as many parameters as gated)"
    )
    handles, labels = left.get_legend_handles_labels()
    made.legend(handles, labels, loc="outside upper left", ncols=2)
    entries = results.measurements["differences"]["test_accuracy"]
    right.axvline(0.0, color="0.5", linewidth=1)
    places = np.arange(len(entries))[::-1]
    means, spread = error_bars(entries, 100)
    right.errorbar(means, places, xerr=spread, fmt="o", color="0.3", capsize=3)
    right.set_yticks(places, [_pair(arms, entry) for entry in entries])
    right.set_xlabel(
        "difference of the test accuracy, percentage points\n"
        "(95 % intervals of paired differences)"
    )
    for axis in (left, right):
        axis.grid(axis="x", alpha=0.3)
    return made


PLOTS = {"overfitting": gaps}
