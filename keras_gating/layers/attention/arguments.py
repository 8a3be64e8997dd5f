"""Checks of what can be passed to `GatedAttention`."""

import keras

from keras_gating.functional import checks
from keras_gating.layers.gate import Gate

SITES = ("output", "value", "key", "query", "projection")
GRANULARITIES = ("elementwise", "headwise", "shared")
# The gates that `gate_source` is about.
_READING_SITES = {"output", "projection"}
SOURCES = ("query", "context", "query_context", "constant", "split")


def as_sizes(output_shape):
    """`output_shape` as a tuple of sizes; `None` stays `None`."""
    if output_shape is None:
        return None
    sizes = output_shape
    if not isinstance(sizes, (list, tuple)):
        sizes = (sizes,)
    if not sizes or not all(
        checks.is_integer(size) and 0 < size <= checks.LARGEST_SIZE
        for size in sizes
    ):
        raise ValueError(
            "Invalid `output_shape`: it must be a positive integer or a list "
            "or tuple of positive integers. Received: "
            f"output_shape={output_shape!r}"
        )
    return tuple(map(int, sizes))


def as_axes(attention_axes):
    """`attention_axes` as a tuple; `None` stays `None`."""
    axes = attention_axes
    if axes is None:
        return None
    if not isinstance(axes, (list, tuple)):
        axes = (axes,)
    if not axes or not all(map(checks.is_integer, axes)):
        raise ValueError(
            "`attention_axes` must be an int, list, or tuple of ints. "
            f"Received: attention_axes={attention_axes!r}"
        )
    return tuple(map(int, axes))


def as_sites(gate_site):
    """`gate_site` as a tuple of distinct, known sites."""
    sites = (gate_site,) if isinstance(gate_site, str) else gate_site
    if (
        not isinstance(sites, (list, tuple))
        or not sites
        or any(site not in SITES for site in sites)
        or len(set(sites)) < len(sites)
    ):
        raise ValueError(
            f"`gate_site` must be one of {', '.join(map(repr, SITES))}, or a "
            f"tuple of distinct ones. Received: gate_site={gate_site!r}"
        )
    return tuple(sites)


def check_heads(layer):
    """Heads, sizes and probabilities of a `GatedAttention`."""
    heads, groups = layer.num_heads, layer.num_key_value_heads
    if groups is not None and heads % groups:
        raise ValueError(
            "`num_heads` must be divisible by `num_key_value_heads`. "
            f"Received: num_heads={heads}, num_key_value_heads={groups}"
        )
    if layer.flash_attention and layer.dropout > 0.0:
        raise ValueError(
            "Dropout is not supported when flash attention is enabled. "
            "Please set dropout to 0.0 to use flash attention. Received: "
            f"flash_attention=True, dropout={layer.dropout}"
        )
    for name, choices in (
        ("context_normalization", ("rms", "layer")),
        ("query_key_normalization", ("rms",)),
    ):
        if getattr(layer, name) is not None:
            checks.one_of(name, getattr(layer, name), choices)
    norms = (layer.context_normalization, layer.query_key_normalization)
    if norms == (None, None) and layer.normalization_epsilon != 1e-6:
        raise ValueError(
            "`normalization_epsilon` has no effect without "
            "`context_normalization` or `query_key_normalization`. Received: "
            f"normalization_epsilon={layer.normalization_epsilon}"
        )


def rotary_width(key_dim, rope_max_wavelength, rope_fraction):
    """Number of features that rotate; 0 without rotary embedding."""
    checks.positive_number("rope_fraction", rope_fraction)
    if rope_max_wavelength is None:
        if rope_fraction != 1.0:
            raise ValueError(
                "`rope_fraction` has no effect without `rope_max_wavelength`. "
                f"Received: rope_fraction={rope_fraction!r}"
            )
        return 0
    checks.positive_number("rope_max_wavelength", rope_max_wavelength)
    width = round(rope_fraction * key_dim)
    if (
        rope_fraction > 1
        or abs(width - rope_fraction * key_dim) > 1e-6
        or width % 2
        or width == 0
    ):
        raise ValueError(
            "`rope_fraction` is the share of the `key_dim` features that "
            "rotate, in pairs: rope_fraction · key_dim must be an even integer "
            f"between 2 and key_dim. Received: rope_fraction={rope_fraction!r}"
            f", key_dim={key_dim}"
        )
    return width


def check_gate(layer):
    """Gate arguments: each by itself, then together when there is a gate."""
    sites = as_sites(layer.gate_site)
    checks.one_of("gate_granularity", layer.gate_granularity, GRANULARITIES)
    checks.one_of("gate_source", layer.gate_source, SOURCES)
    checks.positive_integer("gate_rank", layer.gate_rank, optional=True)
    checks.probability("gate_dropout", layer.gate_dropout)
    checks.factor("gate_scale", layer.gate_scale)
    if not layer.use_gate:
        return
    if "projection" in sites and layer.gate_granularity != "elementwise":
        raise ValueError(
            "The projection gate acts on the output, which has no heads: "
            'gate_site="projection" needs gate_granularity="elementwise". '
            f"Received: gate_granularity={layer.gate_granularity!r}"
        )
    has_source = bool(_READING_SITES & set(sites))
    if layer.gate_source != "query" and not has_source:
        raise ValueError(
            "`gate_source` says what the output and the projection gates "
            "read; query, key and value gates read their own input. With "
            f"gate_site={layer.gate_site!r} it must be 'query'. Received: "
            f"gate_source={layer.gate_source!r}"
        )
    if layer.gate_source == "split":
        _check_split(layer, sites)
    elif layer.gate_source == "constant" and set(sites) <= _READING_SITES:
        _refuse(
            layer,
            gate_rank=layer.gate_rank is not None,
            gate_initializer=layer.gate_initializer is not None,
            gate_use_bias=layer.gate_use_bias is False,
        )
    if layer.gate_source != "split":
        configs = [layer.gate_arguments(site) for site in sites]
        if not any("bias_initializer" in config for config in configs):
            _refuse(
                layer,
                gate_bias_initializer=not isinstance(
                    layer.gate_bias_initializer, keras.initializers.Zeros
                ),
            )
        for config in configs:
            # Activation and initial values are judged together by the gate.
            Gate(**config)


def _check_split(layer, sites):
    if sites != ("output",):
        raise ValueError(
            'gate_source="split" is for gate_site="output" alone. Received: '
            f"gate_site={layer.gate_site!r}"
        )
    if layer.value_dim % 2:
        raise ValueError(
            'gate_source="split" halves the context of each head: `value_dim` '
            f"must be even. Received: value_dim={layer.value_dim}"
        )
    _refuse(
        layer,
        gate_granularity=layer.gate_granularity != "elementwise",
        gate_rank=layer.gate_rank is not None,
        gate_initializer=layer.gate_initializer is not None,
        gate_bias_initializer=not isinstance(
            layer.gate_bias_initializer, keras.initializers.Zeros
        ),
        gate_use_bias=layer.gate_use_bias is not None,
        gate_dropout=layer.gate_dropout != 0.0,
    )


def _refuse(layer, **given):
    for name, is_given in given.items():
        if is_given:
            raise ValueError(
                f"With gate_source={layer.gate_source!r}, "
                f"use_bias={layer.use_bias} and "
                f"gate_use_bias={layer.gate_use_bias} there is nothing that "
                f"`{name}` could act on. Received: "
                f"{name}={getattr(layer, name)!r}"
            )
