"""Tables and picture of the feed-forward experiment."""

from keras_gating.experiments.figures import COLOURS
from keras_gating.experiments.figures import error_bars
from keras_gating.experiments.figures import figure
from keras_gating.experiments.next_character_report import draw_losses
from keras_gating.experiments.next_character_report import print_losses


def print_feedforward(console, results):
    """Prints losses, paired differences and the published ones."""
    titles = ("65k steps", "524k steps")
    print_losses(
        console,
        results,
        "feed-forward",
        title=", and log-perplexities of Shazeer 2020",
        of_arms=(titles, lambda arm: _published(arm, "{:.3f}")),
        of_pairs=(titles, lambda entry: _published(entry, "{:+.3f}")),
    )
    console.print(
        "The published figures are of T5-base on C4 and not ours; intervals "
        "are of one comparison each."
    )


def _published(entry, form):
    return [form.format(loss) for loss in entry["published"]]


def losses(results):
    """Loss of each seed and arm, and published differences beside ours."""
    arms = list(results.measurements["arms"].values())
    made = figure(11.0, 4.4)
    left, right = made.subplots(1, 2, width_ratios=(3, 2))
    kinds = [
        (
            label,
            colour,
            [i for i, arm in enumerate(arms) if arm["gated"] == gated],
        )
        for label, colour, gated in (
            ("not gated", COLOURS[4], False),
            ("gated", COLOURS[0], True),
        )
    ]
    draw_losses(left, arms, kinds, capsize=5)
    left.set_xticks(
        range(len(arms)), [arm["title"] for arm in arms], rotation=30
    )
    left.grid(axis="y", alpha=0.3)
    _draw_published(right, results)
    return made


def _draw_published(axis, results):
    arms = results.measurements["arms"]
    entries = [
        entry
        for entry in results.measurements["differences"]
        if entry["second"] == "relu"
    ]
    axis.set_title("differences from ReLU", fontsize=10)
    axis.margins(x=0.15)
    axis.axhline(0.0, color="0.6", linewidth=1)
    axis.axvline(0.0, color="0.6", linewidth=1)
    axis.set_xlabel("published, T5-base on C4, 524k steps")
    axis.set_ylabel("here, nats a character")
    axis.grid(alpha=0.3)
    if not entries:
        return
    means, spread = error_bars(entries)
    published = [entry["published"][-1] for entry in entries]
    axis.errorbar(
        published, means, spread, fmt="o", color=COLOURS[0], capsize=3
    )
    for entry, x, y in zip(entries, published, means):
        axis.annotate(
            arms[entry["first"]]["title"],
            (x, y),
            xytext=(5, 4),
            textcoords="offset points",
            fontsize=9,
        )


PLOTS = {"feedforward": losses}
