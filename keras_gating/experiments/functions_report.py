"""Table and picture of the functions experiment."""

import numpy as np

from keras_gating.experiments.figures import COLOURS
from keras_gating.experiments.figures import figure
from keras_gating.experiments.tables import table

LEAST_SHOWN = 1e-2
_WORDS = {
    "more": "more curvature than with sigmoid",
    "less": "less",
    "no difference shown": "no difference shown",
    "flat": "flat",
}


def print_functions(console, results):
    """Prints total curvature and its positive share by gate function."""
    for setting in results.measurements["settings"].values():
        shown = table(
            f"{setting['title']}: ∫|K| dA, {len(results.seeds)} seeds",
            "φ",
            "median",
            "quartiles",
            "positive",
            "over sigmoid",
            "Holm's p",
            "dropped",
        )
        for name, entry in setting["functions"].items():
            shown.add_row(name, *_cells(entry))
        console.print(shown)
    console.print(
        "positive: share of the ∫|K| dA of all seeds where K > 0. over "
        "sigmoid: geometric mean of the ratio, with the same weights, and its "
        "95 % interval. dropped: degenerate nodes left out. flat: rounding "
        f"only, below {results.settings['flat_below']:.0e} for every seed "
        f"({results.settings['dtype']}).",
        highlight=False,
    )
    settings = results.measurements["settings"]
    for name, groups in results.measurements["conclusions"].items():
        shown = "; ".join(
            f"{_WORDS[kind]}: {', '.join(functions)}"
            for kind, functions in groups.items()
            if functions
        )
        console.print(f"• {settings[name]['title']} – {shown}", highlight=False)


def _cells(entry):
    dropped = f"{entry['dropped']:.1%}"
    if entry["flat"]:
        return "flat", f"≤ {entry['upper_quartile']:.0e}", "", "", "", dropped
    ratio = p = ""
    if "difference" in entry:
        difference = entry["difference"]
        ratio = f"{10 ** difference['estimate']:.2f}"
        if difference["low"] is not None:
            low, high = (10 ** difference[k] for k in ("low", "high"))
            ratio += f" [{low:.2f}, {high:.2f}]"
            p = f"{difference['adjusted_p']:.1g}"
    return (
        f"{entry['median']:.2f}",
        f"{entry['lower_quartile']:.2f} to {entry['upper_quartile']:.2f}",
        ""
        if entry["positive_share"] is None
        else f"{entry['positive_share']:.2f}",
        ratio,
        p,
        dropped,
    )


def curvature_by_function(results):
    """Distribution of ∫|K| dA and of its positive share, by setting."""
    settings = list(results.measurements["settings"].values())
    made = figure(11.5, 2.4 * len(settings) + 0.6)
    grid = made.subplots(len(settings), 2, sharex="col", squeeze=False)
    for row, setting in zip(grid, settings):
        names = list(setting["functions"])
        places = np.arange(len(names))[::-1]
        entries = setting["functions"].values()
        for place, entry in zip(places, entries):
            if entry["flat"]:
                for axis in row:
                    axis.text(
                        0.02,
                        place,
                        "flat: K = 0",
                        va="center",
                        color="0.4",
                        transform=axis.get_yaxis_transform(),
                    )
                continue
            _draw(row[0], place, entry["values"], COLOURS[0], LEAST_SHOWN)
            _draw(row[1], place, entry["positive_shares"], COLOURS[4])
        for axis in row:
            axis.set_yticks(places, names)
            axis.set_ylim(-0.7, len(names) - 0.3)
            axis.grid(axis="x", alpha=0.3)
            axis.set_title(setting["title"], fontsize=10)
    grid[-1, 0].set_xscale("log")
    grid[-1, 0].set_xlim(LEAST_SHOWN / 1.5, 30.0)
    grid[-1, 0].set_xlabel(f"∫|K| dA (≤ {LEAST_SHOWN:g} at the left edge)")
    grid[-1, 1].set_xlim(-0.03, 1.03)
    grid[-1, 1].set_xlabel("share of it where K > 0")
    made.suptitle(
        "Random gates by function φ: dots are seeds, bars quartiles and median",
        fontsize=11,
    )
    return made


def _draw(axis, place, values, colour, least=0.0):
    values = np.array([max(v, least) for v in values if v is not None])
    # Spread within the row, in the order of the seeds.
    jitter = 0.25 * np.sin(2.4 * np.arange(values.size))
    axis.plot(
        values,
        place + jitter,
        color=colour,
        marker=".",
        linestyle="none",
        alpha=0.4,
        markersize=4,
    )
    low, median, high = np.quantile(values, (0.25, 0.5, 0.75))
    axis.plot([low, high], [place, place], color="black", linewidth=2)
    axis.plot([median], [place], color="black", marker="|", markersize=14)


PLOTS = {"functions": curvature_by_function}
