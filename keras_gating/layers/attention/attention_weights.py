import functools

import keras

from keras_gating.functional import checks
from keras_gating.functional.layout import AttentionLayout
from keras_gating.layers.attention import arguments
from keras_gating.layers.attention import cache as kv_cache
from keras_gating.layers.attention import shapes
from keras_gating.layers.gate import Gate
from keras_gating.layers.low_rank import LowRankUpdates
from keras_gating.layers.low_rank import enable_lora
from keras_gating.layers.projection import dense
from keras_gating.layers.quantization import QuantizedChildren
from keras_gating.layers.trainable_flags import FrozenParts
from keras_gating.layers.trainable_flags import inherit_trainable
from keras_gating.layers.weight_arguments import weight_arguments

_NORMALIZATIONS = {
    "rms": keras.layers.RMSNormalization,
    "layer": functools.partial(keras.layers.LayerNormalization, center=False),
}


class AttentionWeights(LowRankUpdates, QuantizedChildren, FrozenParts):
    """The sub-layers of `GatedAttention` and how they are built."""

    _tensor_arguments = ("query", "value", "key")
    _quantized_children = (
        "query_dense",
        "key_dense",
        "value_dense",
        "output_dense",
    )

    def build(
        self, query_shape, value_shape, key_shape=None, gate_input_shape=None
    ):
        key_shape = value_shape if key_shape is None else key_shape
        shapes.check_inputs(self, query_shape, value_shape, key_shape)
        self.layout = self.layout_for(query_shape)
        shapes.check_one_axis(self, self.layout)
        if gate_input_shape is None:
            gate_input_shape = query_shape
        else:
            shapes.check_gate_input(self, query_shape, gate_input_shape)
        self.built_for = {
            name: (len(shape), shape[-1])
            for name, shape in (
                ("query", query_shape),
                ("value", value_shape),
                ("key", key_shape),
                ("gate_input", gate_input_shape),
            )
        }
        # Further axes of the projections: heads and their features.
        query_head = (self.num_heads, self.key_dim)
        key_head = (self.num_groups, self.key_dim)
        value_head = (self.num_groups, self.value_dim)
        context = (*query_shape[:-1], self.num_heads, self.value_dim)
        output = self._output_sizes or (query_shape[-1],)
        gate_source = self._gate_source_shape(gate_input_shape)
        # The order of creation is the order of the weights, that of Keras.
        self.query_dense = self._dense("query", query_shape, query_head)
        self.key_dense = self._dense("key", key_shape, key_head)
        if self._has_gate("output") and self.gate_source != "split":
            self.output_gate = self._gate("output", context, gate_source)
        self.value_dense = self._dense("value", value_shape, value_head)
        self.dropout_layer = keras.layers.Dropout(
            self.dropout, seed=self.seed, dtype=self.dtype_policy
        )
        halved = (*context[:-1], self.value_dim // 2)
        self.output_dense = self._dense(
            "attention_output",
            halved if self._is_split() else context,
            output,
            bound=2,
        )
        for site, gated, source in (
            ("value", (*value_shape[:-1], *value_head), value_shape),
            ("key", (*key_shape[:-1], *key_head), key_shape),
            ("query", (*query_shape[:-1], *query_head), query_shape),
            ("projection", (*query_shape[:-1], *output), gate_source),
        ):
            if self._has_gate(site):
                setattr(self, f"{site}_gate", self._gate(site, gated, source))
        for name, kind, size in (
            ("query_norm", self.query_key_normalization, self.key_dim),
            ("key_norm", self.query_key_normalization, self.key_dim),
            ("context_norm", self.context_normalization, self.value_dim),
        ):
            if kind is not None:
                setattr(self, name, self._normalization(name, kind, size))
        inherit_trainable(self)

    def init_cache(self, batch_size, max_length):
        """An empty cache for decoding up to `max_length` positions.

        Args:
            batch_size: number of sequences.
            max_length: number of positions the cache can hold.

        Returns:
            A nest of tensors to pass as `cache`; calls return the next one
            and leave the one they got as it was.
        """
        return kv_cache.empty(
            checks.positive_integer("batch_size", batch_size),
            checks.positive_integer("max_length", max_length),
            self.num_groups,
            self.key_dim,
            self.value_dim,
            self.compute_dtype,
        )

    def compute_output_shape(self, query_shape, value_shape, key_shape=None):
        key_shape = value_shape if key_shape is None else key_shape
        shapes.check_inputs(self, query_shape, value_shape, key_shape)
        return (
            *query_shape[:-1],
            *(self._output_sizes or (query_shape[-1],)),
        )

    def enable_lora(self, rank, include_gates=True):
        """Trains low-rank updates of the projections in place of kernels.

        The outputs are the same until the updates are trained. Biases and
        normalizations train on; saving merges the updates into the kernels.

        Args:
            rank: rank of the updates.
            include_gates: whether the gates' kernels get updates too. If not,
                they keep training as they are, as new gates in a trained model
                should.

        Raises:
            ValueError: if the layer is not built, if no kernel trains, and
                for kernels with a constraint or an update. Nothing is changed
                then.
        """
        gates = self.gates().values()
        enable_lora(self, rank, () if include_gates else gates)

    def gates(self):
        """The gate layers there are, by site."""
        # No property: Keras would save the layers under its name as well.
        found = {
            site: getattr(self, f"{site}_gate") for site in arguments.SITES
        }
        return {site: gate for site, gate in found.items() if gate is not None}

    def layout_for(self, query_shape):
        """The attention layout for inputs of this rank."""
        return AttentionLayout.resolve(len(query_shape), self._axes)

    def gate_arguments(self, site):
        """Arguments of the `Gate` at `site`, names and shapes aside."""
        constant = self.gate_source == "constant" and site in (
            "output",
            "projection",
        )
        use_bias = self.gate_use_bias
        if use_bias is None:
            use_bias = self.use_bias
        config = {
            "activation": self.gate_activation,
            "granularity": self.gate_granularity,
            "scale": self.gate_scale,
            "dropout": self.gate_dropout,
            # With one seed for all, gates of one shape would drop alike.
            "seed": self._seed_of(site),
        }
        if constant or use_bias:
            config |= {
                "bias_initializer": _clone(self.gate_bias_initializer),
                "bias_regularizer": self.bias_regularizer,
                "bias_constraint": self.bias_constraint,
            }
        if constant:
            return {**config, "source": "constant"}
        return {
            **config,
            "use_bias": use_bias,
            "rank": self.gate_rank,
            "kernel_initializer": _clone(self.gate_initializer),
            "kernel_regularizer": self.kernel_regularizer,
            "kernel_constraint": self.kernel_constraint,
        }

    @property
    def num_groups(self):
        return self.num_key_value_heads or self.num_heads

    def _seed_of(self, site):
        if self.seed is None:
            return None
        return self.seed + 1 + arguments.SITES.index(site)

    def _has_gate(self, site):
        return self.use_gate and site in arguments.as_sites(self.gate_site)

    def _is_split(self):
        return self.use_gate and self.gate_source == "split"

    def _dense(self, name, input_shape, sizes, bound=1):
        layer = dense(
            len(input_shape) - bound,
            bound,
            sizes,
            self.use_bias,
            name,
            # Heads: of what comes in for the output, else of what goes out.
            split_axis=0 if bound == 2 else 1,
            **weight_arguments(self),
            activity_regularizer=self._activity_regularizer,
            dtype=self.dtype_policy,
        )
        layer.build(tuple(input_shape))
        return layer

    def _gate(self, site, gated_shape, source_shape):
        gate = Gate(
            **self.gate_arguments(site),
            name="gate" if site == "output" else f"{site}_gate",
            dtype=self.dtype_policy,
        )
        gate.build(gated_shape, source_shape)
        return gate

    def _normalization(self, name, kind, size):
        layer = _NORMALIZATIONS[kind](
            epsilon=self.normalization_epsilon,
            name=name,
            dtype=self.dtype_policy,
        )
        layer.supports_masking = True
        layer.build((None, size))
        return layer

    def _gate_source_shape(self, gate_input_shape):
        width = gate_input_shape[-1]
        context_width = self.num_heads * self.value_dim
        if self.gate_source == "context":
            width = context_width
        elif self.gate_source == "query_context":
            width += context_width
        return (*gate_input_shape[:-1], width)


def _clone(initializer):
    is_class = isinstance(initializer, keras.initializers.Initializer)
    return initializer.clone() if is_class else initializer
