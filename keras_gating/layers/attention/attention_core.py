import functools

import keras
from keras import ops

from keras_gating import functional
from keras_gating.functional import checks
from keras_gating.functional import masks
from keras_gating.functional.sizes import known_size
from keras_gating.layers.attention import cache as kv_cache
from keras_gating.layers.attention import shapes
from keras_gating.layers.attention.attention_heads import AttentionHeads


class AttentionCore(AttentionHeads):
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
        )
        query_mask = _boolean("query_mask", query_mask)
        source_mask = masks.intersection(
            _boolean("value_mask", value_mask), _boolean("key_mask", key_mask)
        )
        attention_mask = _boolean("attention_mask", attention_mask)
        causal_only = use_causal_mask and self._kernel_can_be_causal(
            query, value, (query_mask, source_mask, attention_mask, cache)
        )
        is_causal = use_causal_mask and not causal_only
        offset = 0
        if cache is not None:
            offset = kv_cache.as_offset(cache_update_index)
        source, seen_sources = key, source_mask
        if cache is not None:
            cache = kv_cache.write_mask(cache, offset, source_mask, query)
            written = kv_cache.written(cache, offset, query)
            source = cache["key"]
            seen_sources = ops.logical_and(cache["mask"], written)
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
        if cache is None and mask is not None:
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
            cache = kv_cache.write(cache, offset, key, value)
            key, value = map(self._cast, (cache["key"], cache["value"]))
        seen = mask
        masked_rows = self._masked_rows(return_attention_scores)
        if cache is not None and masked_rows == "uniform":
            # The mean is that of the values there are, not of empty slots:
            # a query of zeros scores all of them alike.
            seen = self.layout.fill_empty_rows(mask, written)
            query = masks.hide(query, self.layout.visible_rows(mask))
        context, scores = self._compute_attention(
            query,
            self._repeat(key),
            self._repeat(value),
            seen,
            training,
            return_attention_scores,
            # An override with the older signature never gets the flag.
            **({"use_causal_mask": True} if causal_only else {}),
        )
        zeroed = mask if masked_rows == "zero" else None
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

    def _compute_attention(
        self,
        query,
        key,
        value,
        attention_mask=None,
        training=None,
        return_attention_scores=False,
        use_causal_mask=False,
    ):
        """Attention over projected tensors; override it to customize.

        Args:
            query: `(B, T, N, key_dim)`, neither scaled nor masked.
            key: `(B, S, N, key_dim)`, grouped heads already repeated.
            value: `(B, S, N, value_dim)`.
            attention_mask: all masks in one, `(B, T, S)` with sizes 1 that
                broadcast, or with an axis for heads; `None` shows everything.
            training: whether dropout is active.
            return_attention_scores: whether the scores are wanted.
            use_causal_mask: hide later keys too; only passed when it is True.

        Returns:
            The context `(B, T, N, value_dim)`, and the scores or `None`.
        """
        flash = self.flash_attention
        if flash is None:
            flash = keras.config.is_flash_attention_enabled()
        if flash and return_attention_scores:
            raise ValueError(
                "Returning attention scores is not supported when flash "
                "attention is enabled. Please disable flash attention to "
                "access attention scores."
            )
        dropout = None
        if self.dropout > 0.0 and training:
            dropout = functools.partial(self.dropout_layer, training=True)
        return functional.dot_product_attention(
            query,
            key,
            value,
            mask=_boolean("attention_mask", attention_mask),
            is_causal=use_causal_mask,
            layout=self.layout,
            dropout=dropout,
            return_scores=return_attention_scores,
            flash_attention=flash,
        )

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

    def _kernel_can_be_causal(self, query, value, others):
        """Whether causality is the only mask, so that none need be built."""
        overridden = (
            type(self)._compute_attention
            is not AttentionCore._compute_attention
        )
        length = known_size(query)
        same_length = query is value or (
            length is not None and length == known_size(value)
        )
        return (
            self.layout.is_flat
            and same_length
            and not overridden
            and self.sliding_window is None
            and all(other is None for other in others)
        )

    def _masked_rows(self, return_attention_scores):
        """What masked rows get in a call."""
        return self.masked_rows

    def _hide(self, x, visible):
        if visible is None:
            return x
        # The mean of all values reads hidden ones too, if they are numbers.
        return masks.hide(x, visible, self.masked_rows == "uniform")


def _boolean(name, mask):
    return None if mask is None else masks.as_boolean_mask(mask, name)
