"""`gate_attention`: the same function, with gates that train."""

import keras
import numpy as np
import pytest
from keras import layers

from keras_gating import _keras
from keras_gating import surgery
from keras_gating.layers import GatedAttention
from keras_gating.layers import SwiGLU
from keras_gating.surgery import subclasses
from tests.layers.attention.keras_sources import has_gate
from tests.surgery.models import IDS
from tests.surgery.models import assert_same_function
from tests.surgery.models import outputs
from tests.surgery.models import scattered
from tests.surgery.models import transformer
from tests.surgery.models import values
from tests.utils import normal


def test_padded_and_causal_transformer_saves_and_trains(tmp_path):
    model = transformer()
    model.compile("sgd", "mse")
    before = values(model.variables)
    gated = surgery.gate_attention(model)
    assert_same_function(model, gated, IDS)
    assert not gated.compiled
    assert [x.name for x in gated.layers] == [x.name for x in model.layers]
    for name in ("first", "second"):
        assert isinstance(gated.get_layer(name), GatedAttention)
    kept, new = values(gated.weights), values(model.weights)
    gates = {path for path in kept if "/gate/" in path}
    assert {path.partition("/")[0] for path in gates} == {"first", "second"}
    for path in kept.keys() - gates:
        np.testing.assert_array_equal(kept[path], new[path])
    assert kept.keys() - gates == new.keys()

    gated.compile(keras.optimizers.Adam(0.01), "mse")
    gated.fit(IDS, normal(4, 6, 3), epochs=5, verbose=0)
    after = values(gated.weights)
    assert all(np.any(after[path] != kept[path]) for path in gates)
    # On JAX, training gives away buffers that a copy must not share.
    for path, value in values(model.variables).items():
        np.testing.assert_array_equal(value, before[path])
    gated.save(tmp_path / "gated.keras")
    loaded = keras.models.load_model(tmp_path / "gated.keras")
    assert_same_function(gated, loaded, IDS, tolerance=0.0)


def test_masks_of_keras_are_part_of_the_function(monkeypatch):
    """With masks that survive attention, the second layer sees padding."""
    model = transformer()
    monkeypatch.setattr(subclasses, "_class_for", lambda x: GatedAttention)
    other = surgery.gate_attention(model)
    (expected,), (actual,) = outputs(model, IDS), outputs(other, IDS)
    assert np.max(np.abs(actual - expected)) > 1e-3


@pytest.mark.parametrize(
    "arguments",
    [
        {"gate_granularity": "headwise", "gate_site": ("output", "value")},
        {"gate_activation": "softplus", "gate_source": "query_context"},
        {
            "gate_scale": 1.0,
            "gate_bias_initializer": keras.initializers.Constant(18.0),
        },
        {"gate_rank": 2, "gate_site": "projection"},
    ],
    ids=["sites", "softplus", "open", "rank"],
)
def test_every_identity_gate(arguments):
    model = transformer(dropout=0.2)
    gated = surgery.gate_attention(model, **arguments)
    assert_same_function(model, gated, IDS)
    assert len(gated.weights) > len(model.weights)


def test_shared_and_nested_layers_stay_shared():
    inner_input = keras.Input((None, 8))
    attention = layers.GroupQueryAttention(4, 4, 2, name="grouped")
    inner = keras.Model(
        inner_input, attention(inner_input, inner_input), name="inner"
    )
    left = keras.Input((4, 8), name="left")
    right = keras.Input((5, 8), name="right")
    y, scores = layers.MultiHeadAttention(2, 4, name="cross")(
        left, right, return_attention_scores=True
    )
    shared = layers.Dense(8, name="shared")
    x = keras.ops.sum(inner(shared(right)), axis=1, keepdims=True)
    model = keras.Model(
        {"left": left, "right": right},
        {"x": inner(shared(y + x)[:, 1:]), "scores": scores},
    )
    scattered(model)
    gated = surgery.gate_attention(model)
    assert [x.name for x in gated.layers] == [x.name for x in model.layers]
    assert len(gated.weights) == len(model.weights) + 4
    inputs = {"left": normal(2, 4, 8), "right": normal(2, 5, 8, seed=1)}
    assert gated(inputs).keys() == {"x", "scores"}
    assert_same_function(model, gated, inputs)


def test_masked_rows_where_scores_are_returned():
    """Keras takes another path there, which leaves zeros in masked rows."""
    x, mask = keras.Input((4, 8)), keras.Input((4, 4), dtype="bool")
    attention = layers.MultiHeadAttention(2, 4, name="attention")
    both = attention(x, x, attention_mask=mask, return_attention_scores=True)
    model = scattered(keras.Model([x, mask], both[0]))
    seen = np.random.default_rng(0).random((3, 4, 4)) < 0.6
    seen[0, 1] = False
    gated = surgery.gate_attention(model)
    assert_same_function(model, gated, normal(3, 4, 8), seen)


@pytest.mark.parametrize("kind", ["heads", "groups"])
def test_attention_that_is_called_with_and_without_scores(kind):
    """Keras fills masked rows differently; the first call is the last used."""
    x, mask = keras.Input((4, 8)), keras.Input((4, 4), dtype="bool")
    if kind == "heads":
        attention = layers.MultiHeadAttention(2, 4, name="attention")
    else:
        attention = layers.GroupQueryAttention(4, 2, 2, name="attention")
    both = attention(x, x, attention_mask=mask, return_attention_scores=True)
    if isinstance(both, keras.KerasTensor):
        pytest.skip("This release of Keras forgets the scores of a graph.")
    y, scores = both
    z = layers.Dense(8)(attention(x, x, attention_mask=mask))
    model = scattered(keras.Model([x, mask], [y, z, scores]))
    seen = np.random.default_rng(0).random((3, 4, 4)) < 0.6
    seen[0, 1] = False
    gated = surgery.gate_attention(model)
    assert_same_function(model, gated, normal(3, 4, 8), seen)
    assert isinstance(gated.get_layer("attention"), GatedAttention)


@has_gate
def test_gates_of_keras_are_kept():
    model = transformer(use_gate=True)
    gated = surgery.gate_attention(model)
    assert_same_function(model, gated, IDS)
    assert len(gated.weights) == len(model.weights)


def test_flags_and_policies_are_kept():
    model = transformer(dtype="mixed_bfloat16")
    model.get_layer("norm").trainable = False
    model.get_layer("first").query_dense.trainable = False
    model.get_layer("second").trainable = False
    model.get_layer("head").bias.trainable = False
    gated = surgery.gate_attention(model)
    for name in ("first", "second"):
        policy = gated.get_layer(name).dtype_policy.name
        assert policy == "mixed_bfloat16"
    expected = {x.path for x in model.trainable_weights}
    added = {x.path for x in gated.trainable_weights} - expected
    assert expected <= {x.path for x in gated.trainable_weights}
    assert added == {
        "first/gate/projection/kernel",
        "first/gate/projection/bias",
    }


def test_selection_and_freezing():
    model = transformer()
    for select in ("second", ["second"], lambda x: x.name == "second"):
        gated = surgery.gate_attention(model, select=select, freeze=True)
        assert not isinstance(gated.get_layer("first"), GatedAttention)
        assert [x.path for x in gated.trainable_weights] == [
            "second/gate/projection/kernel",
            "second/gate/projection/bias",
        ]
    assert len(model.trainable_weights) == len(model.weights)
    with pytest.raises(ValueError, match="no gates"):
        surgery.freeze_all_but_gates(model)


def test_models_whose_gates_cannot_be_frozen_apart_are_refused():
    def freeze(*parts):
        surgery.freeze_all_but_gates(keras.Sequential(parts, name="stack"))

    with pytest.raises(ValueError, match="weights of its own.*'stack'"):
        freeze(keras.Input((8,)), SwiGLU(4))
    with pytest.raises(ValueError, match="Received: stack, unit, not built"):
        freeze(layers.Dense(2), SwiGLU(4, name="unit"))
    with pytest.raises(ValueError, match="model=None"):
        surgery.freeze_all_but_gates(None)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"select": "third"}, "'third' is not among first, second"),
        ({"select": lambda x: False}, "true of no layer"),
        ({"gate_activation": "tanh"}, r"activation\(0\) = 0"),
        ({"gate_scale": 1.0}, "a factor between 0.5 and 0.5"),
        ({"gate_initializer": "ones"}, "kernel entry of 1"),
        ({"context_normalization": "rms"}, "context_normalization='rms'"),
        ({"use_gate": False}, "use_gate=False"),
        ({"gate_source": "split"}, "gate_source='split'"),
        ({"gate_site": "nowhere"}, "gate_site='nowhere'"),
        ({"use_bias": False}, "Received: use_bias"),
        ({"num_heads": 3}, "keyword-only arguments.*Received: num_heads"),
        ({"freeze": "yes"}, "freeze='yes'"),
    ],
    ids=lambda x: None if isinstance(x, str) else next(iter(x)),
)
def test_what_would_change_the_function_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        surgery.gate_attention(transformer(), **arguments)


def test_models_without_attention_are_refused():
    x = keras.Input((4, 8))

    class OwnAttention(layers.Dense):
        pass

    model = keras.Model(x, OwnAttention(3)(x), name="plain")
    with pytest.raises(ValueError, match="'plain'.*OwnAttention"):
        surgery.gate_attention(model)


def test_what_this_release_of_keras_has_elsewhere():
    with pytest.raises(ImportError, match="no `Gone` in keras.src.models"):
        _keras._private("models", "Gone")


def test_subclassed_models_are_refused():
    class Trained(keras.Model):
        def train_step(self, *args):
            raise NotImplementedError

    class Subclass(keras.Model):
        def call(self, inputs):
            return inputs

    plain = transformer()
    trained = Trained(plain.inputs, plain.outputs)
    for model, name in ((trained, "train_step"), (Subclass(), "Subclass")):
        with pytest.raises(ValueError, match=name):
            surgery.gate_attention(model)
    with pytest.raises(ValueError, match="NoneType"):
        surgery.gate_attention(None)
