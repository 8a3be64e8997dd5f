import keras

from keras_gating.functional import checks
from keras_gating.layers.attention import cache as kv_cache
from keras_gating.layers.attention import gated_attention_unit_cache
from keras_gating.layers.attention.gated_attention_unit_checks import (
    as_positions,
)
from keras_gating.layers.attention.gated_attention_unit_checks import (
    check_inputs,
)
from keras_gating.layers.initialization import StackedInitializer
from keras_gating.layers.low_rank import LowRankUpdates
from keras_gating.layers.projection import dense
from keras_gating.layers.quantization import QuantizedChildren
from keras_gating.layers.trainable_flags import inherit_trainable
from keras_gating.layers.weight_arguments import weight_arguments

_NUM_BUCKETS = 32


class GatedAttentionUnitWeights(LowRankUpdates, QuantizedChildren):
    """The weights of `GatedAttentionUnit` and how they are built."""

    _quantized_children = ("hidden_dense", "shared_dense", "output_dense")

    def build(self, inputs_shape):
        check_inputs(self, inputs_shape)
        self.width = inputs_shape[-1]
        self.hidden_dim = round(self.expansion_factor * self.width)
        if not 1 <= self.hidden_dim <= checks.LARGEST_SIZE:
            raise ValueError(
                "`expansion_factor` leaves no hidden features, or more than "
                f"{checks.LARGEST_SIZE}. Received: "
                f"expansion_factor={self.expansion_factor} with "
                f"{self.width} input features"
            )
        if self.norm_first:
            self.normalization = keras.layers.LayerNormalization(
                epsilon=self.normalization_epsilon,
                name="normalization",
                dtype=self.dtype_policy,
            )
            self.normalization.supports_masking = True
            self.normalization.build(tuple(inputs_shape))
        self.hidden_dense = self._dense(
            "hidden",
            inputs_shape,
            (2, self.hidden_dim),
            StackedInitializer(self.kernel_initializer),
            split_axis=2,
        )
        self.shared_dense = self._dense(
            "shared", inputs_shape, (self.key_dim,), self.kernel_initializer
        )
        # One query and one key, and another pair for the linear part.
        num_heads = 2 if self.chunk_size is None else 4
        shape = (num_heads, self.key_dim)
        self.query_key_scale = self.add_weight(
            name="query_key_scale",
            shape=shape,
            initializer=keras.initializers.RandomNormal(stddev=0.02),
        )
        self.query_key_offset = self.add_weight(
            name="query_key_offset", shape=shape, initializer="zeros"
        )
        if self._has_position("t5"):
            self.position_bias = self.add_weight(
                name="position_bias",
                shape=(_NUM_BUCKETS,),
                initializer="zeros",
            )
        self.output_dense = self._dense(
            "output",
            (*inputs_shape[:-1], self.hidden_dim),
            (self.width,),
            self.kernel_initializer,
            split_axis=0,
        )
        inherit_trainable(self)

    def init_cache(self, batch_size, max_length=None):
        """An empty cache for decoding.

        Args:
            batch_size: number of sequences.
            max_length: number of positions to decode. The chunked form has a
                state of constant size and needs none; given one, it refuses
                what goes beyond.

        Returns:
            A nest of tensors to pass as `cache`; calls return the next one
            and leave the one they got as it was.
        """
        checks.positive_integer("batch_size", batch_size)
        is_chunked = self.chunk_size is not None
        checks.positive_integer("max_length", max_length, is_chunked)
        if not self.built:
            raise ValueError(
                "The size of a cache depends on the number of input features: "
                "build or call the layer first. Received: "
                f"{self.name}.built=False"
            )
        sizes = (self.key_dim, self.hidden_dim, self.compute_dtype)
        if is_chunked:
            return gated_attention_unit_cache.empty(
                batch_size, max_length, self.chunk_size, *sizes
            )
        return kv_cache.empty(batch_size, max_length, 1, *sizes)

    def compute_output_shape(self, inputs_shape):
        check_inputs(self, inputs_shape)
        return tuple(inputs_shape)

    def _has_position(self, kind):
        return kind in as_positions(self.position)

    def _dense(
        self, name, inputs_shape, sizes, kernel_initializer, split_axis=None
    ):
        layer = dense(
            2,
            1,
            sizes,
            self.use_bias,
            name,
            split_axis,
            **{
                **weight_arguments(self),
                "kernel_initializer": kernel_initializer,
            },
            dtype=self.dtype_policy,
        )
        layer.build(tuple(inputs_shape))
        return layer
