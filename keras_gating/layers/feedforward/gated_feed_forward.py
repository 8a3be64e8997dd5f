import keras

from keras_gating.functional import checks
from keras_gating.layers.child_calls import call_child
from keras_gating.layers.feedforward import variants
from keras_gating.layers.feedforward.feed_forward import FeedForwardBase
from keras_gating.layers.feedforward.gated_linear_unit import GLU
from keras_gating.layers.weight_arguments import weight_arguments

_VARIANTS = {
    "swiglu": (variants.SwiGLU, {}),
    "geglu": (variants.GEGLU, {}),
    "geglu_tanh": (variants.GEGLU, {"approximate": True}),
    "reglu": (variants.ReGLU, {}),
    "glu": (GLU, {}),
    "bilinear": (variants.BilinearGLU, {}),
}


@keras.saving.register_keras_serializable(package="keras_gating")
class GatedFeedForward(FeedForwardBase):
    """The feed-forward layer of a transformer with a gated hidden layer.

    `outputs = dropout((x W + b) ⊙ activation(x V + c)) W₂ + b₂`

    Three matrices instead of two: at the same `hidden_dim` half as many
    parameters again as `FeedForward`. `width_rule="two_thirds"` takes ⅔ of
    `hidden_dim` and so has the parameters of a `FeedForward(hidden_dim)`.

    Weights: `hidden/projection/kernel` `(d, 2, width)`, `projection/kernel`
    `(width, output_dim)`, each with its bias if there is one.

    Args:
        hidden_dim: number of hidden features, before the width rule.
        variant: `"swiglu"` (SiLU), `"geglu"` (GELU, exact), `"geglu_tanh"`
            (GELU, tanh approximation), `"reglu"` (ReLU), `"glu"` (sigmoid) or
            `"bilinear"` (no activation). Defaults to `"swiglu"`.
        output_dim: number of output features. Defaults to the input's.
        use_bias: whether all maps have a bias. Defaults to `False`.
        dropout: dropout probability of the hidden features.
        width_rule: `"two_thirds"`: the width is `round(2/3 · hidden_dim)`, at
            least 1. Defaults to `None`: the width is `hidden_dim`.
        limit: bound on what is multiplied, see `GLU`.
        gate_first: whether slice 0 of the hidden kernel is the gate.
        product_dtype: dtype of the product and of the projection that reads
            it; the output has the compute dtype. `"float32"` avoids the
            overflow of float16 at 65504. Defaults to `None`, the compute dtype.
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
        mask: padding mask; it is passed on, and recordings of gate values
            leave padding out.

    Returns:
        A tensor `(…, output_dim)`.

    Raises:
        ValueError: for unknown variants and rules, sizes below 1, and a
            `limit` that is not positive.

    Example:

    >>> import numpy as np
    >>> from keras_gating.layers import FeedForward, GatedFeedForward
    >>> x = np.ones((2, 5, 8))
    >>> plain = FeedForward(48)
    >>> gated = GatedFeedForward(48, width_rule="two_thirds")
    >>> tuple(gated(x).shape) == tuple(plain(x).shape)
    True
    >>> gated.count_params() == plain.count_params()
    True

    References:
        Shazeer 2020, GLU Variants Improve Transformer, arXiv 2002.05202.
    """

    def __init__(
        self,
        hidden_dim,
        variant="swiglu",
        output_dim=None,
        use_bias=False,
        dropout=0.0,
        width_rule=None,
        limit=None,
        gate_first=False,
        product_dtype=None,
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
        self.variant = checks.one_of("variant", variant, tuple(_VARIANTS))
        self.width_rule = width_rule
        if width_rule is not None:
            checks.one_of("width_rule", width_rule, ("two_thirds",))
        self.limit = (
            None if limit is None else checks.positive_number("limit", limit)
        )
        self.gate_first = checks.boolean("gate_first", gate_first)
        self.product_dtype = checks.float_dtype("product_dtype", product_dtype)

    @property
    def width(self):
        """Number of hidden features after the width rule."""
        if self.width_rule is None:
            return self.hidden_dim
        return max(1, round(2 * self.hidden_dim / 3))

    def get_config(self):
        names = (
            "variant",
            "width_rule",
            "limit",
            "gate_first",
            "product_dtype",
        )
        config = {name: getattr(self, name) for name in names}
        return {**super().get_config(), **config}

    def _product_policy(self):
        return self.product_dtype or self.dtype_policy

    def _expansion(self, input_shape):
        kind, arguments = _VARIANTS[self.variant]
        return kind(
            self.width,
            **arguments,
            gate_first=self.gate_first,
            limit=self.limit,
            product_dtype=self.product_dtype,
            use_bias=self.use_bias,
            **weight_arguments(self),
            dtype=self.dtype_policy,
            name="hidden",
        )

    def _expand(self, inputs, mask):
        return call_child(self, self.hidden, inputs, mask=mask)
