"""Tables of the curvature experiment."""

from keras_gating.experiments.curvature_analysis import interval_text
from keras_gating.experiments.curvature_analysis import outcome
from keras_gating.experiments.tables import bounds_text
from keras_gating.experiments.tables import table

# As many as fit 80 columns.
TASKS_A_TABLE = 4
_MARKS = {"higher": " ↑", "lower": " ↓", "same": " ·"}
_SCOPES = {
    "pooled": "pooled",
    "within_task": "in task",
    "within_arm_and_task": "in arm × task",
}
_CHOICES = {
    "all": "all",
    "pair": "ungated, elementwise",
    "straight": "straight tasks",
    "curved": "curved tasks",
}


def print_curvature(console, results):
    """Prints every part that the run has, and what it allows to conclude."""
    measured = results.measurements
    seeds = results.settings["map_seeds"]
    if "heads" in measured:
        _print_heads(console, measured["heads"], seeds)
    if "activations" in measured:
        _print_activations(console, measured["activations"], seeds)
    if "sharpness" in measured:
        _print_sharpness(console, measured["sharpness"], results.settings)
    if "stacks" in measured:
        _print_stacks(console, measured["stacks"], seeds)
    if "training" in measured:
        _print_training(console, measured["training"], results)
    console.print(
        "∫|K| dA is taken over the square from −1.5 to 1.5, in "
        f"{results.settings['dtype']}. flat: rounding only, below "
        f"{results.settings['flat_below']:.0e} for every seed. degenerate: "
        "the image has lost a dimension.",
        highlight=False,
    )
    for entry in measured["conclusions"]:
        verdict = "supported" if entry["supported"] else "not supported"
        console.print(
            f"• {entry['claim']}: [bold]{verdict}[/bold] ({entry['because']})",
            highlight=False,
        )


def _print_heads(console, heads, seeds):
    shown = table(
        f"Random attention, {seeds} seeds: hull and curvature",
        "attention",
        "hull",
        "rank of outputs",
        "outside the hull",
        "median ∫|K| dA",
        "quartiles",
    )
    for head in heads.values():
        ranks = head["ranks"]
        span = f"{ranks[0]} to {ranks[-1]}" if ranks[1:] else str(ranks[0])
        shown.add_row(
            head["title"],
            str(head["hull"]),
            span,
            f"{head['largest_distance_from_hull']:.0e}",
            *_quartiles(head, head["flat"]),
        )
    console.print(shown)
    console.print(
        "hull: dimension of the affine hull of the values; the input has 2. "
        "outside: largest distance from it, relative to the size of outputs."
    )


def _print_activations(console, entries, seeds):
    first = next(iter(entries.values()))
    shown = table(
        f"Random dense layers, {seeds} seeds: median ∫|K| dA by depth",
        "activation",
        *(f"{depth} layers" for depth in first["depths"]),
    )
    for name, entry in entries.items():
        shown.add_row(name, *_by_depth(entry))
    console.print(shown)


def _print_sharpness(console, entries, settings):
    shown = table(
        "softplus(βx)/β on its way to ReLU, "
        f"{settings['sharpness_seeds']} seeds: medians (quartiles)",
        "β",
        "∫K dA",
        "∫|K| dA",
        "error of ∫K dA",
    )
    for beta, entry in entries.items():
        shown.add_row(
            beta,
            *(
                "{median:+.3f} ({lower_quartile:+.2f}, "
                "{upper_quartile:+.2f})".format(**entry[kind])
                for kind in ("signed", "absolute")
            ),
            f"{entry['grid_error']:.0e}",
        )
    console.print(shown)


def _print_stacks(console, stacks, seeds):
    first = next(iter(stacks.values()))
    shown = table(
        f"Stacked random attention, {seeds} seeds: median ∫|K| dA by depth",
        "attention",
        *first["depths"],
        "last over first",
        "with depth it",
    )
    for entry in stacks.values():
        growth = entry["growth"]
        ratio = ("", "")
        if growth is not None:
            interval = bounds_text(growth, "{:.2f}")
            ratio = (f"{growth['estimate']:.2f} {interval}", growth["verdict"])
        shown.add_row(entry["title"], *_by_depth(entry), *ratio)
    console.print(shown)


def _by_depth(entry):
    if entry["flat"]:
        return ["flat"] * len(entry["depths"])
    return [_quartiles(e, False)[0] for e in entry["depths"].values()]


def _quartiles(entry, flat):
    if entry["median"] is None:
        return "degenerate", ""
    if flat:
        return "flat", f"≤ {entry['upper_quartile']:.0e}"
    return (
        f"{entry['median']:.2f}",
        f"{entry['lower_quartile']:.2f} to {entry['upper_quartile']:.2f}",
    )


def _print_training(console, training, results):
    tasks = training["tasks"]
    count = len(results.seeds)
    for group in dict.fromkeys(a["group"] for a in training["arms"].values()):
        arms = [a for a in training["arms"].values() if a["group"] == group]
        name = f"{group} tokens" if group else "values in the plane"
        found = training["groups"][str(group)]["differences"] if group else {}
        for kind, title in (
            ("accuracy", "test accuracy"),
            ("log10_curvature", "median ∫|K| dA"),
        ):
            for start in range(0, len(tasks), TASKS_A_TABLE):
                some = list(tasks)[start : start + TASKS_A_TABLE]
                shown = table(
                    f"Trained, {name}, {count} seeds: {title}",
                    "arm",
                    "weights",
                    *(tasks[task]["title"] for task in some),
                )
                for arm in arms:
                    differences = found.get(arm["name"])
                    shown.add_row(
                        arm["title"],
                        str(arm["parameters"]),
                        *(_cell(kind, arm, task, differences) for task in some),
                    )
                console.print(shown)
    console.print(
        "↑ ↓: higher or lower than without a gate, seed by seed, after Holm's "
        "correction over all arms and tasks; ·: no difference "
        "shown. Wide values must equal no gate, since the readout is linear."
    )
    for number, group in training["groups"].items():
        _print_correlations(console, number, group)


def _cell(kind, arm, task, differences):
    entry = arm["tasks"][task]
    if kind == "accuracy":
        values = entry["accuracies"]
        text = f"{sum(values) / len(values):.1%}"
    else:
        curvature = entry["curvature"]
        text = _number(curvature["median"])
    if differences is None:
        return text
    return text + _MARKS[outcome(differences[task][kind])]


def _number(value):
    if value is None:
        return "degenerate"
    if value < 1e-3:
        return f"{value:.0e}"
    return f"{value:.2f}" if value >= 0.1 else f"{value:.1g}"


def _print_correlations(console, number, group):
    shown = table(
        f"{number} tokens: correlation of log10 ∫|K| dA with accuracy",
        "networks",
        "scope",
        "Pearson",
        "Spearman",
    )
    rows = [
        (_CHOICES[choice], scope, entry)
        for choice, scopes in group["correlations"].items()
        for scope, entry in scopes.items()
        if choice == "all" or scope == "within_arm_and_task"
    ]
    rows += [
        (f"{name.replace('_', ' ')} alone", "within_arm_and_task", entry)
        for name, entry in group["arms"].items()
        if entry["pearson"]["estimate"] is not None
    ]
    for networks, scope, entry in rows:
        shown.add_row(
            networks,
            _SCOPES[scope],
            interval_text(entry["pearson"]),
            interval_text(entry["spearman"]),
        )
    console.print(shown)
    console.print("Intervals: 95 %, from a bootstrap over seeds.")
