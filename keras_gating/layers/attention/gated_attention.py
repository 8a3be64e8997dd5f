import keras
from keras import activations
from keras import constraints
from keras import initializers
from keras import regularizers

from keras_gating.functional import checks
from keras_gating.layers.attention import arguments
from keras_gating.layers.attention import conversion
from keras_gating.layers.attention.attention_core import AttentionCore
from keras_gating.layers.weight_arguments import weight_config


@keras.saving.register_keras_serializable(package="keras_gating")
class GatedAttention(AttentionCore):
    """Multi-head attention with multiplicative gates.

    `output = (softmax(q kᵀ/√key_dim) v ⊙ scale · act(x W_g + b_g)) W_o + b_o`

    with `q, k, v` the projected query `(B, T, N, key_dim)`, key and value
    `(B, S, N, value_dim)`, and `x` the query input `(B, T, d)`. This is the
    default, an elementwise sigmoid gate on the attention output; a gate can
    also act on the projected values, keys or queries and on the projected
    output, with one factor per feature or per head.

    The layer takes the place of `keras.layers.MultiHeadAttention`: the same
    arguments, call arguments, return values and order of weights, except that
    `use_gate` defaults to `True`. What differs: gate kernels start at
    zero, so a sigmoid gate starts at ½; a query without any visible key gets
    zeros; a position that no query sees has no influence whatever it holds,
    NaN included; masks of a wrong shape or with negative values are errors;
    the configuration is complete.

    Order of operations: projections → query/key normalization → query, key
    and value gates → rotary embedding → attention → context normalization →
    zeros in masked rows → output gate → output projection → projection gate.

    Args:
        num_heads: number of attention heads N.
        key_dim: size of each head for query and key.
        value_dim: size of each head for value. Defaults to `key_dim`.
        dropout: dropout probability of the attention scores.
        use_bias: whether the projections have a bias.
        output_shape: size (or sizes) of the output's features. Defaults to
            the query's.
        attention_axes: axes over which attention is applied. Defaults to all
            but the batch and the features.
        sliding_window: a query sees keys less than this many positions away.
            Defaults to `None`, all of them.
        flash_attention: `True` demands flash attention, `False` forbids it,
            `None` leaves it to the backend and to
            `keras.config.enable_flash_attention()`. `explicit_attention()`
            has the last word.
        kernel_initializer: initializer of the projection kernels.
        bias_initializer: initializer of the projection biases.
        kernel_regularizer: regularizer of all kernels, gates included.
        bias_regularizer: regularizer of all biases, gates included.
        activity_regularizer: regularizer of the outputs of the four
            projections (query, key, value, output). Gates are left out.
        kernel_constraint: constraint of all kernels, gates included.
        bias_constraint: constraint of all biases, gates included.
        use_gate: `False` switches every gate off and ignores the `gate_*`
            arguments: an ablation by one flag. Defaults to `True`.
        seed: integer seed of all dropout in the layer.
        num_key_value_heads: number of heads of key and value; each serves
            `num_heads / num_key_value_heads` consecutive query heads (grouped
            and multi-query attention). Defaults to `num_heads`.
        gate_site: where gates multiply, one name or a tuple: `"output"` (the
            context, before the output projection), `"value"`, `"key"`,
            `"query"` (after their projections), `"projection"` (after the
            output projection). In the paper's notation G1 to G5.
        gate_granularity: `"elementwise"`, one factor per head and feature;
            `"headwise"`, one per head; `"shared"`, one per feature for all
            heads. The projection gate is elementwise only.
        gate_source: what the output and projection gates read: `"query"`, the
            query input; `"context"`, the context of all heads, concatenated
            (after `context_normalization`, before the gate); `"query_context"`,
            both, concatenated; `"constant"`, nothing; `"split"`: the output is
            `A ⊙ act(B)` of the halves of each head's context, without weights
            (`output_dense` then takes `value_dim / 2` features a head). Value,
            key and query gates always read their own input.
        gate_activation: the gate's activation. Defaults to `"sigmoid"`.
        gate_scale: factor on the activated gate. With 2.0 a sigmoid gate
            starts as the identity. Defaults to 1.0.
        gate_rank: bottleneck of two-kernel gates. Defaults to `None`.
        gate_initializer: initializer of the gate kernels. Defaults to `None`,
            the choice of `Gate`: zeros where these can train.
        gate_bias_initializer: initializer of the gate biases.
        gate_use_bias: whether gates have a bias. Defaults to `use_bias`.
        gate_dropout: probability of dropping a gate value in training.
        context_normalization: `"rms"` or `"layer"`: normalizes each head's
            context over its features, with a learned scale shared by heads;
            also without a gate. Defaults to `None`.
        query_key_normalization: `"rms"`: normalizes each head's query and key,
            with a learned scale shared by heads. Defaults to `None`.
        normalization_epsilon: added to the variance in both. Defaults to 1e-6.
        rope_max_wavelength: base of the frequencies of rotary embedding, 10000
            in most models. Defaults to `None`, no rotary embedding.
        rope_fraction: share of the `key_dim` features that rotate.
        masked_rows: what attention gives a query without any visible key:
            `"zero"`, or `"uniform"`, the mean of all values, as the fused path
            of Keras does.
        **kwargs: arguments of `keras.layers.Layer`, such as `name`, `dtype`
            and `trainable`.

    Call arguments:
        query: `(B, T, d)`, or of higher rank with `attention_axes`.
        value: `(B, S, d_v)`.
        key: `(B, S, d_k)`. Defaults to `value`.
        query_mask, value_mask, key_mask: padding masks, `(B, T)`, `(B, S)`,
            `(B, S)`. Default to the Keras masks of the inputs.
        attention_mask: 1 or True where attention is allowed: `(T, S)`,
            `(B, T, S)` or `(B, N, T, S)`.
        return_attention_scores: whether to return the attention probabilities
            `(B, N, T, S)` too, in the compute dtype.
        training: whether dropout is active.
        use_causal_mask: whether a query sees only keys that do not follow it.
        gate_input: `(B, T, any)`, replaces the query wherever an output or
            projection gate reads it; ignored with `use_gate=False`.
        cache: from `init_cache` or an earlier call, for decoding: this call's
            keys and values are written into a new cache, and the queries see
            the cache. Self-attention of rank 3; causality is still asked for
            by `use_causal_mask`. `attention_mask` is `(…, T, max_length)`.
            Slots that are empty may hold any numbers that are finite.
        cache_update_index: position of the first query of this call. A value
            past the end is an error where it can be read; in a compiled
            function it must fit (JAX and TensorFlow clamp it).
        donate_cache: whether the memory of `cache` may hold the new one, so
            that the one that was passed is lost. PyTorch then writes in place,
            with gradients switched off and outside of compiled functions; JAX
            is told by `donate_argnums` of `jax.jit`, others copy.

    Returns:
        The output `(B, T, d)`; with scores `(output, scores)`; with a cache
        `(output, cache)` or `(output, scores, cache)`.

    Raises:
        ValueError: for arguments, masks and caches that do not fit together;
            the message says what was expected.

    Example:

    >>> import numpy as np
    >>> from keras_gating.layers import GatedAttention
    >>> x = np.random.default_rng(0).normal(size=(2, 10, 64))
    >>> layer = GatedAttention(num_heads=4, key_dim=16)
    >>> tuple(layer(x, x, use_causal_mask=True).shape)
    (2, 10, 64)
    >>> [weight.path.partition("/")[2] for weight in layer.weights][4:6]
    ['gate/projection/kernel', 'gate/projection/bias']

    References:
        Vaswani et al. 2017, arXiv 1706.03762 (attention); Qiu et al. 2025,
        arXiv 2505.06708 (gates G1–G5); Ainslie et al. 2023, arXiv 2305.13245
        (grouped heads); Su et al. 2021, arXiv 2104.09864 (rotary embedding).
    """

    def __init__(
        self,
        num_heads,
        key_dim,
        value_dim=None,
        dropout=0.0,
        use_bias=True,
        output_shape=None,
        attention_axes=None,
        sliding_window=None,
        flash_attention=None,
        kernel_initializer="glorot_uniform",
        bias_initializer="zeros",
        kernel_regularizer=None,
        bias_regularizer=None,
        activity_regularizer=None,
        kernel_constraint=None,
        bias_constraint=None,
        use_gate=True,
        seed=None,
        *,
        num_key_value_heads=None,
        gate_site="output",
        gate_granularity="elementwise",
        gate_source="query",
        gate_activation="sigmoid",
        gate_scale=1.0,
        gate_rank=None,
        gate_initializer=None,
        gate_bias_initializer="zeros",
        gate_use_bias=None,
        gate_dropout=0.0,
        context_normalization=None,
        query_key_normalization=None,
        normalization_epsilon=1e-6,
        rope_max_wavelength=None,
        rope_fraction=1.0,
        masked_rows="zero",
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.num_heads = checks.positive_integer("num_heads", num_heads)
        self.key_dim = checks.positive_integer("key_dim", key_dim)
        self._value_dim = checks.positive_integer("value_dim", value_dim, True)
        self.dropout = checks.probability("dropout", dropout)
        self.use_bias = checks.boolean("use_bias", use_bias)
        self._output_shape = (
            tuple(output_shape)
            if isinstance(output_shape, list)
            else output_shape
        )
        self._output_sizes = arguments.as_sizes(output_shape)
        self.attention_axes = (
            tuple(attention_axes)
            if isinstance(attention_axes, list)
            else attention_axes
        )
        self._axes = arguments.as_axes(attention_axes)
        self.sliding_window = checks.positive_integer(
            "sliding_window", sliding_window, True
        )
        self.flash_attention = checks.boolean(
            "flash_attention", flash_attention, optional=True
        )
        self.kernel_initializer = initializers.get(kernel_initializer)
        self.bias_initializer = initializers.get(bias_initializer)
        self.kernel_regularizer = regularizers.get(kernel_regularizer)
        self.bias_regularizer = regularizers.get(bias_regularizer)
        # Under its public name the base class would apply it to the output.
        self._activity_regularizer = regularizers.get(activity_regularizer)
        self.kernel_constraint = constraints.get(kernel_constraint)
        self.bias_constraint = constraints.get(bias_constraint)
        self.use_gate = checks.boolean("use_gate", use_gate)
        self.seed = checks.seed(seed)
        self.num_key_value_heads = checks.positive_integer(
            "num_key_value_heads", num_key_value_heads, True
        )
        sites = arguments.as_sites(gate_site)
        self.gate_site = gate_site if isinstance(gate_site, str) else sites
        self.gate_granularity = gate_granularity
        self.gate_source = gate_source
        self.gate_activation = activations.get(gate_activation)
        self.gate_scale = gate_scale
        self.gate_rank = gate_rank
        self.gate_initializer = initializers.get(gate_initializer)
        self.gate_bias_initializer = initializers.get(gate_bias_initializer)
        self.gate_use_bias = checks.boolean(
            "gate_use_bias", gate_use_bias, optional=True
        )
        self.gate_dropout = gate_dropout
        self.context_normalization = context_normalization
        self.query_key_normalization = query_key_normalization
        self.normalization_epsilon = checks.positive_number(
            "normalization_epsilon", normalization_epsilon
        )
        self.rope_max_wavelength = rope_max_wavelength
        self.rope_fraction = rope_fraction
        self.masked_rows = checks.one_of(
            "masked_rows", masked_rows, ("zero", "uniform")
        )
        self._rotary_width = arguments.rotary_width(
            self.key_dim, rope_max_wavelength, rope_fraction
        )
        arguments.check_heads(self)
        arguments.check_gate(self)
        self.supports_masking = True
        self.query_dense = self.key_dense = None
        self.value_dense = self.output_dense = None
        self.output_gate = self.value_gate = self.key_gate = None
        self.query_gate = self.projection_gate = None

    @property
    def value_dim(self):
        """Size of each head for value, `key_dim` unless it was given."""
        return self._value_dim or self.key_dim

    @classmethod
    def from_keras(cls, layer, **gate_arguments):
        """A gated copy of a layer of Keras, with its weights.

        The copy has the name, the dtype policy and the `trainable` flags of
        `layer` and its parts, and gives fully masked rows what `layer` gives
        them when it is not asked for scores. If `layer` has a gate, it is
        copied. If not, the copy gets the gate that
        `gate_arguments` describe; unless they set `gate_scale`, a sigmoid gate
        with zero kernels gets `gate_scale=2.0` and starts as the identity: as
        long as only gates are added (normalization and rotary embedding
        change the function), the copy computes what `layer` does until it is
        trained.

        Args:
            layer: a `keras.layers.MultiHeadAttention` or
                `keras.layers.GroupQueryAttention`, built or not.
            **gate_arguments: keyword-only arguments of this class, and
                `use_gate=False` for a copy without gates.

        Returns:
            A `GatedAttention`, built if `layer` is.

        Raises:
            ValueError: for other layers, for subclasses with a computation of
                their own, for quantized layers or ones with LoRA weights, and
                for arguments under which the weights do not fit.

        Example:

        >>> import keras, numpy as np
        >>> from keras.ops import convert_to_numpy
        >>> from keras_gating.layers import GatedAttention
        >>> x = np.random.default_rng(0).normal(size=(1, 5, 8))
        >>> plain = keras.layers.MultiHeadAttention(num_heads=2, key_dim=4)
        >>> before = convert_to_numpy(plain(x, x))
        >>> gated = GatedAttention.from_keras(plain)
        >>> after = convert_to_numpy(gated(x, x))
        >>> bool(np.allclose(before, after, atol=1e-5))
        True
        """
        return conversion.from_keras(cls, layer, gate_arguments)

    def get_config(self):
        config = {
            name: getattr(self, name)
            for name in (
                "num_heads",
                "key_dim",
                "dropout",
                "use_bias",
                "attention_axes",
                "sliding_window",
                "flash_attention",
                "use_gate",
                "seed",
                "num_key_value_heads",
                "gate_site",
                "gate_granularity",
                "gate_source",
                "gate_scale",
                "gate_rank",
                "gate_use_bias",
                "gate_dropout",
                "context_normalization",
                "query_key_normalization",
                "normalization_epsilon",
                "rope_max_wavelength",
                "rope_fraction",
                "masked_rows",
            )
        }
        config["value_dim"] = self._value_dim
        config["output_shape"] = self._output_shape
        config["gate_activation"] = activations.serialize(self.gate_activation)
        config["activity_regularizer"] = regularizers.serialize(
            self._activity_regularizer
        )
        weights = weight_config(
            self, "gate_initializer", "gate_bias_initializer"
        )
        return {**super().get_config(), **config, **weights}
