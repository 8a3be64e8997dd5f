"""The gated attention unit beside FLASH-pytorch, and its memory and growth.

    python benchmarks/gau.py [--quick] [--out DIR]

Everything runs on torch with one thread, in one run. Times are those of the
processor, of calls that take turns; what counts is their ratio. The peer is
optional: without it the rest is measured.
"""

import start

if __name__ == "__main__":
    arguments = start.begin(__doc__, "torch")

import numpy as np
import torch
from gau_memory import memory_rows
from passes import PASSES
from peers import FLASH
from peers import chunked
from peers import quadratic
from timing import time_in_turns
from torch_passes import single_pass

from keras_gating.experiments.memory import keep_memory
from keras_gating.layers import GatedAttentionUnit

FULL = {
    "dim": 512,
    "key_dim": 128,
    "length": 2048,
    "chunk_size": 256,
    "memory_length": 8192,
    "memory_dims": [128, 512],
    "growth_lengths": [2048, 4096, 8192, 16384],
    "growth_dims": [256, 512],
    "rounds": 51,
    "growth_rounds": 9,
}
QUICK = {
    "dim": 32,
    "key_dim": 16,
    "length": 512,
    "chunk_size": 64,
    "memory_length": 4096,
    "memory_dims": [32],
    "growth_lengths": [512, 1024],
    "growth_dims": [32],
    "rounds": 2,
    "growth_rounds": 2,
}
# Largest ratio of ours to theirs, by case.
GOALS = {"chunked": 1.0, "quadratic, T5 bias": 0.5, "quadratic, no bias": 1.0}
GROWTH_GOAL = 1.1


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    sizes = QUICK if arguments.quick else FULL
    rows = []
    if FLASH is not None:
        rows.extend(speed_rows(sizes))
    rows.extend(memory_rows(sizes))
    # Last, for it changes the allocator.
    rows.extend(growth_rows(sizes))
    start.finish(arguments, "gau", "Gated attention unit", sizes, rows)
    if FLASH is None:
        print(
            "FLASH-pytorch is not installed, so nothing was compared with it: "
            "pip install -e '.[torch,experiments,bench]'"
        )


def speed_rows(sizes):
    """Time of both passes over that of the peer, at equal weights."""
    dim, key_dim, length = (sizes[k] for k in ("dim", "key_dim", "length"))
    for name, goal in GOALS.items():
        for is_causal in (False, True):
            if name == "chunked":
                pair = chunked(dim, key_dim, sizes["chunk_size"], is_causal)
            else:
                has_bias = name.endswith("T5 bias")
                pair = quadratic(dim, key_dim, length, is_causal, has_bias)
            ours, theirs = pair
            inputs = torch.randn(1, length, dim)
            functions = {"ours": _bound(ours, is_causal), "theirs": theirs}
            error = relative_error(functions, inputs)
            for backward in (False, True):
                calls = {
                    key: single_pass(function, inputs, backward)
                    for key, function in functions.items()
                }
                seconds = time_in_turns(calls, sizes["rounds"])
                causal = "causal, " if is_causal else ""
                yield start.ratio_row(
                    f"{name}, {causal}{PASSES[backward]}",
                    seconds["ours"],
                    seconds["theirs"],
                    goal,
                    relative_error=error,
                )


def relative_error(functions, inputs):
    """Greatest difference of the outputs, over the greatest change."""
    # The layers normalize, so small inputs change nothing but the rounding of
    # the sum with what the layer adds to them.
    inputs = 0.1 * inputs
    with torch.no_grad():
        ours, theirs = (functions[key](inputs) for key in ("ours", "theirs"))
    return float((ours - theirs).abs().max() / (theirs - inputs).abs().max())


def growth_rows(sizes):
    """Exponent with which the time of the chunked form grows.

    Once as it is, and once with memory that the allocator keeps from call to
    call: fetching large blocks from the system anew takes a growing share.
    """
    for keeps_memory in (False, True):
        if keeps_memory:
            keep_memory()
        for dim in sizes["growth_dims"]:
            for is_causal in (False, True):
                yield growth_row(sizes, dim, is_causal, keeps_memory)


def growth_row(sizes, dim, is_causal, keeps_memory):
    """The row of one form."""
    lengths = sizes["growth_lengths"]
    layer = GatedAttentionUnit(
        key_dim=sizes["key_dim"],
        chunk_size=sizes["chunk_size"],
        norm_first=True,
    )
    function = _bound(layer, is_causal)
    calls = {
        length: single_pass(function, torch.randn(1, length, dim), False)
        for length in lengths
    }
    seconds = time_in_turns(calls, sizes["growth_rounds"])
    medians = [float(np.median(seconds[length])) for length in lengths]
    slope = np.polyfit(np.log(lengths), np.log(medians), 1)[0]
    return {
        "what": f"growth of chunked, d = {dim}"
        + (", causal" if is_causal else "")
        + (", memory kept" if keeps_memory else "")
        + f", {lengths[0]} to {lengths[-1]} (exponent)",
        "unit": "ms",
        "ours": 1e3 * medians[-1],
        "other": 1e3 * medians[0],
        "ratio": float(slope),
        "goal": GROWTH_GOAL,
    }


def _bound(layer, is_causal):
    return lambda inputs: layer(inputs, use_causal_mask=is_causal)


if __name__ == "__main__":
    main()
