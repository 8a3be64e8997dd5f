import keras

from keras_gating.functional.pooling import position_mean
from keras_gating.layers.channel.bottleneck import BottleneckGate


@keras.saving.register_keras_serializable(package="keras_gating")
class SqueezeExcite(BottleneckGate):
    """Squeeze-and-excitation: a gate on channels that reads their means.

    `outputs = x ⊙ scale · gate_activation(W₂ activation(W₁ mean(x)))`

    The mean is over all positions; `W₁` is `(C, width)` and `W₂` is
    `(width, C)` with `width = max(1, C // ratio)`. It is computed in float32
    under half precision, and on masked sequences over real positions alone, so
    that a padded batch gives what each sequence gives alone.

    Weights: `reduction/kernel`, `expansion/kernel`, each with its bias.

    Args:
        ratio: factor by which channels are reduced, 1 or more. Defaults to 16.
        units: the width itself, in place of `ratio`.
        divisor: rounds `C / ratio` to a multiple, at least one, as in
            checkpoints of timm (8). Defaults to `None`, no rounding.
        activation: activation of the bottleneck. Defaults to `"relu"`.
        gate_activation: activation of the gate. Defaults to `"sigmoid"`.
            `"hard_sigmoid"` is x/6 + ½ clipped to [0, 1], as in MobileNetV3
            (in Keras 2 it was x/5 + ½).
        gate_scale: factor on the activated gate. Defaults to 1.0.
        gate_initializer: initializer of the last kernel, `W₂`. Zeros with
            `gate_scale=2.0` make the layer start as the identity.
        use_bias: whether both maps have a bias. Defaults to `True`.
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
    >>> from keras_gating.layers import SqueezeExcite
    >>> layer = SqueezeExcite(ratio=4, data_format="channels_last")
    >>> tuple(layer(np.ones((2, 8, 8, 32))).shape)
    (2, 8, 8, 32)
    >>> [tuple(weight.shape) for weight in layer.weights]
    [(32, 8), (8,), (8, 32), (32,)]

    References:
        Hu et al. 2017, Squeeze-and-Excitation Networks, arXiv 1709.01507.
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
        use_bias=True,
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

    def call(self, inputs, mask=None):
        rank = len(inputs.shape)
        visible = self._visible(inputs, mask)
        mean = position_mean(inputs, self._position_axes(rank), visible)
        logits = self._spread(self._logits(mean), rank)
        return self._apply(inputs, logits, visible)
