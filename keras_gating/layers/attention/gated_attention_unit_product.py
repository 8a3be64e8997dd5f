from keras import ops

from keras_gating import functional
from keras_gating.functional import masks
from keras_gating.functional import rotary
from keras_gating.functional.gate import as_dtype
from keras_gating.functional.quadratic import finished_attention
from keras_gating.functional.sizes import known_size
from keras_gating.functional.sizes import positions
from keras_gating.layers.attention.gated_attention_unit_weights import (
    GatedAttentionUnitWeights,
)
from keras_gating.layers.child_calls import call_child

# Where the layer is to choose. In blocks of this size the products are about as
# fast as in one; a gradient takes half as long again, for what it computes
# twice, which up to this length the memory is not worth.
_AUTO_BLOCK = 256
_LONGEST_WHOLE = 2048


class GatedAttentionUnitProduct(GatedAttentionUnitWeights):
    """Queries, keys and the quadratic product, for all ways of evaluation."""

    def _normalized(self, inputs):
        if not self.norm_first:
            return inputs
        return self._cast(call_child(self, self.normalization, inputs))

    def _queries_and_keys(self, x, offset):
        """The queries and the keys, one each or two in the chunked form."""
        shared = self._cast(call_child(self, self.shared_dense, x))
        shared = self.activation(shared)
        heads = functional.offset_scale(
            shared, self.query_key_scale, self.query_key_offset
        )
        if self._has_position("rope"):
            table = rotary.table(
                positions(ops.shape(shared)[1], offset),
                10_000.0,
                self.key_dim,
                0,
                shared.dtype,
            )
            heads = [rotary.rotated(x, *table) for x in heads]
        count = len(heads) // 2
        return heads[:count], heads[count:]

    def _position_bias(self):
        if self.position_bias is None:
            return None
        return ops.convert_to_tensor(self.position_bias)

    def _rows_a_block(self, query):
        if self.block_size != "auto":
            return self.block_size
        length = known_size(query)
        is_long = length is not None and length > _LONGEST_WHOLE
        return _AUTO_BLOCK if is_long else None

    def _cast(self, x):
        return as_dtype(x, self.compute_dtype)

    def _attended(
        self,
        query,
        key,
        value,
        key_mask,
        pairs,
        is_causal,
        offset,
        **finish,
    ):
        """The context, or what `finished_attention` makes of it."""
        key, value = hide_unseen(key, value, key_mask, pairs)
        divisor = self.divisor
        if divisor == "length":
            divisor = offset + ops.shape(query)[1]
        return finished_attention(
            query,
            key,
            value,
            activation=self.attention_activation,
            divisor=divisor,
            mask=pairs,
            key_mask=key_mask,
            is_causal=is_causal,
            offset=offset,
            position_bias=self._position_bias(),
            block_size=self._rows_a_block(query),
            **finish,
        )


def split_mask(attention_mask):
    """A mask of pairs `(B or 1, T, S)` or one of keys `(B or 1, S)`."""
    if attention_mask is None:
        return None, None
    mask = masks.as_boolean_mask(attention_mask)
    rank = len(mask.shape)
    if rank == 4:
        mask = mask[:, 0]
    if rank > 2 and mask.shape[1] == 1:
        return None, mask[:, 0]
    return (ops.expand_dims(mask, 0) if rank == 2 else mask), None


def hide_unseen(key, value, mask, pairs=None):
    """Keys and values that no row sees become zero, whatever they hold."""
    seen = mask
    if pairs is not None:
        seen = masks.intersection(seen, ops.any(pairs, axis=1))
    if seen is None:
        return key, value
    seen = ops.expand_dims(seen, -1)
    return masks.hide(key, seen), masks.hide(value, seen)
