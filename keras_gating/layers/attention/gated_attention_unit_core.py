import keras
from keras import ops

from keras_gating import functional
from keras_gating._backend import in_place
from keras_gating.functional import masks
from keras_gating.functional.gate import as_dtype
from keras_gating.functional.gate import gated
from keras_gating.functional.sizes import known_size
from keras_gating.layers.attention import cache as kv_cache
from keras_gating.layers.attention import gated_attention_unit_cache
from keras_gating.layers.attention.gated_attention_unit_checks import check_call
from keras_gating.layers.attention.gated_attention_unit_weights import (
    GatedAttentionUnitWeights,
)
from keras_gating.layers.child_calls import call_child
from keras_gating.layers.child_calls import call_in_parts
from keras_gating.layers.child_calls import is_plain_projection

# Where the layer is to choose. In blocks of this size the products are about as
# fast as in one; a gradient takes half as long again, for what it computes
# twice, which up to this length the memory is not worth.
_AUTO_BLOCK = 256
_LONGEST_WHOLE = 2048


class GatedAttentionUnitCore(GatedAttentionUnitWeights):
    """What `GatedAttentionUnit` computes; the subclass holds the arguments."""

    def call(
        self,
        inputs,
        attention_mask=None,
        use_causal_mask=False,
        training=None,
        mask=None,
        inputs_mask=None,
        cache=None,
        cache_update_index=None,
    ):
        mask = inputs_mask if mask is None else mask
        check_call(
            self,
            inputs.shape,
            mask,
            attention_mask,
            use_causal_mask,
            cache,
            cache_update_index,
        )
        inputs = self._cast(inputs)
        if mask is not None:
            mask = masks.as_boolean_mask(mask, "mask")
            rows = ops.expand_dims(mask, -1)
            inputs = masks.hide(inputs, rows)
        context, gate, cache, overwrite = self._context_and_gate(
            inputs,
            mask,
            attention_mask,
            use_causal_mask,
            cache,
            cache_update_index,
        )
        if mask is not None:
            context = masks.hide(context, rows)
        hidden = gated(
            context,
            gate,
            self.activation,
            dropout=self.dropout,
            training=training,
            seed=self.seed_generator,
            mask=mask,
            owner=self,
            overwrite=overwrite,
        )
        outputs = self._cast(call_child(self, self.output_dense, hidden))
        if self.norm_first:
            if is_plain_projection(self.output_dense, self):
                outputs = in_place.total(outputs, inputs)
            else:
                outputs = outputs + inputs
        return outputs if cache is None else (outputs, cache)

    def compute_output_spec(
        self,
        inputs,
        attention_mask=None,
        use_causal_mask=False,
        training=None,
        mask=None,
        inputs_mask=None,
        cache=None,
        cache_update_index=None,
    ):
        check_call(
            self,
            inputs.shape,
            inputs_mask if mask is None else mask,
            attention_mask,
            use_causal_mask,
            cache,
            cache_update_index,
        )
        outputs = keras.KerasTensor(inputs.shape, dtype=self.compute_dtype)
        if cache is None:
            return outputs
        return outputs, {
            name: keras.KerasTensor(x.shape, dtype=x.dtype)
            for name, x in cache.items()
        }

    def _context_and_gate(
        self,
        inputs,
        mask,
        attention_mask,
        is_causal,
        cache,
        cache_update_index,
    ):
        """`A V`, the logits of U, the cache, and what `gated` may overwrite.

        A method of its own, so that eagerly the tensors on the way are freed
        before those of the product are made.
        """
        pairs, seen = _split_mask(attention_mask)
        x = inputs
        if self.norm_first:
            x = call_child(self, self.normalization, inputs)
            x = self._cast(x)
        (value, gate), are_own = call_in_parts(self, self.hidden_dense, x)
        value, gate = self._cast(value), self._cast(gate)
        if are_own:
            value = in_place.activated(self.activation, value)
        else:
            value = self.activation(value)
        shared = self._cast(call_child(self, self.shared_dense, x))
        del x
        shared = self.activation(shared)
        offset = 0
        if cache is not None:
            offset = kv_cache.as_offset(cache_update_index)
        queries, keys = self._queries_and_keys(shared, offset)
        attend = self._quadratic if self.chunk_size is None else self._chunked
        context, cache = attend(
            queries, keys, value, mask, seen, pairs, is_causal, offset, cache
        )
        return context, gate, cache, "both" if are_own else "inputs"

    def _queries_and_keys(self, shared, offset):
        """The queries and the keys, one each or two in the chunked form."""
        heads = functional.offset_scale(
            shared, self.query_key_scale, self.query_key_offset
        )
        if self._has_position("rope"):
            positions = ops.arange(ops.shape(shared)[1], dtype="int32") + offset
            heads = [functional.apply_rotary(x, positions) for x in heads]
        count = len(heads) // 2
        return heads[:count], heads[count:]

    def _quadratic(
        self, queries, keys, value, mask, seen, pairs, is_causal, offset, cache
    ):
        (query,), (key,) = queries, keys
        if cache is not None:
            cache = kv_cache.write_mask(cache, offset, mask, query)
            written = kv_cache.written(cache, offset, query)
            cache = kv_cache.write(
                cache,
                offset,
                ops.expand_dims(key, 2),
                ops.expand_dims(value, 2),
            )
            mask = ops.logical_and(cache["mask"], written)
            key = self._cast(cache["key"][:, :, 0])
            value = self._cast(cache["value"][:, :, 0])
        mask = masks.intersection(mask, seen)
        key, value = _hide_unseen(key, value, mask, pairs)
        divisor = self.divisor
        if divisor == "length":
            divisor = offset + ops.shape(query)[1]
        context = functional.quadratic_attention(
            query,
            key,
            value,
            activation=self.attention_activation,
            divisor=divisor,
            mask=pairs,
            key_mask=mask,
            is_causal=is_causal,
            offset=offset,
            position_bias=self._position_bias(),
            block_size=self._rows_a_block(query),
        )
        return context, cache

    def _chunked(
        self, queries, keys, value, mask, seen, _, is_causal, offset, cache
    ):
        key, linear_key = keys
        mask = masks.intersection(mask, seen)
        key, value = _hide_unseen(key, value, mask)
        divisors = (self.divisor, self.divisor)
        if self.divisor == "length":
            divisors = (self.chunk_size, offset + ops.shape(value)[1])
        arguments = (queries, (key, linear_key), value)
        if cache is not None:
            return gated_attention_unit_cache.step(
                cache,
                offset,
                *arguments,
                mask,
                self.attention_activation,
                divisors,
                self._position_bias(),
            )
        context = functional.mixed_chunk_attention(
            *arguments,
            chunk_size=self.chunk_size,
            activation=self.attention_activation,
            divisors=divisors,
            key_mask=mask,
            is_causal=is_causal,
            position_bias=self._position_bias(),
        )
        return context, None

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


def _split_mask(attention_mask):
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


def _hide_unseen(key, value, mask, pairs=None):
    """Keys and values that no row sees become zero, whatever they hold."""
    seen = mask
    if pairs is not None:
        seen = masks.intersection(seen, ops.any(pairs, axis=1))
    if seen is None:
        return key, value
    seen = ops.expand_dims(seen, -1)
    return masks.hide(key, seen), masks.hide(value, seen)
