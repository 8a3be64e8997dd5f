import keras
from keras import activations
from keras import constraints
from keras import initializers
from keras import regularizers

from keras_gating.functional import checks
from keras_gating.layers.attention.gated_attention_unit_checks import (
    check_arguments,
)
from keras_gating.layers.attention.gated_attention_unit_core import (
    GatedAttentionUnitCore,
)
from keras_gating.layers.weight_arguments import weight_config


@keras.saving.register_keras_serializable(package="keras_gating")
class GatedAttentionUnit(GatedAttentionUnitCore):
    """Attention and gated feed-forward layer in one, with a single head.

    `outputs = (U ⊙ A V) W_o + b_o`
    `A = relu²(Q Kᵀ/√s + b) / n`

    with `U = φ(X W_u)` and `V = φ(X W_v)` of shape `(B, T, e)`,
    `e = expansion_factor · d`; `Z = φ(X W_z)` of shape `(B, T, s)`,
    `s = key_dim`; `Q = γ_q ⊙ Z + β_q` and `K = γ_k ⊙ Z + β_k`; and
    `φ = activation`. `U` is the gate. Two such layers have about as many
    parameters as an attention and a feed-forward layer of width `4 d`.

    With `chunk_size=c` the cost is linear in the length: attention as above
    among the c positions of a chunk, plus `Q' (K'ᵀ V) / n'` over all positions
    or, when causal, over those of earlier chunks (mixed chunk attention).
    Both have a query and a key of their own.

    What differs from the paper: `n` is the number of keys that a row sees, so
    that neither padding nor, with a causal mask, what follows changes an
    output; the paper divides by the length. Public code divides inside of the
    square, by the length or the chunk size, `relu²(Q Kᵀ/n + b)`; so scaled,
    its weights give the same function here, with `divisor="length"` or an
    integer. Each term of the chunked form has its own count.

    Weights: those of `normalization`, if any; kernel `(d, 2, e)` of value and
    gate, and bias; kernel `(d, s)` of Z, and bias; γ and β, `(2, s)` for query
    and key, or `(4, s)` for both queries, then both keys, of the chunked form;
    the position bias `(32,)`, if any; output kernel `(e, d)` and bias.

    Args:
        expansion_factor: e is the integer nearest to this times d.
        key_dim: size s of query and key.
        attention_activation: `"relu2"`; `"laplace"`, the same but bounded by
            1; or `"softmax"`, which is not divided and not chunked.
        chunk_size: number of positions in a chunk. Defaults to `None`, the
            quadratic form.
        divisor: `"visible"`, for each row the number of keys it sees, padding
            excluded; `"length"`, the length, padding included (the chunk size
            inside a chunk), while decoding that up to now; or an integer.
        position: `None`; `"rope"`, rotary embedding of queries and keys with
            wavelengths up to 10,000; `"t5"`, a learned bias for 32 ranges of
            the distance (up to 128 and beyond), half of them for keys that
            follow unless `use_causal_mask` hides these, and inside of chunks
            only; or a tuple of both.
        norm_first: whether to normalize the input and add the layer's input
            to its output, `x + unit(LayerNorm(x))`. Defaults to `False`.
        normalization_epsilon: epsilon of that. Defaults to 1e-6.
        dropout: probability of dropping a feature of the gate in training.
        activation: φ, name or callable. For the gate it is computed in
            float32 under half precision. Defaults to `"silu"`.
        block_size: number of rows of `A` to compute at a time in the quadratic
            form, in gradients too, so that memory grows with the length times
            this. `None` computes all at once; `"auto"` takes 256 beyond
            length 2048. The result is the same.
        use_bias: whether the projections have a bias.
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
        inputs: `(B, T, d)`.
        attention_mask: 1 or True where attention is allowed: `(T, T)`,
            `(B, T, T)`, `(B, 1, T, T)` or, for keys, `(B, 1, T)`; only the
            last with `chunk_size`. `(…, T, max_length)` with `cache`.
        use_causal_mask: whether a position sees only those up to itself.
        training: whether dropout is active.
        mask: padding mask `(B, T)`. Defaults to the Keras mask of the inputs.
            What padding holds has no influence.
        inputs_mask: the same; Keras fills this one when another tensor is
            given.
        cache: what `init_cache` or an earlier call returned. With `chunk_size`
            it needs `use_causal_mask`, and its size is constant.
        cache_update_index: position of the first token of `inputs`. In a
            compiled function it is not checked.
        donate_cache: whether the memory of `cache` may hold the next, as in
            `GatedAttention`. The state that `chunk_size` has is made anew.

    Returns:
        A tensor of the shape of `inputs`; with `cache`, this and the next
        cache.

    Raises:
        ValueError: for arguments, masks and caches that do not fit together;
            among them `chunk_size` with a softmax or a mask of pairs.

    Example:

    >>> import numpy as np
    >>> from keras_gating.layers import GatedAttentionUnit
    >>> x = np.random.default_rng(0).normal(size=(2, 10, 16))
    >>> layer = GatedAttentionUnit(key_dim=8, norm_first=True)
    >>> tuple(layer(x, use_causal_mask=True).shape)
    (2, 10, 16)
    >>> linear = GatedAttentionUnit(key_dim=8, chunk_size=4, position="rope")
    >>> tuple(linear(x).shape)
    (2, 10, 16)

    References:
        Hua et al. 2022, arXiv 2202.10447 (the unit and its chunked form);
        Ma et al. 2022, arXiv 2209.10655 (Laplace attention); Raffel et al.
        2019, arXiv 1910.10683 (relative position bias); Su et al. 2021,
        arXiv 2104.09864 (rotary embedding).
    """

    def __init__(
        self,
        expansion_factor=2.0,
        key_dim=128,
        attention_activation="relu2",
        chunk_size=None,
        divisor="visible",
        position=None,
        norm_first=False,
        normalization_epsilon=1e-6,
        dropout=0.0,
        activation="silu",
        block_size="auto",
        use_bias=True,
        kernel_initializer="glorot_uniform",
        bias_initializer="zeros",
        kernel_regularizer=None,
        bias_regularizer=None,
        kernel_constraint=None,
        bias_constraint=None,
        seed=None,
        **kwargs,
    ):
        # What a cache sums up stays in float32; `call` casts its inputs.
        super().__init__(autocast=False, **kwargs)
        self.expansion_factor = expansion_factor
        self.key_dim = key_dim
        self.attention_activation = attention_activation
        self.chunk_size = chunk_size
        self.divisor = divisor
        self.position = (
            tuple(position) if isinstance(position, list) else position
        )
        self.norm_first = checks.boolean("norm_first", norm_first)
        self.normalization_epsilon = normalization_epsilon
        self.dropout = dropout
        self.activation = activations.get(activation)
        self.block_size = block_size
        self.use_bias = checks.boolean("use_bias", use_bias)
        self.kernel_initializer = initializers.get(kernel_initializer)
        self.bias_initializer = initializers.get(bias_initializer)
        self.kernel_regularizer = regularizers.get(kernel_regularizer)
        self.bias_regularizer = regularizers.get(bias_regularizer)
        self.kernel_constraint = constraints.get(kernel_constraint)
        self.bias_constraint = constraints.get(bias_constraint)
        self.seed = checks.seed(seed)
        check_arguments(self)
        self.supports_masking = True
        self.width = self.hidden_dim = None
        self.normalization = self.hidden_dense = None
        self.shared_dense = self.output_dense = None
        self.query_key_scale = self.query_key_offset = None
        self.position_bias = None
        self.seed_generator = (
            keras.random.SeedGenerator(seed) if dropout > 0.0 else None
        )

    def get_config(self):
        config = {
            name: getattr(self, name)
            for name in (
                "expansion_factor",
                "key_dim",
                "attention_activation",
                "chunk_size",
                "divisor",
                "position",
                "norm_first",
                "normalization_epsilon",
                "dropout",
                "block_size",
                "use_bias",
                "seed",
            )
        }
        config["activation"] = activations.serialize(self.activation)
        return {**super().get_config(), **config, **weight_config(self)}
