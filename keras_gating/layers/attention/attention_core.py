import keras
from keras import ops

from keras_gating.functional import checks
from keras_gating.functional import masks
from keras_gating.functional.sizes import known_size
from keras_gating.layers.attention import cache as kv_cache
from keras_gating.layers.attention import shapes
from keras_gating.layers.attention.attention_product import AttentionProduct


class AttentionCore(AttentionProduct):
    """What `GatedAttention` computes; the subclass holds the arguments."""

    def call(
        self,
        query,
        value,
        key=None,
        query_mask=None,
        value_mask=None,
        key_mask=None,
        attention_mask=None,
        return_attention_scores=False,
        training=None,
        use_causal_mask=False,
        gate_input=None,
        cache=None,
        cache_update_index=None,
        donate_cache=False,
    ):
        key = value if key is None else key
        checks.boolean("return_attention_scores", return_attention_scores)
        shapes.check_call(
            self,
            query,
            value,
            key,
            {"query": query_mask, "value": value_mask, "key": key_mask},
            attention_mask,
            use_causal_mask,
            gate_input,
            cache,
            cache_update_index,
            donate_cache,
        )
        query_mask = masks.optional_boolean_mask(query_mask, "query_mask")
        source_mask = masks.intersection(
            masks.optional_boolean_mask(value_mask, "value_mask"),
            masks.optional_boolean_mask(key_mask, "key_mask"),
        )
        attention_mask = masks.optional_boolean_mask(attention_mask)
        unmasked = query_mask is source_mask is attention_mask is None
        same_positions = cache is not None or self._same_lengths(query, value)
        # Every query sees its own position, so that none is without a key.
        all_see = unmasked and same_positions
        causal_only = (
            all_see
            and use_causal_mask
            and cache is None
            and self.sliding_window is None
            and not self._is_overridden()
        )
        is_causal = use_causal_mask and not causal_only
        offset = 0
        source, seen_sources = key, source_mask
        if cache is not None:
            offset = kv_cache.as_offset(cache_update_index)
            cache = kv_cache.write_mask(
                cache, offset, source_mask, query, donate_cache
            )
            source, seen_sources = cache["key"], cache["mask"]
            if not is_causal:
                # Causality hides slots that are still empty by itself.
                seen_sources = ops.logical_and(
                    seen_sources, kv_cache.written(cache, offset, query)
                )
        mask = masks.visibility(
            self.layout,
            ops.shape(query),
            ops.shape(source),
            query_mask,
            seen_sources,
            attention_mask,
            is_causal,
            self.sliding_window,
            offset,
        )
        if cache is None and mask is not None and not all_see:
            visible = self.layout.visible_sources(mask)
        elif source_mask is not None:
            visible = masks.with_rank(source_mask, len(key.shape))
        else:
            visible = None
        value_is_key = value is key
        key = self._hide(key, visible)
        value = key if value_is_key else self._hide(value, visible)
        if query_mask is not None:
            rows = masks.with_rank(query_mask, len(query.shape))
            query = self._hide(query, rows)
            if gate_input is not None:
                gate_input = self._hide(gate_input, rows)
        gate_query = query if gate_input is None else gate_input
        query, key, value = self._to_heads(
            query, key, value, query_mask, source_mask, offset, training
        )
        if cache is not None:
            if attention_mask is not None:
                # Once here, so that no step need look at all of the cache.
                # They stay if they are numbers: later queries may see them.
                new = kv_cache.new_slots(
                    self.layout.visible_sources(mask), offset, query
                )
                key, value = (masks.hide(x, new, True) for x in (key, value))
            cache = kv_cache.write(cache, offset, key, value, donate_cache)
            key, value = map(self._cast, (cache["key"], cache["value"]))
        seen = mask
        masked_rows = self._masked_rows(return_attention_scores)
        if cache is not None and masked_rows == "uniform" and not all_see:
            # The mean is that of the values there are, not of empty slots:
            # a query of zeros scores all of them alike.
            written = kv_cache.written(cache, offset, query)
            seen = self.layout.fill_empty_rows(mask, written)
            query = masks.hide(query, self.layout.visible_rows(mask))
        context, scores = self._attend(
            query,
            key,
            value,
            seen,
            training,
            return_attention_scores,
            # An override with the older signature never gets the flag.
            **({"use_causal_mask": True} if causal_only else {}),
        )
        zeroed = mask if masked_rows == "zero" and not all_see else None
        output = self._from_heads(
            context, zeroed, gate_query, query_mask, training
        )
        outputs: tuple = (output,)
        if return_attention_scores:
            if zeroed is not None:
                scores = masks.hide(scores, self.layout.seeing_rows(zeroed))
            outputs += (scores,)
        if cache is not None:
            outputs += (cache,)
        return outputs[0] if len(outputs) == 1 else outputs

    def compute_output_spec(
        self,
        query,
        value,
        key=None,
        query_mask=None,
        value_mask=None,
        key_mask=None,
        attention_mask=None,
        return_attention_scores=False,
        training=None,
        use_causal_mask=False,
        gate_input=None,
        cache=None,
        cache_update_index=None,
        donate_cache=False,
    ):
        key = value if key is None else key
        scores_shape = shapes.check_call(
            self,
            query,
            value,
            key,
            {"query": query_mask, "value": value_mask, "key": key_mask},
            attention_mask,
            use_causal_mask,
            gate_input,
            cache,
            cache_update_index,
            donate_cache,
        )
        output_shape = self.compute_output_shape(
            query.shape, value.shape, key.shape
        )
        outputs: tuple = (
            keras.KerasTensor(output_shape, dtype=self.compute_dtype),
        )
        if return_attention_scores:
            outputs += (
                keras.KerasTensor(scores_shape, dtype=self.compute_dtype),
            )
        if cache is not None:
            outputs += (
                {
                    name: keras.KerasTensor(x.shape, dtype=x.dtype)
                    for name, x in cache.items()
                },
            )
        return outputs[0] if len(outputs) == 1 else outputs

    def _same_lengths(self, query, value):
        """Whether positions of one sequence are those of the other."""
        length = known_size(query)
        return self.layout.is_flat and (
            query is value
            or (length is not None and length == known_size(value))
        )

    def _masked_rows(self, return_attention_scores):
        """What masked rows get in a call."""
        return self.masked_rows

    def _hide(self, x, visible):
        if visible is None:
            return x
        # The mean of all values reads hidden ones too, if they are numbers.
        return masks.hide(x, visible, self.masked_rows == "uniform")
