"""Gated attention that treats Keras masks as a layer of Keras does."""

import keras

from keras_gating import _keras
from keras_gating.layers import GatedAttention


@keras.saving.register_keras_serializable(package="keras_gating")
class KerasRowsAttention(GatedAttention):
    """What surgery puts in the place of a `GroupQueryAttention`.

    A `GatedAttention` whose fully masked rows depend on the call, as in the
    layers of Keras: zeros in a call that returns scores, for which these
    compute otherwise, and `masked_rows` in others.

    Arguments and call arguments are those of `GatedAttention`.
    """

    def _masked_rows(self, return_attention_scores):
        return "zero" if return_attention_scores else self.masked_rows


@keras.saving.register_keras_serializable(package="keras_gating")
class KerasMaskAttention(KerasRowsAttention):
    """What surgery puts in the place of a `MultiHeadAttention`.

    A `KerasRowsAttention` that takes the masks of its inputs off them, as
    `keras.layers.MultiHeadAttention` does: a layer that reads the same tensors
    later, such as the sum of a residual connection, finds no mask, and so the
    attention after it sees padding. The query's mask is the one that comes
    with the tensor, an argument `query_mask` has no effect. A trained model
    computes with these rules, and its gated copy must too.

    Arguments and call arguments are those of `GatedAttention`.
    """

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
        query_mask = _keras.get_keras_mask(query)
        for x in (query, value, key):
            if x is not None:
                _keras.set_keras_mask(x, None)
        return super().call(
            query,
            value,
            key=key,
            query_mask=query_mask,
            value_mask=value_mask,
            key_mask=key_mask,
            attention_mask=attention_mask,
            return_attention_scores=return_attention_scores,
            training=training,
            use_causal_mask=use_causal_mask,
            gate_input=gate_input,
            cache=cache,
            cache_update_index=cache_update_index,
            donate_cache=donate_cache,
        )


@keras.saving.register_keras_serializable(package="keras_gating")
class ExplicitMaskAttention(KerasRowsAttention):
    """What surgery puts in the place of attention without Keras masks.

    Subclasses of `keras.layers.MultiHeadAttention` whose `call` has no
    `query_mask`, `value_mask` and `key_mask` do not see the masks that Keras
    carries along with tensors; `keras_hub.layers.CachedMultiHeadAttention` is
    one. `attention_mask` is the only mask here too.

    `cache` and `cache_update_index` may be passed as `None` only: those
    subclasses and `GatedAttention` have caches of different forms.

    Arguments are those of `GatedAttention`.
    """

    def call(  # type: ignore[override]
        self,
        query,
        value,
        key=None,
        attention_mask=None,
        return_attention_scores=False,
        training=None,
        use_causal_mask=False,
        gate_input=None,
        cache=None,
        cache_update_index=None,
    ):
        _refuse_cache(self, cache, cache_update_index)
        return super().call(
            query,
            value,
            key=key,
            attention_mask=attention_mask,
            return_attention_scores=return_attention_scores,
            training=training,
            use_causal_mask=use_causal_mask,
            gate_input=gate_input,
        )

    def compute_output_spec(  # type: ignore[override]
        self,
        query,
        value,
        key=None,
        attention_mask=None,
        return_attention_scores=False,
        training=None,
        use_causal_mask=False,
        gate_input=None,
        cache=None,
        cache_update_index=None,
    ):
        _refuse_cache(self, cache, cache_update_index)
        return super().compute_output_spec(
            query,
            value,
            key=key,
            attention_mask=attention_mask,
            return_attention_scores=return_attention_scores,
            training=training,
            use_causal_mask=use_causal_mask,
            gate_input=gate_input,
        )


def _refuse_cache(layer, cache, cache_update_index):
    if cache is None and cache_update_index is None:
        return
    shape = getattr(cache, "shape", None)
    raise ValueError(
        f"Layer {layer.name!r} stands in the place of attention with a cache "
        "of another form, and computes without. Received: a cache of type "
        f"{type(cache).__name__} and shape {shape}, "
        f"cache_update_index={cache_update_index!r}"
    )
