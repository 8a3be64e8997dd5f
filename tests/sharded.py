"""Trains one model on one device and on meshes of eight; prints JSON.

Run by `test_distribution` in a process of its own, since the number of devices
is fixed when JAX is imported.
"""

import json

import jax
import keras
import numpy as np

from keras_gating import distribution
from keras_gating import layers
from tests.utils import normal
from tests.utils import to_numpy

MESHES = {"tensor": (1, 8), "both": (2, 4), "data": (8, 1)}
X, Y = normal(8, 6, 16), normal(8, 6, 16, seed=1)


def make_model():
    inputs = keras.Input(X.shape[1:])
    x = layers.GatedAttention(
        8,
        4,
        num_key_value_heads=2,
        gate_site=("output", "value"),
        rope_max_wavelength=100.0,
        name="attention",
    )(inputs, inputs, use_causal_mask=True)
    x = x + layers.GatedAttention(
        8, 4, gate_granularity="headwise", name="headwise"
    )(x, x)
    x = x + layers.GatedFeedForward(32, use_bias=True, name="gated")(x)
    x = x + layers.FeedForward(32, use_bias=True, name="plain")(x)
    x = layers.GatedAttentionUnit(key_dim=4, norm_first=True, name="unit")(x)
    x = x * layers.SwiGLU(16, name="swiglu")(x)
    x = layers.Gate(name="features")(x)
    x = layers.SqueezeExcite(4, name="squeeze")(x)
    return keras.Model(inputs, x)


class Called(keras.Model):
    """A model without `build`, whose weights are made in its first call."""

    def __init__(self):
        super().__init__()
        self.attention = layers.GatedAttention(
            8, 4, num_key_value_heads=2, use_bias=False, name="attention"
        )
        self.gate = layers.Gate(source="constant", name="constant")

    def call(self, inputs):
        return self.gate(self.attention(inputs, inputs))


def part_shapes(model):
    """Shapes by path of what one device has."""
    return {
        w.path.removeprefix(f"{model.name}/"): (
            w.value.addressable_shards[0].data.shape
        )
        for w in model.weights
    }


def train(weights=None):
    """The model, its first weights; outputs, losses and weights after."""
    model = make_model()
    if weights is None:
        weights = [
            to_numpy(w) + 0.2 * normal(*w.shape, seed=i)
            for i, w in enumerate(model.weights)
        ]
    model.set_weights(weights)
    model.compile(keras.optimizers.SGD(0.01, momentum=0.9), "mse")
    outputs = model.predict(X, batch_size=8, verbose=0)
    history = model.fit(X, Y, batch_size=8, epochs=2, verbose=0)
    after = [to_numpy(w) for w in model.weights]
    return model, weights, [outputs, np.array(history.history["loss"]), *after]


def device_bytes(variables):
    return sum(v.value.addressable_shards[0].data.nbytes for v in variables)


def main():
    assert len(jax.devices()) == 8
    # One with which training goes well: else errors are those of chaos.
    keras.utils.set_random_seed(1)
    model, weights, expected = train()
    report = {"whole": {"bytes": device_bytes(model.weights)}}
    for name, shape in MESHES.items():
        mesh = keras.distribution.DeviceMesh(shape, ("batch", "model"))
        layouts = distribution.layout_map(mesh)
        keras.distribution.set_distribution(
            keras.distribution.ModelParallel(
                layout_map=layouts, batch_dim_name="batch"
            )
        )
        model, _, actual = train(weights)
        errors = [
            float(np.abs(a - b).max() / np.abs(b).max())
            for a, b in zip(actual, expected, strict=True)
        ]
        report[name] = {
            "error": float(np.max(errors)),
            "bytes": device_bytes(model.weights),
            "momentum": device_bytes(model.optimizer.variables),
            "shapes": part_shapes(model),
        }
        called = Called()
        called(X)
        report[name]["called"] = part_shapes(called)
    still = [
        w.path
        for w, a, b in zip(model.weights, expected[2:], weights, strict=True)
        if np.abs(a - b).max() < 1e-6
    ]
    print(json.dumps({**report, "still": still}))


if __name__ == "__main__":
    main()
