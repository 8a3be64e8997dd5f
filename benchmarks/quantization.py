"""Errors of quantized layers, beside those of Keras' own.

    python benchmarks/quantization.py [--quick] [--out DIR]

The error of a layer is that of its output against the same layer in floating
point, relative to the output, as root mean squares; weights are random, those
of gates too. The model is the encoder of `keras-gating digits`, trained on
scikit-learn's digits. It runs on torch, from seeds.
"""

import collections
import gc
import itertools
import warnings

import start

if __name__ == "__main__":
    arguments = start.begin(__doc__, "torch")

import keras
import numpy as np

from keras_gating import layers
from keras_gating.experiments.digits import Split
from keras_gating.experiments.digits_model import build
from keras_gating.experiments.digits_model import matched_arms

FULL = {"dim": 128, "length": 32, "batch": 8, "seeds": 5, "epochs": 30}
QUICK = {"dim": 16, "length": 4, "batch": 2, "seeds": 1, "epochs": 1}
MODES = ("int8", "float8", "int4")
# Largest ratio of the error of a layer to that of its peer in Keras.
GOALS = {
    ("MultiHeadAttention", "GatedAttention"): 1.25,
    ("MultiHeadAttention", "GatedAttention, headwise"): 1.25,
    ("MultiHeadAttention", "GatedAttention, values"): 1.25,
    ("MultiHeadAttention", "GatedAttentionUnit"): 2.0,
    ("two Dense", "FeedForward"): 1.05,
    # Two factors with an error each.
    ("two Dense", "GatedFeedForward"): 2.0,
    ("Dense", "SwiGLU"): 2.0,
    ("Dense", "Gate"): 1.0,
    ("Dense", "CurvatureGate"): 1.0,
    ("Dense", "SqueezeExcite"): 1.0,
    ("Dense", "CBAM"): 1.0,
}
# Of answers that are wrong to those in float, and of errors with quantized
# gates to those with gates in float.
WRONG_GOAL = 1.1
GATES_GOAL = 1.1


def main():
    sizes = QUICK if arguments.quick else FULL
    rows = [*layer_rows(sizes), *model_rows(sizes)]
    start.finish(arguments, "quantization", "Quantization", sizes, rows)


def layer_rows(sizes):
    """Errors of layers over those of layers of Keras of the same sizes."""
    x = np.random.default_rng(0).normal(
        size=(sizes["batch"], sizes["length"], sizes["dim"])
    )
    x = x.astype("float32")
    for mode in MODES:
        found = {
            name: layer_error(call, x, mode)
            for name, call in calls(sizes["dim"]).items()
        }
        for (peer, name), goal in GOALS.items():
            yield row(
                f"error, {mode}: {name} / {peer}",
                100 * found[name],
                100 * found[peer],
                goal,
            )


def layer_error(call, x, mode):
    """Root mean square of the difference over that of the output."""
    keras.utils.set_random_seed(0)
    inputs = keras.Input(x.shape[1:])
    model = keras.Model(inputs, call(inputs))
    expected = model.predict(x, verbose=0)
    quantize(model, mode, True, x)
    actual = model.predict(x, verbose=0)
    return root_mean_square(actual - expected) / root_mean_square(expected)


def calls(dim):
    """Functions of a symbolic input, by name; layers are new ones."""
    sizes = {"num_heads": 4, "key_dim": dim // 4}
    # Gates start at zero, where quantization changes nothing.
    drawn = {"gate_initializer": "glorot_uniform"}
    drawn_kernel = {"kernel_initializer": "glorot_uniform"}
    last = {"data_format": "channels_last"}
    # What computes the same without gates is to have the same weights.
    same = {
        "use_bias": False,
        "kernel_initializer": keras.initializers.GlorotUniform(seed=0),
    }

    def attend(layer):
        return lambda x: layer(x, x)

    def attend_in_unit(x):
        layer = layers.GatedAttentionUnit()
        outputs = layer(x)
        # They start near zero, and outputs then are smaller than what the
        # formats hold.
        layer.query_key_scale.assign(np.ones(layer.query_key_scale.shape))
        return outputs

    return {
        "MultiHeadAttention": attend(keras.layers.MultiHeadAttention(**sizes)),
        "GatedAttention": attend(layers.GatedAttention(**sizes, **drawn)),
        "GatedAttention, headwise": attend(
            layers.GatedAttention(**sizes, gate_granularity="headwise", **drawn)
        ),
        "GatedAttention, values": attend(
            layers.GatedAttention(**sizes, gate_site="value", **drawn)
        ),
        "GatedAttentionUnit": attend_in_unit,
        "two Dense": keras.Sequential(
            [
                keras.layers.Dense(4 * dim, "relu", **same),
                keras.layers.Dense(dim, **same),
            ]
        ),
        "FeedForward": layers.FeedForward(4 * dim, **same),
        "GatedFeedForward": layers.GatedFeedForward(4 * dim),
        "Dense": keras.layers.Dense(dim),
        "SwiGLU": layers.SwiGLU(dim),
        "Gate": layers.Gate(**drawn_kernel),
        "CurvatureGate": layers.CurvatureGate(
            chart="stereographic", **drawn_kernel
        ),
        "SqueezeExcite": layers.SqueezeExcite(**last),
        "CBAM": layers.CBAM(**last),
    }


def model_rows(sizes):
    """A trained model, quantized with its gates and without."""
    wrong, error = collections.Counter(), collections.Counter()
    total = 0
    for seed in range(sizes["seeds"]):
        split = Split(seed)
        model = trained(split, seed, sizes["epochs"])
        expected = model.predict(split.test, verbose=0)
        total += len(expected)
        wrong["float"] += count_wrong(expected, split)
        for case in itertools.product(MODES, (True, False)):
            copy = build(matched_arms()[0])
            copy.set_weights(model.get_weights())
            quantize(copy, *case, split.train)
            actual = copy.predict(split.test, verbose=0)
            wrong[case] += count_wrong(actual, split)
            error[case] += root_mean_square(
                actual - expected
            ) / root_mean_square(expected)
    for mode in MODES:
        whole, spared = (mode, True), (mode, False)
        yield row(
            f"wrong digits, {mode} / float",
            100 * wrong[whole] / total,
            100 * wrong["float"] / total,
            WRONG_GOAL,
        )
        yield row(
            f"wrong digits, {mode} but for gates / float",
            100 * wrong[spared] / total,
            100 * wrong["float"] / total,
            WRONG_GOAL,
        )
        yield row(
            f"error of logits, {mode} / {mode} but for gates",
            100 * error[whole] / sizes["seeds"],
            100 * error[spared] / sizes["seeds"],
            GATES_GOAL,
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


def count_wrong(logits, split):
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


def row(what, ours, other, goal):
    """A line of the table."""
    return {
        "what": what,
        "unit": "%",
        "ours": float(ours),
        "other": float(other),
        "ratio": float(ours / other),
        "goal": goal,
    }


if __name__ == "__main__":
    main()
