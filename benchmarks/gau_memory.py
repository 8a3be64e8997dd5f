"""Memory of the quadratic gated attention unit, in blocks and at once."""

import concurrent.futures
import multiprocessing

from passes import PASSES

GOAL = 0.25


def memory_rows(sizes):
    """Memory of the form in blocks over that of all at once."""
    for dim in sizes["memory_dims"]:
        for backward in (False, True):
            arguments = (
                sizes["memory_length"],
                dim,
                sizes["key_dim"],
                backward,
            )
            ours, other = (
                _in_new_process(peak, block_size, *arguments)
                for block_size in ("auto", None)
            )
            # Not every system tells.
            if ours is not None:
                yield {
                    "what": f"memory, blocks / at once, {dim} features, "
                    + PASSES[backward],
                    "unit": "MiB",
                    "ours": ours / 2**20,
                    "other": other / 2**20,
                    "ratio": ours / other,
                    "goal": GOAL,
                }


def peak(block_size, length, dim, key_dim, backward):
    """Bytes at the peak of a call after the first."""
    import torch
    from torch_passes import single_pass

    from keras_gating.experiments.memory import peak_memory
    from keras_gating.experiments.memory import return_memory
    from keras_gating.layers import GatedAttentionUnit

    return_memory()
    torch.set_num_threads(1)
    layer = GatedAttentionUnit(
        key_dim=key_dim, norm_first=True, block_size=block_size
    )
    call = single_pass(layer, torch.randn(1, length, dim), backward)
    call()
    return peak_memory(call)


def _in_new_process(function, *arguments):
    """What a function returns in a process of its own."""
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, context) as pool:
        return pool.submit(function, *arguments).result()
