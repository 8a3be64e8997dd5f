"""Checks of what a `GatedAttentionUnit` is made of and called with."""

import types

from keras_gating.functional import checks
from keras_gating.functional.attention_weights import ACTIVATIONS
from keras_gating.functional.masks import check_attention_mask
from keras_gating.layers.attention import cache as kv_cache
from keras_gating.layers.attention import gated_attention_unit_cache


def check_arguments(layer):
    """The constructor's arguments, each and together."""
    checks.positive_number("expansion_factor", layer.expansion_factor)
    checks.positive_integer("key_dim", layer.key_dim)
    activation = checks.one_of(
        "attention_activation", layer.attention_activation, ACTIVATIONS
    )
    checks.positive_integer("chunk_size", layer.chunk_size, optional=True)
    divisor = layer.divisor
    if isinstance(divisor, str):
        checks.one_of("divisor", divisor, ("visible", "length"))
    else:
        checks.positive_integer("divisor", divisor)
    if "rope" in as_positions(layer.position) and layer.key_dim % 2:
        raise ValueError(
            "Rotary embedding rotates pairs of features: `key_dim` must be "
            f"even. Received: position={layer.position!r}, "
            f"key_dim={layer.key_dim}"
        )
    checks.probability("dropout", layer.dropout)
    checks.positive_number("normalization_epsilon", layer.normalization_epsilon)
    if not layer.norm_first and layer.normalization_epsilon != 1e-6:
        raise ValueError(
            "`normalization_epsilon` has no effect without `norm_first`. "
            "Received: normalization_epsilon="
            f"{layer.normalization_epsilon}"
        )
    block_size = layer.block_size
    if not isinstance(block_size, str) or block_size != "auto":
        checks.positive_integer("block_size", block_size, optional=True)
    if activation == "softmax":
        if layer.chunk_size is not None:
            raise ValueError(
                "The linear part of the chunked form has no softmax: "
                "`chunk_size` needs attention_activation 'relu2' or "
                "'laplace'. Received: attention_activation='softmax', "
                f"chunk_size={layer.chunk_size}"
            )
        if divisor != "visible":
            raise ValueError(
                "The weights of a softmax add up to 1 and are not divided. "
                "Received: attention_activation='softmax', "
                f"divisor={divisor!r}"
            )
    if layer.chunk_size is not None and layer.block_size != "auto":
        raise ValueError(
            "`block_size` is for the quadratic form and has no effect with "
            f"`chunk_size`. Received: chunk_size={layer.chunk_size}, "
            f"block_size={layer.block_size!r}"
        )


def as_positions(position):
    """`position` as a tuple of distinct, known kinds."""
    if position is None:
        return ()
    kinds = (position,) if isinstance(position, str) else position
    if (
        not isinstance(kinds, (list, tuple))
        or not kinds
        or any(kind not in ("rope", "t5") for kind in kinds)
        or len(set(kinds)) < len(kinds)
    ):
        raise ValueError(
            "`position` must be None, 'rope', 't5' or a tuple of both. "
            f"Received: position={position!r}"
        )
    return tuple(kinds)


def check_inputs(layer, inputs_shape):
    """Sequences of a known number of features."""
    if len(inputs_shape) != 3 or inputs_shape[-1] is None:
        raise ValueError(
            "`inputs` must have the shape (batch, length, features) with a "
            "known number of features. Received: inputs.shape="
            f"{tuple(inputs_shape)}"
        )
    width = layer.width
    if width is not None and inputs_shape[-1] != width:
        raise ValueError(
            f"The layer was built for {width} features. Received: "
            f"inputs.shape={tuple(inputs_shape)}"
        )


def check_call(
    layer,
    inputs_shape,
    mask,
    attention_mask,
    use_causal_mask,
    cache,
    cache_update_index,
    donate_cache,
):
    """Raises unless the arguments of a call fit together and the weights."""
    checks.boolean("use_causal_mask", use_causal_mask)
    check_inputs(layer, inputs_shape)
    batch_size, length, _ = inputs_shape
    if mask is not None:
        mask_shape = checks.shape_of("mask", mask)
        if not checks.compatible(mask_shape, (batch_size, length)):
            raise ValueError(
                "`mask` must have the shape (batch, length), "
                f"{(batch_size, length)}. Received: mask.shape={mask_shape}"
            )
    num_keys = length
    kv_cache.check_companions(cache, cache_update_index, donate_cache)
    if cache is not None:
        num_keys = _check_cache(
            layer, inputs_shape, use_causal_mask, cache, cache_update_index
        )
    if attention_mask is None:
        return
    mask_shape = checks.shape_of("attention_mask", attention_mask)
    if layer.chunk_size is not None:
        _check_chunked_mask(mask_shape, (batch_size, 1, length), cache)
    else:
        check_attention_mask(mask_shape, (batch_size, 1, length, num_keys))


def _check_cache(layer, inputs_shape, use_causal_mask, cache, index):
    """Returns the number of keys that the cache holds."""
    if layer.chunk_size is None:
        sizes = types.SimpleNamespace(
            num_groups=1, key_dim=layer.key_dim, value_dim=layer.hidden_dim
        )
        kv_cache.check(cache, index, sizes, inputs_shape)
        return cache["key"].shape[1]
    if not use_causal_mask:
        raise ValueError(
            "The chunked form decodes causally: its state holds nothing of "
            "what follows. `cache` with `chunk_size` needs "
            f"use_causal_mask=True. Received: {use_causal_mask!r}"
        )
    gated_attention_unit_cache.check(cache, index, layer, inputs_shape)
    return inputs_shape[1]


def _check_chunked_mask(mask_shape, expected, cache):
    """Only masks of keys, and of the keys of this very sequence."""
    if cache is not None:
        raise ValueError(
            "The state of the chunked form takes no `attention_mask`; pass "
            "the padding of the new positions as `mask`. Received: "
            f"attention_mask.shape={mask_shape}"
        )
    if len(mask_shape) == 3 and mask_shape[1] == 1:
        mask_shape = (mask_shape[0], 1, mask_shape[2])
        leading = (1, *expected[1:])
        if checks.compatible(mask_shape, expected) or checks.compatible(
            mask_shape, leading
        ):
            return
    raise ValueError(
        "With `chunk_size` attention is among the positions of one sequence, "
        "without an entry for each pair of them: `attention_mask` must be a "
        f"mask of keys, {expected}, or be left out. Received: "
        f"attention_mask.shape={mask_shape}"
    )
