"""Pictures of the experiments."""

import textwrap
from pathlib import Path

import numpy as np

from keras_gating.experiments import channels_report
from keras_gating.experiments import curvature_plots
from keras_gating.experiments import depth_report
from keras_gating.experiments import feedforward_report
from keras_gating.experiments import functions_report
from keras_gating.experiments import gau_report
from keras_gating.experiments import overfitting_report
from keras_gating.experiments import products_report
from keras_gating.experiments import retrofit_report
from keras_gating.experiments import saturation_report
from keras_gating.experiments import sinks_report
from keras_gating.experiments import sources_report
from keras_gating.experiments import trees_report
from keras_gating.experiments import triangle_report
from keras_gating.experiments.figures import COLOURS
from keras_gating.experiments.figures import figure as new_figure
from keras_gating.experiments.xor import INPUTS
from keras_gating.experiments.xor import SOLVED_BELOW
from keras_gating.experiments.xor import SURFACE_RANGE
from keras_gating.experiments.xor import TARGETS


def write_plots(results, folder):
    """Writes the pictures of an experiment and returns their paths."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, draw in _PLOTS[results.experiment].items():
        figure = draw(results)
        # A run of some parts of an experiment has no data for the others.
        if figure is not None:
            paths.append(folder / f"{name}.png")
            figure.savefig(paths[-1], dpi=150)
    return paths


def xor_surfaces(results):
    """Outputs of single networks over the plane of the two bits."""
    surfaces = results.arrays["surfaces"]
    rows = -(-len(surfaces) // 5)
    columns = -(-len(surfaces) // rows)
    figure = new_figure(2.7 * columns + 0.9, 3.1 * rows + 0.5)
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for axis in axes[len(surfaces) :]:
        axis.set_axis_off()
    for axis, surface in zip(axes, surfaces):
        image = _draw_surface(axis, surface)
    bar = figure.colorbar(
        image,
        ax=list(axes),
        label="output of the network (black line: ½)",
        fraction=0.05,
        shrink=max(0.4, 1.0 / rows),
        extend="both",
    )
    bar.ax.axhline(0.5, color="black")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2)
    return figure


def digits_accuracy(results):
    """Accuracy of each seed, joined across the arms, and the intervals."""
    arms = list(results.measurements["arms"].values())
    figure = new_figure(7.0, 4.2)
    axis = figure.subplots()
    places = np.arange(len(arms))
    accuracies = 100 * np.array([arm["accuracies"] for arm in arms])
    for column in range(accuracies.shape[1]):
        axis.plot(
            places,
            accuracies[:, column],
            color="0.6",
            marker="o",
            markersize=4,
            linewidth=1,
            label="one seed" if column == 0 else None,
        )
    for place, arm, colour in zip(places, arms, COLOURS):
        bounds = [arm["low"], arm["estimate"], arm["high"]]
        if arm["low"] is None:
            bounds = [arm["estimate"]] * 3
        low, mean, high = (100 * bound for bound in bounds)
        axis.errorbar(
            place + 0.12,
            mean,
            [[mean - low], [high - mean]],
            color=colour,
            marker="D",
            markersize=7,
            capsize=5,
            linewidth=2,
            label="mean and its 95 % interval" if place == 0 else None,
        )
    axis.set_xticks(
        places,
        [
            f"{arm['title']}\n{cost['parameters']:,} parameters"
            for arm, cost in zip(arms, results.measurements["cost"].values())
        ],
    )
    axis.set_xlim(-0.4, len(arms) - 0.4)
    axis.set_ylim(top=min(axis.get_ylim()[1], 100.5))
    axis.set_ylabel("test accuracy, %")
    axis.grid(axis="y", alpha=0.3)
    figure.legend(loc="outside upper center", ncols=2)
    return figure


def digits_gates(results):
    """Distribution of the gate values, and the mean of each head."""
    gates = results.measurements["gates"]
    paths = list(gates["pooled"])
    figure = new_figure(9.0, 3.4 * len(paths))
    grid = figure.subplots(len(paths), 2, squeeze=False)
    for path, (left, right) in zip(paths, grid):
        counts = np.array(gates["pooled"][path]["histogram"])
        edges = np.linspace(0.0, 1.0, len(counts) + 1)
        left.stairs(
            100 * counts / counts.sum(), edges, fill=True, color=COLOURS[0]
        )
        left.axvline(0.5, color="black", linestyle="--", label="at the start")
        left.set_xlim(0.0, 1.0)
        left.set_xlabel("gate value")
        left.set_ylabel(f"share of values, %\n({len(counts)} bins)")
        left.set_title(f"{path} on the test images, all seeds", fontsize=11)
        left.legend()
        means = np.array([seed[path]["mean"] for seed in gates["seeds"]])
        for seed, row in zip(results.seeds, means):
            right.plot(np.sort(row), np.full(row.size, seed), "o-", color="0.4")
        right.axvline(0.5, color="black", linestyle="--")
        right.set_xlim(0.0, 1.0)
        right.set_ylim(min(results.seeds) - 0.5, max(results.seeds) + 0.5)
        right.yaxis.get_major_locator().set_params(integer=True)
        right.set_xlabel("mean gate of a head")
        right.set_ylabel("seed")
        right.set_title("one dot for each head", fontsize=11)
    return figure


def digits_maps(results):
    """A few images beside gates of each head, patch by patch."""
    maps = results.arrays["maps"]
    heads = maps["gates"].shape[-1]
    rows = len(maps["images"])
    side = int(np.sqrt(maps["gates"].shape[1]))
    figure = new_figure(1.7 * (heads + 1) + 1.0, 1.8 * rows + 0.6)
    grid = figure.subplots(rows, heads + 1, squeeze=False)
    for row, image, gates in zip(grid, maps["images"], maps["gates"]):
        row[0].imshow(image, cmap="gray_r")
        for head, axis in enumerate(row[1:]):
            shown = axis.imshow(
                gates[:, head].reshape(side, side),
                cmap="cividis",
                vmin=0.0,
                vmax=1.0,
            )
        for axis in row:
            axis.set_xticks([])
            axis.set_yticks([])
    grid[0, 0].set_title("image")
    for head, axis in enumerate(grid[0, 1:]):
        feature = maps["features"][head]
        axis.set_title(f"head {head}\nfeature {feature}", fontsize=10)
    figure.colorbar(shown, ax=list(grid.ravel()), label="gate value")
    figure.suptitle(
        f"{maps['path']}, seed {maps['seed']}: in each head the feature whose "
        "gate varies most",
        fontsize=11,
    )
    return figure


def _draw_surface(axis, surface):
    values = surface["values"]
    points = np.linspace(*SURFACE_RANGE, len(values))
    image = axis.imshow(
        values.T,
        origin="lower",
        extent=(*SURFACE_RANGE, *SURFACE_RANGE),
        cmap="PuOr",
        vmin=-0.5,
        vmax=1.5,
        interpolation="bilinear",
    )
    # The ½ line of what is nearly ½ everywhere would draw chance.
    if np.ptp(values) > SOLVED_BELOW:
        axis.contour(points, points, values.T, levels=[0.5], colors="black")
    else:
        low, high = values.min(), values.max()
        text = f"output\n{low:.2f} to {high:.2f}"
        axis.text(0.5, 0.5, text, ha="center", va="center")
    for target, marker, face, edge in ((0, "o", "w", "k"), (1, "s", "k", "w")):
        chosen = INPUTS[TARGETS == target]
        axis.scatter(
            *chosen.T,
            marker=marker,
            s=60,
            color=face,
            edgecolors=edge,
            zorder=3,
            label=f"target {target}",
        )
    outcome = "solved" if surface["solved"] else "not solved"
    title = textwrap.fill(surface["title"], 26)
    axis.set_title(f"{title}\nseed {surface['seed']}: {outcome}", fontsize=10)
    axis.set_xlabel("first bit")
    axis.set_ylabel("second bit")
    axis.set_xticks([0, 1])
    axis.set_yticks([0, 1])
    return image


_PLOTS = {
    "xor": {"xor": xor_surfaces},
    "digits": {
        "digits_accuracy": digits_accuracy,
        "digits_gates": digits_gates,
        "digits_maps": digits_maps,
    },
    "products": products_report.PLOTS,
    "sources": sources_report.PLOTS,
    "feedforward": feedforward_report.PLOTS,
    "channels": channels_report.PLOTS,
    "depth": depth_report.PLOTS,
    "gau": gau_report.PLOTS,
    "sinks": sinks_report.PLOTS,
    "retrofit": retrofit_report.PLOTS,
    "triangle": triangle_report.PLOTS,
    "curvature": curvature_plots.PLOTS,
    "functions": functions_report.PLOTS,
    "saturation": saturation_report.PLOTS,
    "overfitting": overfitting_report.PLOTS,
    "trees": trees_report.PLOTS,
}
