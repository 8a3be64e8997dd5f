"""Tables, conclusions and pictures of the experiment on attention sinks."""

import numpy as np

from keras_gating.experiments.figures import COLOURS
from keras_gating.experiments.figures import error_bars
from keras_gating.experiments.figures import figure
from keras_gating.experiments.tables import bounds_text
from keras_gating.experiments.tables import estimate_text
from keras_gating.experiments.tables import print_differences
from keras_gating.experiments.tables import table


def print_sinks(console, results):
    """Prints shares, gates and losses, and the published figures."""
    measured = results.measurements
    settings = results.settings
    uniform = measured["uniform"]
    shown = table(
        f"The first token's share of the attention, {len(results.seeds)} seeds",
        "gate",
        "rows 2 on",
        "second half",
        "top head",
        "sink heads",
    )
    for arm in measured["arms"].values():
        shown.add_row(
            arm["title"],
            estimate_text(arm["share"], "{:.3f}"),
            estimate_text(arm["late_share"], "{:.3f}"),
            estimate_text(arm["highest_head"], "{:.3f}"),
            f"{arm['sink_heads']['estimate']:.1%}",
        )
    shown.add_row(
        "equal weights",
        f"{uniform['share']:.3f}",
        f"{uniform['late_share']:.3f}",
        f"{uniform['late_share']:.3f}",
        "0.0%",
    )
    console.print(shown)
    console.print(
        "The first row sees only the first token and is left out; early rows "
        "see few others, so equal weights have a share too. Top head and sink "
        f"heads, those with more than {settings['sink_share']}, are of the "
        "second half of the rows."
    )
    shown = table(
        "Gates, largest activation, and loss in nats",
        "gate",
        "mean gate",
        "largest",
        "loss",
        "parameters",
    )
    for arm in measured["arms"].values():
        shown.add_row(
            arm["title"],
            "–"
            if arm["gate"] is None
            else estimate_text(arm["gate"], "{:.3f}"),
            estimate_text(arm["largest"], "{:.1f}"),
            estimate_text(arm["loss"], "{:.4f}"),
            f"{arm['parameters']:,}",
        )
    console.print(shown)
    print_differences(
        console, "Paired differences of the loss", results, "{:+.4f}"
    )
    _print_published(console, results)
    for conclusion in conclusions(results):
        console.print(f"• {conclusion}", highlight=False)


def _print_published(console, results):
    shown = table(
        "Published (Qiu et al. 2025, 15B parameters) beside ours",
        "gate",
        "share",
        "here",
        "mean gate",
        "here",
        "largest",
        "here",
    )
    for arm in results.measurements["arms"].values():
        theirs = arm["published"]
        if theirs is None:
            continue
        has_gate = theirs["gate"] is not None
        shown.add_row(
            arm["title"],
            f"{theirs['share']:.3f}",
            f"{arm['share']['estimate']:.3f}",
            f"{theirs['gate']:.3f}" if has_gate else "–",
            f"{arm['gate']['estimate']:.3f}" if has_gate else "–",
            f"{theirs['largest']:,}",
            f"{arm['largest']['estimate']:.1f}",
        )
    console.print(shown)


def conclusions(results):
    """What the measurements say, in sentences."""
    measured = results.measurements
    arms = measured["arms"]
    uniform = measured["uniform"]["late_share"]
    threshold = results.settings["sink_share"]
    if "none" in arms:
        plain = arms["none"]
        share = plain["late_share"]["estimate"]
        heads = plain["sink_heads"]["estimate"]
        text = (
            f"Without a gate the first token gets {share:.1%} of the attention "
            f"in the second half of the rows, and equal weights would give it "
            f"{uniform:.1%}"
        )
        if heads == 0.0:
            yield (
                f"{text}. No head of any seed gives it more than "
                f"{threshold:.0%}: there is no sink here that a gate could "
                "remove."
            )
        else:
            yield f"{text}; {heads:.1%} of the heads are sinks."
    losses = {(e["first"], e["second"]): e for e in measured["differences"]}
    for entry in measured["share_differences"]:
        pair = entry["first"], entry["second"]
        loss = losses[pair]
        yield (
            f"“{arms[pair[0]]['title']}” against “{arms[pair[1]]['title']}”: "
            f"share {_outcome(entry, '{:+.3f}')}; loss "
            f"{_outcome(loss, '{:+.3f}')}."
        )


def _outcome(entry, form):
    text = f"{form.format(entry['estimate'])} {bounds_text(entry, form)}"
    if entry["verdict"] in ("higher", "lower"):
        return f"{entry['verdict']}, {text}"
    return f"not shown to differ, {text}"


def shares(results):
    """The first token's share by arm, and by layer and head."""
    measured = results.measurements
    arms = list(measured["arms"].values())
    uniform = measured["uniform"]["late_share"]
    places = np.arange(len(arms))
    made = figure(11.0, 4.4)
    left, middle, right = made.subplots(1, 3)
    for place, arm in zip(places, arms):
        by_head = np.array(arm["late_share_by_head"])
        for layer, heads in enumerate(by_head):
            left.plot(
                [place + 0.16 * (layer - (len(by_head) - 1) / 2)] * len(heads),
                heads,
                "o",
                color=COLOURS[layer],
                markersize=4,
                label=f"heads of layer {layer + 1}" if place == 0 else None,
            )
    means, spread = error_bars([arm["late_share"] for arm in arms])
    left.errorbar(
        places + 0.32,
        means,
        spread,
        fmt="D",
        color="black",
        markersize=4,
        capsize=3,
        label="mean, 95 % interval",
    )
    left.axhline(uniform, color="0.5", linestyle=":", label="equal weights")
    length = results.settings["length"]
    left.set_ylabel(f"first token's share, rows {length // 2 + 1} to {length}")
    # Room for the legend.
    left.set_ylim(0.0, 1.5 * left.get_ylim()[1])
    left.set_title("dots: heads, means over seeds", fontsize=10)
    left.legend(fontsize=8, loc="upper left")
    gated = [i for i, arm in enumerate(arms) if arm["gate"] is not None]
    means, spread = error_bars([arms[i]["gate"] for i in gated])
    middle.errorbar(
        places[gated], means, spread, fmt="D", color=COLOURS[0], capsize=3
    )
    middle.set_ylabel("mean gate")
    middle.set_ylim(0.0, 1.0)
    values = np.array([arm["loss"]["values"] for arm in arms])
    right.plot(places, values, "o-", color="0.75", markersize=3, linewidth=1)
    means, spread = error_bars([arm["loss"] for arm in arms])
    right.errorbar(places, means, spread, fmt="D", color=COLOURS[0], capsize=3)
    right.set_ylabel("loss, nats a character")
    right.set_title("grey: one seed each", fontsize=10)
    for axis in (left, middle, right):
        axis.set_xticks(
            places,
            [arm["title"] for arm in arms],
            rotation=25,
            ha="right",
            rotation_mode="anchor",
        )
        axis.set_xlim(-0.5, len(arms) - 0.5)
        axis.grid(axis="y", alpha=0.3)
    return made


PLOTS = {"sinks": shares}
