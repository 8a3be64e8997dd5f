import numpy as np

from keras_gating.diagnostics.figures import COLOURS
from keras_gating.diagnostics.figures import figure
from keras_gating.diagnostics.figures import signed_colours
from keras_gating.diagnostics.paths import chosen_paths
from keras_gating.diagnostics.paths import shortened
from keras_gating.diagnostics.record import GateRecord
from keras_gating.diagnostics.statistics import GateStatistics

_COLUMNS = 3
_BARS = 40


def plot_gates(gates, paths=None):
    """Draws how gate values are distributed, and the mean of each head.

    On the left a histogram for each layer, a line for each head where there
    are 2 to 6; on the right the mean gate by layer and head: gates in [0, 1]
    on that scale, others in colours centred on 0.

    Args:
        gates: a record made by `record_gates`, or `GateStatistics`.
        paths: paths of the layers to show. Defaults to all.

    Returns:
        A `matplotlib.figure.Figure`; `figure.savefig("gates.png")` writes it.

    Raises:
        ValueError: for anything else, for unknown paths and for none.
        ImportError: if matplotlib is not installed.

    Example:

    >>> import numpy as np
    >>> from keras_gating import diagnostics, layers
    >>> data = np.random.default_rng(0).normal(size=(100, 6))
    >>> statistics = diagnostics.gate_statistics(layers.SwiGLU(8), data)
    >>> figure = diagnostics.plot_gates(statistics)
    >>> len(figure.axes) >= 2
    True
    """
    statistics = gates.statistics() if isinstance(gates, GateRecord) else gates
    if not isinstance(statistics, GateStatistics):
        raise ValueError(
            "`gates` must be what `record_gates` or `gate_statistics` gives. "
            f"Received: {type(gates).__name__}"
        )
    paths = chosen_paths(paths, statistics)
    common, names = shortened(paths)
    columns = min(_COLUMNS, len(paths))
    rows = -(-len(paths) // columns)
    kinds = [
        [path for path in paths if statistics[path]["bounded"] is bounded]
        for bounded in (True, False)
    ]
    kinds = [kind for kind in kinds if kind]
    height = max(2.1 * rows + 0.6, 0.34 * len(paths) + 1.1 * len(kinds) + 0.6)
    made = figure(2.7 * columns + 4.6, height)
    left, right = made.subfigures(1, 2, width_ratios=(2.7 * columns, 4.6))
    grid = left.subplots(rows, columns, squeeze=False).ravel()
    for axis, path, name in zip(grid, paths, names):
        _draw_histogram(axis, statistics, path)
        axis.set_title(name, fontsize=9)
    for axis in grid[len(paths) :]:
        axis.set_axis_off()
    labelled = [axis.get_legend_handles_labels() for axis in grid]
    handles, labels = max(labelled, key=lambda both: len(both[1]))
    if labels:
        left.legend(
            handles,
            labels,
            loc="outside upper center",
            ncols=len(labels),
            fontsize=8,
        )
    left.supxlabel("gate value, before scale", fontsize=10)
    left.supylabel("share of values in a bin, %", fontsize=10)
    panels = right.subplots(
        len(kinds),
        1,
        squeeze=False,
        height_ratios=[len(kind) + 1 for kind in kinds],
    )[:, 0]
    for axis, kind in zip(panels, kinds):
        labels = [names[paths.index(path)] for path in kind]
        _draw_means(right, axis, statistics, kind, labels)
    if common:
        made.suptitle(f"Gates of {common}", fontsize=11)
    return made


def _draw_histogram(axis, statistics, path):
    counts, edges = statistics.histogram(path)
    if statistics[path]["bounded"]:
        axis.set_xlim(0.0, 1.0)
    else:
        counts, edges = _filled(counts, edges)
        axis.set_xlim(edges[0], edges[-1])
        axis.axvline(0.0, color="0.5", linewidth=0.8, linestyle=":")
    shares = 100.0 * counts / max(counts[0].sum(), 1)
    if 2 <= len(shares) <= len(COLOURS):
        for head, (share, colour) in enumerate(zip(shares, COLOURS)):
            axis.stairs(share, edges, color=colour, label=f"head {head}")
    else:
        axis.stairs(shares.mean(axis=0), edges, fill=True, color=COLOURS[0])
    axis.set_ylim(bottom=0.0)
    axis.tick_params(labelsize=8)


def _filled(counts, edges):
    """The bins from the first to the last that is not empty, merged to few."""
    filled = np.flatnonzero(counts.sum(axis=0))
    if not filled.size:
        return counts, edges
    first, last = filled[0], filled[-1] + 1
    size = -(-(last - first) // _BARS)
    starts = np.arange(first, last, size)
    # Up to where the last group ends, if there are bins left.
    last = min(starts[-1] + size, len(edges) - 1)
    merged = np.add.reduceat(counts[:, :last], starts, axis=1)
    return merged, edges[[*starts, last]]


def _draw_means(where, axis, statistics, paths, labels):
    means = [[h["mean"] for h in statistics[path]["heads"]] for path in paths]
    heads = max(map(len, means))
    table = np.full((len(means), heads), np.nan)
    for row, own in zip(table, means):
        row[: len(own)] = own
    if statistics[paths[0]]["bounded"]:
        limits = {"cmap": "cividis", "vmin": 0.0, "vmax": 1.0}
        title = "mean gate, in [0, 1]"
    else:
        scale = signed_colours(max(np.nanmax(np.abs(table)), 1e-6))
        limits = {"cmap": scale.cmap, "norm": scale.norm}
        title = "mean gate, unbounded"
    shown = axis.imshow(table, aspect="auto", **limits)
    axis.set_title(title, fontsize=10)
    axis.set_xlabel("head", fontsize=9)
    axis.set_yticks(range(len(paths)), labels, fontsize=8)
    axis.set_xticks(range(0, heads, max(1, heads // 8)))
    if table.size <= 60:
        _write_numbers(axis, shown, table)
    where.colorbar(shown, ax=axis)


def _write_numbers(axis, shown, table):
    for (row, head), mean in np.ndenumerate(table):
        if np.isfinite(mean):
            red, green, blue, _ = shown.cmap(shown.norm(mean))
            is_dark = 0.3 * red + 0.6 * green + 0.1 * blue < 0.5
            axis.text(
                head,
                row,
                f"{mean:.2f}",
                ha="center",
                va="center",
                fontsize=8,
                color="white" if is_dark else "black",
            )
