"""What the gates on feature maps have in common."""

import keras
from keras import activations
from keras import initializers
from keras import ops

from keras_gating.functional import checks
from keras_gating.functional import vanishes_at_zero
from keras_gating.functional.gate import gated
from keras_gating.functional.masks import as_boolean_mask
from keras_gating.functional.masks import hide
from keras_gating.functional.masks import with_rank
from keras_gating.layers.checked_inputs import CheckedInputs
from keras_gating.layers.low_rank import LowRankUpdates


class FeatureMapGate(LowRankUpdates, CheckedInputs):
    """A gate on sequences, images or volumes; subclasses make the logits."""

    def __init__(
        self,
        gate_activation,
        gate_scale,
        gate_initializer,
        data_format,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.gate_activation = activations.get(gate_activation)
        self.gate_scale = checks.factor("gate_scale", gate_scale)
        self.gate_initializer = initializers.get(gate_initializer)
        self.data_format = keras.config.image_data_format()
        if data_format is not None:
            self.data_format = checks.one_of(
                "data_format", data_format, ("channels_last", "channels_first")
            )
        self.supports_masking = True

    def _check_start(self):
        """Raises if the gate starts at zero and cannot leave it."""
        is_zero = isinstance(self.gate_initializer, initializers.Zeros)
        if is_zero and vanishes_at_zero(self.gate_activation):
            raise ValueError(
                "A gate with activation "
                f"{activations.serialize(self.gate_activation)!r} has value 0 "
                "and slope 0 at logit 0, so it would never train from zeros. "
                "Pass another `gate_initializer`. Received: zeros"
            )

    @property
    def _channels_last(self):
        return self.data_format == "channels_last"

    def _channel_axis(self, rank):
        return rank - 1 if self._channels_last else 1

    def _position_axes(self, rank):
        channel = self._channel_axis(rank)
        return tuple(axis for axis in range(1, rank) if axis != channel)

    def _channels(self, input_shape):
        """Returns the number of channels of a valid input shape."""
        rank = len(input_shape)
        if rank not in (3, 4, 5):
            raise ValueError(
                "The input must be a sequence, an image or a volume, of rank "
                f"3, 4 or 5. Received: inputs.shape={tuple(input_shape)}"
            )
        channels = input_shape[self._channel_axis(rank)]
        if channels is None or 0 in tuple(input_shape)[1:]:
            raise ValueError(
                "The number of channels must be known, and there must be a "
                "channel and a position at least. Received: inputs.shape="
                f"{tuple(input_shape)}, data_format={self.data_format!r}"
            )
        return channels

    def _demand(self, channels):
        """Refuses calls with another number of channels from now on."""
        axis = -1 if self._channels_last else 1
        self.input_spec = keras.layers.InputSpec(
            min_ndim=3, max_ndim=5, axes={axis: channels}
        )

    def _visible(self, inputs, mask):
        """A padding mask `(B, positions…)` in the rank of the inputs.

        The mask that Keras carries along after an embedding or a recurrent
        layer has the first of these axes only.
        """
        self._channels(inputs.shape)
        if mask is None:
            return None
        rank = len(inputs.shape)
        mask = as_boolean_mask(mask, "mask")
        axes = (0, *self._position_axes(rank))
        sizes = [inputs.shape[axis] for axis in axes]
        agree = all(a == b or None in (a, b) for a, b in zip(mask.shape, sizes))
        if not 2 <= len(mask.shape) <= rank - 1 or not agree:
            raise ValueError(
                "`mask` must have the shape of the inputs without channels, "
                f"{tuple(sizes)}, or the first two or more of these axes. "
                f"Received: mask.shape={tuple(mask.shape)}, "
                f"inputs.shape={tuple(inputs.shape)}"
            )
        mask = with_rank(mask, rank - 1)
        return ops.expand_dims(mask, self._channel_axis(rank))

    def _spread(self, logits, rank):
        """`(B, C)` → a shape that broadcasts against the inputs."""
        for axis in self._position_axes(rank):
            logits = ops.expand_dims(logits, axis)
        return logits

    def _apply(self, inputs, logits, visible=None, mask=None, overwrite=None):
        """Gates the inputs; `mask` are the positions of `logits` to record."""
        if visible is not None:
            # A gate is shared by positions or channels, so its gradient would
            # sum 0 · NaN over the padding.
            inputs = hide(inputs, visible, keep_finite=True)
        return gated(
            inputs,
            logits,
            self.gate_activation,
            self.gate_scale,
            mask=mask,
            owner=self,
            overwrite=overwrite,
        )

    def compute_output_shape(self, input_shape):
        self._channels(input_shape)
        return tuple(input_shape)

    def get_config(self):
        config = {
            "gate_activation": activations.serialize(self.gate_activation),
            "gate_scale": self.gate_scale,
            "gate_initializer": initializers.serialize(self.gate_initializer),
            "data_format": self.data_format,
        }
        return {**super().get_config(), **config}
