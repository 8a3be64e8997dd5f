"""Faulty constructor arguments: errors that quote what came."""

import pytest

from keras_gating.layers import GatedAttention
from tests.utils import normal

# Arguments, and what the message must quote.
CONSTRUCTOR = {
    "num_heads-0": ({"num_heads": 0}, "num_heads.*0"),
    "num_heads--2": ({"num_heads": -2}, "num_heads.*-2"),
    "num_heads-float": ({"num_heads": 1.5}, r"num_heads.*1\.5"),
    "key_dim-0": ({"key_dim": 0}, "key_dim.*0"),
    "key_dim-negative": ({"key_dim": -1}, "key_dim.*-1"),
    "value_dim-0": ({"value_dim": 0}, "value_dim.*0"),
    "value_dim-negative": ({"value_dim": -3}, "value_dim.*-3"),
    "groups-0": ({"num_key_value_heads": 0}, "num_key_value_heads.*0"),
    "groups-3": ({"num_key_value_heads": 3}, "num_key_value_heads.*3"),
    "groups-8": ({"num_key_value_heads": 8}, "num_key_value_heads.*8"),
    "groups-negative": ({"num_key_value_heads": -2}, "num_key_value_heads.*-2"),
    "dropout-negative": ({"dropout": -0.1}, r"dropout.*-0\.1"),
    "dropout-large": ({"dropout": 1.5}, r"dropout.*1\.5"),
    "output_shape": ({"output_shape": 8.0}, r"output_shape.*8\.0"),
    "attention_axes": ({"attention_axes": "last"}, "attention_axes.*last"),
    "window-0": ({"sliding_window": 0}, "sliding_window.*0"),
    "window-negative": ({"sliding_window": -3}, "sliding_window.*-3"),
    "site": ({"gate_site": "outputs"}, "gate_site.*outputs"),
    "site-in-tuple": ({"gate_site": ("output", "kay")}, "gate_site.*kay"),
    "site-empty": ({"gate_site": ()}, r"gate_site.*\(\)"),
    "granularity": ({"gate_granularity": "rowwise"}, "gate_gran.*rowwise"),
    "source": ({"gate_source": "values"}, "gate_source.*values"),
    "activation": ({"gate_activation": "sigmoidal"}, "sigmoidal"),
    "rank-0": ({"gate_rank": 0}, "gate_rank.*0"),
    "rank-negative": ({"gate_rank": -1}, "gate_rank.*-1"),
    "gate-dropout": ({"gate_dropout": 2.0}, r"gate_dropout.*2\.0"),
    "context-norm": ({"context_normalization": "batch"}, "context.*batch"),
    "qk-norm": ({"query_key_normalization": "layer"}, "query_key.*layer"),
    "rows": ({"masked_rows": "nan"}, "masked_rows.*nan"),
    "wavelength-0": ({"rope_max_wavelength": 0.0}, "rope_max_wavelength.*0"),
    "wavelength-negative": (
        {"rope_max_wavelength": -5.0},
        "rope_max_wavelength.*-5",
    ),
    "fraction-0": (
        {"rope_max_wavelength": 9.0, "rope_fraction": 0.0},
        "rope_fraction.*0",
    ),
    "fraction-large": (
        {"rope_max_wavelength": 9.0, "rope_fraction": 1.5},
        r"rope_fraction.*1\.5",
    ),
    "fraction-odd": (
        {"rope_max_wavelength": 9.0, "rope_fraction": 0.25},
        "even",
    ),
    "key_dim-odd": ({"rope_max_wavelength": 9.0, "key_dim": 5}, "even"),
    # A GLU over the value width.
    "split-odd": ({"gate_source": "split", "value_dim": 5}, "even.*5|5.*even"),
    "split-site": (
        {"gate_source": "split", "gate_site": "value"},
        "split",
    ),
    "split-two-sites": (
        {"gate_source": "split", "gate_site": ("output", "key")},
        "split",
    ),
    "split-headwise": (
        {"gate_source": "split", "gate_granularity": "headwise"},
        "headwise",
    ),
    "split-rank": ({"gate_source": "split", "gate_rank": 2}, "gate_rank.*2"),
    "split-dropout": (
        {"gate_source": "split", "gate_dropout": 0.1},
        r"gate_dropout.*0\.1",
    ),
    "split-initializer": (
        {"gate_source": "split", "gate_initializer": "ones"},
        "gate_initializer",
    ),
    "split-bias-initializer": (
        {"gate_source": "split", "gate_bias_initializer": "ones"},
        "gate_bias_initializer",
    ),
    "split-bias": (
        {"gate_source": "split", "gate_use_bias": True},
        "gate_use_bias.*True",
    ),
    # Combinations in which an argument would do nothing.
    "projection-headwise": (
        {"gate_site": "projection", "gate_granularity": "headwise"},
        "headwise",
    ),
    "source-without-its-site": (
        {"gate_site": "value", "gate_source": "context"},
        "gate_source.*context",
    ),
    "source-without-its-sites": (
        {"gate_site": ("key", "query"), "gate_source": "constant"},
        "gate_source.*constant",
    ),
    "fraction-without-rotary": ({"rope_fraction": 0.5}, "rope_fraction"),
    "epsilon-without-normalisation": (
        {"normalization_epsilon": 1e-3},
        "normalization_epsilon",
    ),
    "bias-initializer-without-bias": (
        {"gate_bias_initializer": "ones", "gate_use_bias": False},
        "gate_bias_initializer",
    ),
}


@pytest.mark.parametrize("name", CONSTRUCTOR)
def test_constructor(name):
    arguments, message = CONSTRUCTOR[name]
    arguments = {"num_heads": 4, "key_dim": 6, **arguments}
    with pytest.raises((ValueError, TypeError), match=f"(?s){message}"):
        GatedAttention(**arguments)


@pytest.mark.parametrize("name", ["num_head", "gate_sites", "units"])
def test_unknown_argument(name):
    with pytest.raises((ValueError, TypeError), match=name):
        GatedAttention(2, 4, **{name: 1})


def test_ungated_ablation_stores_and_ignores_gate_arguments():
    arguments = {
        "gate_site": ("value", "key"),
        "gate_granularity": "headwise",
        "gate_scale": 2.0,
        "gate_rank": 3,
        "gate_dropout": 0.2,
    }
    layer = GatedAttention(2, 4, use_gate=False, **arguments)
    config = layer.get_config()
    for name, value in arguments.items():
        assert config[name] == value
    x = normal(2, 5, 8)
    layer.build(x.shape, x.shape)
    assert len(layer.weights) == 8
