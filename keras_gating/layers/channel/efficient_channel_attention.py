import math

import keras
from keras import constraints
from keras import initializers
from keras import ops
from keras import regularizers

from keras_gating._backend import on_torch
from keras_gating.functional import checks
from keras_gating.functional.gate import as_dtype
from keras_gating.functional.gate import to_float32
from keras_gating.functional.pooling import position_mean
from keras_gating.layers.channel.base import FeatureMapGate
from keras_gating.layers.child_calls import call_child
from keras_gating.layers.child_calls import is_plain
from keras_gating.layers.trainable_flags import inherit_trainable


@keras.saving.register_keras_serializable(package="keras_gating")
class ECA(FeatureMapGate):
    """Efficient channel attention: a channel gate of a handful of weights.

    `outputs = x ⊙ scale · gate_activation(conv_k(mean(x)))`

    The mean over all positions is a vector of C channels, and `conv_k` a
    convolution of size k along the channels: each gate reads k neighbours. By
    default k grows with the number of channels, `|log₂(C)/gamma + b/gamma|`,
    truncated and made odd: 3 for 16 to 64 channels, 5 up to 1024, 7 for 2048.

    Weights: one kernel `(k, 1, 1)`, no bias.

    Args:
        kernel_size: odd size of the convolution. Defaults to `None`: from the
            number of channels.
        gamma: slope of that rule. Defaults to 2.
        b: offset of that rule. Defaults to 1.
        padding: `"zero"`, or `"circular"`: the last channel is a neighbour of
            the first. Defaults to `"zero"`.
        gate_activation: activation of the gate. Defaults to `"sigmoid"`.
        gate_scale: factor on the activated gate. Defaults to 1.0.
        gate_initializer: initializer of the kernel.
        kernel_regularizer: regularizer of the kernel.
        kernel_constraint: constraint of the kernel.
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
        ValueError: for even kernel sizes and arguments without effect.

    Example:

    >>> import numpy as np
    >>> from keras_gating.layers import ECA
    >>> layer = ECA(data_format="channels_last")
    >>> tuple(layer(np.ones((2, 8, 8, 128))).shape), layer.count_params()
    ((2, 8, 8, 128), 5)

    References:
        Wang et al. 2019, ECA-Net, arXiv 1910.03151.
    """

    def __init__(
        self,
        kernel_size=None,
        gamma=2,
        b=1,
        padding="zero",
        gate_activation="sigmoid",
        gate_scale=1.0,
        gate_initializer="glorot_uniform",
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
        self.kernel_size = checks.odd_size("kernel_size", kernel_size, True)
        self.gamma = checks.positive_number("gamma", gamma)
        self.b = b
        if not checks.is_number(b):
            raise ValueError(f"`b` must be a finite number. Received: b={b!r}")
        if kernel_size is not None and (gamma, b) != (2, 1):
            raise ValueError(
                "`gamma` and `b` have no effect when `kernel_size` is given. "
                f"Received: kernel_size={kernel_size}, gamma={gamma}, b={b}"
            )
        self.padding = checks.one_of("padding", padding, ("zero", "circular"))
        self.kernel_regularizer = regularizers.get(kernel_regularizer)
        self.kernel_constraint = constraints.get(kernel_constraint)
        self.convolution = None
        self._check_start()

    def size(self, channels):
        """Size of the convolution for this number of channels."""
        if self.kernel_size is not None:
            return self.kernel_size
        size = abs(math.log2(channels) + self.b) / self.gamma
        if size > checks.LARGEST_SIZE:
            raise ValueError(
                f"`gamma` and `b` make a convolution of size {size:g}. "
                f"Received: gamma={self.gamma}, b={self.b}"
            )
        size = int(size)
        return size if size % 2 else size + 1

    def build(self, input_shape):
        channels = self._channels(input_shape)
        self._demand(channels)
        initializer = self.gate_initializer
        if isinstance(initializer, initializers.Initializer):
            initializer = initializer.clone()
        self.convolution = keras.layers.Conv1D(
            1,
            self.size(channels),
            padding="same" if self.padding == "zero" else "valid",
            data_format="channels_last",
            use_bias=False,
            kernel_initializer=initializer,
            kernel_regularizer=self.kernel_regularizer,
            kernel_constraint=self.kernel_constraint,
            dtype=self.dtype_policy,
            name="convolution",
        )
        margin = 0 if self.padding == "zero" else self.size(channels) - 1
        self.convolution.build((None, channels + margin, 1))
        inherit_trainable(self)

    def call(self, inputs, mask=None):
        rank = len(inputs.shape)
        axes = self._position_axes(rank)
        visible = self._visible(inputs, mask)
        mean = position_mean(inputs, axes, visible)
        logits = self._convolved(mean)
        return self._apply(inputs, self._spread(logits, rank), visible)

    def get_config(self):
        config = {
            "kernel_size": self.kernel_size,
            "gamma": self.gamma,
            "b": self.b,
            "padding": self.padding,
            "kernel_regularizer": regularizers.serialize(
                self.kernel_regularizer
            ),
            "kernel_constraint": constraints.serialize(self.kernel_constraint),
        }
        return {**super().get_config(), **config}

    def _convolved(self, signal):
        """The convolution along the channels, `(B, C)` from `(B, C)`."""
        if self.padding == "circular":
            signal = self._wrapped(signal)
        # OpenVINO knows the convolution, but not the windows.
        if (
            keras.config.backend() == "torch"
            and not on_torch.is_jit_traced()
            and is_plain(self.convolution, self)
        ):
            kernel = ops.reshape(self.convolution.kernel, (-1,))
            margin = kernel.shape[0] // 2 if self.padding == "zero" else 0
            # A convolution in half precision adds in float32 too.
            outputs = on_torch.single_convolution(
                to_float32(signal), to_float32(kernel), margin
            )
            return as_dtype(outputs, signal.dtype)
        signal = ops.expand_dims(signal, -1)
        outputs = call_child(self, self.convolution, signal)
        return ops.squeeze(outputs, axis=-1)

    def _wrapped(self, signal):
        channels = signal.shape[1]
        margin = self.size(channels) // 2
        around = [i % channels for i in range(-margin, channels + margin)]
        return ops.take(signal, around, axis=1)
