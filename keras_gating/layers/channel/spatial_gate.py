import keras
from keras import constraints
from keras import initializers
from keras import ops
from keras import regularizers

from keras_gating.functional import checks
from keras_gating.functional.masks import hide
from keras_gating.functional.pooling import position_max
from keras_gating.functional.pooling import position_mean
from keras_gating.layers.channel.base import FeatureMapGate
from keras_gating.layers.child_calls import call_child
from keras_gating.layers.trainable_flags import inherit_trainable


class _BatchNormalization(keras.layers.BatchNormalization):
    """Takes a mask for a single channel, whose axis Keras squeezes away."""

    def _moments(self, inputs, mask):
        moments = super()._moments(inputs, mask)
        return tuple(ops.reshape(moment, (-1,)) for moment in moments)


_CONVOLUTIONS = {
    3: keras.layers.Conv1D,
    4: keras.layers.Conv2D,
    5: keras.layers.Conv3D,
}


@keras.saving.register_keras_serializable(package="keras_gating")
class SpatialGate(FeatureMapGate):
    """The spatial gate of CBAM: one factor per position for all channels.

    `outputs = x ⊙ scale · gate_activation(conv([mean(x); max(x)]))`

    Mean and maximum are over the channels, and the convolution, of size
    `kernel_size` in every spatial direction, makes one map of the two. Padded
    positions of a masked input count as zeros around it.

    Weights: `convolution/kernel` `(kernel_size…, 2, 1)`; with `batch_norm`
    those of `batch_norm`.

    Args:
        kernel_size: odd size of the convolution. Defaults to 7.
        gate_activation: activation of the gate. Defaults to `"sigmoid"`.
        gate_scale: factor on the activated gate. Defaults to 1.0.
        gate_initializer: initializer of the kernel.
        batch_norm: whether batch normalization (ε = 1e-5) follows the
            convolution, as in public checkpoints. Defaults to `False`.
        map_order: `"mean_max"`, or `"max_mean"` as in the authors' code.
        light: whether the convolution reads the one map `½ mean + ½ max`.
        kernel_regularizer: regularizer of the kernel.
        kernel_constraint: constraint of the kernel.
        data_format: `"channels_last"` or `"channels_first"`. Defaults to
            `keras.config.image_data_format()`.
        **kwargs: arguments of `keras.layers.Layer`, such as `name`, `dtype`
            and `trainable`.

    Call arguments:
        inputs: a sequence, image or volume, of rank 3, 4 or 5.
        training: whether batch normalization uses the batch.
        mask: padding mask, the shape of the inputs without channels or its
            first axes. Defaults to the Keras mask of the inputs.

    Returns:
        A tensor of the shape of `inputs`.

    Raises:
        ValueError: for even kernel sizes, unknown names and other ranks.

    Example:

    >>> import numpy as np
    >>> from keras_gating.layers import SpatialGate
    >>> layer = SpatialGate(data_format="channels_last")
    >>> tuple(layer(np.ones((2, 8, 8, 32))).shape), layer.count_params()
    ((2, 8, 8, 32), 98)

    References:
        Woo et al. 2018, CBAM, arXiv 1807.06521.
    """

    def __init__(
        self,
        kernel_size=7,
        gate_activation="sigmoid",
        gate_scale=1.0,
        gate_initializer="glorot_uniform",
        batch_norm=False,
        map_order="mean_max",
        light=False,
        kernel_regularizer=None,
        kernel_constraint=None,
        data_format=None,
        **kwargs,
    ):
        super().__init__(
            gate_activation=gate_activation,
            gate_scale=gate_scale,
            gate_initializer=gate_initializer,
            data_format=data_format,
            **kwargs,
        )
        self.kernel_size = checks.odd_size("kernel_size", kernel_size)
        self.batch_norm = checks.boolean("batch_norm", batch_norm)
        self.map_order = checks.one_of(
            "map_order", map_order, ("mean_max", "max_mean")
        )
        self.light = checks.boolean("light", light)
        if light and map_order != "mean_max":
            raise ValueError(
                "With `light=True` there is one map, so `map_order` has no "
                f"effect. Received: map_order={map_order!r}"
            )
        self.kernel_regularizer = regularizers.get(kernel_regularizer)
        self.kernel_constraint = constraints.get(kernel_constraint)
        self.convolution = self.normalization = None
        self._check_start()

    def build(self, input_shape):
        self._channels(input_shape)
        # The kernel has one rank, but no number of channels.
        self.input_spec = keras.layers.InputSpec(ndim=len(input_shape))
        initializer = self.gate_initializer
        if isinstance(initializer, initializers.Initializer):
            initializer = initializer.clone()
        # The maps are few, so they are brought to a layout in which the
        # backend convolves on every device. torch has one of its own, and in
        # the other no gradient of such a kernel in float64.
        is_torch = keras.config.backend() == "torch"
        self.convolution = _CONVOLUTIONS[len(input_shape)](
            1,
            self.kernel_size,
            padding="same",
            data_format="channels_first" if is_torch else "channels_last",
            use_bias=False,
            kernel_initializer=initializer,
            kernel_regularizer=self.kernel_regularizer,
            kernel_constraint=self.kernel_constraint,
            dtype=self.dtype_policy,
            name="convolution",
        )
        positions = [
            input_shape[axis] for axis in self._position_axes(len(input_shape))
        ]
        count = 1 if self.light else 2
        self.convolution.build(
            (None, count, *positions)
            if self._map_axis == 1
            else (None, *positions, count)
        )
        if self.batch_norm:
            self.normalization = _BatchNormalization(
                epsilon=1e-5, dtype=self.dtype_policy, name="batch_norm"
            )
            self.normalization.build((None, *positions, 1))
        inherit_trainable(self)

    @property
    def _map_axis(self):
        is_first = self.convolution.data_format == "channels_first"
        return 1 if is_first else -1

    def call(self, inputs, training=None, mask=None):
        return self.gated(inputs, training, mask)

    def gated(self, inputs, training, mask, overwrite=None):
        """What `call` returns; `overwrite` as in `functional.gate.gated`."""
        rank = len(inputs.shape)
        channel = self._channel_axis(rank)
        visible = self._visible(inputs, mask)
        values = inputs if visible is None else hide(inputs, visible)
        mean = position_mean(values, (channel,))
        maximum = position_max(values, (channel,))
        if self.light:
            maps = [0.5 * mean + 0.5 * maximum]
        elif self.map_order == "mean_max":
            maps = [mean, maximum]
        else:
            maps = [maximum, mean]
        logits = call_child(self, self.convolution, self._stacked(maps))
        logits = ops.squeeze(logits, axis=self._map_axis)
        if self.normalization is not None:
            seen = None if visible is None else ops.squeeze(visible, channel)
            logits = call_child(
                self,
                self.normalization,
                ops.expand_dims(logits, -1),
                training=training,
                mask=seen,
            )
            logits = ops.squeeze(logits, axis=-1)
        logits = ops.expand_dims(logits, channel)
        return self._apply(inputs, logits, visible, visible, overwrite)

    def _stacked(self, maps):
        """The maps as one tensor, in the layout of the convolution."""
        axis = self._map_axis
        if axis == -1 or self.compute_dtype != "float32":
            return ops.stack(maps, axis=axis)
        # On torch a backward pass in this order takes a quarter of the time. In
        # float16 and float64 it has no gradient of the kernel for images, and
        # in bfloat16 a wrong one for volumes that are smaller than the kernel.
        return ops.moveaxis(ops.stack(maps, axis=-1), -1, axis)

    def get_config(self):
        config = {
            name: getattr(self, name)
            for name in ("kernel_size", "batch_norm", "map_order", "light")
        }
        config["kernel_regularizer"] = regularizers.serialize(
            self.kernel_regularizer
        )
        config["kernel_constraint"] = constraints.serialize(
            self.kernel_constraint
        )
        return {**super().get_config(), **config}
