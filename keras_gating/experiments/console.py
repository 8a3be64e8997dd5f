"""Tables and progress bars of the experiments in a terminal."""

import contextlib

import rich.progress

from keras_gating.experiments.channels_report import print_channels
from keras_gating.experiments.curvature_report import print_curvature
from keras_gating.experiments.depth_report import print_depth
from keras_gating.experiments.feedforward_report import print_feedforward
from keras_gating.experiments.functions_report import print_functions
from keras_gating.experiments.gau_report import print_gau
from keras_gating.experiments.overfitting_report import print_overfitting
from keras_gating.experiments.products_report import print_products
from keras_gating.experiments.retrofit_report import print_retrofit
from keras_gating.experiments.saturation_report import print_saturation
from keras_gating.experiments.sinks_report import print_sinks
from keras_gating.experiments.sources_report import print_sources
from keras_gating.experiments.tables import bounds_text
from keras_gating.experiments.tables import table as new_table
from keras_gating.experiments.trees_report import print_trees
from keras_gating.experiments.triangle_report import print_triangle


@contextlib.contextmanager
def progress_bar(console, title):
    """Shows a bar; gives the `on_progress` function that moves it."""
    bar = rich.progress.Progress(
        rich.progress.TextColumn("[bold]" + title),
        rich.progress.BarColumn(bar_width=24),
        rich.progress.TaskProgressColumn(),
        rich.progress.TimeElapsedColumn(),
        rich.progress.TextColumn("{task.description}"),
        console=console,
    )
    with bar:
        task = bar.add_task("", total=1.0)

        def on_progress(description, share):
            bar.update(task, description=description, completed=share)

        yield on_progress
        bar.update(task, description="", completed=1.0)


def print_results(console, results):
    """Prints the tables of an experiment."""
    _PRINTERS[results.experiment](console, results)
    if results.settings["quick"]:
        console.print(
            "A quick run: too few steps and seeds to conclude from.",
            style="yellow",
        )
    console.print(f"{results.elapsed_seconds:.0f} s\n", style="dim")


def print_xor(console, results):
    """Prints what each arm has solved, and why some never can."""
    arms = results.measurements["arms"].values()
    table = new_table(
        f"XOR: seeds that solve it, {results.settings['steps']} steps",
        "arm",
        "solved",
        "95 % interval",
        "least MSE",
        "possible",
    )
    for arm in arms:
        table.add_row(
            arm["title"],
            f"{arm['solved']}/{arm['trials']}",
            f"[{arm['share_low']:.1%}, {arm['share_high']:.1%}]",
            f"{arm['smallest_squared_error']:.4f}",
            "no" if arm["obstacle"] else "yes",
        )
    console.print(table)
    console.print(
        "Solved: all four errors below ¼. Possible: whether any weights solve "
        "it. f₀₁ is the output at (0, 1); why not:"
    )
    reasons = {}
    for arm in arms:
        if arm["obstacle"]:
            reasons.setdefault(arm["obstacle"], []).append(arm["title"])
    for reason, titles in reasons.items():
        console.print(f"• {'; '.join(titles)} – {reason}.", highlight=False)


def print_digits(console, results):
    """Prints accuracies, paired differences and the learnt gates."""
    measured = results.measurements
    table = new_table(
        f"Digits: test accuracy, {len(results.seeds)} seeds",
        "arm",
        "accuracy",
        "95 % interval",
        "parameters",
        "ms a step",
    )
    for name, arm in measured["arms"].items():
        cost = measured["cost"][name]
        seconds = cost["seconds_per_step"]
        table.add_row(
            arm["title"],
            f"{arm['estimate']:.2%}",
            bounds_text(arm, "{:.2%}"),
            f"{cost['parameters']:,}",
            f"{1e3 * seconds:.2f}",
        )
    console.print(table)
    table = new_table(
        "Paired differences, in percentage points",
        "gated minus",
        "mean",
        "95 % interval",
        "gated is",
    )
    for name, difference in measured["differences"].items():
        table.add_row(
            measured["arms"][name]["title"],
            f"{100 * difference['estimate']:+.2f}",
            bounds_text(difference, "{:+.2f}", 100),
            difference["verdict"],
        )
    console.print(table)
    table = new_table(
        "Learnt gates on the test images, all seeds",
        "gate",
        "mean",
        "spread",
        "below 0.1",
        "above 0.9",
        "head means",
    )
    for path, gate in measured["gates"]["pooled"].items():
        lowest, highest = gate["lowest_head_mean"], gate["highest_head_mean"]
        table.add_row(
            path,
            f"{gate['mean']:.3f}",
            f"{gate['spread']:.3f}",
            f"{gate['share_below_0.1']:.1%}",
            f"{gate['share_above_0.9']:.1%}",
            f"{lowest:.3f} to {highest:.3f}",
        )
    console.print(table)


_PRINTERS = {
    "xor": print_xor,
    "digits": print_digits,
    "products": print_products,
    "sources": print_sources,
    "feedforward": print_feedforward,
    "channels": print_channels,
    "depth": print_depth,
    "gau": print_gau,
    "sinks": print_sinks,
    "retrofit": print_retrofit,
    "triangle": print_triangle,
    "curvature": print_curvature,
    "functions": print_functions,
    "saturation": print_saturation,
    "overfitting": print_overfitting,
    "trees": print_trees,
}
