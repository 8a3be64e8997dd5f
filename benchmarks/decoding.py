"""One step of decoding with a cache beside the pass over all positions.

    python benchmarks/decoding.py [--backend NAME] [--quick] [--out DIR]

The step adds the last position to a full cache; the pass is causal, over the
same positions. One thread, without gradients. How often a step copies the
cache is counted too: on JAX in the compiled program of a step that is given the
cache to keep (`donate_argnums`), elsewhere among the operations of a step.
"""

import re

import start

if __name__ == "__main__":
    arguments = start.begin(__doc__)

import keras
import numpy as np
from cached_steps import cached_step
from cached_steps import jax_program
from passes import passes
from timing import time_in_turns

from keras_gating import _backend
from keras_gating._backend.operations import operations
from keras_gating.layers import GatedAttention

FULL = {"dim": 256, "heads": 8, "cached": 2048, "batches": [1, 4], "rounds": 15}
QUICK = {"dim": 16, "heads": 2, "cached": 32, "batches": [1], "rounds": 2}
STEP_GOAL = 0.03
# Operations that write a tensor anew, by the backend's names.
_COPYING = {
    "tensorflow": ("XlaDynamicUpdateSlice", "SelectV2", "Identity", "Copy"),
    "torch": ("clone", "_to_copy", "where", "cat"),
}


def main():
    sizes = QUICK if arguments.quick else FULL
    rows = []
    for batch in sizes["batches"]:
        rows += compare(sizes, batch)
    start.finish(arguments, "decoding", "A step of decoding", sizes, rows)


def compare(sizes, batch):
    """Time of a step, and how often it copies the cache."""
    heads, length = sizes["heads"], sizes["cached"]
    layer = GatedAttention(heads, sizes["dim"] // heads)
    layer.build((None, None, sizes["dim"]), (None, None, sizes["dim"]))
    shape = (batch, length, sizes["dim"])
    x = np.random.default_rng(0).normal(size=shape).astype("float32")
    full = passes(layer, x, _causal)["forward"]
    empty = layer.init_cache(batch, length)
    fill = _backend.compiled(
        lambda x, cache: layer(
            x, x, use_causal_mask=True, cache=cache, cache_update_index=0
        )
    )
    with _backend.no_gradients():
        _, cache = fill(keras.ops.convert_to_tensor(x), empty)
    token = keras.ops.convert_to_tensor(x[:, -1:])

    def call(token, cache, index):
        return layer(
            token,
            token,
            cache=cache,
            cache_update_index=index,
            donate_cache=True,
        )

    arguments = call, layer.weights, token, cache, length - 1
    # Counted first: on JAX a step takes the memory of the cache.
    count = jax_copies if keras.config.backend() == "jax" else copies
    copied = count(*arguments)
    step = cached_step(*arguments)
    error = difference(step(), full())
    seconds = time_in_turns({"step": step, "full": full}, sizes["rounds"])
    yield start.ratio_row(
        f"step over all, {batch} × {length}",
        seconds["step"],
        seconds["full"],
        STEP_GOAL,
        relative_error=error,
    )
    goal = 1.0 if keras.config.backend() == "tensorflow" else 0.0
    yield {
        "what": f"copies of the cache, {batch} × {length}",
        "unit": "copies",
        "ours": copied,
        "other": goal,
        "ratio": copied,
        "goal": goal,
    }


def jax_copies(call, weights, token, cache, index):
    """Copies in the compiled program of tensors that are like the cache's."""
    program = jax_program(call, weights, token, cache, index)
    count = 0
    for name in ("key", "value"):
        sizes = ",".join(map(str, cache[name].shape))
        count += len(re.findall(rf"= \w+\[{sizes}\]\S* copy\(", program))
    # Keys and values may have one shape, and then all are found twice.
    alike = cache["key"].shape == cache["value"].shape
    return count / (4 if alike else 2)


def copies(call, weights, token, cache, index):
    """Operations that write as much as the keys or values, over two."""
    size = _backend.nbytes(cache["key"])
    names = _COPYING[keras.config.backend()]
    found = operations(lambda: call(token, cache, index), names)
    return (
        sum(
            any(getattr(x, "nbytes", 0) >= size for x in results)
            for name, _, results, *_ in found
            if name in names
        )
        / 2
    )


def difference(step, full):
    """Greatest difference to the last position of the pass, relative."""
    step, full = map(keras.ops.convert_to_numpy, (step, full))
    return float(np.abs(step - full[:, -1:]).max() / np.abs(full).max())


def _causal(layer, x):
    return layer(x, x, use_causal_mask=True)


if __name__ == "__main__":
    main()
