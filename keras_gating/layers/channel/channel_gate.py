import keras

from keras_gating.functional import checks
from keras_gating.functional.pooling import position_max
from keras_gating.functional.pooling import position_mean
from keras_gating.layers.channel.bottleneck import BottleneckGate


@keras.saving.register_keras_serializable(package="keras_gating")
class ChannelGate(BottleneckGate):
    """The channel gate of CBAM: one MLP reads the means and the maxima.

    `outputs = x ⊙ scale · gate_activation(MLP(mean(x)) + MLP(max(x)))`

    with `MLP(z) = W₂ activation(W₁ z)`, the same two kernels for both, mean
    and maximum over all positions (over real ones on masked sequences).

    Weights: `reduction/kernel` `(C, width)`, `expansion/kernel` `(width, C)`.

    Args:
        ratio: factor by which channels are reduced, 1 or more. Defaults to 16.
        units: the width itself, in place of `ratio`.
        divisor: rounds the width to a multiple, see `SqueezeExcite`.
        activation: activation of the MLP. Defaults to `"relu"`.
        gate_activation: activation of the gate. Defaults to `"sigmoid"`.
        gate_scale: factor on the activated gate. Defaults to 1.0.
        gate_initializer: initializer of the last kernel, `W₂`.
        use_bias: whether the MLP has biases. Defaults to `False`.
        light: whether the MLP reads `½ mean + ½ max` once, instead of each.
        kernel_initializer: initializer of `W₁`.
        bias_initializer: initializer of the biases.
        kernel_regularizer: regularizer of both kernels.
        bias_regularizer: regularizer of both biases.
        kernel_constraint: constraint of both kernels.
        bias_constraint: constraint of both biases.
        data_format: `"channels_last"` or `"channels_first"`. Defaults to
            `keras.config.image_data_format()`.
        **kwargs: arguments of `keras.layers.Layer`, such as `name`, `dtype`
            and `trainable`.

    Call arguments:
        inputs: a sequence, image or volume, of rank 3, 4 or 5.
        mask: padding mask, the shape of the inputs without channels or its
            first axes. Defaults to the Keras mask of the inputs.

    Returns:
        A tensor of the shape of `inputs`.

    Raises:
        ValueError: for ratios below 1, sizes below 1 and other ranks.

    Example:

    >>> import numpy as np
    >>> from keras_gating.layers import ChannelGate
    >>> layer = ChannelGate(ratio=4, data_format="channels_last")
    >>> tuple(layer(np.ones((2, 8, 8, 32))).shape)
    (2, 8, 8, 32)

    References:
        Woo et al. 2018, CBAM, arXiv 1807.06521.
    """

    def __init__(
        self,
        ratio=16,
        units=None,
        divisor=None,
        activation="relu",
        gate_activation="sigmoid",
        gate_scale=1.0,
        gate_initializer="glorot_uniform",
        use_bias=False,
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
        super().__init__(
            ratio=ratio,
            units=units,
            divisor=divisor,
            activation=activation,
            use_bias=use_bias,
            kernel_initializer=kernel_initializer,
            bias_initializer=bias_initializer,
            kernel_regularizer=kernel_regularizer,
            bias_regularizer=bias_regularizer,
            kernel_constraint=kernel_constraint,
            bias_constraint=bias_constraint,
            gate_activation=gate_activation,
            gate_scale=gate_scale,
            gate_initializer=gate_initializer,
            data_format=data_format,
            **kwargs,
        )
        self.light = checks.boolean("light", light)

    def call(self, inputs, mask=None):
        rank = len(inputs.shape)
        axes = self._position_axes(rank)
        visible = self._visible(inputs, mask)
        mean = position_mean(inputs, axes, visible)
        maximum = position_max(inputs, axes, visible)
        if self.light:
            logits = self._logits(0.5 * mean + 0.5 * maximum)
        else:
            logits = self._logits(mean) + self._logits(maximum)
        return self._apply(inputs, self._spread(logits, rank), visible)

    def get_config(self):
        return {**super().get_config(), "light": self.light}
