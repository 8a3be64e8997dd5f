"""Small utilities shared by the tests."""

import gc
import warnings

import keras
import numpy as np


def to_numpy(x):
    """A NumPy copy of a tensor, a variable or an array of any backend."""
    return np.array(keras.ops.convert_to_numpy(x))


def tensor(x, dtype=None):
    """A tensor of the current backend, of the array's own dtype."""
    x = np.asarray(x)
    return keras.ops.convert_to_tensor(x, dtype=dtype or x.dtype.name)


def normal(*shape, seed=0, dtype="float32"):
    """Seeded standard normal numbers."""
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def relative_path(layer, variable):
    """`query/kernel` for `.../gated_attention/query/kernel`."""
    parts = variable.path.split("/")
    return "/".join(parts[parts.index(layer.name) + 1 :])


def weights_by_path(layer):
    """Every weight of `layer` as float64, by path below the layer."""
    return {
        relative_path(layer, variable): np.float64(to_numpy(variable))
        for variable in layer.weights
    }


def quantize(model, mode):
    """Quantizes a model in place."""
    # For each kernel Keras looks through all objects, and a package that it
    # has imported meanwhile may have brought many.
    gc.freeze()
    with warnings.catch_warnings():
        # Keras says of each layer without kernels that it has none.
        warnings.simplefilter("ignore")
        model.quantize(mode)


def random_weights(layer, seed=0):
    """Gives every weight of a built layer a value that shows in the output.

    Kernels keep the scale of their input, biases are far from zero, and what
    starts at one (the scale of a normalisation) stays near it.
    """
    rng = np.random.default_rng(seed)
    for variable in layer.weights:
        shape = tuple(variable.shape)
        value = rng.normal(size=shape)
        if np.all(to_numpy(variable) == 1.0):
            value = 1.0 + 0.3 * value
        elif not variable.path.endswith("bias") and len(shape) > 1:
            value = value / np.sqrt(shape[0])
        variable.assign(value.astype(variable.dtype))
    return layer


def assert_close(actual, expected, tolerance, scale=0.0):
    """Largest difference relative to the largest expected magnitude.

    `scale` is the magnitude to take where all that is expected is smaller.
    """
    actual = np.float64(to_numpy(actual))
    expected = np.float64(to_numpy(expected))
    assert actual.shape == expected.shape, (actual.shape, expected.shape)
    assert np.all(np.isfinite(actual)) and np.all(np.isfinite(expected))
    scale = max(np.abs(expected).max(initial=0.0), scale, 1e-30)
    error = np.abs(actual - expected).max(initial=0.0) / scale
    assert error <= tolerance, f"relative error {error:.2e} > {tolerance:.0e}"
