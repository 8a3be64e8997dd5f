"""The layout of `GAU` and `FLASH` of FLASH-pytorch.

The peer divides inside of the square: its quadratic form has
`relu²((q kᵀ + √d t) / n)` with the table `t` of a T5 bias and the length n,
where ours has `relu²(q' kᵀ/√s + b) / n`. The two are equal for
`q' = √(s/n) q` and `b = √(d/n) t`. In chunks of c positions it has
`relu²(q kᵀ / c + √s t)`, ours `relu²(q' kᵀ/√s + b) / c`: equal for
`q' = √(s/c) q` and `b = √(s c) t`. Its Laplace attention is not divided, ours
is; the output kernel makes up for that, and the query of the linear part for
the output kernel.
"""

import numpy as np

from keras_gating.functional import checks
from keras_gating.layers.attention.gated_attention_unit_checks import (
    as_positions,
)
from keras_gating.surgery import weights_rules as rules

_TABLE = "rel_pos_bias.relative_attention_bias.weight"
_FREQUENCIES = "rotary_pos_emb.freqs"


def flash_pytorch(layer):
    """`GAU`, or `FLASH` for a layer with chunks."""
    is_chunked = layer.chunk_size is not None
    _check_arguments(layer, is_chunked)
    factors, for_bias, for_output = _factors(layer, is_chunked)
    has_rope = "rope" in as_positions(layer.position)
    order = np.arange(layer.key_dim)
    if has_rope:
        # The peer rotates neighbours, ours the two halves.
        order = np.concatenate([order[::2], order[1::2]])
    heads = "qk_offset_scale" if is_chunked else "offsetscale"
    output = "to_out" if is_chunked else "to_out.0"
    factors = np.array(factors)[:, None]
    planned = [
        *_normalization(layer),
        *rules.projection(
            layer.hidden_dense, "to_hidden.0", rules.halves, rules.halves
        ),
        *rules.projection(
            layer.shared_dense,
            "to_qk.0",
            lambda variable, name: rules.linear(variable, name, order=order),
            lambda variable, name: rules.scaled(variable, name, 1.0, order),
        ),
        rules.scaled(layer.query_key_scale, f"{heads}.gamma", factors, order),
        rules.scaled(layer.query_key_offset, f"{heads}.beta", factors, order),
        *rules.projection(
            layer.output_dense,
            output,
            lambda variable, name: rules.linear(variable, name, for_output),
        ),
    ]
    buffers = {}
    if layer.position_bias is None:
        # The peer always has the table.
        buffers[_TABLE] = _check_zeros
    else:
        planned.append(
            rules.Rule(
                layer.position_bias,
                {_TABLE: (*layer.position_bias.shape, 1)},
                lambda array: for_bias * array[:, 0],
            )
        )
    if has_rope:
        buffers[_FREQUENCIES] = _check_frequencies(layer.key_dim)
    # Without frequencies the peer has no rotary embedding.
    return rules.Plan(planned, buffers, (_FREQUENCIES,) * has_rope)


def _check_arguments(layer, is_chunked):
    if layer.attention_activation not in ("relu2", "laplace"):
        raise ValueError(
            'The layout has attention_activation "relu2" or "laplace". '
            f"Received: {layer.attention_activation!r}"
        )
    if is_chunked and layer.divisor not in ("length", layer.chunk_size):
        raise ValueError(
            "In chunks the layout divides by the length, or by the chunk size "
            'when causal: build the layer with divisor="length" or '
            f"divisor={layer.chunk_size}. Received: divisor={layer.divisor!r}"
        )
    if not is_chunked and not checks.is_integer(layer.divisor):
        raise ValueError(
            "The layout divides inside of the square by the length, which "
            "equals our form for one length only: build the layer with that "
            "length as an integer `divisor`, such as divisor=512. Received: "
            f"divisor={layer.divisor!r}"
        )


def _factors(layer, is_chunked):
    """What scales the heads, the T5 table and the output kernel."""
    root, width = layer.key_dim**0.5, layer.width**0.5
    is_laplace = layer.attention_activation == "laplace"
    if not is_chunked:
        # Plain floats: those of NumPy would turn float32 into float64.
        divisor = float(layer.divisor if is_laplace else layer.divisor**0.5)
        output = divisor if is_laplace else 1.0
        return [root / divisor, 1.0], width / divisor, output
    chunk = float(layer.chunk_size)
    if is_laplace:
        return [root / chunk, 1.0 / chunk, 1.0, 1.0], root, chunk
    return [root / chunk**0.5, 1.0, 1.0, 1.0], root * chunk**0.5, 1.0


def _normalization(layer):
    if not layer.norm_first:
        return []
    return [
        rules.same(layer.normalization.gamma, "norm.weight"),
        rules.same(layer.normalization.beta, "norm.bias"),
    ]


def _check_zeros(name, array):
    if np.any(array):
        raise ValueError(
            f"{name!r} holds a position bias, so the layer needs "
            'position="t5" (or a tuple with it). Received: a layer without'
        )


def _check_frequencies(key_dim):
    expected = 1e4 ** (-np.arange(0, key_dim, 2) / key_dim)

    def check(name, array):
        if array.shape != expected.shape or not np.allclose(
            array, expected, rtol=1e-2, atol=0.0
        ):
            raise ValueError(
                f"{name!r} must be the frequencies of a rotary embedding of "
                f"all {key_dim} features, 10000^(-2i/{key_dim}), of shape "
                f"{expected.shape}: the layer knows no other. Received: shape "
                f"{array.shape}, {array}"
            )

    return check
