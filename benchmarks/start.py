"""What a benchmark is told, before Keras and its backend are imported."""

import argparse
import os
from pathlib import Path

BACKENDS = ("jax", "tensorflow", "torch")
_ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "TF_NUM_INTEROP_THREADS": "1",
    "TF_NUM_INTRAOP_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false "
    "intra_op_parallelism_threads=1",
}


# Hides accelerators.
_ON_CPU = {"CUDA_VISIBLE_DEVICES": "", "JAX_PLATFORMS": "cpu"}


def begin(description, backend=None):
    """Reads the command line and sets the backend and one thread.

    Args:
        description: docstring of the benchmark.
        backend: the one backend it runs on, then on the processor. Defaults to
            `None`, which leaves the choice to the command line.

    Returns:
        The arguments `quick` and `out`, and `backend` if it was chosen.
    """
    parser = argparse.ArgumentParser(description=description.partition("\n")[0])
    if backend is None:
        parser.add_argument(
            "--backend",
            choices=BACKENDS,
            default=os.environ.get("KERAS_BACKEND", "jax"),
            help="default: the environment's KERAS_BACKEND, or jax",
        )
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--out", type=Path, default=Path("results"))
    arguments = parser.parse_args()
    os.environ.update(_ONE_THREAD)
    if backend is None:
        os.environ["KERAS_BACKEND"] = arguments.backend
    else:
        os.environ.update({"KERAS_BACKEND": backend, **_ON_CPU})
    return arguments


def finish(arguments, name, title, sizes, rows):
    """Prints the rows and writes them, for each chosen backend apart."""
    import rich.console
    from report import print_rows
    from report import write

    if "backend" in arguments:
        name = f"{name}_{arguments.backend}"
        title = f"{title} on {arguments.backend}"
    console = rich.console.Console()
    print_rows(console, title, rows)
    path = arguments.out / f"benchmark_{name}.json"
    write(path, arguments, sizes, rows)
    console.print("Written:", path)


def ratio_row(what, ours, other, goal, **further):
    """A line of the table, from the seconds of rounds in turns."""
    import numpy as np

    low, middle, high = np.quantile(np.divide(ours, other), [0.25, 0.5, 0.75])
    return {
        "what": what,
        "unit": "ms",
        "ours": 1e3 * float(np.median(ours)),
        "other": 1e3 * float(np.median(other)),
        "ratio": float(middle),
        "low": float(low),
        "high": float(high),
        "goal": goal,
        **further,
    }
