"""What quantized layers compute, beside the same in floating point.

    python benchmarks/quantization.py [--quick] [--out DIR]

It runs on torch, with seeds, and measures errors, so that two runs on one
machine agree. Layers have random weights, gates too; the model is the encoder
of `keras-gating digits`, trained on scikit-learn's digits.
"""

import argparse
import collections
import gc
import itertools
import os
import warnings
from pathlib import Path

os.environ["KERAS_BACKEND"] = "torch"

import keras
import numpy as np
import rich.console
from report import print_rows
from report import write

from keras_gating import layers
from keras_gating.experiments.digits import Split
from keras_gating.experiments.digits_model import build
from keras_gating.experiments.digits_model import matched_arms

FULL = {"dim": 128, "length": 32, "batch": 8, "seeds": 5, "epochs": 30}
QUICK = {"dim": 16, "length": 4, "batch": 2, "seeds": 1, "epochs": 1}
# Largest error relative to the output, and largest ratio of wrong answers.
ERROR_GOALS = {"int8": 0.02, "float8": 0.05, "int4": 0.15}
WRONG_GOALS = {"int8": 1.1, "float8": 1.1, "int4": 1.5}
# Modes, and whether gates are quantized too.
CASES = list(itertools.product(ERROR_GOALS, (True, False)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--out", type=Path, default=Path("results"))
    arguments = parser.parse_args()
    sizes = QUICK if arguments.quick else FULL
    rows = [*layer_rows(sizes), *model_rows(sizes)]
    console = rich.console.Console()
    print_rows(console, "Quantization", rows)
    path = arguments.out / "benchmark_quantization.json"
    write(path, arguments, sizes, rows)
    console.print("Written:", path)


def layer_rows(sizes):
    """Root mean square of the difference over that of the output."""
    x = np.random.default_rng(0).normal(
        size=(sizes["batch"], sizes["length"], sizes["dim"])
    )
    x = x.astype("float32")
    for name in calls(sizes["dim"]):
        for mode, goal in ERROR_GOALS.items():
            keras.utils.set_random_seed(0)
            inputs = keras.Input(x.shape[1:])
            model = keras.Model(inputs, calls(sizes["dim"])[name](inputs))
            expected = model.predict(x, verbose=0)
            quantize(model, mode, True, x)
            actual = model.predict(x, verbose=0)
            yield row(
                f"error / output, {name}, {mode}",
                root_mean_square(actual - expected),
                root_mean_square(expected),
                goal,
            )


def calls(dim):
    """What is quantized, by name: functions of a symbolic input."""
    attention = {"num_heads": 4, "key_dim": dim // 4}
    # Gates start at zero, where quantization changes nothing.
    drawn = {"gate_initializer": "glorot_uniform"}

    def attend(x, **arguments):
        return layers.GatedAttention(**attention, **arguments)(x, x)

    return {
        "GatedAttention without gates": lambda x: attend(x, use_gate=False),
        "GatedAttention": lambda x: attend(x, **drawn),
        "GatedAttention, headwise": lambda x: attend(
            x, gate_granularity="headwise", **drawn
        ),
        "GatedAttention, values": lambda x: attend(
            x, gate_site="value", **drawn
        ),
        "GatedAttentionBlock": layers.GatedAttentionBlock(**attention, **drawn),
        "GatedAttentionUnit": layers.GatedAttentionUnit(norm_first=True),
        "FeedForward": layers.FeedForward(4 * dim),
        "GatedFeedForward": layers.GatedFeedForward(4 * dim),
        "SwiGLU": layers.SwiGLU(dim),
        "Gate": layers.Gate(kernel_initializer="glorot_uniform"),
        "CurvatureGate": layers.CurvatureGate(
            chart="stereographic", kernel_initializer="glorot_uniform"
        ),
        "SqueezeExcite": layers.SqueezeExcite(data_format="channels_last"),
        "CBAM": layers.CBAM(data_format="channels_last"),
    }


def model_rows(sizes):
    """Wrong answers of a trained model, quantized, over those in float."""
    wrong, logits = collections.Counter(), collections.defaultdict(list)
    total = 0
    for seed in range(sizes["seeds"]):
        split = Split(seed)
        model = trained(split, seed, sizes["epochs"])
        expected = model.predict(split.test, verbose=0)
        total += len(expected)
        wrong["float"] += errors(expected, split)
        for case in CASES:
            copy = build(matched_arms()[0])
            copy.set_weights(model.get_weights())
            quantize(copy, *case, split.train)
            actual = copy.predict(split.test, verbose=0)
            wrong[case] += errors(actual, split)
            logits[case].append(
                (
                    root_mean_square(actual - expected),
                    root_mean_square(expected),
                )
            )
    for case in CASES:
        mode, with_gates = case
        name = f"digits, {mode}{'' if with_gates else ', gates in float'}"
        yield row(
            f"error / logits, {name}",
            *np.mean(logits[case], axis=0),
            ERROR_GOALS[mode],
        )
        yield row(
            f"wrong answers / in float, {name}",
            100 * wrong[case] / total,
            100 * wrong["float"] / total,
            WRONG_GOALS[mode],
            "%",
        )


def trained(split, seed, epochs):
    """The gated encoder after so many passes over the images."""
    keras.utils.set_random_seed(seed)
    model = build(matched_arms()[0])
    model.compile(
        keras.optimizers.Adam(3e-3),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    model.fit(
        split.train,
        split.train_labels,
        batch_size=64,
        epochs=epochs,
        verbose=0,
    )
    return model


def errors(logits, split):
    return int(np.sum(logits.argmax(axis=-1) != split.test_labels))


def quantize(model, mode, with_gates, x):
    """Quantizes in place, all kernels or all but those of gates."""

    def is_chosen(layer):
        return with_gates or "gate" not in str(layer.path).split("/")

    # Keras collects garbage for each kernel that it quantizes.
    gc.freeze()
    with warnings.catch_warnings():
        # Keras says of each layer without kernels that it has none.
        warnings.simplefilter("ignore")
        model.quantize(mode, filters=is_chosen)
    if mode == "float8":
        # Its scales follow what they see in training.
        model(x, training=True)


def root_mean_square(x):
    return float(np.sqrt(np.mean(np.square(x))))


def row(what, ours, other, goal, unit=""):
    """A line of the table."""
    return {
        "what": what,
        "unit": unit,
        "ours": float(ours),
        "other": float(other),
        "ratio": float(ours / other),
        "goal": goal,
    }


if __name__ == "__main__":
    main()
