import keras
from keras import ops

from keras_gating import functional
from keras_gating._backend import in_place
from keras_gating.functional import masks
from keras_gating.functional.gate import gated
from keras_gating.layers.attention import cache as kv_cache
from keras_gating.layers.attention import gated_attention_unit_cache
from keras_gating.layers.attention.gated_attention_unit_blocks import (
    GatedAttentionUnitBlocks,
)
from keras_gating.layers.attention.gated_attention_unit_checks import check_call
from keras_gating.layers.attention.gated_attention_unit_product import (
    hide_unseen,
)
from keras_gating.layers.attention.gated_attention_unit_product import (
    split_mask,
)
from keras_gating.layers.child_calls import call_child
from keras_gating.layers.child_calls import call_in_parts
from keras_gating.layers.child_calls import is_plain_projection


class GatedAttentionUnitCore(GatedAttentionUnitBlocks):
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
        donate_cache=False,
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
            donate_cache,
        )
        inputs = self._cast(inputs)
        if mask is not None:
            mask = masks.as_boolean_mask(mask, "mask")
            inputs = masks.hide(inputs, ops.expand_dims(mask, -1))
        if self._fits_blocks(inputs, cache, training):
            outputs = self._in_blocks(
                inputs, mask, attention_mask, use_causal_mask
            )
        else:
            outputs, cache = self._at_once(
                inputs,
                mask,
                attention_mask,
                use_causal_mask,
                training,
                cache,
                cache_update_index,
                donate_cache,
            )
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
        donate_cache=False,
    ):
        check_call(
            self,
            inputs.shape,
            inputs_mask if mask is None else mask,
            attention_mask,
            use_causal_mask,
            cache,
            cache_update_index,
            donate_cache,
        )
        outputs = keras.KerasTensor(inputs.shape, dtype=self.compute_dtype)
        if cache is None:
            return outputs
        return outputs, {
            name: keras.KerasTensor(x.shape, dtype=x.dtype)
            for name, x in cache.items()
        }

    def _at_once(
        self,
        inputs,
        mask,
        attention_mask,
        is_causal,
        training,
        cache,
        cache_update_index,
        donate_cache,
    ):
        """The output, without what `norm_first` adds, and the cache."""
        context, gate, cache, overwrite = self._context_and_gate(
            inputs,
            mask,
            attention_mask,
            is_causal,
            cache,
            cache_update_index,
            donate_cache,
        )
        if mask is not None:
            context = masks.hide(context, ops.expand_dims(mask, -1))
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
        return self._cast(call_child(self, self.output_dense, hidden)), cache

    def _context_and_gate(
        self,
        inputs,
        mask,
        attention_mask,
        is_causal,
        cache,
        cache_update_index,
        donate_cache,
    ):
        """`A V`, the logits of U, the cache, and what `gated` may overwrite.

        A method of its own, so that eagerly the tensors on the way are freed
        before those of the product are made.
        """
        pairs, seen = split_mask(attention_mask)
        x = self._normalized(inputs)
        (value, gate), are_own = call_in_parts(self, self.hidden_dense, x)
        value, gate = self._cast(value), self._cast(gate)
        if are_own:
            value = in_place.activated(self.activation, value)
        else:
            value = self.activation(value)
        offset = 0
        if cache is not None:
            offset = kv_cache.as_offset(cache_update_index)
        queries, keys = self._queries_and_keys(x, offset)
        del x
        arguments = queries, keys, value, mask, seen
        if self.chunk_size is None:
            context, cache = self._quadratic(
                *arguments, pairs, is_causal, offset, cache, donate_cache
            )
        else:
            # What it carries is small, and made anew.
            context, cache = self._chunked(*arguments, is_causal, offset, cache)
        return context, gate, cache, "both" if are_own else "inputs"

    def _quadratic(
        self,
        queries,
        keys,
        value,
        mask,
        seen,
        pairs,
        is_causal,
        offset,
        cache,
        donate_cache,
    ):
        (query,), (key,) = queries, keys
        if cache is not None:
            cache = kv_cache.write_mask(
                cache, offset, mask, query, donate_cache
            )
            written = kv_cache.written(cache, offset, query)
            cache = kv_cache.write(
                cache,
                offset,
                ops.expand_dims(key, 2),
                ops.expand_dims(value, 2),
                donate_cache,
            )
            mask = ops.logical_and(cache["mask"], written)
            key = self._cast(cache["key"][:, :, 0])
            value = self._cast(cache["value"][:, :, 0])
        mask = masks.intersection(mask, seen)
        context = self._attended(
            query, key, value, mask, pairs, is_causal, offset
        )
        return context, cache

    def _chunked(
        self, queries, keys, value, mask, seen, is_causal, offset, cache
    ):
        key, linear_key = keys
        mask = masks.intersection(mask, seen)
        key, value = hide_unseen(key, value, mask)
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
