"""Gated feed-forward layers beside plain ones of as many parameters.

    python benchmarks/feedforward.py [--backend NAME] [--quick] [--out DIR]

On JAX and TensorFlow both are compiled. One thread, one run; times are those
of the processor, of calls that take turns.
"""

import start

if __name__ == "__main__":
    arguments = start.begin(__doc__)

import numpy as np
from passes import passes
from passes import ratio_rows

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
    start.finish(
        arguments, "feedforward", "Gated feed-forward layers", sizes, rows
    )


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
                passes(gated, inputs, xla=True),
                passes(plain, inputs, xla=True),
                sizes["rounds"],
                GOAL,
            )


if __name__ == "__main__":
    main()
