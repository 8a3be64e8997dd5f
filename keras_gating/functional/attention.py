"""Scaled dot-product attention, fused where that is right, else explicit."""

import contextlib
import threading

import keras
from keras import ops

from keras_gating import _backend
from keras_gating.functional import checks
from keras_gating.functional import cpu_kernels
from keras_gating.functional import grouped
from keras_gating.functional.gate import as_dtype
from keras_gating.functional.gate import as_float
from keras_gating.functional.gate import to_float32
from keras_gating.functional.layout import AttentionLayout
from keras_gating.functional.masks import as_boolean_mask
from keras_gating.functional.masks import causal_mask
from keras_gating.functional.masks import intersection
from keras_gating.functional.scores import masked_softmax
from keras_gating.functional.scores import scaled_query

_state = threading.local()


@contextlib.contextmanager
def explicit_attention():
    """Demands the explicit path of attention inside this context.

    Fused kernels are not differentiable to every order (the one of PyTorch on
    the CPU has neither a forward-mode rule nor a second backward pass); the
    explicit path is. Both compute the same function. A function compiled
    outside the context keeps the path it was compiled with.

    Example:

    >>> import numpy as np
    >>> from keras_gating import functional, layers
    >>> layer = layers.GatedAttention(num_heads=2, key_dim=4)
    >>> x = np.ones((1, 3, 8), "float32")
    >>> with functional.explicit_attention():
    ...     y = layer(x, x)
    """
    previous = getattr(_state, "explicit", False)
    _state.explicit = True
    try:
        yield
    finally:
        _state.explicit = previous


def dot_product_attention(
    query,
    key,
    value,
    mask=None,
    is_causal=False,
    layout=None,
    scale=None,
    dropout=None,
    return_scores=False,
    flash_attention=None,
):
    """Attention over projected tensors of any rank.

    `context = softmax(scale · q kᵀ, masked) v`

    The query is scaled before the product, so that float16 does not overflow
    where the scaled scores fit; the softmax is computed in float32 at least. A
    row without a visible key gets the mean of all values.

    Args:
        query: `(B, T, heads, D)`, or of higher rank as `layout` says.
        key: `(B, S, heads, D)`, or with fewer heads that divide those of the
            query: each is that of as many neighbouring heads of the query.
        value: `(B, S, heads, Dv)`, with the heads of `key`.
        mask: boolean or 0 and 1, `(B, heads, T, S)` or of any shape
            that `AttentionLayout.with_heads` broadcasts to that.
        is_causal: hide later keys from every query, in addition to `mask`.
        layout: an `AttentionLayout`. Default: that of plain sequences.
        scale: factor on the scores. Default: `1/√D`.
        dropout: function applied to the probabilities, or `None`.
        return_scores: whether to return the probabilities too.
        flash_attention: as in `keras.ops.dot_product_attention`.

    Returns:
        `(context, scores)`; `scores` is `None` unless asked for.

    Example:

    >>> import numpy as np
    >>> from keras_gating import functional
    >>> x = np.zeros((1, 3, 2, 4), "float32")
    >>> context, scores = functional.dot_product_attention(
    ...     x, x, x, return_scores=True)
    >>> tuple(context.shape), tuple(scores.shape)
    ((1, 3, 2, 4), (1, 2, 3, 3))
    """
    checks.boolean("is_causal", is_causal)
    checks.boolean("return_scores", return_scores)
    query = as_float(query, "query")
    key, value = as_float(key, "key"), as_float(value, "value")
    dtypes = {x.dtype for x in (query, key, value)}
    if len(dtypes) > 1:
        # A projection may have a policy of its own. Only then: of float64
        # alone Keras makes float32.
        dtype = keras.backend.result_type(*dtypes)
        query, key, value = (as_dtype(x, dtype) for x in (query, key, value))
    if layout is None:
        # Of a lower rank nothing fits, which is said below.
        rank = max(len(query.shape) - 1, 3)
        layout = AttentionLayout.resolve(rank, None)
    scores_shape = _scores_shape(query, key, value, layout)
    if mask is not None:
        mask = as_boolean_mask(mask, "mask")
        if not 2 * layout.count <= len(mask.shape) <= layout.scores_rank:
            raise ValueError(
                "`mask` must have the sizes of queries and keys and may have "
                f"those of the batch and the heads before, {scores_shape}. "
                f"Received: mask.shape={tuple(mask.shape)}"
            )
        mask = layout.with_heads(mask)
        checks.broadcasts("mask", mask.shape, "the scores", scores_shape)
    if dropout is None and not return_scores and can_fuse(query, layout):
        if grouped.fits(query, key, mask, is_causal):
            context, _ = dot_product_attention(
                grouped.as_rows(query, key.shape[2]),
                key,
                value,
                mask,
                scale=scale,
                flash_attention=flash_attention,
            )
            return grouped.as_heads(context, query.shape[2]), None
        form = None if flash_attention else cpu_kernels.choose(query, key)
        if not cpu_kernels.shares_keys(form):
            key, value = grouped.repeated(query, key, value)
        if form is not None:
            query = scaled_query(query, scale)
            context = cpu_kernels.attend(
                form, query, key, value, mask, is_causal
            )
            return context, None
        if backend_kernel_can(query, value):
            context = _backend_kernel(
                query, key, value, mask, is_causal, scale, flash_attention
            )
            return context, None
    if flash_attention and not getattr(_state, "explicit", False):
        raise ValueError(
            "Flash attention is not to be had for this call: it needs inputs "
            "of rank 3, no dropout and no scores, a dtype other than float64, "
            "and on JAX equal sizes of key and value heads. Received: "
            f"flash_attention=True, query.shape={tuple(query.shape)}, "
            f"value.shape={tuple(value.shape)}, dtype={query.dtype}"
        )
    if is_causal:
        shapes = [
            tuple(ops.shape(x)[axis] for axis in layout.axes)
            for x in (query, key)
        ]
        mask = intersection(mask, layout.with_heads(causal_mask(*shapes)))
    query = scaled_query(query, scale)
    key, value = grouped.repeated(query, key, value)
    return _explicit(query, key, value, mask, layout, dropout, return_scores)


def _scores_shape(query, key, value, layout):
    """The shape of the scores of projected tensors that fit together."""
    shapes = [tuple(x.shape) for x in (query, key, value)]
    same = (0, *layout.free)
    if (
        any(len(shape) != layout.rank + 1 for shape in shapes)
        or not grouped.divide(shapes[1][-2], shapes[0][-2])
        or not checks.compatible(shapes[1][:-1], shapes[2][:-1])
        or not checks.compatible(shapes[0][-1:], shapes[1][-1:])
        or not all(
            checks.compatible((shapes[0][axis],), (shapes[1][axis],))
            for axis in same
        )
    ):
        raise ValueError(
            "`query`, `key` and `value` must have the shapes (B, T, heads, D), "
            "(B, S, heads, D) and (B, S, heads, Dv), or of higher rank as "
            "`layout` says; `key` and `value` may have fewer heads that divide "
            "those of `query`. Received: query.shape="
            f"{shapes[0]}, key.shape={shapes[1]}, value.shape={shapes[2]}"
        )
    return layout.scores_shape(shapes[0], shapes[1], shapes[0][-2])


def can_fuse(query, layout):
    """Whether a kernel may do what the explicit path does."""
    dtype = keras.backend.standardize_dtype(query.dtype)
    if getattr(_state, "explicit", False) or not layout.is_flat:
        return False
    return dtype != "float64"  # two of the kernels compute in float32


def backend_kernel_can(query, value):
    """Whether the backend's kernel handles these tensors, and rightly."""
    if keras.backend.backend() != "jax":
        return True
    # JAX: one size for query and value, and on CPUs no float16 product in
    # compiled functions.
    dtype = keras.backend.standardize_dtype(query.dtype)
    return query.shape[-1] == value.shape[-1] and not (
        dtype == "float16" and _backend.is_on_cpu(query)
    )


def _backend_kernel(query, key, value, mask, is_causal, scale, flash_attention):
    is_torch = keras.backend.backend() == "torch"
    if flash_attention is None and is_torch:
        # Keras would probe for flash attention at every call, which breaks
        # compiled graphs; PyTorch's own dispatch finds it without the probe.
        flash_attention = False
    dtype = keras.backend.standardize_dtype(query.dtype)
    if not is_torch or dtype == "float16":
        # The others pass over all the scores to scale them.
        query, scale = scaled_query(query, scale), 1.0
    return ops.dot_product_attention(
        query,
        key,
        value,
        mask=mask,
        scale=scale,
        is_causal=is_causal,
        flash_attention=flash_attention,
    )


def _explicit(query, key, value, mask, layout, dropout, return_scores):
    scores_equation, context_equation = layout.equations()
    scores = to_float32(ops.einsum(scores_equation, key, query))
    scores = masked_softmax(scores, mask, layout.count)
    scores = ops.cast(scores, query.dtype)
    dropped = scores if dropout is None else dropout(scores)
    context = ops.einsum(context_equation, dropped, value)
    return context, scores if return_scores else None
