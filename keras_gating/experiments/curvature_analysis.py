"""What the curvature experiment allows to conclude, from its data alone."""

import numpy as np

from keras_gating.experiments import comparison
from keras_gating.experiments.corrections import holm
from keras_gating.experiments.corrections import paired_p_value
from keras_gating.experiments.curvature_random import is_flat
from keras_gating.experiments.curvature_statistics import FLOOR
from keras_gating.experiments.curvature_statistics import correlations
from keras_gating.experiments.curvature_statistics import supported

REFERENCE = "ungated"
GATES = ("headwise", "elementwise")
LEVEL = 0.05
_WORDS = {"headwise": "a headwise", "elementwise": "an elementwise"}
# Two arms alone, to see what the variety of arms does to a correlation.
PAIR = ("ungated", "elementwise")


def analyse(arms, tasks):
    """Correlations and paired differences, for each number of tokens.

    Args:
        arms: entries of arms, by key.
        tasks: what is known of tasks, by name.

    Returns:
        By number of tokens: correlations of all arms, of each, of two, on
        straight and on curved tasks; differences from the arm without a gate.
    """
    numbers = sorted({a["group"] for a in arms.values() if a["group"]})
    analysed = {}
    for number in numbers:
        group = {a["name"]: a for a in arms.values() if a["group"] == number}
        totals, accuracies = _tables(group, tasks)
        names = list(group)
        straight = np.array([t["straight"] for t in tasks.values()])

        def chosen(keep, on=slice(None), data=(totals, accuracies)):
            return correlations(*(table[keep][:, on] for table in data))

        scopes = {"all": chosen(slice(None))}
        if set(PAIR) <= set(names):
            scopes["pair"] = chosen([names.index(name) for name in PAIR])
        for key, on in (("straight", straight), ("curved", ~straight)):
            if on.any():
                scopes[key] = chosen(slice(None), on)
        analysed[str(number)] = {
            "correlations": scopes,
            "arms": {
                name: chosen([i])["within_arm_and_task"]
                for i, name in enumerate(names)
            },
            "differences": differences(group, tasks),
        }
    return analysed


def differences(group, tasks):
    """Of accuracy and log10 ∫|K| dA from the arm without a gate.

    Pairs share their seed. Holm's correction is for all arms and tasks of a
    group, once for each of both.

    Args:
        group: entries of arms with one number of tokens, by name.
        tasks: what is known of tasks, by name.
    """
    if REFERENCE not in group:
        return {}
    found, p_values = {}, {"accuracy": [], "log10_curvature": []}
    for name, arm in group.items():
        if name == REFERENCE:
            continue
        found[name] = {}
        for task in tasks:
            own, other = (
                _observations(a["tasks"][task]) for a in (arm, group[REFERENCE])
            )
            known = np.isfinite(own[1]) & np.isfinite(other[1])
            entry = found[name][task] = {}
            for kind, first, second in (
                ("accuracy", own[0], other[0]),
                ("log10_curvature", own[1][known], other[1][known]),
            ):
                entry[kind] = None
                if first.size:
                    entry[kind] = comparison.difference(first, second)
                p = paired_p_value(first, second) if first.size else None
                p_values[kind].append((entry[kind], p))
    for pairs in p_values.values():
        adjusted = holm([p for _, p in pairs])
        for (entry, _), p in zip(pairs, adjusted):
            if entry is not None:
                entry["adjusted_p"] = p
    return found


def conclude(measurements):
    """Each claim, whether the run supports it, and why.

    Args:
        measurements: those of the run, by part.

    Returns:
        A list of dictionaries with `claim`, `supported` and `because`. What
        the run has no data on is not in it.
    """
    found = []
    if "heads" in measurements:
        found += _on_heads(measurements["heads"])
    if "activations" in measurements:
        found += _on_activations(measurements["activations"])
    if "sharpness" in measurements:
        found += _on_sharpness(measurements["sharpness"])
    if "stacks" in measurements:
        found += _on_stacks(measurements["stacks"])
    if "training" in measurements:
        found += _on_training(measurements["training"])
    return [
        {"claim": claim, "supported": bool(holds), "because": because}
        for claim, holds, because in found
    ]


def _on_heads(heads):
    farthest = max(
        h["largest_distance_from_hull"]
        for h in heads.values()
        if h["gate"] in (None, "constant")
    )
    known = [h for h in heads.values() if h["flat"] is not None]
    wrong = [h["title"] for h in known if h["flat"] != h["must_be_flat"]]
    yield (
        "outputs of attention without a gate, or with a constant one, stay in "
        "the hull of its values",
        farthest < 1e-5,
        f"largest relative distance {farthest:.0e}",
    )
    yield (
        "random attention is flat where its hull is a plane and curved "
        "elsewhere",
        not wrong,
        f"{len(known) - len(wrong)} of {len(known)} kinds as expected"
        + (f"; not: {', '.join(wrong)}" if wrong else ""),
    )


def _on_activations(entries):
    flat = [name for name, entry in entries.items() if entry["flat"]]
    yield (
        "deep linear networks are flat, activations bend, ReLU shows 0 "
        "almost everywhere",
        sorted(flat) == ["ReLU", "identity"],
        f"flat at every depth: {', '.join(flat) or 'none'}",
    )


def _on_sharpness(entries):
    signed, absolute = (
        np.array([e[kind]["values"] for e in entries.values()], "float64")
        for kind in ("signed", "absolute")
    )
    medians = np.nanmedian(absolute, axis=1)
    change, growth = (
        float(np.nanmedian(np.abs(totals[-1] - totals[-2])))
        for totals in (signed, absolute)
    )
    before, last = list(entries)[-2:]
    yield (
        "as softplus goes to ReLU, ∫|K| dA grows and ∫K dA settles",
        np.all(np.diff(medians) > 0.0) and change < growth / 2.0,
        f"from β = {before} to {last} a typical seed changes by {change:.2f} "
        f"in ∫K dA and by {growth:.2f} in ∫|K| dA",
    )


def _on_stacks(stacks):
    for residual in (False, True):
        grown = {
            s["title"]: s["growth"]["verdict"]
            for s in stacks.values()
            if s["residual"] == residual and s["growth"]
        }
        yield (
            "curvature of random attention grows with depth, "
            + ("with" if residual else "without")
            + " residuals",
            bool(grown) and set(grown.values()) == {"grows"},
            "; ".join(f"{title}: {text}" for title, text in grown.items()),
        )


def _on_training(training):
    arms = training["arms"].values()
    flat = [a for a in arms if a["must_be_flat"]]
    if flat:
        largest = max(
            v
            for a in flat
            for t in a["tasks"].values()
            for v in t["curvature"]["values"]
            if v is not None
        )
        bent = [
            a["title"]
            for a in flat
            if not all(is_flat(t["curvature"]) for t in a["tasks"].values())
        ]
        yield (
            "trained arms that cannot be curved are flat",
            not bent,
            f"largest ∫|K| dA {largest:.0e}",
        )
    for number, group in training["groups"].items():
        yield from _on_group(number, group, training["tasks"])
    within = {
        number: group["correlations"]["all"]["within_arm_and_task"]["pearson"]
        for number, group in training["groups"].items()
    }
    yield (
        "more curvature goes with more accuracy, within arm and task, for "
        "every number of tokens",
        bool(within) and all(supported(entry) for entry in within.values()),
        "; ".join(
            f"{number} tokens: {interval_text(entry)}"
            for number, entry in within.items()
        ),
    )


def _on_group(number, group, tasks):
    found = group["differences"]
    for gate in GATES:
        if gate not in found:
            continue
        kinds = {"higher": [], "lower": [], "same": []}
        raised = []
        for task, entry in found[gate].items():
            kinds[outcome(entry["accuracy"])].append(task)
            if outcome(entry["log10_curvature"]) == "higher":
                raised.append(task)
        yield (
            f"{number} tokens: {_WORDS[gate]} gate raises ∫|K| dA",
            len(raised) == len(tasks),
            f"on {len(raised)} of {len(tasks)} tasks",
        )
        curved = {t for t, known in tasks.items() if not known["straight"]}
        titles = [tasks[t]["title"] for t in kinds["higher"]]
        yield (
            f"{number} tokens: {_WORDS[gate]} gate is more accurate on curved "
            "boundaries and not on straight ones",
            set(kinds["higher"]) == curved,
            f"more accurate on: {', '.join(titles) or 'none'}",
        )
    if "wide" in found:
        other = [
            tasks[t]["title"]
            for t, entry in found["wide"].items()
            if outcome(entry["accuracy"]) != "same"
        ]
        yield (
            f"{number} tokens: wider values change nothing",
            not other,
            f"accuracy differs on: {', '.join(other) or 'none'}",
        )


def outcome(difference):
    """`"higher"`, `"lower"` or `"same"`, by Holm's corrected p."""
    p = None if difference is None else difference["adjusted_p"]
    if p is None or p >= LEVEL:
        return "same"
    return "higher" if difference["estimate"] > 0.0 else "lower"


def interval_text(entry):
    """An estimate and its interval, or that nothing varies."""
    if entry["estimate"] is None:
        return "nothing varies"
    text = f"{entry['estimate']:+.2f}"
    if entry["low"] is not None:
        text += f" [{entry['low']:+.2f}, {entry['high']:+.2f}]"
    return text


def _tables(group, tasks):
    """∫|K| dA and accuracies, `(arms, tasks, seeds)` each."""
    rows = [[arm["tasks"][task] for task in tasks] for arm in group.values()]
    totals = [
        [np.array(e["curvature"]["values"], "float64") for e in row]
        for row in rows
    ]
    return np.array(totals), np.array(
        [[e["accuracies"] for e in row] for row in rows]
    )


def _observations(entry):
    totals = np.array(entry["curvature"]["values"], "float64")
    return np.array(entry["accuracies"]), np.log10(np.maximum(totals, FLOOR))
