"""Tables and pictures of the products experiment."""

import numpy as np

from keras_gating.experiments.figures import COLOURS
from keras_gating.experiments.figures import error_bars
from keras_gating.experiments.figures import figure
from keras_gating.experiments.products import ENVELOPE
from keras_gating.experiments.products import LINES
from keras_gating.experiments.products import RANGES
from keras_gating.experiments.products_model import TASKS
from keras_gating.experiments.tables import estimate_text
from keras_gating.experiments.tables import table

_RANGE_TITLES = {"training": "range of training", "twice": "twice the range"}


def print_products(console, results):
    """Prints errors by size, by depth, the spectrum and differences."""
    measured = results.measurements
    count = len(results.seeds)
    for key, title in (("sizes", "one hidden layer"), ("depths", "by depth")):
        shown = table(
            f"Relative error, {title}: geometric mean of {count} seeds",
            "hidden layers",
            "parameters",
            *(f"{text}{mark}" for text, _ in TASKS.values() for mark in " ²"),
        )
        for entry in measured[key]:
            shown.add_row(
                _network(entry),
                str(entry["parameters"]),
                *(
                    f"{10 ** entry['tasks'][task][part]['estimate']:.2g}"
                    for task in TASKS
                    for part in RANGES
                ),
            )
        console.print(shown)
    console.print(
        "A constant at the mean has an error of 1 in the range of training. "
        "Errors of rounding count as 1e-06. ²: on twice that range."
    )
    _print_spectrum(console, results)
    _print_differences(console, results)


def _network(entry):
    size = str(entry["units"])
    if entry["depth"] > 1:
        size = f"{entry['depth']} × {size}"
    return f"{size} {entry['title']}"


def _print_spectrum(console, results):
    shown = table(
        "Spectrum of the modulated signal (sidebands of the target: 0.5)",
        "hidden layer",
        "parameters",
        "sidebands",
        "power elsewhere",
    )
    for entry in results.measurements["sizes"]:
        shown.add_row(
            _network(entry),
            str(entry["parameters"]),
            f"{entry['spectrum']['sideband']['estimate']:.3f}",
            f"{entry['spectrum']['spurious']['estimate']:.2e}",
        )
    console.print(shown)


def _print_differences(console, results):
    entries = results.measurements["differences"]
    titles = {e["arm"]: e["title"] for e in results.measurements["sizes"]}
    budget = results.settings["compared_budget"]
    pairs = dict.fromkeys((e["gated"], e["ungated"]) for e in entries)
    for part, title in _RANGE_TITLES.items():
        shown = table(
            f"Paired differences of log10 errors at {budget} parameters, "
            + title,
            "first minus second",
            *(text for text, _ in TASKS.values()),
        )
        for pair in pairs:
            shown.add_row(
                " − ".join(titles[name] for name in pair),
                *(
                    f"{estimate_text(entry, '{:+.2f}')} {_mark(entry)}"
                    for entry in entries
                    if (entry["gated"], entry["ungated"]) == pair
                    and entry["range"] == part
                ),
            )
        console.print(shown)
    console.print(
        "± is half the 95 % interval. ↓ the first one errs less, ↑ it errs "
        "more, · the interval holds 0: no difference shown."
    )


def _mark(entry):
    return {"lower": "↓", "higher": "↑"}.get(entry["verdict"], "·")


def errors_by_size(results):
    """Errors against parameters, one hidden layer."""
    return _errors(results, "sizes", "parameters")


def errors_by_depth(results):
    """Errors against the number of layers at nearly equal parameters."""
    return _errors(results, "depths", "depth")


def _errors(results, group, key):
    entries = results.measurements[group]
    arms = list(dict.fromkeys((e["arm"], e["title"]) for e in entries))
    made = figure(11.0, 6.6)
    grid = made.subplots(len(RANGES), len(TASKS), sharex=True, sharey="row")
    places = (8, 16, 32, 64, 128) if key == "parameters" else (1, 2, 3)
    for row, part in zip(grid, RANGES):
        for axis, (task, (text, _)) in zip(row, TASKS.items()):
            for (name, title), colour in zip(arms, COLOURS):
                own = [entry for entry in entries if entry["arm"] == name]
                bounds = [entry["tasks"][task][part] for entry in own]
                means, (below, above) = error_bars(bounds)
                centres = 10.0 ** np.array(means)
                axis.errorbar(
                    [entry[key] for entry in own],
                    centres,
                    [
                        centres - centres * 10.0 ** -np.array(below),
                        centres * 10.0 ** np.array(above) - centres,
                    ],
                    color=colour,
                    marker="o",
                    linestyle="-" if "no gate" not in title else "--",
                    capsize=3,
                    label=title,
                )
            axis.set_yscale("log")
            axis.axhline(1.0, color="0.7", linewidth=1, zorder=0)
            axis.grid(alpha=0.3)
            axis.set_title(f"{text}, {_RANGE_TITLES[part]}", fontsize=10)
    for axis in grid[-1]:
        if key == "parameters":
            axis.set_xscale("log", base=2)
            axis.set_xlabel("parameters")
        else:
            axis.set_xlabel(
                f"hidden layers (≤ {results.settings['depth_budget']} "
                "parameters)"
            )
        axis.set_xticks(places)
        axis.xaxis.set_major_formatter("{x:.0f}")
        axis.minorticks_off()
    for row in grid:
        row[0].set_ylabel("relative error")
    handles, labels = grid[0, 0].get_legend_handles_labels()
    made.legend(handles, labels, loc="outside lower center", ncols=6)
    return made


def spectra(results):
    """Amplitudes of the fitted signals, a median seed of each arm."""
    shown = results.arrays["spectra"]
    titles = {e["arm"]: e["title"] for e in results.measurements["sizes"]}
    target = results.arrays["target"]
    last = LINES[-1] + 4 * ENVELOPE
    made = figure(10.0, 5.6)
    columns = -(-len(shown) // 2)
    grid = made.subplots(2, columns, sharex=True, sharey=True, squeeze=False)
    frequencies = np.arange(last)
    for axis, (name, spectrum), colour in zip(
        grid.ravel(), shown.items(), COLOURS
    ):
        rest = np.square(spectrum - target[:, None]).sum(axis=0)
        median = np.argsort(rest, kind="stable")[(len(rest) - 1) // 2]
        axis.vlines(
            frequencies,
            1e-6,
            np.maximum(spectrum[:last, median], 1e-6),
            color=colour,
            linewidth=3,
        )
        axis.plot(LINES, target[list(LINES)], "k_", markersize=12)
        axis.set_yscale("log")
        axis.set_ylim(1e-5, 3.0)
        axis.set_title(f"{titles[name]}", fontsize=10)
    for axis in grid.ravel()[len(shown) :]:
        axis.set_axis_off()
    for axis in grid[-1]:
        axis.set_xlabel("cycles a second")
    for axis in grid[:, 0]:
        axis.set_ylabel("amplitude")
    made.suptitle(
        f"Modulated signal fitted with {results.settings['compared_budget']} "
        "parameters, median seed; marks: the three lines of the target",
        fontsize=11,
    )
    return made


PLOTS = {
    "products_sizes": errors_by_size,
    "products_depths": errors_by_depth,
    "products_spectra": spectra,
}
