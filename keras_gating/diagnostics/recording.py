import contextlib

from keras_gating.diagnostics.attention import attention_layers
from keras_gating.diagnostics.attention import watch_attention
from keras_gating.diagnostics.guard import eager_steps_only
from keras_gating.diagnostics.record import GateRecord
from keras_gating.diagnostics.watching import may_have_gates
from keras_gating.diagnostics.watching import no_gates
from keras_gating.diagnostics.watching import nothing_seen
from keras_gating.diagnostics.watching import watch_gates


@contextlib.contextmanager
def record_gates(model, scores=False):
    """Keeps the values of every gate of a model in calls inside this context.

    The values are those of the activation, before `scale` and dropout, as
    arrays: `record[path].values` are those at real positions,
    `(positions, gated axes…)`, and `record[path].calls` what each call made,
    padding included. Layers that are called several times, shared ones or for
    several batches, keep every call. Two layers with one path are told apart:
    the second is `path#2`.

    Only eager calls can be seen. A compiled `fit`, `evaluate` or `predict` of
    the model, or of one that contains it, raises, and so does a call that is
    traced by `jit`, `tf.function`, `torch.compile` or a vectorized map. A
    function of your own that was compiled *before* does not reach Python; it
    is noticed at the end, when nothing at all was recorded. The same goes for
    a model whose class overrides `make_train_function` (`…_test_…`,
    `…_predict_…`) without a call of `super()`.

    Args:
        model: a `keras.Model` or a layer, built or not. Gates of layers that
            are not inside of it are left out.
        scores: whether to keep attention probabilities too, of each
            `GatedAttention`, and of `MultiHeadAttention` and
            `GroupQueryAttention` of Keras: `record.scores[path].calls`, arrays
            `(B, heads, T, S)` in float32, before dropout. Outputs are
            unchanged; rows of queries that see no key are zero. The model must
            be built. A `GatedAttentionUnit` is left out, since its weights
            need not sum to 1.

    Yields:
        A `GateRecord`, a mapping from paths to `GateValues`.

    Raises:
        ValueError: for a model without gates (with `scores=True`, without
            gates and attention), for compiled or traced calls, on JAX for a
            part of a model that is being fitted, and at the end if no gate and
            no attention of the model was called.

    Example:

    >>> import numpy as np
    >>> from keras_gating import diagnostics, layers
    >>> layer = layers.GatedAttention(num_heads=2, key_dim=4, name="attention")
    >>> x = np.random.default_rng(0).normal(size=(1, 5, 8))
    >>> _ = layer(x, x)
    >>> with diagnostics.record_gates(layer, scores=True) as record:
    ...     _ = layer(x, x, use_causal_mask=True)
    >>> list(record), record["attention/gate"].values.shape
    (['attention/gate'], (5, 2, 4))
    >>> record.scores["attention"].calls[0].shape
    (1, 2, 5, 5)
    """
    has_attention = scores and bool(attention_layers(model))
    if not may_have_gates(model) and not has_attention:
        raise no_gates(model)
    record = GateRecord()
    with contextlib.ExitStack() as stack:
        stack.enter_context(eager_steps_only(model))
        stack.enter_context(watch_gates(model, record.add_gate))
        if scores:
            stack.enter_context(watch_attention(model, record.add_scores))
        yield record
    if not record and not record.scores:
        raise nothing_seen(model)
