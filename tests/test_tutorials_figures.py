"""Figures that tutorials quote from full runs are those of `docs/results`."""

from pathlib import Path

from keras_gating.experiments.results import Results
from tutorials.execute import converted
from tutorials.execute import scripts

ROOT = Path(__file__).parents[1]


def measured(experiment):
    """Measurements of the committed full run."""
    results = Results.read(ROOT / "docs" / "results" / f"{experiment}.json")
    assert not results.settings["quick"]
    return results.measurements


def prose(number):
    """Markdown of a tutorial, each paragraph on one line."""
    (script,) = [s for s in scripts() if s.stem.startswith(number)]
    cells = converted(script).cells
    text = "\n\n".join(c.source for c in cells if c.cell_type == "markdown")
    tables = text.replace("\n|", "\f|")
    return " ".join(tables.split(" ")).replace("\n", " ").replace("\f", "\n")


def test_xor():
    text = prose("02")
    arms = measured("xor")["arms"]
    quoted = [
        "affine",
        "softmax",
        "elementwise_both",
        "additive_both",
        "headwise_one",
        "elementwise_one",
        "additive_one",
    ]
    for arm in map(arms.get, quoted):
        low, high = (
            f"{100 * arm[key]:.1f}".removesuffix(".0")
            for key in ("share_low", "share_high")
        )
        solved = f"{arm['solved']} of {arm['trials']}"
        row = f"| {arm['title']} | {solved} | {low} – {high} % |"
        assert row in text
