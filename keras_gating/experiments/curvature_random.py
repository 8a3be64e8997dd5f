"""Curvature of random maps: attention and its hull, activations, depth."""

import numpy as np
from keras import ops

from keras_gating import geometry
from keras_gating.experiments.curvature_maps import ACTIVATIONS
from keras_gating.experiments.curvature_maps import HEADS
from keras_gating.experiments.curvature_maps import AttentionStack
from keras_gating.experiments.curvature_maps import Perceptron
from keras_gating.experiments.curvature_maps import RandomHead
from keras_gating.experiments.curvature_maps import SoftplusPerceptron
from keras_gating.experiments.curvature_statistics import bootstrap
from keras_gating.experiments.curvature_tasks import HALF_WIDTH
from keras_gating.experiments.precision import float_type
from keras_gating.geometry.evaluation import as_numpy

BOUNDS = ((-HALF_WIDTH, HALF_WIDTH),) * 2
# ∫|K| dA below this is rounding.
FLAT_BELOW = {"float64": 1e-12, "float32": 1e-2}
HULL_POINTS = 400
# Singular values of outputs below this share of the largest are rounding.
RANK_ABOVE = {"float64": 1e-10, "float32": 1e-4}
SHARPNESS = (1.0, 2.0, 5.0, 10.0, 20.0, 40.0)
SHARP_LAYERS = 2
ATTENTION_STACKS = {
    "ungated_3": ("no gate, 3 tokens", 3, False),
    "ungated_8": ("no gate, 8 tokens", 8, False),
    "gated_3": ("gate, 3 tokens", 3, True),
    "gated_8": ("gate, 8 tokens", 8, True),
}


def heads(seeds, resolution, progress):
    """Ranks, distances from the hull and ∫|K| dA of random attention."""
    dtype = float_type()
    measured = {}
    for head in HEADS:
        progress.describe(f"random attention: {head.title}")
        layer = RandomHead(head, dtype=dtype)
        layer.build()
        totals, ranks, distances = [], [], []
        for seed in seeds:
            layer.draw(seed)
            totals.append(total(layer, resolution))
            rank, distance = hull_of(layer, seed, dtype)
            ranks.append(rank)
            distances.append(distance)
            progress.advance(1)
        entry = summarise(totals)
        measured[head.name] = {
            "title": head.title,
            "gate": head.gate,
            "hull": head.hull,
            "must_be_flat": head.must_be_flat,
            "ranks": sorted(set(ranks)),
            "largest_distance_from_hull": max(distances),
            **entry,
            "flat": is_flat(entry),
        }
    return measured


def hull_of(layer, seed, dtype):
    """Rank of the outputs, and their greatest distance from the hull.

    The distance is relative to the largest distance from the hull's origin.
    """
    rng = np.random.default_rng([seed, 1])
    x = rng.uniform(-HALF_WIDTH, HALF_WIDTH, size=(HULL_POINTS, 2))
    outputs = as_numpy(layer(ops.convert_to_tensor(x, dtype=dtype)))
    sizes = np.linalg.svd(outputs - outputs.mean(axis=0), compute_uv=False)
    origin, basis = layer.hull()
    apart = outputs - origin
    outside = apart - apart @ basis @ basis.T
    size = np.linalg.norm(apart, axis=1).max()
    return (
        int(np.sum(sizes > RANK_ABOVE[dtype] * sizes[0])),
        float(np.linalg.norm(outside, axis=1).max() / size),
    )


def activations(seeds, resolution, depths, progress):
    """∫|K| dA of random dense layers, by activation and depth."""
    measured = {}
    for name in ACTIVATIONS:
        network = Perceptron(name, max(depths), dtype=float_type())
        network.build()
        progress.describe(f"random dense layers: {name}")
        by_depth = {str(depth): [] for depth in depths}
        for seed in seeds:
            network.draw(seed)
            for depth in depths:
                network.switch(depth)
                by_depth[str(depth)].append(total(network, resolution))
                progress.advance(1)
        entries = {k: summarise(v) for k, v in by_depth.items()}
        measured[name] = {
            "depths": entries,
            "flat": all(is_flat(entry) for entry in entries.values()),
        }
    return measured


def sharpness(seeds, resolution, progress):
    """∫K dA and ∫|K| dA of softplus_β, whose limit is ReLU.

    Curvature gathers on ever thinner lines, so ∫K dA is also taken on three
    quarters of the nodes along each axis: what changes is an error of the
    grid, and that of all nodes is smaller.
    """
    progress.describe("softplus on its way to ReLU")
    network = SoftplusPerceptron(SHARP_LAYERS, dtype=float_type())
    network.build()
    network.switch(SHARP_LAYERS)
    measured = {}
    for beta in SHARPNESS:
        signed, absolute, coarse = [], [], []
        for seed in seeds:
            network.draw(seed)
            network.sharpness.assign(beta)
            signed.append(total(network, resolution, False))
            absolute.append(total(network, resolution))
            coarse.append(total(network, 3 * resolution // 4, False))
            progress.advance(1)
        changes = [abs(a.value - b.value) for a, b in zip(signed, coarse)]
        measured[f"{beta:g}"] = {
            "signed": summarise(signed),
            "absolute": summarise(absolute),
            "grid_error": float(np.nanmedian(changes)),
        }
    return measured


def stacks(seeds, resolution, depths, progress):
    """∫|K| dA of stacked attention by depth, with and without residuals."""
    measured = {}
    for name, (title, tokens, gated) in ATTENTION_STACKS.items():
        stack = AttentionStack(tokens, gated, max(depths), dtype=float_type())
        stack.build()
        for residual in (False, True):
            full = f"{title}, residual" if residual else title
            progress.describe(f"stacked attention: {full}")
            totals = np.empty((len(seeds), len(depths), 2))
            for i, seed in enumerate(seeds):
                stack.draw(seed)
                for j, depth in enumerate(depths):
                    stack.switch(depth, residual)
                    totals[i, j] = total(stack, resolution)
                    progress.advance(1)
            entries = [summarise(totals[:, j]) for j in range(len(depths))]
            measured[f"{name}_residual" if residual else name] = {
                "title": full,
                "residual": residual,
                "depths": dict(zip(map(str, depths), entries)),
                "flat": all(is_flat(entry) for entry in entries),
                "growth": growth(totals[..., 0]),
            }
    return measured


def growth(totals):
    """Ratio of the medians at the greatest and the least depth.

    Args:
        totals: `(seeds, depths)`.

    Returns:
        The ratio, its interval from a bootstrap over seeds, which keeps pairs
        of depths together, and a verdict; `None` where there is nothing to
        divide by.
    """
    totals = totals[np.isfinite(totals).all(axis=1)]
    floor = FLAT_BELOW[float_type()]
    if len(totals) < 2 or np.median(totals[:, 0]) < floor:
        return None

    def ratio(chosen):
        return np.median(chosen[..., -1], axis=-1) / np.median(
            chosen[..., 0], axis=-1
        )

    estimate = float(ratio(totals))
    low, high = bootstrap(lambda index: ratio(totals[index]), len(totals))
    verdict = "no change shown"
    if low > 1.0 or high < 1.0:
        verdict = "grows" if low > 1.0 else "shrinks"
    return {"estimate": estimate, "low": low, "high": high, "verdict": verdict}


def summarise(totals):
    """Quartiles of pairs `(value, dropped)`, one for each seed."""
    totals = np.asarray(totals, "float64").reshape(-1, 2)
    values, dropped = totals.T
    known = values[np.isfinite(values)]
    entry = {
        "values": [float(v) if np.isfinite(v) else None for v in values],
        "median": None,
        "lower_quartile": None,
        "upper_quartile": None,
        "dropped": float(dropped.mean()),
    }
    if known.size:
        low, median, high = np.quantile(known, (0.25, 0.5, 0.75))
        entry |= {
            "median": float(median),
            "lower_quartile": float(low),
            "upper_quartile": float(high),
        }
    return entry


def is_flat(entry):
    """Whether all seeds have no curvature but for rounding.

    `None` where the image has lost a dimension for every seed.
    """
    known = [abs(v) for v in entry["values"] if v is not None]
    return max(known) < FLAT_BELOW[float_type()] if known else None


def total(f, resolution, absolute=True):
    """∫|K| dA or ∫K dA over the patch, and the share of nodes left out."""
    return geometry.total_curvature(
        f, BOUNDS, resolution, absolute=absolute, dtype=float_type()
    )
