"""Gated attention in plain NumPy, written from its formulas.

Slow and explicit on purpose: nothing here is shared with the package. Sizes in
the comments: B batch, X further batch axes, L query positions, S key positions,
N query heads, M key and value heads, D width of a head.
"""

import math

import numpy as np

_erf = np.vectorize(math.erf)

ACTIVATIONS = {
    "linear": lambda x: x,
    "sigmoid": lambda x: 1.0 / (1.0 + np.exp(-x)),
    "tanh": np.tanh,
    "relu": lambda x: np.maximum(x, 0.0),
    "silu": lambda x: x / (1.0 + np.exp(-x)),
    "softplus": lambda x: np.logaddexp(0.0, x),
    "gelu": lambda x: 0.5 * x * (1.0 + _erf(x / math.sqrt(2.0))),
}


def gated_attention(
    weights,
    query,
    value,
    key=None,
    *,
    num_heads,
    key_dim,
    value_dim=None,
    num_key_value_heads=None,
    attention_axes=None,
    sliding_window=None,
    use_gate=True,
    gate_site="output",
    gate_granularity="elementwise",
    gate_source="query",
    gate_activation="sigmoid",
    gate_scale=1.0,
    context_normalization=None,
    query_key_normalization=None,
    normalization_epsilon=1e-6,
    rope_max_wavelength=None,
    rope_fraction=1.0,
    masked_rows="zero",
    attention_mask=None,
    query_mask=None,
    value_mask=None,
    key_mask=None,
    use_causal_mask=False,
    gate_input=None,
    **not_numerical,
):
    """Returns `(output, scores)` of one layer.

    Args:
        weights: Arrays by weight path (`query/kernel`, `gate/.../kernel`, ...).
        query, value, key: Inputs, batch first and features last.
        not_numerical: Constructor arguments that change which weights exist
            (`output_shape`, `gate_rank`, `use_bias`, ...): the shapes of
            `weights` already tell.
    """
    query, value = np.float64(query), np.float64(value)
    key = value if key is None else np.float64(key)
    gate_input = query if gate_input is None else np.float64(gate_input)
    sites = (gate_site,) if isinstance(gate_site, str) else tuple(gate_site)
    sites = sites if use_gate else ()
    axes = _attention_axes(attention_axes, query.ndim)

    def gate(name, inputs, source):
        logits = gate_logits(weights, name, source)
        return inputs * gate_scale * ACTIVATIONS[gate_activation](logits)

    # Projection, normalisation, gate, rotary embedding.
    q = project(weights, "query", query)  # (..., N, Dk)
    k = project(weights, "key", key)  # (..., M, Dk)
    v = project(weights, "value", value)  # (..., M, Dv)
    if query_key_normalization == "rms":
        q = _rms(q, weights["query_scale"], normalization_epsilon)
        k = _rms(k, weights["key_scale"], normalization_epsilon)
    if "query" in sites:
        q = gate("query_gate", q, query)
    if "key" in sites:
        k = gate("key_gate", k, key)
    if "value" in sites:
        v = gate("value_gate", v, value)
    if rope_max_wavelength is not None:
        q = rotary(q, axes[0], rope_max_wavelength, rope_fraction)
        k = rotary(k, axes[0], rope_max_wavelength, rope_fraction)

    # Attention over the flattened attention axes.
    groups = num_heads // (num_key_value_heads or num_heads)
    q, k, v = (_fold(x, axes) for x in (q, k, v))  # (B, X, heads, L | S, D)
    k, v = np.repeat(k, groups, axis=-3), np.repeat(v, groups, axis=-3)
    visible = visibility(
        axes,
        query,
        key,
        attention_mask=attention_mask,
        query_mask=query_mask,
        value_mask=value_mask,
        key_mask=key_mask,
        use_causal_mask=use_causal_mask,
        sliding_window=sliding_window,
    )
    scores, empty = _softmax(q, k, key_dim, visible)
    context = np.einsum("...nls,...nsd->...nld", scores, v)
    if masked_rows == "uniform":
        mean = np.mean(v, axis=-2, keepdims=True)
        context = np.where(empty[..., None], mean, context)

    # Normalisation, masked rows, gate, projection, gate.
    if context_normalization is not None:
        if context_normalization == "layer":
            context = context - context.mean(axis=-1, keepdims=True)
        scale = weights["context_scale"]  # (Dv,)
        context = _rms(context, scale, normalization_epsilon)
        context = context + weights.get("context_shift", 0.0)
    if masked_rows == "zero":
        context = np.where(empty[..., None], 0.0, context)
    context = _unfold(context, axes, query.shape)  # (..., N, Dv)

    merged = context.reshape(context.shape[:-2] + (-1,))  # (..., N * Dv)
    source = {
        "query": gate_input,
        "context": merged,
        "query_context": _concatenate(gate_input, merged),
    }.get(gate_source)
    if gate_source == "split" and use_gate:
        half = context.shape[-1] // 2
        act = ACTIVATIONS[gate_activation]
        context = context[..., :half] * gate_scale * act(context[..., half:])
    elif "output" in sites:
        context = gate("gate", context, source)
    kernel = weights["attention_output/kernel"]  # (N, Dv, *output shape)
    output = np.tensordot(context, kernel, axes=2)
    output = output + weights.get("attention_output/bias", 0.0)
    if "projection" in sites:
        output = gate("projection_gate", output, source)
    return output, _unfold_scores(scores, axes, query.shape, key.shape)


def project(weights, name, inputs):
    """`x W + b`, from the last axis to (heads, width)."""
    outputs = np.tensordot(inputs, weights[f"{name}/kernel"], axes=1)
    return outputs + weights.get(f"{name}/bias", 0.0)


def gate_logits(weights, name, source):
    """Logits of the gate `name`: its kernels in turn, then its bias.

    Without a source the weights are the logits.
    """
    own = {p: w for p, w in weights.items() if p.startswith(f"{name}/")}
    bias = sum(w for p, w in own.items() if p.endswith("bias"))
    kernels = [w for p, w in own.items() if not p.endswith("bias")]
    if source is None:
        return sum(kernels) + bias
    for kernel in kernels:
        source = np.tensordot(source, kernel, axes=1)
    return source + bias


def rotary(x, axis, max_wavelength, fraction=1.0):
    """Rotate-half embedding of the first `fraction` of the features."""
    width = int(round(fraction * x.shape[-1]))
    half = width // 2
    output = x.copy()
    for position in range(x.shape[axis]):
        at = (slice(None),) * axis + (position,)
        for i in range(half):
            angle = position / max_wavelength ** (2.0 * i / width)
            first, second = x[at][..., i], x[at][..., half + i]
            cos, sin = math.cos(angle), math.sin(angle)
            output[at][..., i] = first * cos - second * sin
            output[at][..., half + i] = second * cos + first * sin
    return output


def visibility(
    axes,
    query,
    key,
    attention_mask=None,
    query_mask=None,
    value_mask=None,
    key_mask=None,
    use_causal_mask=False,
    sliding_window=None,
):
    """Which key each query sees: a boolean (B, X, N or 1, L, S)."""
    batch = [n for i, n in enumerate(query.shape[:-1]) if i not in axes]
    length = math.prod(query.shape[a] for a in axes)
    key_length = math.prod(key.shape[a] for a in axes)
    visible = np.ones((*batch, 1, length, key_length), dtype=bool)
    if query_mask is not None:
        mask = _fold(np.asarray(query_mask, bool)[..., None, None], axes)
        visible = visible & mask
    for padding in (value_mask, key_mask):
        if padding is not None:
            mask = _fold(np.asarray(padding, bool)[..., None, None], axes)
            visible = visible & np.swapaxes(mask, -1, -2)
    rows = np.arange(length)[:, None]
    columns = np.arange(key_length)[None, :]
    if use_causal_mask:
        visible = visible & (columns <= rows)
    if sliding_window is not None:
        visible = visible & (np.abs(rows - columns) < sliding_window)
    if attention_mask is not None:
        mask = np.asarray(attention_mask) > 0
        # Leading axes are batch axes, the last ones positions; a mask with as
        # many axes as the scores has the heads between them.
        lead = mask.shape[: mask.ndim - 2 * len(axes)]
        missing = len(batch) + 1 - len(lead)
        if missing:
            lead = lead + (1,) * missing
        rows_and_columns = mask.shape[mask.ndim - 2 * len(axes) :]
        length = math.prod(rows_and_columns[: len(axes)])
        visible = visible & mask.reshape(*lead, length, -1)
    return visible


def _softmax(q, k, key_dim, visible):
    """Probabilities (0 where nothing is visible), and the empty rows."""
    logits = np.einsum("...nld,...nsd->...nls", q, k) / math.sqrt(key_dim)
    visible = np.broadcast_to(visible, logits.shape)
    empty = ~visible.any(axis=-1)
    logits = np.where(visible, logits, -np.inf)
    top = np.where(empty, 0.0, logits.max(axis=-1))
    weights = np.exp(logits - top[..., None])
    total = np.where(empty, 1.0, weights.sum(axis=-1))
    return weights / total[..., None], empty


def _rms(x, scale, epsilon):
    power = np.mean(np.square(x), axis=-1, keepdims=True)
    return x / np.sqrt(power + epsilon) * scale


def _concatenate(first, second):
    if first.shape[:-1] != second.shape[:-1]:
        return None
    return np.concatenate([first, second], axis=-1)


def _attention_axes(axes, rank):
    if axes is None:
        return tuple(range(1, rank - 1))
    axes = (axes,) if isinstance(axes, int) else axes
    return tuple(axis % rank for axis in axes)


def _fold(x, axes):
    """(B, ..., heads, D) to (B, X, heads, product of the axes, D)."""
    rank = x.ndim
    others = [i for i in range(rank - 2) if i not in axes]
    x = x.transpose(*others, rank - 2, *axes, rank - 1)
    return x.reshape(*x.shape[: len(others) + 1], -1, x.shape[-1])


def _unfold(x, axes, query_shape):
    """The inverse of `_fold` for the context."""
    lengths = [query_shape[a] for a in axes]
    others = [i for i in range(len(query_shape) - 1) if i not in axes]
    x = x.reshape(*x.shape[:-2], *lengths, x.shape[-1])
    # Now (others..., heads, axes..., D): send each axis home.
    x = np.moveaxis(x, len(others), -2)
    order = [*others, *axes]
    back = [order.index(i) for i in range(len(order))]
    return x.transpose(*back, len(order), len(order) + 1)


def _unfold_scores(scores, axes, query_shape, key_shape):
    lengths = [query_shape[a] for a in axes]
    key_lengths = [key_shape[a] for a in axes]
    return scores.reshape(*scores.shape[:-2], *lengths, *key_lengths)
