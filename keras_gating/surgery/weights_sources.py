"""Arrays by name, from a mapping, a layer of Keras or a file."""

import contextlib
import os
from collections.abc import Mapping

import keras
import numpy as np

from keras_gating._extras import require
from keras_gating.layers.attention.conversion import check_source


@contextlib.contextmanager
def opened(weights, order):
    """Yields a mapping of names to arrays; a file is open in the meantime.

    Args:
        weights: a mapping, a path, or a layer of Keras or a list of arrays in
            the order of its weights.
        order: names in that order, or `None` if the layout has no such order.
    """
    if isinstance(weights, Mapping):
        yield weights
    elif isinstance(weights, (str, os.PathLike)):
        with _safetensors(os.fspath(weights)) as file:
            yield _File(file)
    elif isinstance(weights, (keras.Layer, list, tuple)):
        if order is None:
            raise ValueError(
                'Only layout="keras" has an order of weights; for others '
                "`weights` is a mapping of names to arrays, or the path of a "
                f".safetensors file. Received: {_kind(weights)}"
            )
        yield _in_order(weights, order)
    else:
        raise ValueError(
            "`weights` must be a mapping of names to arrays, the path of a "
            '.safetensors file or, with layout="keras", a layer of Keras or '
            f"the list of its weights. Received: {_kind(weights)}"
        )


def as_array(name, value):
    """A NumPy array of a float dtype that NumPy knows."""
    if isinstance(value, keras.Variable) or keras.ops.is_tensor(value):
        value = keras.ops.convert_to_numpy(value)
    elif hasattr(value, "detach"):
        # A tensor of torch, whatever the backend. NumPy reads neither
        # parameters nor bfloat16.
        value = value.detach().cpu()
        value = value.float() if "bfloat16" in str(value.dtype) else value
    array = np.asarray(value)
    if array.dtype.name == "bfloat16":
        array = array.astype("float32")
    if not np.issubdtype(array.dtype, np.floating):
        raise ValueError(
            "Weights are copied in floating point; quantized ones have to be "
            f"dequantized first. Received: {name!r} of dtype {array.dtype.name}"
        )
    return array


class _File(Mapping):
    """Reads from an open file what is asked for, when it is."""

    def __init__(self, file):
        self._file = file
        self._names = dict.fromkeys(file.keys())

    def __getitem__(self, name):
        if name not in self._names:
            raise KeyError(name)
        return self._file.get_tensor(name)

    def __contains__(self, name):
        # That of `Mapping` would read the array.
        return name in self._names

    def __iter__(self):
        return iter(self._names)

    def __len__(self):
        return len(self._names)


def _safetensors(path):
    if not path.endswith(".safetensors"):
        raise ValueError(
            "Of files `weights` takes .safetensors; read others yourself and "
            f"pass a mapping of names to arrays. Received: {path!r}"
        )
    safetensors = require("safetensors", "safetensors")
    return safetensors.safe_open(path, framework="numpy")


def _in_order(weights, order):
    if isinstance(weights, keras.Layer):
        check_source(weights)
        # `query/kernel` of `.../multi_head_attention/query/kernel`.
        return {
            "/".join(weight.path.split("/")[-2:]): weight
            for weight in weights.weights
        }
    if len(weights) != len(order):
        raise ValueError(
            f"The layer takes {len(order)} arrays: {', '.join(order)}. "
            f"Received: {len(weights)} arrays"
        )
    return dict(zip(order, weights))


def _kind(value):
    return type(value).__name__
