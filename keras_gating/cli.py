"""The command line: `keras-gating demo`, or one experiment."""

import argparse
import shlex
import sys
from pathlib import Path

import keras
import rich.console

import keras_gating
from keras_gating.experiments import channels
from keras_gating.experiments import console as terminal
from keras_gating.experiments import curvature
from keras_gating.experiments import depth
from keras_gating.experiments import digits
from keras_gating.experiments import feedforward
from keras_gating.experiments import functions
from keras_gating.experiments import gau
from keras_gating.experiments import overfitting
from keras_gating.experiments import plots
from keras_gating.experiments import products
from keras_gating.experiments import retrofit
from keras_gating.experiments import saturation
from keras_gating.experiments import sinks
from keras_gating.experiments import sources
from keras_gating.experiments import trees
from keras_gating.experiments import triangle
from keras_gating.experiments import xor
from keras_gating.experiments.extras import MissingExtraError
from keras_gating.experiments.extras import require
from keras_gating.experiments.xor_arms import DEMO_ARMS

BACKENDS = ("jax", "tensorflow", "torch")


def main(argv=None):
    """Runs the command line.

    Args:
        argv: the arguments after the program's name. Defaults to those of the
            process.

    Returns:
        The exit code: 0, 1 when a package is missing, 2 for bad arguments.
    """
    argv = sys.argv[1:] if argv is None else list(argv)
    try:
        arguments = _parse(argv)
    except SystemExit as stop:
        return stop.code
    console = rich.console.Console()
    try:
        for module in ("matplotlib", "sklearn"):
            require(module)
        _run(console, arguments, shlex.join(["keras-gating", *argv]))
    except MissingExtraError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _run(console, arguments, command):
    console.print(
        f"keras-gating {keras_gating.__version__}, Keras {keras.__version__} "
        f"on {keras.config.backend()}\n",
        highlight=False,
    )
    written = []
    for name, run in _RUNS[arguments.command].items():
        options = {"quick": arguments.quick}
        if arguments.seeds is not None:
            options["seeds"] = arguments.seeds
        with terminal.progress_bar(console, name) as on_progress:
            results = run(on_progress=on_progress, **options)
        results.command = command
        terminal.print_results(console, results)
        written.append(results.write(arguments.out))
        written.extend(plots.write_plots(results, arguments.out))
    console.print("Written:", *written, sep="\n  ", soft_wrap=True)


def _demo_xor(seeds=20, **options):
    return xor.run(seeds=seeds, arms=DEMO_ARMS, **options)


def _demo_curvature(seeds=5, **options):
    return curvature.run(seeds=seeds, **curvature.DEMO, **options)


# What each sub-command runs, by the name on its progress bar.
_RUNS: dict[str, dict] = {
    "demo": {
        "xor": _demo_xor,
        "digits": digits.run,
        "curvature": _demo_curvature,
    },
    "xor": {"xor": xor.run},
    "digits": {"digits": digits.run},
    "products": {"products": products.run},
    "sources": {"sources": sources.run},
    "feedforward": {"feedforward": feedforward.run},
    "channels": {"channels": channels.run},
    "depth": {"depth": depth.run},
    "gau": {"gau": gau.run},
    "sinks": {"sinks": sinks.run},
    "retrofit": {"retrofit": retrofit.run},
    "triangle": {"triangle": triangle.run},
    "curvature": {"curvature": curvature.run},
    "functions": {"functions": functions.run},
    "saturation": {"saturation": saturation.run},
    "overfitting": {"overfitting": overfitting.run},
    "trees": {"trees": trees.run},
}

_HELP = {
    "demo": "XOR with three arms, digits, then curvature",
    "xor": "XOR: an affine readout cannot, a gated one can",
    "digits": "gated against ungated attention on handwritten digits",
    "products": "what fits products, gated linear units or plain layers",
    "sources": "what a gate reads, and where it multiplies",
    "feedforward": "gated against plain feed-forward layers on real text",
    "channels": "channel gates in a convolutional network on digits",
    "depth": "where gates start, and what keeps deep stacks trainable",
    "gau": "gated attention units against attention and feed-forward",
    "sinks": "the first token's share of the attention, with and without gates",
    "retrofit": "gates for a trained network: how far they move, what they add",
    "triangle": "triangles and parallels tell the sign of curvature apart",
    "curvature": "what gates do to curvature, and accuracy with it",
    "functions": "how each gate function bends space",
    "saturation": "where gates lose their slope, by activation and start",
    "overfitting": "gap between training and test on few images",
    "trees": "trees, cycles and grids in spaces of chosen and learnt curvature",
}


def _parse(argv):
    common = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    common.add_argument(
        "--seeds",
        type=_positive,
        metavar="N",
        help="number of seeds (default: 200 for xor, 20 for xor in the demo, "
        "100 for functions, 20 for triangle, 10 for products, curvature, "
        "saturation, overfitting and trees, 3 for gau, sinks and "
        "retrofit, 5 for all others)",
    )
    common.add_argument(
        "--backend",
        choices=BACKENDS,
        help="backend of Keras (default: KERAS_BACKEND, or one installed)",
    )
    common.add_argument(
        "--out",
        type=_folder,
        default=Path("results"),
        metavar="DIR",
        help="folder for pictures and JSON (default: ./results)",
    )
    common.add_argument(
        "--quick",
        action="store_true",
        help="few steps and seeds, to see whether everything runs",
    )
    parser = argparse.ArgumentParser(
        prog="keras-gating",
        allow_abbrev=False,  # the launcher reads `--backend` spelt out
        description="Experiments on attention, which adds, and gates, which "
        "multiply.",
    )
    parser.add_argument(
        "--version", action="version", version=keras_gating.__version__
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name, text in _HELP.items():
        commands.add_parser(
            name,
            parents=[common],
            help=text,
            description=text,
            allow_abbrev=False,
        )
    arguments = parser.parse_args(argv)
    running = keras.config.backend()
    if arguments.backend not in (None, running):
        parser.error(
            f"--backend {arguments.backend} came too late: Keras runs on "
            f"{running}. Set KERAS_BACKEND={arguments.backend} before Python "
            "starts."
        )
    return arguments


def _positive(text):
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(
            f"expected a whole number of at least 1, received {text!r}"
        )
    return number


def _folder(text):
    path = Path(text)
    if path.exists() and not path.is_dir():
        raise argparse.ArgumentTypeError(
            f"expected a folder, received the file {text!r}"
        )
    return path
