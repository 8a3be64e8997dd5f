"""Initial values of kernels that pack several matrices."""

import keras
from keras import ops


class StackedInitializer(keras.initializers.Initializer):
    """Draws each `(d, units)` slice of a `(d, count, units)` kernel by itself.

    An initializer that scales by fan-in and fan-out reads a third axis as that
    of a convolution, and would take `d` for the size of its window.

    Args:
        initializer: initializer of the slices. One with an integer seed gets
            that seed for the first slice, the next integer for the second.
    """

    def __init__(self, initializer):
        self.initializer = keras.initializers.get(initializer)

    def __call__(self, shape, dtype=None):
        width, count, units = shape
        slices = [
            self._numbered(number)((width, units), dtype=dtype)
            for number in range(count)
        ]
        return ops.stack(slices, axis=1)

    def get_config(self):
        return {"initializer": keras.initializers.serialize(self.initializer)}

    def _numbered(self, number):
        if not isinstance(self.initializer, keras.initializers.Initializer):
            return self.initializer
        config = self.initializer.get_config()
        seed = config.get("seed")
        if isinstance(seed, dict):
            # A seed generator, which moves on by itself.
            return self.initializer
        if seed is not None:
            config["seed"] = seed + number
        return type(self.initializer).from_config(config)
