import keras
from keras import activations
from keras import constraints
from keras import initializers
from keras import regularizers

from keras_gating.functional import checks
from keras_gating.functional.gate import as_dtype
from keras_gating.layers.child_calls import call_child
from keras_gating.layers.low_rank import LowRankUpdates
from keras_gating.layers.projection import dense
from keras_gating.layers.quantization import QuantizedChildren
from keras_gating.layers.trainable_flags import inherit_trainable
from keras_gating.layers.weight_arguments import weight_arguments
from keras_gating.layers.weight_arguments import weight_config


class FeedForwardBase(LowRankUpdates, QuantizedChildren):
    """Expansion, dropout and projection back; subclasses expand."""

    _quantized_children = ("hidden", "projection")

    def __init__(
        self,
        hidden_dim,
        output_dim,
        use_bias,
        dropout,
        kernel_initializer,
        bias_initializer,
        kernel_regularizer,
        bias_regularizer,
        kernel_constraint,
        bias_constraint,
        seed,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.hidden_dim = checks.positive_integer("hidden_dim", hidden_dim)
        self.output_dim = checks.positive_integer(
            "output_dim", output_dim, optional=True
        )
        self.use_bias = checks.boolean("use_bias", use_bias)
        self.dropout = checks.probability("dropout", dropout)
        self.kernel_initializer = initializers.get(kernel_initializer)
        self.bias_initializer = initializers.get(bias_initializer)
        self.kernel_regularizer = regularizers.get(kernel_regularizer)
        self.bias_regularizer = regularizers.get(bias_regularizer)
        self.kernel_constraint = constraints.get(kernel_constraint)
        self.bias_constraint = constraints.get(bias_constraint)
        checks.bias_arguments(self)
        self.seed = checks.seed(seed)
        self.supports_masking = True
        self.hidden = self.projection = None

    def build(self, input_shape):
        checks.features("inputs", input_shape)
        self.input_spec = keras.layers.InputSpec(
            ndim=len(input_shape), axes={-1: input_shape[-1]}
        )
        self.hidden = self._expansion(input_shape)
        self.hidden.build(tuple(input_shape))
        hidden_shape = self.hidden.compute_output_shape(tuple(input_shape))
        self.dropout_layer = keras.layers.Dropout(
            self.dropout, seed=self.seed, dtype=self._product_policy()
        )
        self.projection = dense(
            len(input_shape) - 1,
            1,
            (self.output_dim or input_shape[-1],),
            self.use_bias,
            "projection",
            split_axis=0,
            **weight_arguments(self),
            dtype=self._product_policy(),
        )
        self.projection.build(hidden_shape)
        inherit_trainable(self)

    def call(self, inputs, training=None, mask=None):
        if mask is not None:
            checks.padding_mask("mask", mask, inputs.shape)
        hidden = self._expand(inputs, mask)
        if self.dropout:
            hidden = self.dropout_layer(hidden, training=training)
        outputs = call_child(self, self.projection, hidden)
        return as_dtype(outputs, self.compute_dtype)

    def compute_output_shape(self, input_shape):
        checks.features("inputs", input_shape)
        return (*input_shape[:-1], self.output_dim or input_shape[-1])

    def get_config(self):
        config = {
            name: getattr(self, name)
            for name in (
                "hidden_dim",
                "output_dim",
                "use_bias",
                "dropout",
                "seed",
            )
        }
        return {**super().get_config(), **config, **weight_config(self)}

    def _product_policy(self):
        return self.dtype_policy

    def _expansion(self, input_shape):
        raise NotImplementedError

    def _expand(self, inputs, mask):
        return call_child(self, self.hidden, inputs)


@keras.saving.register_keras_serializable(package="keras_gating")
class FeedForward(FeedForwardBase):
    """The feed-forward layer of a transformer, without a gate.

    `outputs = dropout(activation(x W₁ + b₁)) W₂ + b₂`

    It is the baseline of `GatedFeedForward`, with the same arguments and
    defaults where they mean the same, so that a swap changes the gate alone.

    Weights: `hidden/kernel` `(d, hidden_dim)`, `projection/kernel`
    `(hidden_dim, output_dim)`, each with its bias if there is one.

    Args:
        hidden_dim: number of hidden features.
        activation: name or callable. Defaults to `"relu"`.
        output_dim: number of output features. Defaults to the input's.
        use_bias: whether both maps have a bias. Defaults to `False`.
        dropout: dropout probability of the hidden features.
        kernel_initializer: initializer of the kernels.
        bias_initializer: initializer of the biases.
        kernel_regularizer: regularizer of the kernels.
        bias_regularizer: regularizer of the biases.
        kernel_constraint: constraint of the kernels.
        bias_constraint: constraint of the biases.
        seed: integer seed of the dropout.
        **kwargs: arguments of `keras.layers.Layer`, such as `name`, `dtype`
            and `trainable`.

    Call arguments:
        inputs: `(…, d)`, of rank 2 or more.
        training: whether dropout is active.
        mask: padding mask; it is passed on.

    Returns:
        A tensor `(…, output_dim)`.

    Example:

    >>> import numpy as np
    >>> from keras_gating.layers import FeedForward
    >>> tuple(FeedForward(32, activation="gelu")(np.ones((2, 5, 8))).shape)
    (2, 5, 8)

    References:
        Vaswani et al. 2017, arXiv 1706.03762.
    """

    def __init__(
        self,
        hidden_dim,
        activation="relu",
        output_dim=None,
        use_bias=False,
        dropout=0.0,
        kernel_initializer="glorot_uniform",
        bias_initializer="zeros",
        kernel_regularizer=None,
        bias_regularizer=None,
        kernel_constraint=None,
        bias_constraint=None,
        seed=None,
        **kwargs,
    ):
        super().__init__(
            hidden_dim,
            output_dim,
            use_bias,
            dropout,
            kernel_initializer,
            bias_initializer,
            kernel_regularizer,
            bias_regularizer,
            kernel_constraint,
            bias_constraint,
            seed,
            **kwargs,
        )
        self.activation = activations.get(activation)

    def get_config(self):
        return {
            **super().get_config(),
            "activation": activations.serialize(self.activation),
        }

    def _expansion(self, input_shape):
        return dense(
            len(input_shape) - 1,
            1,
            (self.hidden_dim,),
            self.use_bias,
            "hidden",
            split_axis=1,
            activation=self.activation,
            **weight_arguments(self),
            dtype=self.dtype_policy,
        )
