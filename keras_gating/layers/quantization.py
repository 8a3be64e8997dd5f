"""Saving of layers whose children are quantized."""

import json

import numpy as np

from keras_gating.layers.checked_inputs import CheckedInputs

_ENTRY = "quantization_modes"


class QuantizedChildren(CheckedInputs):
    """A layer that remembers which of its projections are quantized.

    Keras quantizes projections one by one and stores that in the dtype policy
    of each; a layer that makes its projections itself makes them in floating
    point again when a model is loaded, and the saved codes have no place. So
    the modes are saved beside the layer's own weights, by attribute name, and
    the projections are quantized before their weights are loaded.

    A subclass names the attributes in `_quantized_children`; any of them may
    be `None`.
    """

    _quantized_children: tuple = ()

    def save_own_variables(self, store):
        super().save_own_variables(store)
        children = {
            name: getattr(self, name) for name in self._quantized_children
        }
        modes = {
            name: child.quantization_mode
            for name, child in children.items()
            if child is not None and child.quantization_mode is not None
        }
        if modes:
            text = json.dumps(modes, sort_keys=True).encode()
            store[_ENTRY] = np.frombuffer(text, dtype="uint8")

    def load_own_variables(self, store):
        entries = {key: store[key] for key in store.keys()}
        if _ENTRY in entries:
            text = np.array(entries.pop(_ENTRY)).tobytes()
            for name, mode in json.loads(text).items():
                child = getattr(self, name)
                if child.quantization_mode != mode:
                    child.quantize(mode)
        super().load_own_variables(entries)
