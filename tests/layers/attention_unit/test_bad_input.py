"""Whatever does not fit is an error that quotes it."""

import numpy as np
import pytest

from keras_gating import functional
from keras_gating.layers import GatedAttentionUnit
from tests.layers.attention_unit.common import unit
from tests.utils import normal

X = normal(2, 7, 6)


@pytest.mark.parametrize(
    ("arguments", "received"),
    [
        ({"expansion_factor": 0}, "expansion_factor=0"),
        ({"expansion_factor": "2"}, "expansion_factor='2'"),
        ({"key_dim": 0}, "key_dim=0"),
        ({"key_dim": 2.5}, "key_dim=2.5"),
        ({"attention_activation": "relu"}, "attention_activation='relu'"),
        ({"attention_activation": None}, "attention_activation=None"),
        ({"chunk_size": 0}, "chunk_size=0"),
        ({"chunk_size": 2.0}, "chunk_size=2.0"),
        ({"divisor": "all"}, "divisor='all'"),
        ({"divisor": 0}, "divisor=0"),
        ({"divisor": True}, "divisor=True"),
        ({"divisor": 1.5}, "divisor=1.5"),
        ({"position": "sine"}, "position='sine'"),
        ({"position": ()}, r"position=\(\)"),
        ({"position": ("t5", "t5")}, r"position=\('t5', 't5'\)"),
        ({"position": 3}, "position=3"),
        ({"position": "rope", "key_dim": 5}, "position='rope', key_dim=5"),
        ({"dropout": 1.0}, "dropout=1.0"),
        ({"normalization_epsilon": -1.0}, "normalization_epsilon=-1.0"),
        ({"normalization_epsilon": 1e-3}, "normalization_epsilon=0.001"),
        ({"block_size": 0}, "block_size=0"),
        ({"block_size": "some"}, "block_size='some'"),
        (
            {"attention_activation": "softmax", "chunk_size": 4},
            "attention_activation='softmax', chunk_size=4",
        ),
        (
            {"attention_activation": "softmax", "divisor": "length"},
            "attention_activation='softmax', divisor='length'",
        ),
        ({"chunk_size": 4, "block_size": 2}, "chunk_size=4, block_size=2"),
        ({"chunk_size": 4, "block_size": None}, "block_size=None"),
        ({"activation": "unknown"}, "unknown"),
    ],
    ids=str,
)
def test_arguments(arguments, received):
    with pytest.raises(ValueError, match=received):
        GatedAttentionUnit(**arguments)


@pytest.mark.parametrize("shape", [(2, 6), (2, 7, 3, 6), (2, 7, None)])
def test_shapes_to_build_for(shape):
    with pytest.raises(ValueError, match=r"inputs.shape=\(2"):
        GatedAttentionUnit().build(shape)


def test_too_few_features():
    with pytest.raises(ValueError, match="expansion_factor=0.1 with 4"):
        GatedAttentionUnit(0.1).build((None, None, 4))


def test_other_width():
    with pytest.raises(ValueError, match=r"built for 6.*\(2, 7, 5\)"):
        unit(X)(X[..., :5])


PAIRS = [(7, 7), (2, 7, 7), (2, 1, 7, 7)]


@pytest.mark.parametrize("shape", [*PAIRS, (2, 7), (2, 1, 6), (2, 1, 1, 7)])
def test_chunked_form_takes_masks_of_its_keys_alone(shape):
    """Neither pairs nor, by their number, keys of another sequence."""
    layer = unit(X, chunk_size=3)
    with pytest.raises(ValueError, match="must be a mask of keys") as error:
        layer(X, attention_mask=np.ones(shape, bool))
    assert f"attention_mask.shape={shape}" in str(error.value)


@pytest.mark.parametrize("shape", [(2, 7), (2, 1, 6), (3, 7, 7), (2, 2, 7, 7)])
def test_quadratic_form_takes_masks_that_fit(shape):
    with pytest.raises(ValueError, match=r"attention_mask.shape=\("):
        unit(X)(X, attention_mask=np.ones(shape, bool))


@pytest.mark.parametrize("form", [{}, {"chunk_size": 3}])
def test_padding_masks(form):
    layer = unit(X, **form)
    with pytest.raises(ValueError, match=r"mask.shape=\(2, 6\)"):
        layer(X, mask=np.ones((2, 6), bool))
    with pytest.raises(ValueError, match="mask >= 0"):
        layer(X, mask=np.full((2, 7), -1e9, "float32"))
    with pytest.raises(ValueError, match="an array or a tensor"):
        layer(X, attention_mask=True)


@pytest.mark.parametrize(
    "arguments",
    [
        {"activation": "relu"},
        {"divisor": "length"},
        {"block_size": 0},
        {"chunk_size": 0},
        {"chunk_size": 2, "activation": "softmax"},
        {"chunk_size": 2, "divisors": ("visible", "length")},
    ],
)
def test_functions_refuse_what_they_do_not_know(arguments):
    name = list(arguments)[-1]
    with pytest.raises(ValueError, match=rf"`{name}`.*Received: {name}="):
        if "chunk_size" in arguments:
            functional.mixed_chunk_attention((X, X), (X, X), X, **arguments)
        else:
            functional.quadratic_attention(X, X, X, **arguments)
