"""Which parts of a layer are frozen by themselves."""

import keras

_ENTRY = "trainable_parts"


def part_flags(layer):
    """The `trainable` flags of a layer and of all layers in it."""
    return [bool(part.trainable) for part in layer._flatten_layers()]


def set_part_flags(layer, flags):
    """Sets what `part_flags` returned, on a layer with the same parts."""
    parts = layer._flatten_layers()
    if len(parts) != len(flags):
        return
    for part, flag in zip(parts, flags):
        # The flag is passed on to what is in the part, which comes later; on
        # TensorFlow only if it changes.
        part.trainable = not flag
        part.trainable = flag


class FrozenParts(keras.layers.Layer):
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
