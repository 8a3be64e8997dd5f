"""Tables, conclusions and pictures of the gated attention unit's experiment."""

from keras_gating.experiments.figures import COLOURS
from keras_gating.experiments.figures import figure
from keras_gating.experiments.gau_cost import BASELINE
from keras_gating.experiments.gau_cost import TASKS
from keras_gating.experiments.gau_cost import faster_from
from keras_gating.experiments.gau_cost import forms_in
from keras_gating.experiments.gau_cost import growth
from keras_gating.experiments.gau_cost import of
from keras_gating.experiments.gau_model import ADAM_EPSILON
from keras_gating.experiments.next_character_report import draw_losses
from keras_gating.experiments.next_character_report import print_losses
from keras_gating.experiments.tables import table

_MEBIBYTE = 2**20


def print_gau(console, results):
    """Prints losses, differences, time and memory, and what follows."""
    print_losses(console, results, "block")
    console.print(
        f"Intervals are of one comparison each. Adam's ε is {ADAM_EPSILON:.0e} "
        "unless an arm names another."
    )
    rows = results.measurements["cost"]
    for task in TASKS:
        _print_cost(console, rows, task)
    console.print(
        "Ratios are of one round, with their quartiles; memory is what a call "
        "adds to the process at its peak. What was measured:"
    )
    for conclusion in conclusions(results):
        console.print(f"• {conclusion}", highlight=False)


def _print_cost(console, rows, task):
    forms = forms_in(rows)
    units = forms[1:]
    shown = table(
        f"Two units against attention and feed-forward layer: {task}",
        "length",
        "baseline, ms",
        *(f"{form.title}, ×" for form in units),
        *(f"MiB, {form.name}" for form in forms),
    )
    for baseline in of(rows, BASELINE, task):
        length = baseline["length"]
        here = {
            row["form"]: row
            for row in rows
            if (row["length"], row["task"]) == (length, task)
        }
        shown.add_row(
            f"{length:,}",
            f"{1e3 * baseline['seconds']:.1f}",
            *(_ratio_text(here[form.name]) for form in units),
            *(_memory_text(here[form.name]) for form in forms),
        )
    shown.add_row(
        "exponent",
        _growth_text(rows, BASELINE, task),
        *(_growth_text(rows, form.name, task) for form in units),
        *(_growth_text(rows, form.name, task, "peak_bytes") for form in forms),
    )
    console.print(shown)


def _ratio_text(row):
    return f"{row['ratio']:.2f} [{row['low']:.2f}, {row['high']:.2f}]"


def _memory_text(row):
    if row["peak_bytes"] is None:
        return "–"
    return f"{row['peak_bytes'] / _MEBIBYTE:.1f}"


def _growth_text(rows, form, task, key="seconds"):
    exponent = growth(rows, form, task, key)
    return "–" if exponent is None else f"{exponent:.2f}"


def conclusions(results):
    """What the measurements say, in sentences."""
    arms = results.measurements["arms"]
    for entry in results.measurements["differences"]:
        outcome = _OUTCOMES.get(entry["verdict"], "is not shown to differ from")
        yield (
            f"“{arms[entry['first']]['title']}” {outcome} "
            f"“{arms[entry['second']]['title']}”."
        )
    rows = results.measurements["cost"]
    for task in TASKS:
        for form in forms_in(rows)[1:]:
            speed = _speed_text(rows, form.name, task)
            memory = _memory_against(rows, form.name, task)
            yield f"{form.title}, {task}: {speed}{memory}."


_OUTCOMES = {
    "higher": "has a higher loss than",
    "lower": "has a lower loss than",
}


def _speed_text(rows, form, task):
    length = faster_from(rows, form, task)
    if length is None:
        return "not faster at the greatest length"
    return f"faster from length {length:,} on"


def _memory_against(rows, form, task):
    """The memory at the greatest length, over that of the baseline."""
    mine, baseline = (of(rows, name, task)[-1] for name in (form, BASELINE))
    if not mine["peak_bytes"] or not baseline["peak_bytes"]:
        return ""
    share = mine["peak_bytes"] / baseline["peak_bytes"]
    return f", {share:.2f} times the memory at length {mine['length']:,}"


def losses(results):
    """Loss of each seed and arm, means and intervals."""
    arms = results.measurements["arms"]
    made = figure(8.0, 4.4)
    axis = made.subplots()
    kinds = [
        (
            kind,
            colour,
            [i for i, name in enumerate(arms) if _kind(name) == kind],
        )
        for kind, colour in _KINDS.items()
    ]
    draw_losses(axis, list(arms.values()), kinds, capsize=4)
    axis.set_xticks(
        range(len(arms)),
        [arm["title"] for arm in arms.values()],
        rotation=20,
        ha="right",
        rotation_mode="anchor",
    )
    axis.grid(axis="y", alpha=0.3)
    return made


_KINDS = {
    "baseline": COLOURS[4],
    "whole units": COLOURS[0],
    "a part taken out": COLOURS[1],
    "Adam's usual ε": COLOURS[2],
}


def _kind(name):
    if name == "attention":
        return "baseline"
    if name.endswith("_usual"):
        return "Adam's usual ε"
    whole = name in ("unit", "softmax", "chunked")
    return "whole units" if whole else "a part taken out"


def cost(results):
    """Time and memory against the length, both tasks."""
    rows = results.measurements["cost"]
    made = figure(10.0, 7.0)
    axes = made.subplots(2, 2, sharex=True, sharey="row")
    for column, task in zip(axes.T, TASKS):
        for i, form in enumerate(forms_in(rows)):
            mine = of(rows, form.name, task)
            style = {
                "color": COLOURS[i],
                "marker": "os^D"[i],
                "markersize": 5,
                "label": form.title,
            }
            lengths = [row["length"] for row in mine]
            times = [1e3 * row["seconds"] for row in mine]
            column[0].plot(lengths, times, **style)
            known = [row for row in mine if row["peak_bytes"]]
            column[1].plot(
                [row["length"] for row in known],
                [row["peak_bytes"] / _MEBIBYTE for row in known],
                **style,
            )
        column[0].set_title(task)
        column[1].set_xlabel("length")
        for axis in column:
            axis.set_xscale("log", base=2)
            axis.set_yscale("log")
            axis.set_xticks(lengths, [f"{length:,}" for length in lengths])
            axis.grid(alpha=0.3)
    axes[0, 0].set_ylabel("milliseconds a call")
    axes[1, 0].set_ylabel("memory at its peak, MiB")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    made.legend(handles, labels, loc="outside lower center", ncols=4)
    return made


PLOTS = {"gau": losses, "gau_cost": cost}
