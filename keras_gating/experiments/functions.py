"""How each gate function bends space.

Random gates multiply random values, the same ones for every function φ of the
gate: `y = v ⊙ φ(G x + g)`. The experiment measures how much curvature that
makes, ∫|K| dA over a patch of the plane, and how much of it is positive.
"""

import numpy as np

from keras_gating import geometry
from keras_gating.experiments import comparison
from keras_gating.experiments.corrections import holm
from keras_gating.experiments.corrections import paired_p_value
from keras_gating.experiments.functions_model import FUNCTIONS
from keras_gating.experiments.functions_model import SETTINGS
from keras_gating.experiments.functions_model import GatedMap
from keras_gating.experiments.precision import float_type
from keras_gating.experiments.results import Results
from keras_gating.experiments.results import stopwatch
from keras_gating.experiments.selection import entries_by_name
from keras_gating.experiments.selection import known_names
from keras_gating.experiments.training import Progress
from keras_gating.functional import checks

BOUNDS = ((-2.0, 2.0), (-2.0, 2.0))
# ∫|K| dA below this is rounding.
FLAT_BELOW = {"float64": 1e-10, "float32": 1e-2}
REFERENCE = "sigmoid"
# Of Holm's p.
LEVEL = 0.05


def run(
    seeds=100,
    quick=False,
    functions=None,
    settings=None,
    resolution=None,
    on_progress=None,
):
    """Measures the curvature that every gate function makes.

    Args:
        seeds: number of seeds; they are 0, 1, …
        quick: 3 seeds at most and a coarse grid, to try the program out.
        functions: names of gate functions, all of
            `functions_model.FUNCTIONS` by default.
        settings: names of settings, all of `functions_model.SETTINGS` by
            default.
        resolution: number of Gauss–Legendre nodes along each axis of the
            patch. Defaults to 64, and to 16 with `quick`.
        on_progress: function `(description, share done)`, called often.

    Returns:
        `Results`. `measurements["settings"]` has, for each setting and
        function, ∫|K| dA and the share of positive curvature.
    """
    seeds = checks.positive_integer("seeds", seeds)
    resolution = checks.positive_integer(
        "resolution", resolution, optional=True
    )
    elapsed = stopwatch()
    functions = known_names(FUNCTIONS, functions, "functions", "functions")
    settings = entries_by_name(SETTINGS, settings, "functions", "settings")
    seeds = list(range(min(seeds, 3) if quick else seeds))
    if resolution is None:
        resolution = 16 if quick else 64
    dtype = float_type()
    progress = Progress(
        len(settings) * len(functions) * len(seeds), on_progress
    )
    measured = {}
    for setting in settings:
        entries = {}
        for name in functions:
            progress.describe(f"{setting.title}, {name}")
            gated = GatedMap(setting, FUNCTIONS[name], dtype=dtype)
            gated.build()
            entries[name] = _measure(gated, seeds, resolution, dtype, progress)
        compare(entries, FLAT_BELOW[dtype])
        measured[setting.name] = {
            "title": setting.title,
            "functions": entries,
        }
    return Results(
        experiment="functions",
        seeds=seeds,
        settings={
            "quick": quick,
            "dtype": dtype,
            "bounds": [list(pair) for pair in BOUNDS],
            "resolution": resolution,
            "flat_below": FLAT_BELOW[dtype],
        },
        measurements={
            "settings": measured,
            "conclusions": conclude(measured),
        },
        elapsed_seconds=elapsed(),
    )


def _measure(gated, seeds, resolution, dtype, progress):
    absolute, signed, dropped = [], [], []
    for seed in seeds:
        gated.draw(seed)
        total, net = (
            geometry.total_curvature(
                gated, BOUNDS, resolution, absolute=kind, dtype=dtype
            )
            for kind in (True, False)
        )
        absolute.append(total.value)
        signed.append(net.value)
        dropped.append(total.dropped)
        progress.advance(1)
    return summarise(absolute, signed, dropped)


def summarise(absolute, signed, dropped):
    """Quartiles of one function.

    Args:
        absolute: ∫|K| dA of each seed.
        signed: ∫K dA.
        dropped: share of nodes left out.

    Returns:
        A dictionary of plain numbers and lists. The share of a seed where
        K > 0 is `(∫|K| + ∫K) / 2∫|K|`.
    """
    absolute, signed = np.array(absolute), np.array(signed)
    with np.errstate(invalid="ignore"):
        positive = (absolute + signed) / (2.0 * absolute)
    known = np.isfinite(absolute)
    low, median, high = np.quantile(absolute[known], (0.25, 0.5, 0.75))
    return {
        "values": _numbers(absolute),
        "median": float(median),
        "lower_quartile": float(low),
        "upper_quartile": float(high),
        "positive_shares": _numbers(positive),
        "dropped": float(np.mean(dropped)),
    }


def compare(entries, flat_below):
    """Adds what is flat, positive shares, and differences from the sigmoid.

    The positive share is that of the curvature of all seeds together: seeds
    are often all positive or all negative. Differences are of log10. Where all
    is flat, neither means anything. Holm's correction is for the functions of
    one setting.

    Args:
        entries: what `summarise` returned, by function.
        flat_below: ∫|K| dA below this is rounding.
    """
    for entry in entries.values():
        pairs = [
            (total, share)
            for total, share in zip(entry["values"], entry["positive_shares"])
            if total is not None and share is not None
        ]
        total = sum(total for total, _ in pairs)
        entry["flat"] = all(total < flat_below for total, _ in pairs)
        entry["positive_share"] = (
            None
            if entry["flat"]
            else sum(total * share for total, share in pairs) / total
        )
    reference = entries.get(REFERENCE)
    if reference is None or reference["flat"]:
        return
    others = {}
    for name, entry in entries.items():
        pairs = [
            (a, b)
            for a, b in zip(entry["values"], reference["values"])
            if a is not None and b is not None
        ]
        if name == REFERENCE or entry["flat"] or not pairs:
            continue
        first, second = np.log10(np.maximum(np.array(pairs).T, flat_below))
        others[name] = paired_p_value(first, second)
        entry["difference"] = comparison.difference(first, second)
    for name, p in zip(others, holm(list(others.values()))):
        entries[name]["difference"]["adjusted_p"] = p


def conclude(measured):
    """Which functions bend more or less than the sigmoid, by setting.

    Args:
        measured: entries of settings by name.

    Returns:
        By setting, names of functions: `"more"`, `"less"`, `"no difference
        shown"` and `"flat"`.
    """
    conclusions = {}
    for name, setting in measured.items():
        groups = {"more": [], "less": [], "no difference shown": [], "flat": []}
        for function, entry in setting["functions"].items():
            difference = entry.get("difference")
            if entry["flat"]:
                groups["flat"].append(function)
            elif difference is not None:
                p = difference["adjusted_p"]
                kind = "no difference shown"
                if p is not None and p < LEVEL:
                    kind = "more" if difference["estimate"] > 0.0 else "less"
                groups[kind].append(function)
        conclusions[name] = groups
    return conclusions


def _numbers(values):
    """Plain numbers; `None` for what is not finite."""
    return [float(v) if np.isfinite(v) else None for v in values]
