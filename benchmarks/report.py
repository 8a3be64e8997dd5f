"""What the benchmarks print and write."""

import json

from keras_gating.experiments.results import environment
from keras_gating.experiments.tables import table


def print_rows(console, title, rows):
    """One line for each ratio, of ours to the other, with its goal."""
    shown = table(
        f"{title}: ratios, of ours to the other",
        "what",
        "ours",
        "other",
        "ratio",
        "quartiles",
        "goal",
        "met",
        "error",
    )
    for column in shown.columns[1:]:
        column.no_wrap = True
    for row in rows:
        error = row.get("relative_error")
        shown.add_row(
            row["what"],
            f"{row['ours']:.4g} {row['unit']}",
            f"{row['other']:.4g} {row['unit']}",
            f"{row['ratio']:.2g}",
            f"{row['low']:.2g}–{row['high']:.2g}" if "low" in row else "",
            f"≤ {row['goal']:.2g}",
            "yes" if row["ratio"] <= row["goal"] else "no",
            "" if error is None else f"{error:.0e}",
        )
    console.print(shown)


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
