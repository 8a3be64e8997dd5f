"""What the benchmarks print and write."""

import json

from keras_gating.experiments.results import environment
from keras_gating.experiments.tables import table


def print_rows(console, title, rows):
    """One line for each ratio, of ours to the other, with its goal."""
    shown = table(
        f"{title}: ratios, of ours to the other",
        "what",
        "ours / other",
        "ratio",
        "quartiles",
        "goal",
        "met",
    )
    shown.columns[0].min_width = 18
    for column in shown.columns[1:]:
        column.no_wrap = True
    for row in rows:
        shown.add_row(
            row["what"],
            f"{row['ours']:.3g} / {row['other']:.3g} {row['unit']}",
            f"{row['ratio']:.3g}",
            f"{row['low']:.3g}–{row['high']:.3g}" if "low" in row else "",
            f"≤ {row['goal']:.3g}",
            "yes" if row["ratio"] <= row["goal"] else "no",
        )
    console.print(shown)
    errors = [row["relative_error"] for row in rows if "relative_error" in row]
    if errors:
        console.print(
            "Greatest difference of what ours and the other compute, relative: "
            f"{max(errors):.0e}",
            highlight=False,
        )


def write(path, arguments, sizes, rows):
    """Writes the rows, and where they were measured, as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {
        "quick": arguments.quick,
        "settings": sizes,
        "rows": rows,
        "environment": environment(),
    }
    path.write_text(json.dumps(content, indent=2) + "\n")
