"""Tables and pictures of the trees experiment."""

import numpy as np
from keras import ops

from keras_gating.experiments.figures import COLOURS
from keras_gating.experiments.figures import error_bars
from keras_gating.experiments.figures import figure
from keras_gating.experiments.tables import estimate_text
from keras_gating.experiments.tables import table
from keras_gating.experiments.verdicts import mark
from keras_gating.functional import mobius_add
from keras_gating.functional import mobius_scale


def print_trees(console, results):
    """Prints distortion and curvature of each space, then the task."""
    measured = results.measurements
    for dimension in sorted({e["dimension"] for e in measured["embeddings"]}):
        _print_embeddings(console, results, dimension)
    for entry in measured["conclusions"]["controls"]:
        error = entry["largest_error"]
        console.print(
            f"• {entry['title']}, {entry['dimension']} dimensions: "
            f"{entry['without_distortion']} of {entry['runs']} runs without "
            f"distortion, {entry['recovered']} with the curvature they were "
            "drawn from"
            + ("." if error is None else f" (largest error {error:.1g})."),
            highlight=False,
        )
    _print_task(console, results)


def _print_embeddings(console, results, dimension):
    entries = [
        entry
        for entry in results.measurements["embeddings"]
        if entry["dimension"] == dimension
    ]
    arms = entries[0]["arms"]
    seeds = len(results.settings["embedded_seeds"])
    shown = table(
        f"Rms distortion in {dimension} dimensions, {seeds} seeds",
        "space",
        "points",
        *(arm["short"] for arm in arms.values()),
        "learnt κ",
    )
    for entry in entries:
        learnt = entry["arms"]["learnt"]["curvature"]["values"]
        shown.add_row(
            entry["title"],
            str(entry["points"]),
            *(
                f"{arm['distortion']['estimate']:.3f}"
                for arm in entry["arms"].values()
            ),
            _range(learnt),
        )
    console.print(shown)
    console.print(
        "Distortion: the root of the mean of (d / target − 1)² over all "
        "pairs, mean of the seeds. Edges have length 1. κ < 0: −1; κ > 0: a "
        "sphere just large enough; learnt: from 0, after a third of the "
        "steps; at once: without that third.",
        highlight=False,
    )


def _print_task(console, results):
    arms = results.measurements["task"]["arms"]
    shown = table(
        "Leaves of a tree told apart in two dimensions: the gate before the "
        "readout",
        "gate",
        "parameters",
        "accuracy",
        "steps off",
        "κ",
    )
    for arm in arms.values():
        curvature = arm["curvature"]
        shown.add_row(
            arm["title"],
            str(arm["parameters"]),
            estimate_text(arm["accuracy"], "{:.1f}", 100) + " %",
            estimate_text(arm["steps_off"], "{:.2f}"),
            "" if curvature is None else _range(curvature["values"]),
        )
    console.print(shown)
    shown = table(
        "Paired differences from the sigmoid gate",
        "gate",
        "accuracy, points",
        "steps off",
    )
    rows: dict = {}
    for entry in results.measurements["task"]["differences"]:
        factor, form = _FORMS[entry["measure"]]
        text = f"{estimate_text(entry, form, factor)} {mark(entry)}"
        rows.setdefault(entry["first"], []).append(text)
    for name, cells in rows.items():
        shown.add_row(arms[name]["title"], *cells)
    console.print(shown)
    console.print(
        "Steps off: from the chosen leaf to the right one along the tree. "
        "↑ ↓: shown to be more or less, by Holm's p below 0.05 over all of "
        "them; ·: no difference shown.",
        highlight=False,
    )


_FORMS = {"accuracy": (100, "{:+.1f}"), "steps_off": (1, "{:+.2f}")}


def _range(values):
    low, high = (f"{value:.2f}" for value in (min(values), max(values)))
    low, high = (text.replace("-0.00", "0.00") for text in (low, high))
    return low if low == high else f"{low} to {high}"


def distortion_by_space(results):
    """Distortion of each space and arm, and the curvature learnt."""
    entries = results.measurements["embeddings"]
    dimensions = sorted({entry["dimension"] for entry in entries})
    made = figure(5.2 * len(dimensions) + 1.0, 7.6)
    grid = made.subplots(2, len(dimensions), squeeze=False, sharey="row")
    for dimension, (upper, lower) in zip(dimensions, grid.T):
        shown = [e for e in entries if e["dimension"] == dimension]
        places = np.arange(len(shown))
        for i, (name, colour) in enumerate(zip(shown[0]["arms"], COLOURS)):
            arms = [entry["arms"][name] for entry in shown]
            means, spread = error_bars([arm["distortion"] for arm in arms])
            upper.bar(
                places + 0.17 * (i - 2),
                means,
                0.16,
                yerr=spread,
                color=colour,
                error_kw={"linewidth": 1},
                label=arms[0]["title"],
            )
        for place, entry in zip(places, shown):
            values = entry["arms"]["learnt"]["curvature"]["values"]
            lower.plot(
                np.full(len(values), place),
                values,
                "o",
                color=COLOURS[3],
                alpha=0.7,
                label="learnt, a dot a seed" if place == 0 else None,
            )
            if entry["known_curvature"] is not None:
                lower.plot(
                    place + np.array([-0.3, 0.3]),
                    [entry["known_curvature"]] * 2,
                    color="black",
                    label="known" if place == 0 else None,
                )
        lower.axhline(0.0, color="0.7", linewidth=1, zorder=0)
        upper.set_title(f"{dimension} dimensions", fontsize=11)
        upper.set_ylim(0.0, 0.42)
        # From a sphere's hundredths to a tree's tens.
        lower.set_yscale("symlog", linthresh=0.1, linscale=0.5)
        for axis in (upper, lower):
            axis.grid(axis="y", alpha=0.3)
            axis.set_xticks(places, [])
        titles = [entry["title"].replace(", ", ",\n") for entry in shown]
        lower.set_xticks(places, titles, rotation=60, ha="right", fontsize=9)
    grid[0, 0].set_ylabel("rms distortion")
    grid[1, 0].set_ylabel("learnt curvature κ")
    grid[1, 0].legend(fontsize=9)
    made.legend(
        *grid[0, 0].get_legend_handles_labels(),
        loc="outside upper center",
        ncols=3,
    )
    return made


# Spaces whose embeddings are drawn, and the arms of each.
_DRAWN = (
    ("binary", "flat"),
    ("binary", "learnt"),
    ("exceptions", "flat"),
    ("exceptions", "learnt"),
    ("cycle", "learnt"),
    ("grid", "learnt"),
)


def embeddings_in_the_plane(results):
    """Embeddings in two dimensions, in the stereographic model."""
    pictures = results.arrays["pictures"]
    drawn = [(space, arm) for space, arm in _DRAWN if space in pictures]
    if not drawn:
        return None
    entries = {
        entry["space"]: entry
        for entry in results.measurements["embeddings"]
        if entry["dimension"] == 2
    }
    columns = min(3, len(drawn))
    rows = -(-len(drawn) // columns)
    made = figure(3.6 * columns, 4.0 * rows)
    grid = made.subplots(rows, columns, squeeze=False).ravel()
    for axis in grid:
        axis.set_axis_off()
    for axis, (space, arm) in zip(grid, drawn):
        points, curvature = pictures[space]["arms"][arm]
        for a, b in np.argwhere(np.triu(pictures[space]["distances"] == 1.0)):
            line = geodesic(points[a], points[b], curvature)
            axis.plot(*line.T, color=COLOURS[0], linewidth=1, zorder=1)
        axis.scatter(*points.T, s=14, color=COLOURS[4], zorder=2)
        if curvature < 0.0:
            angle = np.linspace(0.0, 2.0 * np.pi, 200)
            rim = np.stack([np.cos(angle), np.sin(angle)]) / np.sqrt(-curvature)
            axis.plot(*rim, color="0.5", linewidth=1)
        axis.set_aspect("equal")
        entry = entries[space]
        error = entry["arms"][arm]["distortion"]["values"][0]
        axis.set_title(
            f"{entry['title']}\nκ = {curvature:.3g}: distortion {error:.3f}",
            fontsize=10,
        )
    return made


def geodesic(start, end, curvature, count=30):
    """Points `(count, 2)` of the geodesic between two points."""
    start, end = (ops.convert_to_tensor(x) for x in (start, end))
    share = np.linspace(0.0, 1.0, count)[:, None]
    step = mobius_add(-start, end, curvature)
    way = mobius_scale(ops.convert_to_tensor(share), step[None], curvature)
    return ops.convert_to_numpy(mobius_add(start[None], way, curvature))


PLOTS = {
    "trees": distortion_by_space,
    "trees_embeddings": embeddings_in_the_plane,
}
