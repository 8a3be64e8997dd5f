from keras import ops

from keras_gating.functional import masks
from keras_gating.functional import rotary
from keras_gating.functional.gate import as_dtype
from keras_gating.functional.gate import gated
from keras_gating.functional.sizes import known_size
from keras_gating.functional.sizes import positions
from keras_gating.layers.attention.attention_weights import AttentionWeights
from keras_gating.layers.child_calls import call_child


class AttentionHeads(AttentionWeights):
    """What surrounds attention: inputs to heads, and heads to the output."""

    def _cast(self, x):
        return as_dtype(x, self.compute_dtype)

    def _gated(self, gate, x, source, training, mask):
        if gate is None:
            return x
        return call_child(
            self, gate, x, source, training=training, inputs_mask=mask
        )

    def _to_heads(
        self, query, key, value, query_mask, source_mask, offset, training
    ):
        """Projections, normalization, gates and rotary embedding."""
        inputs = query, key, value
        # A policy map may give a child another dtype than the layer.
        query = self._cast(call_child(self, self.query_dense, query))
        key = self._cast(call_child(self, self.key_dense, key))
        value = self._cast(call_child(self, self.value_dense, value))
        if self.query_key_normalization is not None:
            query = call_child(self, self.query_norm, query)
            key = call_child(self, self.key_norm, key)
        query = self._gated(
            self.query_gate, query, inputs[0], training, query_mask
        )
        key = self._gated(self.key_gate, key, inputs[1], training, source_mask)
        value = self._gated(
            self.value_gate, value, inputs[2], training, source_mask
        )
        if self._rotary_width:
            query, key = self._rotated(query, key, offset)
        return query, key, value

    def _rotated(self, query, key, offset):
        """Rotary embedding, whose table serves both if they are as long."""
        axis = self.layout.axes[0]

        def table(x):
            return rotary.table(
                positions(ops.shape(x)[axis], offset),
                self.rope_max_wavelength,
                self._rotary_width,
                len(x.shape) - axis - 2,
                x.dtype,
            )

        length = known_size(query, axis)
        tables = [table(query)]
        is_shared = length is not None and length == known_size(key, axis)
        # A policy map may give a child that normalizes or gates another dtype.
        if not is_shared or query.dtype != key.dtype:
            tables.append(table(key))
        return (
            rotary.rotated(query, *tables[0]),
            rotary.rotated(key, *tables[-1]),
        )

    def _from_heads(self, context, zeroed, gate_query, query_mask, training):
        """From the context to the output; `zeroed` masks rows to be zero."""
        if self.context_normalization is not None:
            context = call_child(self, self.context_norm, context)
        if zeroed is not None:
            context = masks.hide(context, self.layout.visible_rows(zeroed))
        source = None
        if self.output_gate is not None or self.projection_gate is not None:
            source = self._gate_source(gate_query, context)
        if self._is_split():
            first, second = ops.split(context, 2, axis=-1)
            context = gated(
                first,
                second,
                self.gate_activation,
                self.gate_scale,
                mask=query_mask,
                owner=self,
            )
        context = self._gated(
            self.output_gate, context, source, training, query_mask
        )
        output = call_child(self, self.output_dense, context)
        output = self._gated(
            self.projection_gate, output, source, training, query_mask
        )
        return self._cast(output)

    def _gate_source(self, gate_query, context):
        if self.gate_source in ("query", "constant"):
            return gate_query
        merged = ops.reshape(
            context,
            (*ops.shape(context)[:-2], self.num_heads * self.value_dim),
        )
        if self.gate_source == "context":
            return merged
        return ops.concatenate([self._cast(gate_query), merged], axis=-1)
