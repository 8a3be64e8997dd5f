"""Table and picture of the sources experiment."""

import numpy as np

from keras_gating.experiments.figures import COLOURS
from keras_gating.experiments.figures import error_bars
from keras_gating.experiments.figures import figure
from keras_gating.experiments.sources_model import TASKS
from keras_gating.experiments.tables import estimate_text
from keras_gating.experiments.tables import table

_MARKS = {"higher": "↑", "lower": "↓"}


def print_sources(console, results):
    """Prints what each arm explains of each product, in each setting."""
    parameters = results.measurements["parameters"]
    for setting in results.measurements["settings"].values():
        shown = table(
            f"{setting['title']}: share of the variance explained (accuracy "
            "of the sign)",
            "gate",
            "parameters",
            *(text for text, _ in TASKS.values()),
        )
        for name, arm in setting["arms"].items():
            shown.add_row(
                arm["title"],
                str(parameters[name]),
                *(_cell(entry) for entry in arm["tasks"].values()),
            )
        console.print(shown)
    console.print(
        f"{len(results.seeds)} seeds; ± is half the 95 % interval. ≤: what no "
        "weights can exceed (with a test set of "
        f"{results.settings['test_sequences']} a little by chance). ↑ ↓: more "
        "or less than without a gate, seed by seed; ·: no difference shown."
    )


def _cell(entry):
    text = estimate_text(entry["explained"], "{:.2f}")
    text += f" ({entry['accuracy']['estimate']:.0%})"
    if entry["reach"] is not None:
        text += f" ≤ {entry['reach']:.2g}"
    if "difference" in entry:
        text += " " + _MARKS.get(entry["difference"]["verdict"], "·")
    return text


def explained_by_arm(results):
    """Explained variance: a row for each setting, a bar for each arm."""
    settings = list(results.measurements["settings"].values())
    made = figure(11.5, 2.6 * len(settings) + 0.6)
    grid = made.subplots(
        len(settings), len(TASKS), sharex=True, sharey=True, squeeze=False
    )
    for row, setting in zip(grid, settings):
        arms = list(setting["arms"].values())
        places = np.arange(len(arms))[::-1]
        for axis, (task, (text, _)) in zip(row, TASKS.items()):
            entries = [arm["tasks"][task] for arm in arms]
            means, spread = error_bars([e["explained"] for e in entries])
            axis.barh(
                places,
                means,
                xerr=spread,
                capsize=3,
                color=COLOURS[0],
                alpha=0.75,
            )
            for place, entry in zip(places, entries):
                if entry["reach"] is not None:
                    axis.plot(
                        [entry["reach"]] * 2,
                        [place - 0.45, place + 0.45],
                        color=COLOURS[4],
                        linewidth=3,
                        label="no weights exceed this",
                    )
            axis.set_yticks(places, [arm["title"] for arm in arms])
            axis.set_xlim(-0.1, 1.05)
            axis.grid(axis="x", alpha=0.3)
            axis.set_title(f"{setting['title']}:\n{text}", fontsize=10)
    for axis in grid[-1]:
        axis.set_xlabel("share of the variance explained")
    handles, labels = grid[0, 0].get_legend_handles_labels()
    if handles:
        made.legend(handles[:1], labels[:1], loc="outside lower center")
    return made


PLOTS = {"sources": explained_by_arm}
