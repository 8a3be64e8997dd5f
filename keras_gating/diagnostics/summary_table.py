"""The table of gate statistics."""

from keras_gating._extras import require
from keras_gating.diagnostics.paths import shortened

_COLUMNS = (
    ("mean", "mean", "{:.3f}"),
    ("spread", "spread", "{:.3f}"),
    ("low", "share_low", "{:.1%}"),
    ("high", "share_high", "{:.1%}"),
    ("neg.", "share_negative", "{:.1%}"),
    ("dead", "dead", "{:.1%}"),
    ("open", "open", "{:.1%}"),
    ("entropy", "entropy", "{:.3f}"),
    ("not finite", "share_nonfinite", "{:.1%}"),
)


def table(statistics, heads=False):
    """A `rich` table, a row for each layer.

    Args:
        statistics: `GateStatistics`.
        heads: whether to add a row for each head.
    """
    common, names = shortened(list(statistics))
    made = require("rich.table", "diagnostics").Table(
        box=require("rich.box", "diagnostics").SIMPLE_HEAD,
        title=f"Gates of {common}" if common else None,
        title_justify="left",
        padding=(0, 1, 0, 0),
    )
    made.add_column("gate", overflow="fold")
    columns = [
        column
        for column in _COLUMNS
        if any(_is_shown(column[1], summary) for summary in statistics.values())
    ]
    for title, _, _ in columns:
        made.add_column(title, justify="right", no_wrap=True)
    text = require("rich.text", "diagnostics").Text
    for name, summary in zip(names, statistics.values()):
        made.add_row(text(name), *_cells(summary, columns))
        if heads and len(summary["heads"]) > 1:
            for number, head in enumerate(summary["heads"]):
                made.add_row(f"  head {number}", *_cells(head, columns))
    return made


def _is_shown(name, summary):
    return summary[name] > 0.0 if name == "share_nonfinite" else name in summary


def _cells(numbers, columns):
    return [
        form.format(numbers[name]) if name in numbers else "–"
        for _, name, form in columns
    ]
