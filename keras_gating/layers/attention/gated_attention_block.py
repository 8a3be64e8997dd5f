import keras

from keras_gating.functional import checks
from keras_gating.layers.attention.gated_attention import GatedAttention
from keras_gating.layers.checked_inputs import CheckedInputs
from keras_gating.layers.trainable_flags import inherit_trainable


@keras.saving.register_keras_serializable(package="keras_gating")
class GatedAttentionBlock(CheckedInputs):
    """Self-attention with a gate that reads input and context, made robust.

    `outputs = LayerNorm(x + dropout(W_o (context ⊙ gate)))`
    `gate = σ(W_g [x ; context] + b_g)`

    with the context of all heads, concatenated. With `norm_first=True` the
    normalization moves to the input: `outputs = x + dropout(attention(z))`,
    `z = LayerNorm(x)`, and the gate reads `z`. Residual and normalization keep
    a half-open gate from halving the signal once per layer.

    Weights: those of `attention` (a `GatedAttention` with
    `gate_source="query_context"`), then those of `normalization`.

    Args:
        num_heads: number of attention heads.
        key_dim: size of each head for query and key.
        dropout: dropout probability of the attention scores and of what is
            added to the input. Defaults to 0.0.
        norm_first: whether to normalize the input instead of the output.
            Defaults to `False`.
        normalization_epsilon: epsilon of the layer normalization, and of those
            inside the attention if there are any. Defaults to 1e-6.
        name: name of the layer.
        dtype: dtype or dtype policy.
        trainable: whether the weights are trained.
        **gated_attention_arguments: further arguments of `GatedAttention`
            (except `output_shape`). `gate_source` defaults to
            `"query_context"` here.

    Call arguments:
        inputs: `(B, T, d)`, or of higher rank with `attention_axes`.
        attention_mask: `(T, T)`, `(B, T, T)` or `(B, heads, T, T)`.
        use_causal_mask: whether a position sees only those up to itself.
        training: whether dropout is active.
        mask: padding mask `(B, T)`. Defaults to the Keras mask of the inputs.
        inputs_mask: the same; Keras fills this one when `attention_mask` is
            given.

    Returns:
        A tensor of the shape of `inputs`.

    Raises:
        ValueError: as `GatedAttention`, and for an `output_shape`.

    Example:

    >>> import numpy as np
    >>> from keras_gating.layers import GatedAttentionBlock
    >>> block = GatedAttentionBlock(num_heads=2, key_dim=8, dropout=0.1)
    >>> tuple(block(np.ones((2, 10, 16)), use_causal_mask=True).shape)
    (2, 10, 16)

    References:
        Qiu et al. 2025, arXiv 2505.06708 (the output gate).
    """

    def __init__(
        self,
        num_heads,
        key_dim,
        dropout=0.0,
        norm_first=False,
        normalization_epsilon=1e-6,
        *,
        name=None,
        dtype=None,
        trainable=True,
        **gated_attention_arguments,
    ):
        super().__init__(name=name, dtype=dtype, trainable=trainable)
        self.num_heads = num_heads
        self.key_dim = key_dim
        self.dropout = checks.probability("dropout", dropout)
        self.norm_first = checks.boolean("norm_first", norm_first)
        self.normalization_epsilon = checks.positive_number(
            "normalization_epsilon", normalization_epsilon
        )
        if gated_attention_arguments.get("output_shape") is not None:
            raise ValueError(
                "The block adds its output to its input, so both have the "
                "same features. Received: output_shape="
                f"{gated_attention_arguments['output_shape']!r}"
            )
        arguments = {
            "gate_source": "query_context",
            **gated_attention_arguments,
        }
        uses_norms = any(
            arguments.get(name) is not None
            for name in ("context_normalization", "query_key_normalization")
        )
        if uses_norms:
            arguments["normalization_epsilon"] = normalization_epsilon
        self.attention = GatedAttention(
            num_heads,
            key_dim,
            dropout=dropout,
            **arguments,
            name="attention",
            dtype=self.dtype_policy,
        )
        self.dropout_layer = keras.layers.Dropout(
            dropout, seed=self.attention.seed, dtype=self.dtype_policy
        )
        self.normalization = keras.layers.LayerNormalization(
            epsilon=normalization_epsilon,
            dtype=self.dtype_policy,
            name="normalization",
        )
        self.supports_masking = True

    def build(self, input_shape):
        self.attention.build(input_shape, input_shape)
        self.normalization.build(input_shape)
        inherit_trainable(self)

    def call(
        self,
        inputs,
        attention_mask=None,
        use_causal_mask=False,
        training=None,
        mask=None,
        inputs_mask=None,
    ):
        checks.boolean("use_causal_mask", use_causal_mask)
        mask = inputs_mask if mask is None else mask
        x = self.normalization(inputs) if self.norm_first else inputs
        y = self.attention(
            x,
            x,
            query_mask=mask,
            value_mask=mask,
            attention_mask=attention_mask,
            training=training,
            # Where JAX computes a layer again for its gradients, a flag that is
            # passed becomes a tensor.
            **({"use_causal_mask": True} if use_causal_mask else {}),
        )
        y = inputs + self.dropout_layer(y, training=training)
        y = y if self.norm_first else self.normalization(y)
        # A child may have another dtype policy than the block.
        return keras.ops.cast(y, self.compute_dtype)

    def enable_lora(self, rank, include_gates=True):
        """Trains low-rank updates of the attention's kernels in their place.

        Args:
            rank: rank of the updates.
            include_gates: whether the gates' kernels get updates too. If not,
                they keep training as they are.

        Raises:
            ValueError: as `GatedAttention.enable_lora`.
        """
        self.attention.enable_lora(rank, include_gates)

    def compute_output_shape(self, input_shape):
        return self.attention.compute_output_shape(input_shape, input_shape)

    def get_config(self):
        inner = self.attention.get_config()
        for name in ("output_shape", "name", "dtype", "trainable"):
            del inner[name]
        config = {
            "num_heads": self.num_heads,
            "key_dim": self.key_dim,
            "dropout": self.dropout,
            "norm_first": self.norm_first,
            "normalization_epsilon": self.normalization_epsilon,
        }
        return {**inner, **super().get_config(), **config}
