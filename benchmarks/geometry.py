"""Gaussian curvature beside `vmap(jax.hessian)` and geomstats.

    python benchmarks/geometry.py [--quick] [--out DIR]

The map is gated attention from a query in the plane, at random weights. It
runs on JAX with one thread, in one run; times are those of the processor, of
calls that take turns. geomstats is optional: without it the rest is measured.
"""

import os

import start

if __name__ == "__main__":
    arguments = start.begin(__doc__, "jax")
    os.environ["GEOMSTATS_BACKEND"] = "autograd"

import jax
import numpy as np
from jax import numpy as jnp
from keras import ops
from timing import time_in_turns

from keras_gating import geometry

try:
    from geomstats.geometry.base import ImmersedSet
    from geomstats.geometry.euclidean import Euclidean
except ModuleNotFoundError as error:
    if error.name not in ("geomstats", "autograd"):
        raise
    ImmersedSet = None

FULL = {"points": 10_000, "peer_points": 3, "rounds": 15}
QUICK = {"points": 100, "peer_points": 1, "rounds": 2}
TOKENS, WIDTH = 8, 8
# Largest ratio of ours to the other.
HESSIAN_GOAL = 0.5
GEOMSTATS_GOAL = 1e-5


def main():
    sizes = QUICK if arguments.quick else FULL
    rng = np.random.default_rng(0)
    weights = {
        "scores": rng.normal(size=(2, TOKENS)),
        "values": rng.normal(size=(TOKENS, WIDTH)),
        "gate": rng.normal(size=(2, WIDTH)),
    }
    points = rng.uniform(-1.5, 1.5, size=(sizes["points"], 2))
    weights = {name: w.astype("float32") for name, w in weights.items()}
    points = points.astype("float32")
    calls = {"ours": ours(weights, points), "hessian": hessian(weights, points)}
    values = {name: call() for name, call in calls.items()}
    seconds = time_in_turns(calls, sizes["rounds"])
    rows = [
        start.ratio_row(
            f"{len(points):,} points, over vmap(jax.hessian)",
            seconds["ours"],
            seconds["hessian"],
            HESSIAN_GOAL,
            relative_error=difference(values["ours"], values["hessian"]),
        )
    ]
    if ImmersedSet is None:
        print(
            "geomstats is not installed, so nothing was compared with it: "
            "pip install -e '.[jax,experiments,bench]'"
        )
    else:
        few = points[: sizes["peer_points"]]
        call = peer(weights, few)
        theirs = call()
        # Fewer rounds than ours, so that there are no pairs.
        peer_seconds = time_in_turns({"peer": call}, 3)["peer"]
        mine = 1e3 * float(np.median(seconds["ours"])) / len(points)
        other = 1e3 * float(np.median(peer_seconds)) / len(few)
        error = difference(values["ours"][: len(few)], theirs)
        rows.append(
            {
                "what": "a point, over geomstats with autograd",
                "unit": "ms",
                "ours": mine,
                "other": other,
                "ratio": mine / other,
                "goal": GEOMSTATS_GOAL,
                "relative_error": error,
            }
        )
    title = "Gaussian curvature of gated attention"
    start.finish(arguments, "geometry", title, sizes, rows)


def difference(ours, theirs):
    """Median difference, over the median size."""
    return float(np.median(abs(ours - theirs)) / np.median(abs(theirs)))


def ours(weights, points):
    """What `geometry.gaussian_curvature` is called with, bound."""

    def f(x):
        scores = ops.softmax(ops.matmul(x, weights["scores"]), axis=-1)
        context = ops.matmul(scores, weights["values"])
        return context * ops.sigmoid(ops.matmul(x, weights["gate"]))

    return lambda: np.asarray(geometry.gaussian_curvature(f, points))


def hessian(weights, points):
    """The textbook: all second derivatives, then the normal projection."""

    def f(x):
        context = jax.nn.softmax(x @ weights["scores"]) @ weights["values"]
        return context * jax.nn.sigmoid(x @ weights["gate"])

    def curvature(x):
        jacobian = jax.jacfwd(f)(x)
        second = jax.hessian(f)(x)
        metric = jacobian.T @ jacobian
        projection = jnp.eye(WIDTH) - jacobian @ jnp.linalg.solve(
            metric, jacobian.T
        )
        normal = jnp.einsum("de,eij->dij", projection, second)
        first, mixed, last = normal[:, 0, 0], normal[:, 0, 1], normal[:, 1, 1]
        return (first @ last - mixed @ mixed) / jnp.linalg.det(metric)

    compiled = jax.jit(jax.vmap(curvature))
    return lambda: np.asarray(compiled(points))


def peer(weights, points):
    """Sectional curvature of geomstats, point by point."""
    import geomstats.backend as gs

    def times(x, name):
        return gs.einsum("...i,ij->...j", x, weights[name])

    class Image(ImmersedSet):
        def immersion(self, point):
            scores = gs.exp(times(point, "scores"))
            scores = scores / gs.sum(scores, axis=-1, keepdims=True)
            context = times(scores, "values")
            return context / (1.0 + gs.exp(-times(point, "gate")))

        def _define_embedding_space(self):
            return Euclidean(WIDTH)

    metric = Image(dim=2).metric
    u, v = np.eye(2)

    def call():
        return np.array(
            [metric.sectional_curvature(u, v, p) for p in np.float64(points)]
        )

    return call


if __name__ == "__main__":
    main()
