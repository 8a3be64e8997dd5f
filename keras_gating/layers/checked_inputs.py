"""Inputs of layers that are no tensors, or not of floating point."""

import keras
from keras import ops

from keras_gating import _keras
from keras_gating.functional import checks

# Call arguments that may be left out.
_OPTIONAL = ("source", "key", "gate_input")


class CheckedInputs(keras.layers.Layer):
    """A layer that says so when an input is no tensor of real numbers.

    Otherwise the first operation does that fails, and each backend has errors
    of its own. Integers become floats, as in the layers of Keras.

    A subclass names the call arguments it computes with in
    `_tensor_arguments`, those that may be positional, in their order.
    """

    _tensor_arguments: tuple = ("inputs",)

    def __call__(self, *args, **kwargs):
        names = self._tensor_arguments
        rest = args[len(names) :]
        checked = {
            name: self._checked(name, x)
            for name, x in kwargs.items()
            if name in names or name in _OPTIONAL
        }
        return super().__call__(
            *map(self._checked, names, args), *rest, **{**kwargs, **checked}
        )

    def _checked(self, name, x):
        if x is None and name in _OPTIONAL:
            return x
        if not hasattr(x, "shape") or not hasattr(x, "dtype"):
            raise ValueError(
                f"`{name}` must be a tensor or an array. Received: {name}={x!r}"
            )
        if checks.is_float(name, x):
            return x
        mask = _keras.get_keras_mask(x)
        x = ops.cast(x, self.compute_dtype)
        if mask is not None:
            _keras.set_keras_mask(x, mask)
        return x
