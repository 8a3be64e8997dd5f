"""Which parts of a layer are frozen by themselves."""

from keras_gating import _keras
from keras_gating.layers.checked_inputs import CheckedInputs

_ENTRY = "trainable_parts"


def set_trainable(layer, flag):
    """Sets the flag of a layer and of all that is in it.

    Keras passes the flag on when it is assigned, on TensorFlow only if it
    changes.
    """
    layer.trainable = not flag
    layer.trainable = flag


def inherit_trainable(layer):
    """Passes a layer's `trainable=False` on to what `build` has created.

    Keras does that when the attribute is set, which the constructor does
    before there are any sub-layers.
    """
    if not layer.trainable:
        set_trainable(layer, False)


def part_flags(layer):
    """The `trainable` flags of a layer and of all layers in it."""
    return [bool(part.trainable) for part in _keras.sublayers(layer)]


def set_part_flags(layer, flags):
    """Sets what `part_flags` returned, on a layer with the same parts."""
    parts = _keras.sublayers(layer)
    if len(parts) != len(flags):
        raise ValueError(
            f"The layer {layer.name!r} has {len(parts)} parts, but there are "
            f"flags of {len(flags)}, which say what is frozen: it is not the "
            f"layer that was saved. Received: {flags}"
        )
    for part, flag in zip(parts, flags):
        # What is in a part comes after it.
        set_trainable(part, flag)


class FrozenParts(CheckedInputs):
    """A layer that saves which of its parts are frozen.

    Keras saves the flag of a layer in its configuration, but not those of the
    layers that it makes itself. They are saved with the shapes for `build`.
    """

    def get_build_config(self):
        config = super().get_build_config()
        flags = part_flags(self)
        if config is not None and self.trainable and not all(flags):
            config = {**config, _ENTRY: flags}
        return config

    def build_from_config(self, config):
        super().build_from_config(config)
        if config and _ENTRY in config:
            set_part_flags(self, config[_ENTRY])
