"""Parts that the tables of all experiments share."""

import rich.box
import rich.table


def table(title, first, *others):
    """An empty table whose first column is left-aligned, the others right."""
    made = rich.table.Table(
        title=title, title_justify="left", box=rich.box.SIMPLE_HEAD
    )
    made.add_column(first)
    for column in others:
        made.add_column(column, justify="right")
    return made


def bounds_text(bounds, form, factor=1):
    """The interval of a dictionary with `low` and `high`, in brackets."""
    if bounds["low"] is None:
        return "none"
    low, high = (form.format(factor * bounds[k]) for k in ("low", "high"))
    return f"[{low}, {high}]"


def estimate_text(bounds, form, factor=1):
    """The estimate, and the half-width of its interval if it has one."""
    text = form.format(factor * bounds["estimate"])
    if bounds["low"] is None:
        return text
    half = factor * (bounds["high"] - bounds["low"]) / 2.0
    return f"{text} ± {form.replace('+', '').format(half)}"


NO_COLUMNS = ((), lambda entry: ())


def print_differences(
    console, title, results, form, factor=1, further=NO_COLUMNS
):
    """Prints the paired differences of a run, a row for each pair of arms.

    Args:
        console: a `rich.console.Console`.
        title: of the table.
        results: `Results` with `differences` among its measurements.
        form: format of the numbers.
        factor: on the numbers.
        further: `(titles, function)`, further columns and their cells for an
            entry.
    """
    arms = results.measurements["arms"]
    titles, cells = further
    shown = table(
        title,
        "first minus second",
        "mean",
        "95 % interval",
        "first is",
        *titles,
    )
    for entry in results.measurements["differences"]:
        shown.add_row(
            f"{arms[entry['first']]['title']} − "
            f"{arms[entry['second']]['title']}",
            form.format(factor * entry["estimate"]),
            bounds_text(entry, form, factor),
            entry["verdict"],
            *cells(entry),
        )
    console.print(shown)
