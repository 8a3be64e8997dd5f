"""The maps of the curvature explorer, from the formulas of its page.

The page computes in JavaScript. `tests/data/explorer.json` has what
`keras_gating.geometry` makes of the same maps at some points; a test holds the
file to `geometry`, and a test in `tests/site` the page to the file. To write it
anew:

    KERAS_BACKEND=torch python -m tests.geometry.explorer
"""

import json
import math
from pathlib import Path

import numpy as np
from keras import ops

from keras_gating import geometry
from keras_gating.experiments.functions_model import FUNCTIONS
from tests.geometry.maps import numpy64

FILE = Path(__file__).parents[1] / "data" / "explorer.json"
TOKENS, FEATURES = 16, 8
SIDE = 1.5
RESOLUTION = 12
POINTS = np.array(
    [[0, 0], [1.5, 1.5], [-1.5, 0.5], [0.3, -0.8], [-0.9, -1.2], [1.1, 0.2]]
)
DEFAULTS = {
    "strength": 1.0,
    "function": "sigmoid",
    "granularity": "elementwise",
    "tokens": 3,
    "features": 3,
    "kappa": 1.0,
    "seed": 12,
}
CASES = [
    {},
    {"function": "none"},
    {"function": "none", "tokens": 8, "features": 8},
    {"function": "none", "tokens": 2},
    {"granularity": "headwise", "strength": 0.35, "tokens": 16, "features": 8},
    {"granularity": "constant", "tokens": 4, "seed": 7},
    {"function": "tanh", "tokens": 8},
    {"function": "GELU", "seed": 3},
    {"function": "GELU", "tokens": 8, "features": 8, "seed": 4},
    {"function": "SiLU", "granularity": "headwise"},
    {"function": "softplus", "features": 8},
    {"function": "ReLU", "features": 3},
    {"function": "ReLU", "features": 8, "strength": 0.5, "seed": 5},
    {"function": "exp", "tokens": 5},
    {"function": "identity", "strength": 0.8, "tokens": 2},
    {"function": "κ", "kappa": 2.0},
    {"function": "κ", "kappa": 2.0, "strength": 0.5},
    {"function": "κ", "kappa": 0.0},
    {"function": "κ", "kappa": -1.0},
    {"function": "κ", "kappa": -0.6, "strength": 0.7},
]


def uniform(seed):
    """Numbers in [0, 1) by mulberry32."""
    mask = 0xFFFFFFFF
    state = seed & mask
    while True:
        state = (state + 0x6D2B79F5) & mask
        t = ((state ^ (state >> 15)) * (state | 1)) & mask
        t ^= (t + (((t ^ (t >> 7)) * (t | 61)) & mask)) & mask
        yield (t ^ (t >> 14)) / 2.0**32


def normals(seed, *shape):
    """Standard normal numbers by Box and Muller."""
    numbers = uniform(seed)
    values = [
        math.sqrt(-2.0 * math.log(1.0 - next(numbers)))
        * math.cos(2.0 * math.pi * next(numbers))
        for _ in range(math.prod(shape))
    ]
    return np.reshape(values, shape)


def explorer_map(settings):
    """The map of the page for `settings`, on points in float64."""
    if settings["function"] == "κ":
        return lambda x: constant_curvature(x, settings)
    # Of each token: two of its key, the bias of its score, and its value.
    tokens = normals(2 * settings["seed"], TOKENS, 3 + FEATURES)
    gates = normals(2 * settings["seed"] + 1, FEATURES, 3)
    tokens = tokens[: settings["tokens"]]
    values = tokens[:, 3 : 3 + settings["features"]]
    gates = gates[: settings["features"]]
    if settings["granularity"] == "headwise":
        gates = np.repeat(gates[:1], settings["features"], axis=0)
    elif settings["granularity"] == "constant":
        gates = gates * [0.0, 0.0, 1.0]
    s = settings["strength"]

    def f(x):
        scores = affine(x, tokens[:, :2], tokens[:, 2])
        context = affine(ops.softmax(scores, axis=-1), values.T)
        if settings["function"] == "none":
            return context
        logits = affine(x, gates[:, :2], gates[:, 2])
        return context * (1.0 - s + s * FUNCTIONS[settings["function"]](logits))

    return f


def affine(x, kernel, bias=0.0):
    def tensor(a):
        return ops.convert_to_tensor(a, dtype=x.dtype)

    return ops.einsum("ni,di->nd", x, tensor(kernel)) + tensor(bias)


def constant_curvature(x, settings):
    u = x * (0.85 / math.hypot(SIDE, SIDE))
    kappa, s = settings["kappa"], settings["strength"]
    square = ops.sum(u * u, axis=-1, keepdims=True)
    height = ops.ones_like(square) / math.sqrt(abs(kappa) or 1.0)
    factor = 1.0 - s + s / ops.sqrt(1.0 + kappa * square)
    return ops.concatenate([u, height], axis=-1) * factor


def curvature(settings, measured=geometry.gaussian_curvature):
    """At `POINTS`, NaN where degenerate."""
    return numpy64(measured(explorer_map(settings), POINTS, form_of(settings)))


def totals(settings):
    """`(∫|K| dA, ∫K dA)`, and the number of nodes left out."""
    bounds = ((-SIDE, SIDE), (-SIDE, SIDE))
    absolute, signed = (
        geometry.total_curvature(
            explorer_map(settings),
            bounds,
            RESOLUTION,
            absolute,
            form_of(settings),
            dtype="float64",
        )
        for absolute in (True, False)
    )
    dropped = round(signed.dropped * RESOLUTION**2)
    return np.array([absolute.value, signed.value]), dropped


def form_of(settings):
    """The inner product, which is indefinite for a hyperbolic plane."""
    hyperbolic = settings["function"] == "κ" and settings["kappa"] < 0.0
    return np.diag([1.0, 1.0, -1.0]) if hyperbolic else None


def measure(settings):
    """What `geometry` says of one map, as JSON can hold it."""
    values, dropped = totals(settings)
    scale = curvature(settings, geometry.curvature_scale)
    return {
        "settings": settings,
        "curvature": finite(curvature(settings)),
        "scale": finite(scale),
        "totals": finite(values),
        "dropped": dropped,
    }


def finite(values):
    return [float(v) if np.isfinite(v) else None for v in values]


if __name__ == "__main__":
    reference = {
        "points": POINTS.tolist(),
        "resolution": RESOLUTION,
        "cases": [measure({**DEFAULTS, **case}) for case in CASES],
    }
    FILE.write_text(json.dumps(reference, indent=1, ensure_ascii=False) + "\n")
