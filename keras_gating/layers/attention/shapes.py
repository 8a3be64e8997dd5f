"""Checks of the shapes that `GatedAttention` is called with."""

from keras_gating.functional import checks
from keras_gating.functional.checks import compatible
from keras_gating.functional.masks import check_attention_mask
from keras_gating.layers.attention import cache as kv_cache
from keras_gating.layers.attention.arguments import as_sites


def check_call(
    layer,
    query,
    value,
    key,
    padding_masks,
    attention_mask,
    use_causal_mask,
    gate_input,
    cache,
    cache_update_index,
    donate_cache,
):
    """Raises unless the arguments of a call fit together and the weights.

    Returns:
        The shape of the scores; `None` for unknown sizes.
    """
    checks.boolean("use_causal_mask", use_causal_mask)
    layout = layer.layout
    inputs = {"query": query.shape, "value": value.shape, "key": key.shape}
    if gate_input is not None:
        inputs["gate_input"] = gate_input.shape
        check_gate_input(layer, query.shape, gate_input.shape)
    check_widths(layer.built_for, **inputs)
    check_inputs(layer, query.shape, value.shape, key.shape)
    for name, mask in padding_masks.items():
        if mask is not None:
            checks.padding_mask(f"{name}_mask", mask, inputs[name], name)
    source_shape = key.shape
    kv_cache.check_companions(cache, cache_update_index, donate_cache)
    if cache is not None:
        check_cache(layout, query.shape, value.shape)
        kv_cache.check(cache, cache_update_index, layer, query.shape)
        source_shape = cache["key"].shape
    scores_shape = layout.scores_shape(
        query.shape, source_shape, layer.num_heads
    )
    check_masks(
        layout,
        scores_shape,
        checks.shape_of("attention_mask", attention_mask),
        use_causal_mask and cache is None,
    )
    return scores_shape


def check_inputs(layer, query_shape, value_shape, key_shape):
    """Ranks, batch sizes and the lengths of value and key."""
    if not compatible(value_shape[1:-1], key_shape[1:-1]):
        raise ValueError(
            "All dimensions of `value` and `key`, except the last one, must "
            f"be equal. Received: value_shape={tuple(value_shape)} and "
            f"key_shape={tuple(key_shape)}"
        )
    ranks = {len(shape) for shape in (query_shape, value_shape, key_shape)}
    if len(ranks) > 1 or min(ranks) < 3:
        raise ValueError(
            "`query`, `value` and `key` must have the same rank, 3 or more: "
            "(batch, length, features). Received: "
            f"query_shape={tuple(query_shape)}, "
            f"value_shape={tuple(value_shape)}, key_shape={tuple(key_shape)}"
        )
    layout = layer.layout_for(query_shape)
    for name, shape in (("value", value_shape), ("key", key_shape)):
        for axis in (0, *layout.free):
            if not compatible((query_shape[axis],), (shape[axis],)):
                raise ValueError(
                    f"`query` and `{name}` must be equal in the batch size "
                    "and in every axis that is not attended over. Received: "
                    f"query_shape={tuple(query_shape)}, "
                    f"{name}_shape={tuple(shape)}, attention axes "
                    f"{layout.axes}"
                )
    if None in (query_shape[-1], value_shape[-1], key_shape[-1]):
        raise ValueError(
            "The number of features must be known. Received: "
            f"query_shape={tuple(query_shape)}, "
            f"value_shape={tuple(value_shape)}, key_shape={tuple(key_shape)}"
        )


def check_one_axis(layer, layout):
    """Distances and absolute positions need a single sequence axis."""
    for name in ("sliding_window", "rope_max_wavelength"):
        value = getattr(layer, name)
        if value is not None and layout.count > 1:
            raise ValueError(
                f"`{name}` needs exactly one attention axis. Received: "
                f"{name}={value}, attention axes {layout.axes}"
            )


def check_widths(built, **shapes):
    """The rank and the feature sizes must be those of the build."""
    for name, shape in shapes.items():
        if not compatible((len(shape), shape[-1]), built[name]):
            raise ValueError(
                f"The layer was built for a `{name}` of rank {built[name][0]} "
                f"with {built[name][1]} features. Received: "
                f"{name}.shape={tuple(shape)}"
            )


def check_gate_input(layer, query_shape, gate_input_shape):
    """`gate_input` must be read by a gate and share the query's axes."""
    if not layer.use_gate:
        return
    sites = as_sites(layer.gate_site)
    is_read = ("output" in sites or "projection" in sites) and (
        layer.gate_source in ("query", "query_context")
    )
    if not is_read:
        raise ValueError(
            "`gate_input` replaces the query where an output or projection "
            "gate reads it; in this layer none does. Received: "
            f"gate_input with gate_site={layer.gate_site!r}, "
            f"gate_source={layer.gate_source!r}"
        )
    if not compatible(gate_input_shape[:-1], query_shape[:-1]):
        raise ValueError(
            "`gate_input` must have the shape of `query` except for the last "
            f"axis. Received: gate_input.shape={tuple(gate_input_shape)}, "
            f"query.shape={tuple(query_shape)}"
        )


def check_masks(layout, scores_shape, mask_shape, is_causal):
    """The attention mask must fit the scores, a causal one T = S."""
    if mask_shape is not None:
        check_attention_mask(mask_shape, scores_shape, layout.count)
    rows = scores_shape[-2 * layout.count : -layout.count]
    columns = scores_shape[-layout.count :]
    if is_causal and layout.count > 1 and not compatible(rows, columns):
        raise ValueError(
            "`use_causal_mask` over several attention axes counts positions "
            "in row-major order, so queries and keys must have equal sizes "
            f"there. Received: sizes {rows} and {columns} along the attention "
            f"axes {layout.axes}"
        )


def check_cache(layout, query_shape, value_shape):
    """Caches are for self-attention over plain sequences."""
    if not layout.is_flat:
        raise ValueError(
            "`cache` needs inputs of rank 3 and exactly one attention axis. "
            f"Received: query.shape={tuple(query_shape)}, attention axes "
            f"{layout.axes}"
        )
    if not compatible(query_shape[1:2], value_shape[1:2]):
        raise ValueError(
            "`cache` is for self-attention: query and value must have equal "
            f"lengths. Received: query.shape={tuple(query_shape)}, "
            f"value.shape={tuple(value_shape)}"
        )
