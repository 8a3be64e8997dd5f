"""Every public layer: its arguments, what fits together, and its inputs.

What is random is left to `pick(choices)`, which returns one of them.
"""

import dataclasses
from collections.abc import Callable

import numpy as np

from keras_gating import layers
from tests.fuzz import kinds
from tests.fuzz.kinds import BOOLEAN
from tests.fuzz.kinds import SIZE
from tests.fuzz.kinds import one_of
from tests.fuzz.kinds import optional


@dataclasses.dataclass(frozen=True)
class Subject:
    """A layer to draw configurations and calls of.

    Args:
        layer: the class.
        arguments: the kind of each argument of the constructor.
        inputs: from `pick` and a configuration to the arrays of a call, by
            the name of the argument. The first axis is the batch.
        repaired: takes a configuration whose values are right one by one, and
            takes out what contradicts the rest.
        required: names of arguments without default.
    """

    layer: type
    arguments: dict
    inputs: Callable
    repaired: Callable = lambda config: config
    required: tuple = ()

    def configuration(self, pick):
        """A valid one, of the required and up to five more arguments."""
        names = [*self.required]
        for _ in range(pick(range(6))):
            names.append(pick(list(self.arguments)))
        config = {name: pick(self.arguments[name].valid) for name in names}
        return self.repaired(config)


def normal(pick, *shape):
    rng = np.random.default_rng(pick(range(100)))
    return rng.normal(size=shape).astype("float32")


def padding(pick, *shape):
    """A mask whose rows begin with a position that is none."""
    rng = np.random.default_rng(pick(range(100)))
    mask = rng.random(shape) < 0.6
    mask[(slice(None), *[0] * (len(shape) - 1))] = True
    return mask


def without(config, *names):
    return {name: config[name] for name in config if name not in names}


WEIGHTS = {
    "kernel_initializer": kinds.INITIALIZER,
    "bias_initializer": kinds.INITIALIZER,
    "kernel_regularizer": kinds.REGULARIZER,
    "bias_regularizer": kinds.REGULARIZER,
    "kernel_constraint": kinds.CONSTRAINT,
    "bias_constraint": kinds.CONSTRAINT,
}
BIAS = ("bias_initializer", "bias_regularizer", "bias_constraint")


def bias_repaired(config, default=True):
    """Nothing is said of a bias where there is none."""
    if config.get("use_bias", default):
        return config
    return without(config, *BIAS)


# Layers that read the last axis.


def features(pick, config):
    shape = (3, *[pick((1, 2, 4)) for _ in range(pick(range(3)))], pick((1, 5)))
    call = {"inputs": normal(pick, *shape)}
    if len(shape) > 2 and pick((True, False)):
        call["mask"] = padding(pick, *shape[: pick((2, len(shape) - 1))])
    return call


GLU = {
    "units": SIZE,
    "gate_first": BOOLEAN,
    "limit": optional(kinds.POSITIVE),
    "product_dtype": optional(one_of("float32", "bfloat16", "float16")),
    "use_bias": BOOLEAN,
    **WEIGHTS,
}
FEED_FORWARD = {
    "hidden_dim": SIZE,
    "output_dim": optional(SIZE),
    "use_bias": BOOLEAN,
    "dropout": kinds.PROBABILITY,
    "seed": kinds.SEED,
    **WEIGHTS,
}


def glu(layer, **further):
    return Subject(
        layer, {**GLU, **further}, features, bias_repaired, ("units",)
    )


def feed_forward(layer, **further):
    return Subject(
        layer,
        {**FEED_FORWARD, **further},
        features,
        lambda config: bias_repaired(config, default=False),
        ("hidden_dim",),
    )


# Gates.

GATE = {
    "activation": kinds.ACTIVATION,
    "granularity": one_of("elementwise", "headwise", "shared"),
    "source": one_of("input", "constant"),
    "rank": optional(SIZE),
    "use_bias": BOOLEAN,
    "scale": kinds.FACTOR,
    "kernel_initializer": optional(kinds.INITIALIZER),
    **without(WEIGHTS, "kernel_initializer"),
    "dropout": kinds.PROBABILITY,
    "seed": kinds.SEED,
}
KERNEL = ("kernel_initializer", "kernel_regularizer", "kernel_constraint")


def gate_repaired(config):
    if config.get("source") == "constant":
        config = without(config, *KERNEL, "use_bias", "rank")
        if config.get("activation") == "relu":
            config["bias_initializer"] = "ones"
    return bias_repaired(config)


def gated(pick, config):
    leading = (3, pick((1, 4)))
    gated = (pick((1, 3)), pick((1, 5)))
    if config.get("granularity") != "shared" and pick((True, False)):
        gated = gated[1:]
    inputs = normal(pick, *leading, *gated)
    call = {"inputs": inputs}
    needs_source = len(gated) > 1 and config.get("granularity") == "shared"
    if needs_source or pick((True, False)):
        call["source"] = normal(pick, *leading, pick((1, 7)))
    if pick((True, False)):
        call["mask"] = padding(pick, *leading)
    return call


CURVATURE_GATE = {
    "curvature": kinds.NUMBER,
    "chart": one_of("gnomonic", "stereographic"),
    "lift": BOOLEAN,
    "curvature_trainable": BOOLEAN,
    "curvature_speed": kinds.POSITIVE,
    **GATE,
}


def curvature_gate_repaired(config):
    if config.get("chart", "gnomonic") == "gnomonic":
        config = without(config, *GATE)
    else:
        config = gate_repaired(without(config, "lift"))
    if not config.get("curvature_trainable", True):
        config = without(config, "curvature_speed")
    return config


def curved(pick, config):
    is_plain = config.get("chart", "gnomonic") == "gnomonic"
    call = gated(pick, config)
    return without(call, "source") if is_plain else call


# Gates on feature maps.

FEATURE_MAP = {
    "gate_activation": kinds.ACTIVATION,
    "gate_scale": kinds.FACTOR,
    "gate_initializer": kinds.INITIALIZER,
    "data_format": optional(one_of("channels_last", "channels_first")),
}
CONVOLUTION = {
    "kernel_regularizer": kinds.REGULARIZER,
    "kernel_constraint": kinds.CONSTRAINT,
}
BOTTLENECK = {
    **FEATURE_MAP,
    "ratio": kinds.Kind((1, 2.5, 16), lambda v: kinds.is_finite(v) and v >= 1),
    "units": optional(SIZE),
    "divisor": optional(SIZE),
    "activation": kinds.ACTIVATION,
    "use_bias": BOOLEAN,
    **WEIGHTS,
}
ODD = kinds.Kind((1, 3, 7))
SPATIAL = {
    **FEATURE_MAP,
    **CONVOLUTION,
    "kernel_size": ODD,
    "batch_norm": BOOLEAN,
    "map_order": one_of("mean_max", "max_mean"),
    "light": BOOLEAN,
}


def bottleneck_repaired(default):
    def repaired(config):
        if config.get("units") is not None:
            config = without(config, "ratio", "divisor")
        if config.get("light"):
            config = without(config, "map_order")
        return bias_repaired(config, default)

    return repaired


def eca_repaired(config):
    if config.get("kernel_size") is not None:
        return without(config, "gamma", "b")
    return config


def feature_map(pick, config):
    positions = [pick((1, 2, 5)) for _ in range(pick((1, 2, 3)))]
    channels = pick((1, 6))
    shape = (3, *positions, channels)
    if config.get("data_format") == "channels_first":
        shape = (3, channels, *positions)
    call = {"inputs": normal(pick, *shape)}
    if pick((True, False)):
        rank = pick(range(1, len(positions) + 1))
        call["mask"] = padding(pick, 3, *positions[:rank])
    return call


# Attention.

HEADS = one_of(1, 2, 4)
ATTENTION = {
    "num_heads": kinds.Kind((2, 4)),
    "key_dim": kinds.Kind((2, 4)),
    "value_dim": optional(kinds.Kind((2, 6))),
    "dropout": kinds.PROBABILITY,
    "use_bias": BOOLEAN,
    "attention_axes": optional(
        # Which axes there are, the shape of the input says.
        kinds.Kind(
            (1, -2, (1,), [1]), kinds.among(0, -1, [2], 10**30, -(10**30))
        )
    ),
    "sliding_window": optional(SIZE),
    "flash_attention": optional(kinds.Kind((False,), kinds.among(True, 0))),
    **WEIGHTS,
    "activity_regularizer": kinds.REGULARIZER,
    "use_gate": BOOLEAN,
    "seed": kinds.SEED,
    "num_key_value_heads": optional(kinds.Kind((1, 2))),
    "gate_site": kinds.Kind(
        (
            *("output", "value", "key", "query", "projection"),
            *(("output", "value"), ["key", "projection"]),
        )
    ),
    "gate_granularity": one_of("elementwise", "headwise", "shared"),
    "gate_source": one_of(
        "query", "context", "query_context", "constant", "split"
    ),
    "gate_activation": kinds.ACTIVATION,
    "gate_scale": kinds.FACTOR,
    "gate_rank": optional(SIZE),
    "gate_initializer": optional(kinds.INITIALIZER),
    "gate_bias_initializer": kinds.INITIALIZER,
    "gate_use_bias": optional(BOOLEAN),
    "gate_dropout": kinds.PROBABILITY,
    "context_normalization": optional(one_of("rms", "layer")),
    "query_key_normalization": optional(one_of("rms")),
    "rope_max_wavelength": optional(kinds.POSITIVE),
    "rope_fraction": kinds.Kind((1.0,)),
    "masked_rows": one_of("zero", "uniform"),
}
OUTPUT_SHAPE = optional(kinds.Kind((3, (2, 3), [4]), kinds.among([2])))
EPSILON = kinds.Kind((1e-6, 0.1), kinds.POSITIVE.accepts)


def attention_repaired(config, default_source="query"):
    sites = config.get("gate_site", "output")
    sites = (sites,) if isinstance(sites, str) else sites
    reading = {"output", "projection"} & set(sites)
    has_bias = config.get("use_bias", True)
    if config.get("gate_use_bias") is not None:
        has_bias = config["gate_use_bias"]
    if not config.get("use_gate", True):
        return config
    if not reading:
        config = {**config, "gate_source": "query"}
    source = config.get("gate_source", default_source)
    if source == "split" and sites != ("output",):
        source = config["gate_source"] = "context"
    if source == "split":
        config = without(
            config,
            *("gate_granularity", "gate_rank", "gate_initializer"),
            *("gate_bias_initializer", "gate_use_bias", "gate_dropout"),
        )
    if source == "constant":
        config = without(
            config, "gate_rank", "gate_initializer", "gate_use_bias"
        )
        if config.get("gate_activation") == "relu":
            config["gate_bias_initializer"] = "ones"
    elif not has_bias:
        config = without(config, "gate_bias_initializer")
    if "projection" in sites:
        config = without(config, "gate_granularity")
    return config


def norms_repaired(config):
    names = ("context_normalization", "query_key_normalization")
    if not any(config.get(name) for name in names):
        config = without(config, "normalization_epsilon")
    return config


def gated_attention_repaired(config):
    return norms_repaired(attention_repaired(config))


def block_repaired(config):
    if not config.get("use_gate", True):
        return config
    sites = config.get("gate_site", "output")
    sites = (sites,) if isinstance(sites, str) else sites
    if not {"output", "projection"} & set(sites):
        config = {**config, "gate_source": "query"}
    return attention_repaired(config, "query_context")


def attended(pick, config):
    """A call of self-attention or of cross-attention."""
    length, width = pick((1, 4)), pick((1, 5))
    query = normal(pick, 3, length, width)
    call = {"query": query, "value": query}
    if pick((True, False)):
        shape = (3, pick((1, 6)), pick((2, 7)))
        call["value"] = normal(pick, *shape)
        if pick((True, False)):
            call["key"] = normal(pick, *shape[:2], 3)
    source_length = call["value"].shape[1]
    for name in pick((("value_mask", "key_mask"), ("query_mask",), ())):
        size = length if name == "query_mask" else source_length
        call[name] = padding(pick, 3, size)
    if pick((True, False)):
        shape = pick(((), (3,), (3, 1), (3, config["num_heads"])))
        call["attention_mask"] = padding(pick, *shape, length, source_length)
    if pick((True, False)):
        call["use_causal_mask"] = True
    return call


def self_attended(pick, config):
    length, width = pick((1, 4, 7)), pick((1, 5))
    call = {"inputs": normal(pick, 3, length, width)}
    if pick((True, False)):
        call["mask"] = padding(pick, 3, length)
    if pick((True, False)):
        call["attention_mask"] = padding(pick, 3, 1, length)
        if config.get("chunk_size") is None and pick((True, False)):
            call["attention_mask"] = padding(pick, 3, length, length)
    if pick((True, False)):
        call["use_causal_mask"] = True
    return call


UNIT = {
    "expansion_factor": kinds.Kind((1.0, 2, 1.5), kinds.POSITIVE.accepts),
    "key_dim": kinds.Kind((2, 4)),
    "attention_activation": one_of("relu2", "laplace", "softmax"),
    "chunk_size": optional(SIZE),
    "divisor": kinds.Kind(("visible", "length", 3)),
    "position": optional(
        kinds.Kind(("rope", "t5", ("rope", "t5"), ["t5", "rope"]))
    ),
    "norm_first": BOOLEAN,
    "normalization_epsilon": EPSILON,
    "dropout": kinds.PROBABILITY,
    "activation": kinds.ACTIVATION,
    "block_size": optional(kinds.Kind(("auto", 1, 3))),
    "use_bias": BOOLEAN,
    **WEIGHTS,
    "seed": kinds.SEED,
}


def unit_repaired(config):
    if not config.get("norm_first"):
        config = without(config, "normalization_epsilon")
    if config.get("attention_activation") == "softmax":
        config = without(config, "chunk_size", "divisor")
    if config.get("chunk_size") is not None:
        config = without(config, "block_size")
    return config


SUBJECTS = {
    subject.layer.__name__: subject
    for subject in (
        Subject(layers.Gate, GATE, gated, gate_repaired),
        Subject(
            layers.CurvatureGate,
            CURVATURE_GATE,
            curved,
            curvature_gate_repaired,
        ),
        glu(layers.GLU, activation=kinds.ACTIVATION),
        glu(layers.BilinearGLU),
        glu(layers.ReGLU),
        glu(layers.SwiGLU),
        glu(layers.GEGLU, approximate=BOOLEAN),
        feed_forward(layers.FeedForward, activation=kinds.ACTIVATION),
        feed_forward(
            layers.GatedFeedForward,
            variant=one_of("swiglu", "geglu", "reglu", "glu", "bilinear"),
            width_rule=optional(one_of("two_thirds")),
            limit=GLU["limit"],
            gate_first=BOOLEAN,
            product_dtype=GLU["product_dtype"],
        ),
        Subject(
            layers.SqueezeExcite,
            BOTTLENECK,
            feature_map,
            bottleneck_repaired(True),
        ),
        Subject(
            layers.ChannelGate,
            {**BOTTLENECK, "light": BOOLEAN},
            feature_map,
            bottleneck_repaired(False),
        ),
        Subject(
            layers.CBAM,
            {**BOTTLENECK, **SPATIAL},
            feature_map,
            bottleneck_repaired(False),
        ),
        Subject(
            layers.SpatialGate, SPATIAL, feature_map, bottleneck_repaired(True)
        ),
        Subject(
            layers.ECA,
            {
                **FEATURE_MAP,
                **CONVOLUTION,
                "kernel_size": optional(ODD),
                "gamma": kinds.Kind((2, 1.5), kinds.POSITIVE.accepts),
                "b": kinds.NUMBER,
                "padding": one_of("zero", "circular"),
            },
            feature_map,
            eca_repaired,
        ),
        Subject(
            layers.GatedAttention,
            {
                **ATTENTION,
                "output_shape": OUTPUT_SHAPE,
                "normalization_epsilon": EPSILON,
            },
            attended,
            gated_attention_repaired,
            ("num_heads", "key_dim"),
        ),
        Subject(
            layers.GatedAttentionBlock,
            {
                **ATTENTION,
                "norm_first": BOOLEAN,
                "normalization_epsilon": EPSILON,
            },
            self_attended,
            block_repaired,
            ("num_heads", "key_dim"),
        ),
        Subject(
            layers.GatedAttentionUnit,
            UNIT,
            self_attended,
            unit_repaired,
            ("key_dim",),
        ),
    )
}
