"""Pictures of the curvature experiment; each is `None` without its data."""

import numpy as np

from keras_gating.experiments.curvature_statistics import FLOOR
from keras_gating.experiments.figures import COLOURS
from keras_gating.experiments.figures import draw_surface
from keras_gating.experiments.figures import figure
from keras_gating.experiments.figures import principal

_MARKERS = "os^Dv<>PX"


def accuracy_and_curvature(results):
    """Accuracy against ∫|K| dA, a panel for each task."""
    training = results.measurements.get("training")
    if training is None:
        return None
    groups = dict.fromkeys(a["group"] for a in training["arms"].values())
    tasks = training["tasks"]
    columns = min(4, len(tasks))
    rows = -(-len(tasks) // columns)
    made = figure(max(7.0, 3.1 * columns), 3.0 * rows + 1.2)
    grid = made.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    for axis in grid[-1]:
        axis.set_xlabel("∫|K| dA of the context")
    for axis in grid[:, 0]:
        axis.set_ylabel("test accuracy, %")
    grid = grid.ravel()
    for axis in grid[len(tasks) :]:
        axis.set_axis_off()
    styles = {}
    for arm in training["arms"].values():
        # One colour for an arm, filled for the first number of tokens.
        styles.setdefault(arm["name"], len(styles))
    for axis, (name, task) in zip(grid, tasks.items()):
        for arm in training["arms"].values():
            place = styles[arm["name"]]
            colour = COLOURS[place % len(COLOURS)]
            first = arm["group"] == next(iter(groups))
            entry = arm["tasks"][name]
            totals = np.array(entry["curvature"]["values"], "float64")
            axis.plot(
                np.maximum(totals, FLOOR),
                100.0 * np.array(entry["accuracies"]),
                linestyle="none",
                marker=_MARKERS[place % len(_MARKERS)],
                color=colour,
                markerfacecolor=colour if first else "none",
                markersize=5,
                alpha=0.7,
                label=_label(arm),
            )
        axis.set_xscale("log")
        axis.set_xlim(FLOOR / 2.0, 200.0)
        axis.grid(alpha=0.3)
        axis.set_title(task["title"], fontsize=10)
    made.suptitle(
        "Trained networks, a mark for each seed; flat ones stand at "
        f"{FLOOR:g} on the left",
        fontsize=11,
    )
    handles, labels = grid[0].get_legend_handles_labels()
    made.legend(
        handles, labels, loc="outside lower center", ncols=4, fontsize=8
    )
    return made


def _label(arm):
    if arm["group"] is None or f"{arm['tokens']} tokens" in arm["title"]:
        return arm["title"]
    return f"{arm['title']}, {arm['tokens']} tokens"


def curvature_by_depth(results):
    """∫|K| dA of random maps by depth, and of softplus by sharpness."""
    measured = results.measurements
    panels = [
        name
        for name in ("activations", "stacks", "sharpness")
        if name in measured
    ]
    if not panels:
        return None
    made = figure(4.3 * len(panels) + 0.4, 4.9)
    for axis, name in zip(
        made.subplots(1, len(panels), squeeze=False)[0], panels
    ):
        if name == "activations":
            _draw_activations(axis, measured[name])
        elif name == "stacks":
            _draw_stacks(axis, measured[name])
        else:
            _draw_sharpness(axis, measured[name])
        axis.grid(alpha=0.3)
        axis.set_ylabel("∫|K| dA" if name != "sharpness" else "integral")
        axis.legend(fontsize=8)
    made.suptitle(
        "Random maps: median over seeds, shaded: quartiles", fontsize=11
    )
    return made


def _draw_activations(axis, entries):
    for (name, entry), colour in zip(entries.items(), COLOURS):
        label = f"{name}: flat" if entry["flat"] else name
        _draw_depths(axis, entry, colour, label=label)
    axis.set_title("dense layers", fontsize=10)
    axis.set_xlabel("layers")


def _draw_stacks(axis, entries):
    plain = [e["title"] for e in entries.values() if not e["residual"]]
    for entry in entries.values():
        title = entry["title"].removesuffix(", residual")
        _draw_depths(
            axis,
            entry,
            COLOURS[plain.index(title)],
            linestyle="--" if entry["residual"] else "-",
            label=None if entry["residual"] else title,
            shaded=False,
        )
    axis.plot([], [], color="black", linestyle="--", label="with residuals")
    axis.set_title("stacked attention", fontsize=10)
    axis.set_xlabel("layers")


def _draw_depths(axis, entry, colour, shaded=True, **style):
    depths = [int(depth) for depth in entry["depths"]]
    median, low, high = (
        np.array([e[key] for e in entry["depths"].values()], "float64")
        for key in ("median", "lower_quartile", "upper_quartile")
    )
    axis.plot(depths, median, color=colour, marker="o", markersize=4, **style)
    if shaded:
        axis.fill_between(depths, low, high, color=colour, alpha=0.12)
    axis.set_xticks(depths)


def _draw_sharpness(axis, entries):
    betas = [float(beta) for beta in entries]
    for kind, label, colour in (
        ("absolute", "∫|K| dA", COLOURS[0]),
        ("signed", "∫K dA", COLOURS[4]),
    ):
        median, low, high = (
            np.array([e[kind][key] for e in entries.values()], "float64")
            for key in ("median", "lower_quartile", "upper_quartile")
        )
        axis.plot(betas, median, color=colour, marker="o", label=label)
        axis.fill_between(betas, low, high, color=colour, alpha=0.12)
    axis.axhline(0.0, color="0.7", linewidth=1, zorder=0)
    axis.set_xscale("log")
    axis.set_xticks(betas, [f"{beta:g}" for beta in betas])
    axis.minorticks_off()
    axis.set_xlabel("β")
    axis.set_title("softplus(βx)/β: ReLU is the limit", fontsize=10)


def surfaces(results):
    """Images of trained networks, coloured by curvature."""
    pictures = results.arrays.get("pictures")
    if not pictures:
        return None
    tasks = list(dict.fromkeys(p["task"] for p in pictures))
    arms = list(dict.fromkeys((p["arm"], p["tokens"]) for p in pictures))
    made = figure(2.9 * len(arms) + 1.0, 3.2 * len(tasks) + 0.5)
    for picture in pictures:
        row = tasks.index(picture["task"])
        column = arms.index((picture["arm"], picture["tokens"]))
        axis = made.add_subplot(
            len(tasks), len(arms), row * len(arms) + column + 1, projection="3d"
        )
        after = picture["after"].reshape(-1, picture["after"].shape[-1])
        points, size = principal(after, after)
        axis.view_init(45, -60)
        # Curvature for the size of the image: scale alone changes nothing.
        scale = draw_surface(
            axis,
            points.reshape(*picture["after"].shape[:2], 3),
            np.clip(picture["curvature"] * size**2, -10.0, 10.0),
            10.0,
        )
        axis.set_title(
            f"{picture['task_title']}: {picture['title']}\n"
            f"{picture['tokens']} tokens, {picture['accuracy']:.0%} right, "
            f"∫|K| dA = {_short(picture['total'])}",
            fontsize=9,
        )
    made.colorbar(
        scale,
        ax=made.axes,
        label="K · size² (clipped)",
        shrink=0.6,
        pad=0.02,
    )
    made.suptitle(
        "Images of the square in the first three principal directions",
        fontsize=11,
    )
    return made


def _short(value):
    return (
        f"{value:.1f}" if value >= 0.05 else f"{value:.0e}".replace("e-", "e−")
    )


def representations(results):
    """Circle and XOR before and after the gate, coloured by class."""
    pictures = [
        p
        for p in results.arrays.get("pictures") or ()
        if p["arm"] == "elementwise"
    ]
    if not pictures:
        return None
    first = pictures[0]["tokens"]
    pictures = [p for p in pictures if p["tokens"] == first]
    made = figure(11.0, 3.6 * len(pictures) + 0.5)
    for row, picture in enumerate(pictures):
        columns = (
            ("input", picture["points"]),
            ("before the gate", picture["points_before"]),
            ("after the gate", picture["points_after"]),
        )
        for column, (title, points) in enumerate(columns):
            place = row * len(columns) + column + 1
            spatial = column == 2
            axis = made.add_subplot(
                len(pictures),
                len(columns),
                place,
                projection="3d" if spatial else None,
            )
            if column:
                points = principal(points, points)[0]
            points = points[:, : 3 if spatial else 2]
            for label, colour in ((0.0, COLOURS[0]), (1.0, COLOURS[4])):
                own = points[picture["labels"] == label]
                axis.scatter(
                    *own.T, s=8, color=colour, label=f"class {label:g}"
                )
            if not spatial:
                axis.set_aspect("equal", "datalim")
            axis.set_xticks([])
            axis.set_yticks([])
            if spatial:
                axis.set_zticks([])
            text = f"{picture['task_title']}: {title}"
            if spatial:
                text += f" ({picture['accuracy']:.0%} right)"
            axis.set_title(text, fontsize=10)
    handles, labels = made.axes[0].get_legend_handles_labels()
    made.legend(handles, labels, loc="outside lower center", ncols=2)
    made.suptitle(
        f"Elementwise gate, {first} tokens: two and three principal directions",
        fontsize=11,
    )
    return made


PLOTS = {
    "curvature": accuracy_and_curvature,
    "curvature_depth": curvature_by_depth,
    "curvature_surfaces": surfaces,
    "curvature_representations": representations,
}
