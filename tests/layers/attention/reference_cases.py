"""The options of `GatedAttention`, one row each, alone and together."""

import numpy as np
import pytest

from tests.utils import normal

RANK3 = {"query": (2, 5, 7), "value": (2, 3, 9), "key": (2, 3, 8)}
SELF = {"query": (2, 5, 8), "value": (2, 5, 8)}
IMAGE = {"query": (2, 3, 4, 7), "value": (2, 3, 5, 9), "key": (2, 3, 5, 8)}
VIDEO = {"query": (2, 3, 2, 4, 7), "value": (2, 3, 4, 3, 9)}

SIZES = {"num_heads": 4, "key_dim": 6, "value_dim": 4}


def case(name, shapes=RANK3, call=None, **arguments):
    """One row of the grid; `call` makes the call's arrays."""
    return pytest.param(shapes, call or dict, arguments, id=name)


def sites():
    """Each site by granularity, by source where the site has one."""
    granularities = ("elementwise", "headwise", "shared")
    sources = ("query", "context", "query_context", "constant")
    for site in ("query", "key", "value"):
        for granularity in granularities:
            yield case(
                f"{site}-{granularity}",
                gate_site=site,
                gate_granularity=granularity,
                num_key_value_heads=2,
            )
    for source in sources:
        for granularity in granularities:
            yield case(
                f"output-{granularity}-{source}",
                gate_granularity=granularity,
                gate_source=source,
                num_key_value_heads=2,
            )
        yield case(
            f"projection-{source}", gate_site="projection", gate_source=source
        )
    for source in sources:
        yield case(
            f"output+projection-{source}",
            gate_site=("output", "projection"),
            gate_source=source,
        )
    yield case("key+output", gate_site=("key", "output"))
    yield case("query+value", gate_site=("query", "value"))
    yield case(
        "all-sites",
        gate_site=("output", "value", "key", "query", "projection"),
        gate_source="query_context",
        num_key_value_heads=1,
    )
    yield case(
        "gate-input",
        call=lambda: {"gate_input": normal(2, 5, 11, seed=9)},
        gate_site=("output", "projection"),
    )
    yield case(
        "gate-input-and-context",
        call=lambda: {"gate_input": normal(2, 5, 11, seed=9)},
        gate_source="query_context",
    )
    yield case("ungated", use_gate=False)
    yield case("output-shape", gate_site="projection", output_shape=(3, 2))


def gates():
    """What a gate computes."""
    for activation in ("linear", "tanh", "relu", "silu", "softplus", "gelu"):
        yield case(f"act-{activation}", gate_activation=activation)
        yield case(
            f"split-{activation}",
            gate_source="split",
            gate_activation=activation,
            gate_scale=1.5,
        )
    yield case("scale", gate_scale=2.0)
    for granularity in ("elementwise", "headwise"):
        yield case(
            f"rank-{granularity}", gate_rank=3, gate_granularity=granularity
        )
    yield case(
        "rank-everywhere",
        gate_rank=2,
        gate_site=("output", "value", "key", "query", "projection"),
    )
    yield case("no-bias", use_bias=False)
    yield case("gate-bias-only", use_bias=False, gate_use_bias=True)
    yield case("no-gate-bias", gate_use_bias=False)


def context():
    """Normalisation, rotary embedding, grouped heads."""
    for normalization in ("rms", "layer"):
        for gate in (
            {"use_gate": False},
            {"gate_source": "query"},
            {"gate_source": "context"},
            {"gate_source": "split"},
        ):
            yield case(
                f"context-{normalization}-{gate}",
                context_normalization=normalization,
                **gate,
            )
    yield case("qk-rms", query_key_normalization="rms", num_key_value_heads=2)
    yield case(
        "epsilon",
        query_key_normalization="rms",
        context_normalization="rms",
        normalization_epsilon=0.3,
    )
    for heads in (1, 2, 4):
        yield case(f"grouped-{heads}", num_key_value_heads=heads)
    everything = {
        "query_key_normalization": "rms",
        "context_normalization": "rms",
        "gate_site": ("output", "value", "key", "query", "projection"),
        "gate_source": "query_context",
        "num_key_value_heads": 2,
    }
    for fraction in (1.0, 1 / 3, 2 / 3):
        yield case(
            f"rotary-{fraction:.2f}",
            rope_max_wavelength=50.0,
            rope_fraction=fraction,
        )
    yield case(
        "everything",
        shapes=SELF,
        call=lambda: {"use_causal_mask": True},
        rope_max_wavelength=50.0,
        rope_fraction=2 / 3,
        sliding_window=3,
        **everything,
    )


def _random_mask(*shape):
    """A mask that leaves at least one key to every query."""
    mask = np.random.default_rng(3).random(shape) < 0.6
    mask[..., 0] = True
    return mask


def _padding():
    return {
        "query_mask": np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], bool),
        "value_mask": np.array([[1, 1, 0], [0, 1, 1]], bool),
        "key_mask": np.array([[1, 1, 1], [1, 1, 0]], bool),
    }


def masks():
    """What a query sees."""
    for shape in ((5, 3), (2, 5, 3), (1, 5, 3), (2, 1, 5, 3), (2, 4, 5, 3)):
        yield case(
            f"mask-{shape}",
            call=lambda shape=shape: {"attention_mask": _random_mask(*shape)},
        )
    yield case(
        "mask-keys-only",
        call=lambda: {"attention_mask": _random_mask(2, 1, 3)},
    )
    for name in ("query_mask", "value_mask", "key_mask"):
        yield case(name, call=lambda name=name: {name: _padding()[name]})
    yield case("padding", call=_padding)
    yield case("causal-cross", call=lambda: {"use_causal_mask": True})
    yield case("causal", shapes=SELF, call=lambda: {"use_causal_mask": True})
    yield case("window", shapes=SELF, sliding_window=2)
    yield case(
        "every-mask",
        call=lambda: {
            **_padding(),
            "attention_mask": _random_mask(2, 5, 3),
            "use_causal_mask": True,
        },
        sliding_window=3,
    )
    for rows in ("zero", "uniform"):
        for extra in (
            {"use_gate": False},
            {"gate_source": "query_context", "num_key_value_heads": 2},
            {"context_normalization": "rms"},
            {"context_normalization": "layer"},
        ):
            yield case(
                f"rows-{rows}-{extra}", call=_padding, masked_rows=rows, **extra
            )


def ranks():
    """More axes than batch, sequence and features."""
    yield case("rank4", IMAGE)
    yield case("rank4-axis2", IMAGE, attention_axes=2)
    yield case("rank4-axis-2", IMAGE, attention_axes=-2)
    cross = {"query": (2, 3, 4, 7), "value": (2, 5, 4, 9)}
    yield case("rank4-axis1", cross, attention_axes=(1,))
    yield case("rank5-axes23", VIDEO, attention_axes=(2, 3))
    grouped = {"num_key_value_heads": 2, "gate_site": ("output", "key")}
    yield case("rank4-grouped", IMAGE, attention_axes=2, **grouped)
    for source in ("query", "context", "query_context", "constant", "split"):
        for axes in (None, 2):
            yield case(
                f"rank4-{source}-{axes}",
                IMAGE,
                gate_source=source,
                attention_axes=axes,
                context_normalization="rms",
            )
    yield case(
        "rank4-mask",
        IMAGE,
        lambda: {"attention_mask": _random_mask(2, 3, 4, 5)},
        attention_axes=2,
    )
    yield case(
        "rank4-mask-heads",
        IMAGE,
        lambda: {"attention_mask": _random_mask(2, 3, 4, 4, 5)},
        attention_axes=2,
    )
    yield case(
        "rank4-mask-positions",
        IMAGE,
        lambda: {"attention_mask": _random_mask(4, 5)},
        attention_axes=2,
    )
    yield case(
        "rank5-mask",
        VIDEO,
        lambda: {"attention_mask": _random_mask(2, 3, 2, 4, 4, 3)},
        attention_axes=(2, 3),
    )
    same = {"query": (2, 3, 4, 8), "value": (2, 3, 4, 8)}
    for axes in (None, 1, 2, (1, 2)):
        yield case(
            f"rank4-causal-{axes}",
            same,
            lambda: {"use_causal_mask": True},
            attention_axes=axes,
        )
    for axis in (1, 2):
        yield case(
            f"rank4-rotary-{axis}",
            same,
            lambda: {"use_causal_mask": True},
            attention_axes=axis,
            rope_max_wavelength=20.0,
            sliding_window=2,
        )


GRID = [*sites(), *gates(), *context(), *masks(), *ranks()]
