"""Gated attention beside that of Keras, and what the gate costs.

    python benchmarks/attention.py [--backend NAME] [--quick] [--out DIR]

Self-attention without masks, four layers in turns: ours with an elementwise
gate, Keras' own with the same weights, ours without a gate, and ours with a
gate for each head; on torch that of x-transformers too, if it is installed. One
thread, forward, and forward and backward; compiled where the backend is used
so. TensorFlow runs as a graph, and for the sequences up to `xla_length`
compiled with XLA too.
"""

import start

if __name__ == "__main__":
    arguments = start.begin(__doc__)

import keras
import numpy as np
import x_transformers_layer
from passes import PASSES
from passes import passes
from passes import relative_error
from precisions import precisions
from precisions import use
from timing import time_in_turns

from keras_gating import _backend
from keras_gating.layers import GatedAttention

FULL = {
    "dim": 256,
    "heads": 8,
    "lengths": [128, 512, 2048],
    "batches": [1, 4],
    "xla_length": 512,
    "rounds": 11,
    "max_rounds": 51,
}
QUICK = {
    "dim": 16,
    "heads": 2,
    "lengths": [8],
    "batches": [2],
    "xla_length": 0,
    "rounds": 2,
    "max_rounds": 2,
}
HEADWISE_GOAL = 1.02
X_TRANSFORMERS_GOAL = 1.0


def main():
    sizes = QUICK if arguments.quick else FULL
    rows = []
    for precision in precisions():
        policy = use(precision)
        suffix = "" if len(precisions()) == 1 else f", {precision}"
        for xla in (False, True):
            if xla and keras.config.backend() != "tensorflow":
                continue
            lengths = [
                length
                for length in sizes["lengths"]
                if not xla or length <= sizes["xla_length"]
            ]
            layers = build(sizes, policy)
            for length in lengths:
                for batch in sizes["batches"]:
                    named = f"{batch} × {length}{', XLA' * xla}{suffix}"
                    rows += compare(layers, sizes, batch, length, xla, named)
    start.finish(arguments, "attention", "Gated attention", sizes, rows)


def build(sizes, policy):
    """The layers, by name; the first two have the same weights."""
    heads, width = sizes["heads"], sizes["dim"] // sizes["heads"]
    shape = (None, None, sizes["dim"])
    peer = keras.layers.MultiHeadAttention(
        heads, width, use_gate=True, dtype=policy
    )
    peer.build(shape, shape)
    layers = {"elementwise": GatedAttention.from_keras(peer), "keras": peer}
    for name, kwargs in (
        ("ungated", {"use_gate": False}),
        ("headwise", {"gate_granularity": "headwise"}),
    ):
        layers[name] = GatedAttention(heads, width, dtype=policy, **kwargs)
        layers[name].build(shape, shape)
    is_on_cpu = _backend.platform() == "cpu"
    has_peer = x_transformers_layer.IS_INSTALLED and is_on_cpu
    if keras.config.backend() == "torch" and has_peer:
        layers["x-transformers"] = x_transformers_layer.with_weights_of(
            layers["elementwise"], heads, width
        )
    return layers


def compare(layers, sizes, batch, length, xla, named):
    """The rows of one size of input."""
    shape = (batch, length, sizes["dim"])
    x = np.random.default_rng(0).normal(size=shape).astype("float32")
    calls = {
        name: passes(layer, x, _attend, xla) for name, layer in layers.items()
    }
    errors = {
        peer: relative_error(
            {name: calls[name]["forward"] for name in ("elementwise", peer)}
        )
        for peer in ("keras", "x-transformers")
        if peer in calls
    }
    rounds = int(6e7 / (batch * length * (length + 512)))
    rounds = min(max(rounds, sizes["rounds"]), sizes["max_rounds"])
    for kind in PASSES:
        seconds = time_in_turns(
            {name: call[kind] for name, call in calls.items()}, rounds
        )
        for what, pair, goal in (
            ("over Keras", ("elementwise", "keras"), keras_goal(length, kind)),
            (
                "elementwise gate over none",
                ("elementwise", "ungated"),
                elementwise_goal(sizes["dim"], length),
            ),
            (
                "headwise gate over none",
                ("headwise", "ungated"),
                HEADWISE_GOAL,
            ),
            (
                "over x-transformers",
                ("elementwise", "x-transformers"),
                X_TRANSFORMERS_GOAL,
            ),
        ):
            if pair[1] not in calls:
                continue
            ours, other = (seconds[name] for name in pair)
            error = errors.get(pair[1])
            further = {} if error is None else {"relative_error": error}
            yield start.ratio_row(
                f"{what}, {named}, {kind}", ours, other, goal, **further
            )


def keras_goal(length, kind):
    """Largest ratio to the layer of Keras."""
    if keras.config.backend() != "jax":
        return 0.97
    if _backend.platform() != "cpu" or length < 512:
        return 1.02
    return 0.35 if kind == "forward" else 0.7


def elementwise_goal(dim, length):
    """Share of the gate in the products, and 3 % for the rest of it."""
    # Four projections of a width, and products with all keys and all values.
    return 1.03 + dim / (4 * dim + 2 * length)


def _attend(layer, x):
    return layer(x, x)


if __name__ == "__main__":
    main()
