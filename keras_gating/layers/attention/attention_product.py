import functools

import keras

from keras_gating import functional
from keras_gating.functional import grouped
from keras_gating.functional import masks
from keras_gating.layers.attention.attention_heads import AttentionHeads


class AttentionProduct(AttentionHeads):
    """Attention of heads, where those of a group share keys and values."""

    def _attend(self, query, key, value, *args, **kwargs):
        """The context, and the scores if they are asked for, else `None`."""
        if self._is_overridden():
            key, value = grouped.repeated(query, key, value)
        return self._compute_attention(query, key, value, *args, **kwargs)

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
            key: `(B, S, N, key_dim)`. What overrides this gets the heads of
                groups repeated; this itself takes one for each group.
            value: `(B, S, N, value_dim)`, the same.
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
            mask=masks.optional_boolean_mask(attention_mask),
            is_causal=use_causal_mask,
            layout=self.layout,
            dropout=dropout,
            return_scores=return_attention_scores,
            flash_attention=flash,
        )

    def _is_overridden(self):
        """Whether another function attends, of a subclass or of this object."""
        name = "_compute_attention"
        own = AttentionProduct._compute_attention
        return name in self.__dict__ or getattr(type(self), name) is not own
