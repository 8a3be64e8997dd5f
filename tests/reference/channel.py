"""Gates on feature maps in NumPy, from their formulas; channels last."""

import itertools

import numpy as np

from tests.reference.feed_forward import relu
from tests.reference.feed_forward import sigmoid


def positions(x):
    return tuple(range(1, x.ndim - 1))


def spread(gate, x):
    """`(B, C)` to the rank of `x`."""
    return gate.reshape(len(x), *[1] * (x.ndim - 2), -1)


def mlp(z, weights, activation=relu):
    first, first_bias, last, last_bias = weights
    return activation(z @ first + first_bias) @ last + last_bias


def squeeze_excite(x, weights, activation=relu, gate_activation=sigmoid):
    logits = mlp(x.mean(positions(x)), weights, activation)
    return x * spread(gate_activation(logits), x)


def eca(x, kernel, circular=False):
    mean = x.mean(positions(x))
    channels, size = mean.shape[-1], len(kernel)
    logits = np.zeros_like(mean)
    for channel, offset in itertools.product(range(channels), range(size)):
        neighbour = channel + offset - size // 2
        if circular:
            neighbour %= channels
        if 0 <= neighbour < channels:
            logits[:, channel] += kernel[offset] * mean[:, neighbour]
    return x * spread(sigmoid(logits), x)


def channel_gate(x, weights):
    axes = positions(x)
    logits = mlp(x.mean(axes), weights) + mlp(x.max(axes), weights)
    return x * spread(sigmoid(logits), x)


def spatial_gate(x, kernel):
    """Kernel `(k, …, k, 2, 1)`: one window of zeros-padded maps at a time."""
    maps = np.stack([x.mean(-1), x.max(-1)], axis=-1)
    size = kernel.shape[0]
    margin = [(size // 2, size // 2)] * (x.ndim - 2)
    padded = np.pad(maps, [(0, 0), *margin, (0, 0)])
    logits = np.zeros(x.shape[:-1])
    for place in np.ndindex(*x.shape[1:-1]):
        window = tuple(slice(start, start + size) for start in place)
        product = padded[(slice(None), *window)] * kernel[..., 0]
        axes = tuple(range(1, product.ndim))
        logits[(slice(None), *place)] = product.sum(axes)
    return x * sigmoid(logits)[..., None]


def cbam(x, weights, kernel):
    return spatial_gate(channel_gate(x, weights), kernel)
