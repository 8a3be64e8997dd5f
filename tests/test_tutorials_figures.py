"""Figures that tutorials quote from full runs are those of `docs/results`."""

from pathlib import Path

import numpy as np

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
    """Markdown of a tutorial, each paragraph and row of a table on one line."""
    (script,) = [s for s in scripts() if s.stem.startswith(number)]
    cells = converted(script).cells
    text = "\n\n".join(c.source for c in cells if c.cell_type == "markdown")
    lines = [" ".join(line.split()) for line in text.split("\n")]
    return " ".join(f"\n{s}" if s[:1] in ("|", "") else s for s in lines)


def check_rows(number, rows):
    """Each row of cells is one of a table of the tutorial."""
    text = prose(number)
    for row in rows:
        line = f"| {' | '.join(row)} |"
        assert line in text


def check_phrases(number, *phrases):
    text = prose(number)
    for phrase in phrases:
        assert phrase in text


def signed(interval):
    """An estimate with its interval, as the tutorials write them."""
    values = (interval[key] for key in ("estimate", "low", "high"))
    estimate, low, high = (f"{v:+.2f}".replace("-", "−") for v in values)
    return f"{estimate} [{low}, {high}]"


def explained(setting, arm, task):
    """Share of the variance in the experiment on sources, two decimals."""
    arms = measured("sources")["settings"][setting]["arms"]
    share = arms[arm]["tasks"][task]["explained"]["estimate"]
    return f"{abs(round(share, 2)):.2f}"


def test_adding_and_multiplying():
    arms = measured("sources")["settings"]["cross_uniform"]["arms"]
    check_rows(
        "01",
        [
            [arms[arm]["title"]]
            + [explained("cross_uniform", arm, t) for t in ("query", "context")]
            for arm in ("ungated", "query", "context", "query_context")
        ],
    )
    learnt = explained("cross_softmax", "context", "query")
    gated, *others = (
        f"{100 * arm['estimate']:.2f} %"
        for arm in measured("digits")["arms"].values()
    )
    check_phrases(
        "01",
        f"some of the query task too: {learnt} instead of 0",
        f"({gated} against {' and '.join(others)},",
    )


def test_xor():
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
    rows = []
    for arm in map(arms.get, quoted):
        low, high = (
            f"{100 * arm[key]:.1f}".removesuffix(".0")
            for key in ("share_low", "share_high")
        )
        solved = f"{arm['solved']} of {arm['trials']}"
        rows.append([arm["title"], solved, f"{low} – {high} %"])
    check_rows("02", rows)


def test_what_curvature_is():
    curvature = measured("curvature")
    rows = []
    for name, title in (
        ("identity", "none"),
        ("sigmoid", "sigmoid"),
        ("tanh", "tanh"),
        ("GELU", "GELU"),
        ("ReLU", "ReLU"),
    ):
        depths = curvature["activations"][name]["depths"]
        medians = [depths[depth]["median"] for depth in "1248"]
        shown = [
            f"{m:.1f}" if m >= 10 else f"{m:.2f}" if m else "0" for m in medians
        ]
        rows.append([title, *shown])
    check_rows("03", rows)
    sharpness = curvature["sharpness"]
    first, last = (sharpness[b]["absolute"]["median"] for b in ("1", "40"))
    changes = [
        np.nanmedian(
            np.abs(
                np.float64(sharpness["40"][kind]["values"])
                - np.float64(sharpness["20"][kind]["values"])
            )
        )
        for kind in ("signed", "absolute")
    ]
    check_phrases(
        "03",
        f"grows from {first:.2f} to {last:.2f} and",
        f"changes by {changes[0]:.2f} in the signed integral and by "
        f"{changes[1]:.2f} in the other",
    )


def test_gated_attention_and_curvature():
    curvature = measured("curvature")
    heads, training = curvature["heads"], curvature["training"]
    quoted = (
        "tokens_3",
        "constant",
        "planar",
        "rank_2",
        "tokens_4",
        "heads_2",
        "tokens_8",
        "headwise",
        "elementwise",
        "additive",
    )
    medians = [heads[name]["median"] for name in quoted]
    assert all(m > 0.1 or m < 1e-24 for m in medians)
    rows = [
        [heads[name]["title"], "flat" if m < 1e-24 else f"{m:.2f}"]
        for name, m in zip(quoted, medians)
    ]
    arms = training["arms"]
    columns = "ungated_3 elementwise_3 ungated_8 elementwise_8 planar_24"
    for task, about in training["tasks"].items():
        cells = [about["title"].removesuffix(" 3 × 3")]
        for arm in map(arms.get, columns.split()):
            entry = arm["tasks"][task]
            total = entry["curvature"]["median"]
            total = f"{total:.2f}" if total < 1 else f"{total:.1f}"
            bracket = "flat" if arm["must_be_flat"] else total
            cells.append(f"{mean_accuracy(entry)} ({bracket})")
        rows.append(cells)
    check_rows("04", rows)

    outcomes = {c["claim"]: c["because"] for c in curvature["conclusions"]}
    raised = outcomes["3 tokens: an elementwise gate raises ∫|K| dA"]
    assert raised == "on 8 of 8 tasks"
    accurate = (
        "{}: {} gate is more accurate on curved boundaries and not on "
        "straight ones"
    )
    for arm, count in (("an elementwise", 3), ("a headwise", 0)):
        because = outcomes[accurate.format("8 tokens", arm)]
        listed = because.removeprefix("more accurate on: ")
        assert len(listed.replace("none", "").split(", ")) == max(count, 1)
    on_curved = outcomes[accurate.format("3 tokens", "an elementwise")]
    assert "linear" not in on_curved and on_curved.count(",") == 6

    three, eight = (
        {
            scope: found["within_arm_and_task"]["pearson"]
            for scope, found in group["correlations"].items()
        }
        for group in training["groups"].values()
    )
    pooled = [
        f"{group['correlations']['all']['pooled']['pearson']['estimate']:+.2f}"
        for group in training["groups"].values()
    ]
    dropped = max(
        e["curvature"]["dropped"] for e in arms["ungated_3"]["tasks"].values()
    )
    never = max(
        e["curvature"]["dropped"]
        for tokens in "38"
        for e in arms[f"elementwise_{tokens}"]["tasks"].values()
    )
    assert never < 5e-4
    check_phrases(
        "04",
        f"the correlation is {signed(three['all'])} with 3 tokens and "
        f"{signed(eight['all'])} with 8",
        f"it is {signed(three['straight'])} and {signed(eight['straight'])}",
        f"the correlation is {pooled[0]} with 3 tokens and "
        f"{pooled[1].replace('-', '−')} with 8",
        f"up to {dropped:.0%} of the square".replace("%", " %"),
        f"SiLU has {mean_accuracy(arms['additive_3']['tasks']['circle'])}",
    )


def mean_accuracy(entry):
    return f"{100 * np.mean(entry['accuracies']):.1f} %"


def test_value_modulators():
    arms = measured("sources")["settings"]["cross_uniform"]["arms"]
    settings = "cross_uniform", "cross_softmax"
    check_rows(
        "05",
        [
            [entry["title"]]
            + [
                " / ".join(explained(s, arm, task) for s in settings)
                for task in ("query", "context", "tokens")
            ]
            for arm, entry in arms.items()
        ],
    )
    key, query = (
        explained("cross_softmax", arm, "tokens")
        for arm in ("key_output", "query")
    )
    check_phrases("05", f"where attention is learnt: {key} against {query}")
