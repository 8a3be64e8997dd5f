"""Gated feed-forward layers beside plain ones of as many parameters.

    python benchmarks/feedforward.py [--backend NAME] [--quick] [--out DIR]

On JAX and TensorFlow both are compiled. One thread, one run; times are those
of the processor, of calls that take turns.
"""

import argparse
import os
from pathlib import Path

parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
parser.add_argument(
    "--backend", choices=["jax", "tensorflow", "torch"], default="torch"
)
parser.add_argument("--quick", action="store_true", help="small sizes")
parser.add_argument("--out", type=Path, default=Path("results"))
arguments = parser.parse_args()
os.environ["KERAS_BACKEND"] = arguments.backend

import numpy as np
import rich.console
from passes import passes
from passes import prepare
from passes import ratio_rows
from report import print_rows
from report import write

prepare(arguments.backend)

from keras_gating.layers import FeedForward
from keras_gating.layers import GatedFeedForward

# With 3/2 as many hidden features a plain layer has as many parameters.
FULL = {
    "dim": 512,
    "gated_hidden_dim": 2048,
    "plain_hidden_dim": 3072,
    "shapes": [[1, 128], [1, 512], [1, 2048]],
    "rounds": 9,
}
QUICK = {
    "dim": 16,
    "gated_hidden_dim": 32,
    "plain_hidden_dim": 48,
    "shapes": [[1, 16]],
    "rounds": 2,
}
VARIANTS = {"swiglu": "silu", "reglu": "relu"}
# Largest ratio of the gated layer's time to the plain one's.
GOAL = 1.03


def main():
    sizes = QUICK if arguments.quick else FULL
    rows = list(speed_rows(sizes))
    console = rich.console.Console()
    print_rows(console, "Gated over plain feed-forward layer", rows)
    path = arguments.out / f"benchmark_feedforward_{arguments.backend}.json"
    write(path, arguments, sizes, rows)
    console.print("Written:", path)


def speed_rows(sizes):
    """Time of a gated layer over that of a plain one."""
    for batch, length in sizes["shapes"]:
        shape = (batch, length, sizes["dim"])
        inputs = np.random.default_rng(0).normal(size=shape).astype("float32")
        for variant, activation in VARIANTS.items():
            gated = GatedFeedForward(sizes["gated_hidden_dim"], variant)
            plain = FeedForward(sizes["plain_hidden_dim"], activation)
            for layer in (gated, plain):
                layer.build(shape)
            assert gated.count_params() == plain.count_params()
            yield from ratio_rows(
                f"{variant}, {batch} × {length} tokens",
                passes(gated, inputs),
                passes(plain, inputs),
                sizes["rounds"],
                GOAL,
            )


if __name__ == "__main__":
    main()
