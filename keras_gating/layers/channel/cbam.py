import keras

from keras_gating.functional.gate import as_dtype
from keras_gating.layers.channel.channel_gate import ChannelGate
from keras_gating.layers.channel.spatial_gate import SpatialGate
from keras_gating.layers.checked_inputs import CheckedInputs
from keras_gating.layers.child_calls import call_child
from keras_gating.layers.child_calls import is_plain
from keras_gating.layers.low_rank import LowRankUpdates
from keras_gating.layers.trainable_flags import inherit_trainable


@keras.saving.register_keras_serializable(package="keras_gating")
class CBAM(LowRankUpdates, CheckedInputs):
    """Convolutional block attention: a channel gate, then a spatial gate.

    `outputs = SpatialGate(ChannelGate(x))`

    The defaults are those of the paper's formulas. Public checkpoints differ:
    the authors' code has biases in the MLP, batch normalization behind the
    convolution and the maps in the order maximum, mean
    (`use_bias=True, batch_norm=True, map_order="max_mean"`); timm has no
    biases, batch normalization, and the order mean, maximum.

    Args:
        ratio: factor by which channels are reduced, 1 or more. Defaults to 16.
        kernel_size: odd size of the spatial convolution. Defaults to 7.
        units: width of the MLP, in place of `ratio`.
        divisor: rounds the width to a multiple, see `SqueezeExcite`.
        activation: activation of the MLP. Defaults to `"relu"`.
        gate_activation: activation of both gates. Defaults to `"sigmoid"`.
        gate_scale: factor on both activated gates. Defaults to 1.0.
        gate_initializer: initializer of the last kernel of each gate.
        use_bias: whether the MLP has biases. Defaults to `False`.
        batch_norm: whether batch normalization follows the convolution.
        map_order: `"mean_max"` or `"max_mean"`, the order of the two maps that
            the convolution reads.
        light: whether mean and maximum are averaged before the MLP and before
            the convolution, as in timm's `LightCbamModule`.
        kernel_initializer: initializer of the MLP's first kernel.
        bias_initializer: initializer of the biases.
        kernel_regularizer: regularizer of all kernels.
        bias_regularizer: regularizer of the biases.
        kernel_constraint: constraint of all kernels.
        bias_constraint: constraint of the biases.
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
        ValueError: for ratios below 1, even kernel sizes and unknown names.

    Example:

    >>> import numpy as np
    >>> from keras_gating.layers import CBAM
    >>> layer = CBAM(ratio=4, data_format="channels_last")
    >>> tuple(layer(np.ones((2, 8, 8, 32))).shape)
    (2, 8, 8, 32)
    >>> [tuple(weight.shape) for weight in layer.weights]
    [(32, 8), (8, 32), (7, 7, 2, 1)]

    References:
        Woo et al. 2018, CBAM, arXiv 1807.06521.
    """

    def __init__(
        self,
        ratio=16,
        kernel_size=7,
        units=None,
        divisor=None,
        activation="relu",
        gate_activation="sigmoid",
        gate_scale=1.0,
        gate_initializer="glorot_uniform",
        use_bias=False,
        batch_norm=False,
        map_order="mean_max",
        light=False,
        kernel_initializer="glorot_uniform",
        bias_initializer="zeros",
        kernel_regularizer=None,
        bias_regularizer=None,
        kernel_constraint=None,
        bias_constraint=None,
        data_format=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        shared = {
            "gate_activation": gate_activation,
            "gate_scale": gate_scale,
            "gate_initializer": gate_initializer,
            "light": light,
            "kernel_regularizer": kernel_regularizer,
            "kernel_constraint": kernel_constraint,
            "data_format": data_format,
        }
        channel = {
            "ratio": ratio,
            "units": units,
            "divisor": divisor,
            "activation": activation,
            "use_bias": use_bias,
            "kernel_initializer": kernel_initializer,
            "bias_initializer": bias_initializer,
            "bias_regularizer": bias_regularizer,
            "bias_constraint": bias_constraint,
        }
        spatial = {
            "kernel_size": kernel_size,
            "batch_norm": batch_norm,
            "map_order": map_order,
        }
        self.channel_gate = ChannelGate(
            **channel, **shared, dtype=self.dtype_policy, name="channel_gate"
        )
        self.spatial_gate = SpatialGate(
            **spatial, **shared, dtype=self.dtype_policy, name="spatial_gate"
        )
        # Checked, and made into objects, by the two gates.
        for gate, names in (
            (self.channel_gate, (*channel, *shared)),
            (self.spatial_gate, spatial),
        ):
            for name in names:
                setattr(self, name, getattr(gate, name))
        self.supports_masking = True

    def build(self, input_shape):
        self.channel_gate.build(tuple(input_shape))
        self.spatial_gate.build(tuple(input_shape))
        self.input_spec = keras.layers.InputSpec(
            ndim=len(input_shape), axes=self.channel_gate.input_spec.axes
        )
        inherit_trainable(self)

    def call(self, inputs, training=None, mask=None):
        channel_gate, spatial_gate = self.channel_gate, self.spatial_gate
        if is_plain(channel_gate, self) and is_plain(spatial_gate, self):
            inputs = as_dtype(inputs, self.compute_dtype)
            gated = channel_gate.call(inputs, mask=mask)
            # Nobody has seen what is between the two.
            return spatial_gate.gated(gated, training, mask, overwrite="inputs")
        gated = call_child(self, channel_gate, inputs, mask=mask)
        return call_child(
            self, spatial_gate, gated, training=training, mask=mask
        )

    def compute_output_shape(self, input_shape):
        return self.channel_gate.compute_output_shape(input_shape)

    def get_config(self):
        config = {
            **self.spatial_gate.get_config(),
            **self.channel_gate.get_config(),
        }
        return {**config, **super().get_config()}
