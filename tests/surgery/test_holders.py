"""Attention inside of layers and models of a user's own."""

import re

import keras
import numpy as np
import pytest
from keras import layers
from keras import ops

from keras_gating import surgery
from keras_gating.layers import GatedAttention
from keras_gating.surgery.inside import WithGatedAttention
from keras_gating.surgery.keras_masks import ExplicitMaskAttention
from keras_gating.surgery.keras_masks import KerasMaskAttention
from keras_gating.surgery.keras_masks import KerasRowsAttention
from tests.surgery.models import IDS
from tests.surgery.models import Block
from tests.surgery.models import assert_same_function
from tests.surgery.models import scattered
from tests.surgery.models import values
from tests.surgery.models import with_holder
from tests.utils import normal

# Of layers that have no `build`, by Keras itself when it loads them.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.build... was called on layer",
    "ignore:Layer .*does not support masking",
)


@pytest.mark.parametrize(
    "cls",
    [
        WithGatedAttention,
        KerasMaskAttention,
        KerasRowsAttention,
        ExplicitMaskAttention,
    ],
)
def test_names_in_saved_files(cls):
    name = keras.saving.get_registered_name(cls)
    assert name == f"keras_gating>{cls.__name__}"


def attention_in(model):
    found = [
        x for x in model._flatten_layers() if isinstance(x, GatedAttention)
    ]
    return {x.name for x in found}, len(found)


def test_attention_wherever_it_is_held(tmp_path):
    model = with_holder()
    # The first of all has no number.
    _, name = layers.Layer().name, layers.Layer().name
    number = int(name.removeprefix("layer_"))
    gated = surgery.gate_attention(model)
    # Layers without a name are counted as if nothing had been copied.
    assert layers.Layer().name == f"layer_{number + 1}"
    assert_same_function(model, gated, IDS)
    assert attention_in(gated) == ({"attention", "in_model", "cross"}, 4)
    assert len(gated.weights) == len(model.weights) + 8
    assert isinstance(gated.get_layer("block"), WithGatedAttention)
    gates = {x.path for x in gated.weights if "gate" in x.path}
    assert "block/attention/gate/projection/kernel" in gates
    assert "holder/block_1/attention/gate/projection/kernel" in gates
    kept = values(gated.weights)
    assert {path: kept[path].shape for path in kept.keys() - gates} == {
        path: value.shape for path, value in values(model.weights).items()
    }

    surgery.freeze_all_but_gates(gated)
    assert {x.path for x in gated.trainable_weights} == gates
    # What takes less time, on JAX the compiler.
    is_eager = keras.config.backend() != "jax"
    gated.compile(keras.optimizers.Adam(0.01), "mse", run_eagerly=is_eager)
    gated.fit(IDS, normal(4, 6, 8), epochs=2, verbose=0)
    for path, value in values(gated.weights).items():
        assert np.any(value != kept[path]) == (path in gates), path
    gated.save(tmp_path / "gated.keras")
    loaded = keras.models.load_model(tmp_path / "gated.keras")
    assert_same_function(gated, loaded, IDS, tolerance=0.0)
    assert values(loaded.weights).keys() == kept.keys()
    assert {x.path for x in loaded.trainable_weights} == gates


def test_masks_go_through_a_wrapped_layer():
    tokens = keras.Input((6,), dtype="int32")
    x = layers.Embedding(10, 8, mask_zero=True)(tokens)
    for name in ("one", "two"):
        x = Block(name=name)(x)
    model = scattered(keras.Model(tokens, layers.LSTM(4)(x)))
    assert_same_function(model, surgery.gate_attention(model), IDS)


def test_sequential_and_time_distributed():
    inner_input = keras.Input((5, 8))
    x = layers.MultiHeadAttention(2, 4, name="attention")(
        inner_input, inner_input
    )
    inner = keras.Model(inner_input, x, name="inner")
    model = keras.Sequential(
        [
            keras.Input((3, 5, 8)),
            layers.TimeDistributed(inner, name="every"),
            layers.Lambda(lambda x: x * len(IDS), name="lambda"),
            keras.Sequential([layers.Dense(4, name="dense")], name="last"),
        ]
    )
    scattered(model)
    gated = surgery.gate_attention(model)
    assert isinstance(gated, keras.Sequential)
    assert attention_in(gated) == ({"attention"}, 1)
    assert_same_function(model, gated, normal(2, 3, 5, 8))
    assert [x.name for x in gated.layers] == ["every", "lambda", "last"]


def test_some_of_a_layer_and_then_the_rest():
    model = with_holder()
    some = surgery.gate_attention(model, select=["cross", "in_model"])
    assert attention_in(some) == ({"in_model", "cross"}, 2)
    everything = surgery.gate_attention(some)
    assert attention_in(everything)[1] == 4
    assert_same_function(model, everything, IDS)


def test_weights_shared_between_layers_are_refused():
    shared = layers.MultiHeadAttention(2, 4, name="shared")

    class Around(layers.Layer):
        def __init__(self, attention, **kwargs):
            super().__init__(**kwargs)
            self.attention = attention

        def call(self, inputs):
            return self.attention(inputs, inputs)

        def get_config(self):
            config = keras.saving.serialize_keras_object(self.attention)
            return {**super().get_config(), "attention": config}

        @classmethod
        def from_config(cls, config):
            attention = keras.saving.deserialize_keras_object(
                config.pop("attention")
            )
            return cls(attention, **config)

    x = keras.Input((5, 8))
    model = keras.Model(x, Around(shared, name="around")(shared(x, x)))
    with pytest.raises(ValueError, match="being the same layer.*'around'"):
        surgery.gate_attention(model)


def test_layers_without_a_configuration_are_refused():
    class Lost(layers.Layer):
        def __init__(self, width, **kwargs):
            super().__init__(**kwargs)
            self.attention = layers.MultiHeadAttention(width, 2)

        def call(self, inputs):
            return self.attention(inputs, inputs)

        def get_config(self):
            return super().get_config()

    x = keras.Input((5, 8))
    model = keras.Model(x, Lost(2, name="lost")(x))
    with pytest.raises(ValueError, match=r"'lost' \(Lost\) cannot be copied"):
        surgery.gate_attention(model)


def test_hidden_attention_is_refused():
    class Hidden(layers.Layer):
        def build(self, shape):
            self.attention = layers.MultiHeadAttention(2, 4, name="out_of")
            self.attention.build(shape, shape)
            # Still tracked, but no attribute.
            self.find = {"attention": self.attention}.get
            self.attention = None

        def call(self, inputs):
            return self.find("attention")(inputs, inputs)

    x = keras.Input((6, 8))
    model = keras.Model(x, Hidden(name="hidden")(x))
    with pytest.raises(ValueError, match="'hidden'.*out_of cannot be replaced"):
        surgery.gate_attention(model)


@keras.saving.register_keras_serializable("tests.surgery")
class WithCache(layers.MultiHeadAttention):
    """Attention for decoding, which takes a mask only as an argument."""

    factor = 1.0

    def call(
        self,
        query,
        value,
        key=None,
        attention_mask=None,
        cache=None,
        training=None,
    ):
        key = value if key is None else key
        query = self.query_dense(query)
        if cache is not None:
            return self.output_dense(query), cache
        context, _ = self._compute_attention(
            query,
            self.key_dense(key),
            self.value_dense(value),
            attention_mask=attention_mask,
            training=training,
        )
        return self.output_dense(context) * self.factor


class Doubled(WithCache):
    factor = 2.0


def decoder(attention):
    tokens = keras.Input((6,), dtype="int32")
    x = layers.Embedding(10, 8, mask_zero=True)(tokens)
    seen = ops.expand_dims(ops.not_equal(tokens, 0), 1)
    y = attention(x, x, attention_mask=ops.repeat(seen, 6, axis=1))
    return scattered(keras.Model(tokens, layers.Add()([x, y])))


def test_compatible_subclass(tmp_path):
    model = decoder(WithCache(2, 4, name="decode"))
    with pytest.raises(ValueError, match=r"decode \(WithCache: .*`call`"):
        surgery.gate_attention(model)
    for compatible in (WithCache, ["tests.surgery>WithCache"]):
        gated = surgery.gate_attention(model, compatible=compatible)
        assert_same_function(model, gated, IDS)
    attention = gated.get_layer("decode")
    assert isinstance(attention, ExplicitMaskAttention)
    x = normal(2, 3, 8)
    with pytest.raises(ValueError, match=r"'decode'.*2, 3, 8"):
        attention(x, x, cache=ops.convert_to_tensor(x))
    gated.save(tmp_path / "gated.keras")
    loaded = keras.models.load_model(tmp_path / "gated.keras")
    assert_same_function(gated, loaded, IDS, tolerance=0.0)


def test_subclass_that_is_said_to_be_compatible_is_compared():
    model = decoder(Doubled(2, 4, name="decode"))
    with pytest.raises(ValueError, match="Doubled does not compute"):
        surgery.gate_attention(model, compatible=Doubled)


TINY = {
    "vocabulary_size": 10,
    "num_layers": 1,
    "num_heads": 2,
    "hidden_dim": 8,
    "intermediate_dim": 8,
}


# What keras_hub 0.32 asks for.
needs_recent_keras = pytest.mark.skipif(
    tuple(map(int, keras.__version__.split(".")[:2])) < (3, 15),
    reason="keras_hub is made for newer releases of Keras.",
)


@needs_recent_keras
@pytest.mark.parametrize("name", ["BertBackbone", "GPT2Backbone"])
def test_backbones_of_keras_hub(name, tmp_path):
    hub = pytest.importorskip("keras_hub")
    model = getattr(hub.models, name)(**TINY, max_sequence_length=6)
    scattered(model)
    data = {
        x: np.zeros_like(IDS) if x == "segment_ids" else IDS
        for x in model.input
    }
    data["padding_mask"] = np.int32(IDS != 0)
    gated = surgery.gate_attention(model)
    assert attention_in(gated)[1] == 1
    gated.save(tmp_path / "gated.keras")
    loaded = keras.models.load_model(tmp_path / "gated.keras")
    assert_same_function(model, gated, data)
    assert_same_function(gated, loaded, data)


@needs_recent_keras
@pytest.mark.skipif(
    keras.config.backend() != "torch", reason="The same on all backends."
)
def test_backbones_of_keras_hub_that_cannot_be_gated():
    """The error names the class, or the layer, that stands in the way."""
    models = pytest.importorskip("keras_hub").models
    whisper = models.WhisperBackbone(
        **TINY,
        num_mels=4,
        max_encoder_sequence_length=4,
        max_decoder_sequence_length=4,
    )
    vit = models.ViTBackbone(
        image_shape=(4, 4, 3),
        patch_size=(4, 4),
        num_layers=1,
        num_heads=2,
        hidden_dim=4,
        mlp_dim=4,
    )
    for model, message in (
        (models.T5Backbone(**TINY), "T5MultiHeadAttention"),
        (
            whisper,
            "self_attention_layer .*WhisperCachedMultiHeadAttention overrides "
            "`build`",
        ),
        (vit, r"\(ViTPatchingAndEmbedding\) cannot be copied"),
    ):
        with pytest.raises(ValueError, match=message):
            surgery.gate_attention(model)


class Unnamed(layers.Layer):
    """A block whose configuration, which Keras makes, has no name."""

    def __init__(self, **options):
        super().__init__(**options)
        self.attention = layers.MultiHeadAttention(2, 4, name="attention")

    def build(self, shape):
        self.attention.build(shape, shape)

    def call(self, inputs):
        return self.attention(inputs, inputs)


def test_a_block_without_a_configuration_keeps_its_name():
    inputs = keras.Input((5, 8))
    block = Unnamed(name="block")
    assert "name" not in block.get_config()
    model = keras.Model(inputs, block(inputs))
    gated = surgery.gate_attention(model)
    assert gated.get_layer("block").name == "block"
    kept = {weight.path for weight in gated.weights}
    assert {weight.path for weight in model.weights} <= kept


@pytest.mark.parametrize(
    ("name", "choice"),
    [
        ("select", 5),
        ("select", ["attend", 5]),
        ("compatible", 5),
        ("compatible", (5,)),
    ],
)
def test_choices_of_other_types_are_refused(name, choice):
    model = decoder(layers.MultiHeadAttention(2, 4, name="attend"))
    with pytest.raises(ValueError, match=re.escape(f"{name}={choice!r}")):
        surgery.gate_attention(model, **{name: choice})
    layer = model.get_layer("attend")
    with pytest.raises(ValueError, match="name of a layer.*'attend'"):
        surgery.gate_attention(model, select=layer)
