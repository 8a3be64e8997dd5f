"""The gated attention unit in NumPy: every pair of positions by itself."""

import math

import numpy as np

_erf = np.vectorize(math.erf)


def silu(x):
    return x / (1.0 + np.exp(-x))


def relu2(x):
    return np.maximum(x, 0.0) ** 2


def laplace(x):
    return 0.5 * (1.0 + _erf((x - math.sqrt(0.5)) * math.sqrt(2.0 * math.pi)))


def normalize(x, gamma, beta, epsilon=1e-6):
    variance = x.var(axis=-1, keepdims=True)
    mean = x.mean(axis=-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + epsilon) * gamma + beta


def rotate(x, positions):
    """Pairs of features as complex numbers, turned by their position."""
    half = x.shape[-1] // 2
    angles = positions[:, None] * 10_000.0 ** (-np.arange(half) / half)
    turned = (x[..., :half] + 1j * x[..., half:]) * np.exp(1j * angles)
    return np.concatenate([turned.real, turned.imag], axis=-1)


def bucket(distance, causal, count=32, farthest=128):
    """Bucket of one distance, key minus query, from the logarithm."""
    first = 0
    if causal:
        distance = max(-distance, 0)
    else:
        count //= 2
        first = count if distance > 0 else 0
        distance = abs(distance)
    exact = count // 2
    if distance < exact:
        return first + distance
    share = math.log(distance / exact) / math.log(farthest / exact)
    # A quotient of logarithms may miss an integer from below.
    return first + min(exact + int(share * (count - exact) + 1e-9), count - 1)


def position_bias(table, length, causal):
    distances = np.arange(length)[None, :] - np.arange(length)[:, None]
    buckets = np.vectorize(lambda d: bucket(int(d), causal))(distances)
    return table[buckets]


def unit(
    x,
    weights,
    attention_activation="relu2",
    chunk_size=None,
    divisor="visible",
    position=(),
    norm_first=False,
    visible=None,
    causal=False,
):
    """Outputs of the unit.

    Args:
        x: `(B, T, d)`.
        weights: arrays by path below the layer.
        visible: boolean `(B, T, T)`, on top of `causal`.
    """
    length = x.shape[1]
    if visible is None:
        visible = np.ones((x.shape[0], length, length), bool)
    if causal:
        visible = visible & np.tril(np.ones((length, length), bool))
    z = x
    if norm_first:
        z = normalize(
            x, weights["normalization/gamma"], weights["normalization/beta"]
        )
    value, gate = (
        silu(
            z @ weights["hidden/kernel"][:, half] + weights["hidden/bias"][half]
        )
        for half in (0, 1)
    )
    shared = silu(z @ weights["shared/kernel"] + weights["shared/bias"])
    heads = [
        scale * shared + offset
        for scale, offset in zip(
            weights["query_key_scale"], weights["query_key_offset"]
        )
    ]
    if "rope" in position:
        heads = [rotate(head, np.arange(length)) for head in heads]
    count = len(heads) // 2
    queries, keys = heads[:count], heads[count:]
    scores = (
        queries[0] @ keys[0].transpose(0, 2, 1) / math.sqrt(shared.shape[-1])
    )
    if "t5" in position:
        scores = scores + position_bias(
            weights["position_bias"], length, causal
        )
    near = visible
    if chunk_size is not None:
        chunk = np.arange(length) // chunk_size
        near = visible & (chunk[:, None] == chunk[None, :])
    if attention_activation == "softmax":
        scores = np.where(near, scores, -np.inf)
        exponentials = np.exp(
            scores - np.maximum(scores.max(-1, keepdims=True), -1e30)
        )
        total = exponentials.sum(axis=-1, keepdims=True)
        context = exponentials / np.where(total > 0, total, 1.0) @ value
    else:
        act = {"relu2": relu2, "laplace": laplace}[attention_activation]
        context = mean(
            np.where(near, act(scores), 0.0),
            near,
            value,
            chunk_size if divisor == "length" and chunk_size else divisor,
        )
    if chunk_size is not None:
        far = visible
        if causal:
            far = visible & (chunk[:, None] > chunk[None, :])
        products = queries[1] @ keys[1].transpose(0, 2, 1)
        context = context + mean(
            np.where(far, products, 0.0), far, value, divisor
        )
    outputs = (gate * context) @ weights["output/kernel"]
    outputs = outputs + weights["output/bias"]
    return x + outputs if norm_first else outputs


def mean(pairs, shown, value, divisor):
    if divisor == "visible":
        divisor = np.maximum(shown.sum(axis=-1, keepdims=True), 1)
    elif divisor == "length":
        divisor = value.shape[1]
    return pairs @ value / divisor
