"""Gated attention as Qwen has it, beside transformers and keras-hub.

    python benchmarks/qwen.py [--backend NAME] [--quick] [--out DIR]

The causal pass, forward, and forward and backward, and a step of decoding with
a full cache. keras-hub is compared on every backend, transformers on torch; all
layers have the same weights. One thread; compiled on JAX, a graph on
TensorFlow.
"""

import start

if __name__ == "__main__":
    arguments = start.begin(__doc__)

import keras
import numpy as np
import qwen_layers
from cached_steps import cached_step
from passes import PASSES
from passes import passes
from passes import relative_error
from timing import time_in_turns

FULL = {
    "dim": 256,
    "heads": 8,
    "key_value_heads": 2,
    "width": 32,
    "lengths": [128, 512, 2048],
    "batches": [1, 4],
    "cached": 2048,
    "rounds": 11,
    "max_rounds": 51,
    "step_rounds": 51,
}
QUICK = {
    "dim": 16,
    "heads": 4,
    "key_value_heads": 2,
    "width": 8,
    "lengths": [8],
    "batches": [2],
    "cached": 16,
    "rounds": 2,
    "max_rounds": 2,
    "step_rounds": 2,
}
GOAL = 1.0


def main():
    sizes = QUICK if arguments.quick else FULL
    layers = qwen_layers.build(
        sizes["dim"], sizes["heads"], sizes["key_value_heads"], sizes["width"]
    )
    if len(layers) == 1:
        print("Neither keras-hub nor transformers is installed.")
        return
    rows = []
    for length in sizes["lengths"]:
        for batch in sizes["batches"]:
            rows += compare_passes(layers, sizes, batch, length)
    for batch in sizes["batches"]:
        rows += compare_steps(layers, sizes, batch)
    start.finish(arguments, "qwen", "Gated attention of Qwen", sizes, rows)


def compare_passes(layers, sizes, batch, length):
    """The causal pass of a sequence."""
    x = _sequences(sizes, batch, length)
    calls = {
        name: passes(layer.module, x, layer.causal(length))
        for name, layer in layers.items()
    }
    rounds = int(6e7 / (batch * length * (length + 512)))
    rounds = min(max(rounds, sizes["rounds"]), sizes["max_rounds"])
    for kind in PASSES:
        by_layer = {name: call[kind] for name, call in calls.items()}
        named = f"{batch} × {length}, {kind}"
        yield from _rows(by_layer, calls, named, rounds)


def compare_steps(layers, sizes, batch):
    """A step with a full cache."""
    length = sizes["cached"]
    x = _sequences(sizes, batch, length)
    steps = {
        name: cached_step(*layer.step(x)) for name, layer in layers.items()
    }
    calls = {name: {"forward": step} for name, step in steps.items()}
    named = f"a step, {batch} × {length}"
    yield from _rows(steps, calls, named, sizes["step_rounds"])


def _rows(by_layer, calls, named, rounds):
    seconds = time_in_turns(by_layer, rounds)
    for peer in [name for name in by_layer if name != "ours"]:
        pair = ("ours", peer)
        yield start.ratio_row(
            f"over {peer}, {named}",
            seconds["ours"],
            seconds[peer],
            GOAL,
            relative_error=relative_error(
                {name: calls[name]["forward"] for name in pair}
            ),
        )


def _sequences(sizes, batch, length):
    shape = (batch, length, sizes["dim"])
    x = np.random.default_rng(1).normal(size=shape).astype("float32")
    return keras.ops.convert_to_tensor(x)


if __name__ == "__main__":
    main()
