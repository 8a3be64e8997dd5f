import keras
from keras import ops

from keras_gating._backend import in_place
from keras_gating.functional import masks
from keras_gating.functional import recording
from keras_gating.functional.gate import gated
from keras_gating.functional.sizes import known_size
from keras_gating.layers.attention.gated_attention_unit_product import (
    GatedAttentionUnitProduct,
)
from keras_gating.layers.attention.gated_attention_unit_product import (
    split_mask,
)
from keras_gating.layers.child_calls import is_plain_projection
from keras_gating.layers.projection import linear


class GatedAttentionUnitBlocks(GatedAttentionUnitProduct):
    """The quadratic form in blocks of rows, up to the output.

    Of the gate, the context and their product only the rows of one block are
    there at a time; they would take most of the memory beside the values.
    """

    def _fits_blocks(self, inputs, cache, training):
        """Whether the call is one in blocks, and nobody looks inside of it."""
        size, length = self._rows_a_block(inputs), known_size(inputs)
        return (
            self.chunk_size is None
            and cache is None
            and size is not None
            and length is not None
            and length > size
            and not (self.dropout > 0.0 and training)
            and not recording.is_observed()
            and is_plain_projection(self.hidden_dense, self)
            and is_plain_projection(self.output_dense, self)
            # Gradients reach no weights of its own from inside of blocks.
            and not isinstance(self.activation, keras.layers.Layer)
        )

    def _in_blocks(self, inputs, mask, attention_mask, is_causal):
        """The output, without what `norm_first` adds."""
        pairs, seen = split_mask(attention_mask)
        x = self._normalized(inputs)
        kernel, bias = self.hidden_dense.kernel_and_bias()
        further = {"gate_kernel": kernel[:, 1]}
        value_bias = None
        if bias is not None:
            value_bias, further["gate_bias"] = bias[0], bias[1]
        kernel_and_bias = self.output_dense.kernel_and_bias()
        further["output_kernel"], further["output_bias"] = kernel_and_bias
        value = in_place.activated(
            self.activation, linear(x, kernel[:, 0], value_bias)
        )
        (query,), (key,) = self._queries_and_keys(x, 0)
        rows = {"source": x}
        if mask is not None:
            rows["visible"] = ops.expand_dims(mask, -1)
        further = {
            name: tensor
            for name, tensor in further.items()
            if tensor is not None
        }
        return self._attended(
            query,
            key,
            value,
            masks.intersection(mask, seen),
            pairs,
            is_causal,
            0,
            finish=self._finished,
            further_rows=rows,
            further=further,
        )

    def _finished(
        self,
        context,
        source,
        gate_kernel,
        output_kernel,
        gate_bias=None,
        output_bias=None,
        visible=None,
    ):
        """The output of some rows."""
        if visible is not None:
            context = masks.hide(context, visible)
        gate = linear(source, gate_kernel, gate_bias)
        hidden = gated(
            context, gate, self.activation, owner=self, overwrite="both"
        )
        return linear(hidden, output_kernel, output_bias)
