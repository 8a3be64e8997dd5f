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


def spread(entry, digits, factor=1.0):
    """Mean and half of its 95 % interval."""
    half = factor * (entry["high"] - entry["low"]) / 2.0
    return f"{factor * entry['estimate']:.{digits}f} ± {half:.{digits}f}"


def difference(entry, digits):
    """A signed difference and its 95 % interval, with minus signs."""
    estimate, low, high = (
        f"{entry[key]:+.{digits}f}".replace("-", "−")
        for key in ("estimate", "low", "high")
    )
    return f"{estimate} [{low}, {high}]"


def pair(differences, first, second):
    """The difference of two arms."""
    (found,) = [
        entry
        for entry in differences
        if (entry["first"], entry["second"]) == (first, second)
    ]
    return found


def code(number):
    (script,) = [s for s in scripts() if s.stem.startswith(number)]
    cells = converted(script).cells
    return "\n".join(c.source for c in cells if c.cell_type == "code")


def test_glu_family():
    text = prose("06").replace("**", "")
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
        assert f"| {title} | {' | '.join(cells)} |" in text
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
    text = prose("08").replace("**", "")
    results = measured("gau")
    losses = {name: arm["loss"] for name, arm in results["arms"].items()}
    rows = {
        "softmax": "unit, softmax",
        "chunked": "unit, chunks of 16",
        "no_gate": "without the gate: U = 1",
        "identity": "without attention: A = identity",
    }
    for name, title in rows.items():
        minus = difference(pair(results["differences"], name, "unit"), 3)
        assert f"| {title} | {spread(losses[name], 3)} | {minus} |" in text
    unit = pair(results["differences"], "unit", "attention")
    ends = {"estimate": "estimate", "low": "high", "high": "low"}
    minus = difference({key: -unit[end] for key, end in ends.items()}, 3)
    baseline = spread(losses["attention"], 3)
    assert f"| attention, feed-forward | {baseline} | {minus} |" in text
    whole = spread(losses["unit"], 3)
    assert f"| unit, squared ReLU | {whole} | |" in text
    usual, baseline = (
        f"{losses[name]['estimate']:.3f}"
        for name in ("unit_usual", "attention_usual")
    )
    assert f"the unit reaches {usual} and the baseline {baseline}" in text
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
        assert f"| {length:,} | {' | '.join(cells)} |" in text


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
        assert f"| {title} | {' | '.join(cells)} |" in text
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
        row = " | ".join(cells).replace("-0.00", "0.00")
        assert f"| {title} | {row} | {ratio} |" in text
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
        assert f"| {title} | {loss} | {accuracy} % |" in text


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
        minus = difference(pair(results["differences"], name, "ungated"), 4)
        assert f"| {title} | {distance} | {minus} |" in text
    minus = difference(pair(results["differences"], "control", "ungated"), 4)
    assert f"| no gate, 10 × the rate elsewhere | | {minus} |" in text


def test_which_gate_bends_space_how():
    text = prose("11")
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
        assert f"| {name} | {' | '.join(cells)} |" in text
