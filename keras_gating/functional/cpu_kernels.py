"""Attention on CPUs where another form is faster than the backend's kernel.

XLA takes the products of `jax.nn.dot_product_attention` over whole batches of
heads, whose numbers do not lie in memory as its matrix product wants them.
Keras copies what it hands to the kernel of PyTorch. Three other forms of the
same function are faster, in both passes:

* `"batched"`: heads before positions, `(B, N, T, D)`, then one product for all;
* `"by_head"`: one head after the other as plain matrix products, so that the
  scores of a head are used while they are in the cache. In a gradient they are
  computed again, which costs less than to store them;
* `"strided"`: the kernel of PyTorch, without copies of short sequences.

`choose` says which form is taken when.
"""

import functools

import keras
import numpy as np
from keras import ops

from keras_gating import _backend
from keras_gating._backend import on_torch
from keras_gating.functional.masks import causal_mask
from keras_gating.functional.masks import hide
from keras_gating.functional.masks import intersection
from keras_gating.functional.scores import masked_softmax
from keras_gating.functional.scores import visible_scores

# From so many scores on, those of one head fill a cache (1 MiB of float32), and
# those of all heads the next (16 MiB), so that computing them twice is quicker.
_MIN_SCORES, _MIN_ALL_SCORES = 2**18, 2**22


def choose(query, key):
    """Name of the form for these tensors, `None` for the backend's kernel.

    On CPUs and in float32: on JAX `"by_head"` where a head has as many scores
    as 512 × 512, and all heads of the batch as many as 2048 × 2048, else
    `"batched"`; on TensorFlow `"batched"`; on torch `"strided"`. Everywhere
    else the kernel of the backend; also on JAX while `keras.distribution`
    splits tensors over devices, since a loop over heads would gather them, and
    where a size is unknown, as in an exported function.

    Args:
        query: `(B, T, heads, D)`.
        key: `(B, S, heads, D)`.
    """
    backend = keras.config.backend()
    if (
        backend not in ("jax", "tensorflow", "torch")
        or keras.backend.standardize_dtype(query.dtype) != "float32"
        or not _backend.is_on_cpu(query)
    ):
        return None
    if backend != "jax":
        return "batched" if backend == "tensorflow" else "strided"
    if keras.distribution.distribution() is not None or not all(
        isinstance(size, int) for size in (*query.shape, *key.shape)
    ):
        return None
    scores = query.shape[1] * key.shape[1]
    all_scores = scores * query.shape[0] * query.shape[2]
    is_large = scores >= _MIN_SCORES and all_scores >= _MIN_ALL_SCORES
    return "by_head" if is_large else "batched"


def shares_keys(form):
    """Whether a form takes keys and values with fewer heads than the query."""
    # Not in graphs: exporters know the kernel with as many heads of each.
    is_strided = form == "strided" and not on_torch.is_traced()
    return is_strided and on_torch.attention_shares_keys()


def attend(form, query, key, value, mask=None, is_causal=False):
    """The context `(B, T, heads, Dv)` of queries that are scaled already.

    Args:
        form: what `choose` returned.
        query: `(B, T, heads, D)`.
        key: `(B, S, heads, D)`, with fewer heads if the form `shares_keys`.
        value: `(B, S, heads, Dv)`, the same.
        mask: boolean, broadcasts against `(B, heads, T, S)`, or `None`.
        is_causal: hide later keys from every query, in addition to `mask`.
    """
    if keras.config.backend() == "jax":
        return _compiled(form, is_causal)(query, key, value, mask)
    return _FORMS[form](query, key, value, mask, is_causal)


@functools.cache
def _compiled(form, is_causal):
    # As one function: outside of compiled code a loop of JAX is compiled anew
    # in every call.
    function = functools.partial(_FORMS[form], is_causal=is_causal)
    return _backend.compiled(function)


def _batched(query, key, value, mask, is_causal):
    query, value = _heads_first(query), _heads_first(value)
    # In one step: XLA on TensorFlow takes a tenth longer for the gradient of
    # two.
    key = ops.transpose(key, (0, 2, 3, 1))
    return _heads_first(_context(query, key, value, mask, is_causal))


def _by_head(query, key, value, mask, is_causal):
    shape = (*query.shape[:3], value.shape[-1])
    batch, length, heads, width = shape
    entries = [_merged(_heads_first(x)) for x in (query, key, value)]
    if mask is not None:
        # Sizes of 1 are not repeated: each head looks its mask up.
        kept = mask.shape[:2]
        index = np.arange(kept[0] * kept[1], dtype="int32").reshape(kept)
        index = np.broadcast_to(index, (batch, heads)).reshape(-1)
        entries.append(ops.convert_to_tensor(index))
        mask = _merged(mask)

    @keras.remat
    def one(query, key, value, *index):
        seen = ops.take(mask, index[0], axis=0) if index else None
        key = ops.transpose(key)
        return _context(query, key, value, seen, is_causal)

    context = ops.map(lambda entry: one(*entry), entries)
    return _heads_first(ops.reshape(context, (batch, heads, length, width)))


def _strided(query, key, value, mask, is_causal):
    if mask is not None:
        if is_causal:
            lengths = (ops.shape(query)[1], ops.shape(key)[1])
            mask, is_causal = _causal(mask, *lengths), False
        # A query without a visible key may hold NaN; one of zeros scores all
        # keys alike.
        seeing = ops.any(mask, axis=-1, keepdims=True)
        query = hide(query, _heads_first(seeing))
        if not on_torch.needs_no_gradients(query, key, value):
            # Of such a row the kernel has wrong gradients: beside -1e38 the
            # logarithm of the number of keys is lost.
            mask = ops.logical_or(mask, ops.logical_not(seeing))
        mask = visible_scores(ops.zeros((), query.dtype), mask)
    return on_torch.attention(query, key, value, mask, is_causal)


_FORMS = {"batched": _batched, "by_head": _by_head, "strided": _strided}


def _context(query, key, value, mask, is_causal):
    """Attention of `(…, T, D)`; keys `(…, D, S)`, values `(…, S, Dv)`."""
    if is_causal:
        mask = _causal(mask, ops.shape(query)[-2], ops.shape(key)[-1])
    scores = ops.matmul(query, key)
    if keras.config.backend() == "tensorflow":
        # It has a kernel for the softmax.
        return ops.matmul(masked_softmax(scores, mask), value)
    # Divided last: the context is smaller than the weights.
    scores = visible_scores(scores, mask)
    largest = ops.stop_gradient(ops.max(scores, axis=-1, keepdims=True))
    weights = ops.exp(scores - largest)
    total = ops.sum(weights, axis=-1, keepdims=True)
    return ops.matmul(weights, value) / total


def _causal(mask, num_queries, num_keys):
    """A mask that hides later keys too."""
    return intersection(mask, causal_mask((num_queries,), (num_keys,)))


def _heads_first(x):
    """`(B, T, heads, D)` → `(B, heads, T, D)`, and back."""
    return ops.transpose(x, (0, 2, 1, 3))


def _merged(x):
    """`(B, heads, …)` → `(B · heads, …)`."""
    return ops.reshape(x, (-1, *x.shape[2:]))
