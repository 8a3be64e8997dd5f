"""What a layer says of its kernels and biases, by the names Keras uses."""

from keras import constraints
from keras import initializers
from keras import regularizers

_MODULES = {
    "initializer": initializers,
    "regularizer": regularizers,
    "constraint": constraints,
}
_OF_KERNELS_AND_BIASES = tuple(
    f"{weight}_{kind}" for kind in _MODULES for weight in ("kernel", "bias")
)


def weight_arguments(layer):
    """The six arguments as `dense` takes them."""
    return {name: getattr(layer, name) for name in _OF_KERNELS_AND_BIASES}


def weight_config(layer, *further):
    """The six arguments as a configuration holds them.

    Args:
        layer: the layer, with attributes `kernel_initializer` and so on.
        further: names of more such attributes, such as `gate_initializer`.
    """
    return {
        name: _MODULES[name.rpartition("_")[2]].serialize(getattr(layer, name))
        for name in (*_OF_KERNELS_AND_BIASES, *further)
    }
