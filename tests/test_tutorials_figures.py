"""Figures that tutorials quote from full runs are those of `docs/results`."""

import functools
from pathlib import Path

import numpy as np

from keras_gating.experiments.results import Results
from tutorials.execute import converted
from tutorials.execute import scripts

ROOT = Path(__file__).parents[1]


@functools.cache
def measured(experiment):
    """Measurements of the committed full run."""
    results = Results.read(ROOT / "docs" / "results" / f"{experiment}.json")
    assert not results.settings["quick"]
    return results.measurements


@functools.cache
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


def signed(interval, digits=2):
    """An estimate with its interval, as the tutorials write them."""
    values = (interval[key] for key in ("estimate", "low", "high"))
    estimate, low, high = (f"{v:+.{digits}f}".replace("-", "−") for v in values)
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
        names = [] if listed == "none" else listed.split(", ")
        assert len(names) == count
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


def spread(entry, digits, factor=1.0):
    """Mean and half of its 95 % interval."""
    half = factor * (entry["high"] - entry["low"]) / 2.0
    return f"{factor * entry['estimate']:.{digits}f} ± {half:.{digits}f}"


def pair(differences, first, second):
    """The difference of two arms."""
    (found,) = [
        entry
        for entry in differences
        if (entry["first"], entry["second"]) == (first, second)
    ]
    return found


@functools.cache
def code(number):
    (script,) = [s for s in scripts() if s.stem.startswith(number)]
    cells = converted(script).cells
    return "\n".join(c.source for c in cells if c.cell_type == "code")


def test_glu_family():
    rows = {
        "bilinear": "BilinearGLU",
        "swiglu": "SwiGLU",
        "square": "square, no gate",
        "gelu": "GELU, no gate",
        "relu": "ReLU, no gate",
    }
    sizes = {
        entry["arm"]: entry["tasks"]
        for entry in measured("products")["sizes"]
        if entry["parameters"] == 29
    }

    def error(entry):
        size = 10.0 ** entry["estimate"]
        return "rounding" if size < 1e-5 else f"{size:#.2g}"

    for arm, title in rows.items():
        cells = [
            f"{error(task['training'])} / {error(task['twice'])}"
            for task in sizes[arm].values()
        ]
        check_rows("06", [[title, *cells]])
    feed_forward = measured("feedforward")
    assert {arm["parameters"] for arm in feed_forward["arms"].values()} == {
        68641
    }
    for entry in feed_forward["differences"]:
        if entry["second"] == "relu":
            title = feed_forward["arms"][entry["first"]]["title"]
            numbers = [entry[key] for key in ("estimate", "low", "high")]
            numbers.append(entry["published"][1])
            row = ", ".join(f"{number:.3f}" for number in numbers)
            assert f'"{title}": ({row}),' in code("06")
            contains_none = entry["low"] < 0.0 < entry["high"]
            assert contains_none is (entry["first"] != "swish")


def test_channel_gates():
    text = prose("07")
    arms = measured("channels")["arms"]
    plain = arms["none"]

    def cell(name):
        return f"{spread(arms[name]['accuracy'], 2, 100.0)} %"

    assert f"| none | {cell('none')} | | |" in text
    assert f"come on top of {plain['parameters']:,})" in text
    for gate in ("se", "eca", "cbam"):
        more = arms[f"{gate}_branch"]["parameters"] / plain["parameters"] - 1.0
        cells = cell(f"{gate}_branch"), cell(f"{gate}_after"), f"+{more:.2%}"
        row = " | ".join(cells).replace("%", " %").replace("  %", " %")
        assert f"| {gate.upper()} | {row} |" in text
    for entry in measured("channels")["differences"]:
        assert entry["low"] < 0.0 < entry["high"]
    more = [
        arms[f"{gate}_branch"]["parameters"] - plain["parameters"]
        for gate in ("eca", "se")
    ]
    assert more == [6, 700]
    assert "ECA has six parameters in this network, SE has 700." in text


def test_gated_attention_unit():
    results = measured("gau")
    losses = {name: arm["loss"] for name, arm in results["arms"].items()}
    rows = {
        "softmax": "unit, softmax",
        "chunked": "unit, chunks of 16",
        "no_gate": "without the gate: U = 1",
        "identity": "without attention: A = identity",
    }
    for name, title in rows.items():
        minus = signed(pair(results["differences"], name, "unit"), 3)
        check_rows("08", [[title, spread(losses[name], 3), minus]])
    unit = pair(results["differences"], "unit", "attention")
    ends = {"estimate": "estimate", "low": "high", "high": "low"}
    minus = signed({key: -unit[end] for key, end in ends.items()}, 3)
    baseline = spread(losses["attention"], 3)
    check_rows("08", [["attention, feed-forward", baseline, minus]])
    whole = spread(losses["unit"], 3)
    check_phrases("08", f"| unit, squared ReLU | {whole} | |")
    usual, baseline = (
        f"{losses[name]['estimate']:.3f}"
        for name in ("unit_usual", "attention_usual")
    )
    check_phrases("08", f"the unit reaches {usual} and the baseline {baseline}")
    ratios = {
        (row["length"], row["task"], row["form"]): f"{row['ratio']:.2f}"
        for row in results["cost"]
    }
    for length in (256, 1024, 4096, 8192):
        cells = [
            ratios[length, task, form]
            for task in ("inference", "training")
            for form in ("quadratic", "chunked")
        ]
        check_rows("08", [[f"{length:,}", *cells]])


def test_healthy_gates():
    text = prose("09")
    rows = {
        "sigmoid": "sigmoid",
        "tanh": "tanh",
        "gelu": "GELU",
        "silu": "SiLU",
        "linear": "bilinear",
    }
    saturation = measured("saturation")
    for name, title in rows.items():
        scales = saturation["activations"][name]["scales"].values()
        cells = [f"{spread(x['accuracy'], 1, 100.0)} %" for x in scales]
        check_rows("09", [[title, *cells]])
    wide = saturation["activations"]["sigmoid"]["scales"]["10"]
    assert f"{wide['vanished_start']['estimate']:.0%}" == "61%"
    assert "loses 61 % of its slopes" in text
    rows = {
        "bare": "product, half open",
        "bare_open": "product, open",
        "bare_closed": "product, closed",
        "bare_context": "normalized, product",
        "residual": "residual, not normalized",
        "post": "post-norm block, half open",
    }
    for name, title in rows.items():
        depths = measured("depth")["arms"][name]["depths"]
        ratio = 10.0 ** depths["12"]["log10_gradient_ratio"]["estimate"]
        ratio = f"{ratio:.2g}" if ratio > 1e-3 else f"{ratio:.1e}"
        ratio = ratio.replace("e-0", "e-")
        cells = [spread(depths[x]["explained"], 2) for x in ("2", "6", "12")]
        cells = [cell.replace("-0.00", "0.00") for cell in cells]
        check_rows("09", [[title, *cells, ratio]])
    rows = {
        "ungated": "ungated",
        "wider": "ungated, as many parameters",
        "gated": "gated",
        "gate_dropout_0.2": "gated, dropout 0.2 in the gate",
        "gate_dropout_0.5": "gated, dropout 0.5 in the gate",
        "gate_decay_1": "gated, weight decay 1 of the gates",
        "decay_1": "gated, weight decay 1 of all",
    }
    for name, title in rows.items():
        arm = measured("overfitting")["arms"][name]
        loss = spread(arm["test_loss"], 2)
        accuracy = spread(arm["test_accuracy"], 1, 100.0)
        check_rows("09", [[title, loss, f"{accuracy} %"]])


def test_gating_a_trained_model():
    text = prose("10")
    results = measured("retrofit")
    assert f"loss {spread(results['start'], 3)} nats" in text
    rows = {
        "zero": "zero kernel, as here",
        "open": "starts open, bias 4",
        "random": "random kernel",
        "rate": "10 × the rate for gates",
        "first": "gates first, then all, 10 ×",
    }
    for name, title in rows.items():
        distance = spread(results["arms"][name]["distance"], 3)
        minus = signed(pair(results["differences"], name, "ungated"), 4)
        check_rows("10", [[title, distance, minus]])
    minus = signed(pair(results["differences"], "control", "ungated"), 4)
    assert f"| no gate, 10 × the rate elsewhere | | {minus} |" in text


def test_which_gate_bends_space_how():
    settings = measured("functions")["settings"]
    order = (
        "softmax_elementwise",
        "softmax_headwise",
        "linear_elementwise",
        "linear_headwise",
    )
    for name in settings["softmax_elementwise"]["functions"]:
        entries = [settings[x]["functions"][name] for x in order]
        cells = [
            "flat"
            if entry["flat"]
            else f"{entry['median']:.2f} ({entry['positive_share']:.2f})"
            for entry in entries
        ]
        check_rows("11", [[name, *cells]])


def test_gates_of_a_chosen_curvature():
    trees = measured("trees")
    spaces = {
        (entry["space"], entry["dimension"]): {
            name: arm["distortion"] for name, arm in entry["arms"].items()
        }
        for entry in trees["embeddings"]
    }
    curvatures = {
        entry["space"]: entry["arms"]["learnt"]["curvature"]["estimate"]
        for entry in trees["embeddings"]
        if entry["dimension"] == 2
    }
    rows = {
        "hyperbolic": "points, κ = −0.5",
        "plane": "points, κ = 0",
        "sphere": "points, κ = 0.25",
        "cycle": "cycle of 24",
        "binary": "binary tree, 31 nodes",
        "ternary": "ternary tree, 40 nodes",
        "exceptions": "Python's exceptions, 67",
        "grid": "grid, 5 × 5",
    }
    for name, title in rows.items():
        arms, five = spaces[name, 2], spaces[name, 5]
        quoted = [
            arms[arm] for arm in ("flat", "negative", "positive", "learnt")
        ]
        cells = [f"{x['estimate']:.3f}" for x in [*quoted, five["flat"]]]
        curvature = curvatures[name]
        digits = 1 if abs(curvature) > 1.0 else 2
        shown = f"{curvature:+.{digits}f}".replace("-", "−")
        shown = "0" if abs(curvature) < 1e-9 else shown
        check_rows("12", [[title, *cells[:4], shown, cells[4]]])
        assert arms["flat"]["estimate"] + 1e-9 > arms["learnt"]["estimate"]
    for name in ("binary", "ternary", "exceptions"):
        learnt, flat = spaces[name, 2]["learnt"], spaces[name, 2]["flat"]
        assert learnt["estimate"] < spaces[name, 5]["flat"]["estimate"]
        assert flat["estimate"] < spaces[name, 2]["positive"]["estimate"]
    for name in ("cycle", "grid"):
        flat = spaces[name, 2]["flat"]["estimate"]
        assert flat < spaces[name, 2]["negative"]["estimate"]
    shares = {
        name: spaces[name, 2]["flat"]["estimate"]
        / spaces[name, 2]["learnt"]["estimate"]
        for name in ("binary", "exceptions")
    }
    assert round(shares["binary"]) == 6 and round(shares["exceptions"]) == 3

    controls = trees["conclusions"]["controls"]
    drawn = [c for c in controls if c["space"] != "cycle"]
    assert all(c["recovered"] == c["runs"] for c in controls)
    caught = sorted(spaces["binary", 2]["cold"]["values"])
    others = [
        abs(arms["cold"]["estimate"] - arms["learnt"]["estimate"])
        for (name, dimension), arms in spaces.items()
        if dimension == 2 and name not in ("cycle", "binary")
    ]
    others += [
        abs(cold - spaces["binary", 2]["learnt"]["estimate"])
        for cold in caught[:-1]
    ]
    check_phrases(
        "12",
        f"all {sum(c['recovered'] for c in drawn)} sets of drawn points",
        f"(2π/24)² = {curvatures['cycle']:.4f}.",
        f"(distortion {spaces['cycle', 2]['cold']['estimate']:.3f})",
        f"runs of the binary tree ({caught[-1]:.3f})",
        f"the other rows change by {max(others):.2f} at most",
    )


def test_gates_of_a_chosen_curvature_in_a_network():
    task = measured("trees")["task"]
    arms = task["arms"]
    differences = {
        entry["first"]: entry
        for entry in task["differences"]
        if entry["measure"] == "accuracy"
    }
    for name, arm in arms.items():
        cells = [
            arm["title"],
            f"{spread(arm['accuracy'], 1, 100.0)} %",
            "",
            spread(arm["steps_off"], 2),
            "",
        ]
        if name in differences:
            entry = differences[name]
            bounds = ("estimate", "low", "high")
            points = {key: 100.0 * entry[key] for key in bounds}
            cells[2] = signed(points, 1) if any(points.values()) else "0"
        if arm["curvature"] is not None:
            values = arm["curvature"]["values"]
            low, high = f"{min(values):.2f}", f"{max(values):.2f}"
            cells[4] = f"{low} to {high}" if low != high else f"{values[0]:g}"
        row = f"| {' | '.join(cells)} |".replace("|  |", "| |")
        assert row.replace("-", "−") in prose("12")
    shown = {name: e["adjusted_p"] < 0.05 for name, e in differences.items()}
    assert shown == {
        "none": True,
        "flat": False,
        "stereographic": False,
        "negative": True,
        "gnomonic": True,
    }
    learnt = arms["stereographic"]["curvature"]["values"]
    assert min(learnt) > 0.0
    less = {
        name: f"{-100.0 * entry['estimate']:.1f}"
        for name, entry in differences.items()
    }
    check_phrases(
        "12",
        f"to {max(learnt):.2f} at most, and never below 0",
        f"{less['negative']} points at κ = −1",
        f"though it may learn its κ: {less['gnomonic']} points",
        f"accuracy is {less['none']} points lower",
    )
