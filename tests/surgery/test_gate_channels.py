"""`gate_channels`: where the gates go, and that they start as the identity."""

import keras
import numpy as np
import pytest
from keras import layers

from keras_gating import surgery
from keras_gating.layers import CBAM
from keras_gating.layers import ECA
from keras_gating.layers import ChannelGate
from keras_gating.layers import GatedAttention
from keras_gating.layers import SpatialGate
from keras_gating.layers import SqueezeExcite
from tests.surgery.models import assert_same_function
from tests.surgery.models import residual
from tests.surgery.models import scattered
from tests.surgery.models import values
from tests.utils import normal
from tests.utils import to_numpy

IMAGES = normal(4, 6, 6, 3)


def added(model, gated):
    known = {x.name for x in model._flatten_layers()}
    return [x.name for x in gated.layers if x.name not in known]


@pytest.mark.parametrize(
    "template",
    [
        SqueezeExcite(ratio=2),
        SqueezeExcite(ratio=2, gate_activation="hard_sigmoid", gate_scale=1.5),
        ChannelGate(ratio=2, gate_activation="softplus", use_bias=True),
        ECA(),
        SpatialGate(kernel_size=3, batch_norm=True),
        CBAM(ratio=2, kernel_size=3),
    ],
    ids=["se", "hard", "channel", "eca", "spatial", "cbam"],
)
def test_gates_start_as_the_identity(template):
    model = residual()
    gated = surgery.gate_channels(model, template)
    assert_same_function(model, gated, IMAGES)
    assert added(model, gated) == ["block0b_bn_gate", "block1b_bn_gate"]
    assert not template.built


def test_every_kernel_trains_and_reloads(tmp_path):
    model = residual()
    model.get_layer("short").trainable = False
    model.compile("sgd", "mse")
    before = values(model.variables)
    gated = surgery.gate_channels(model, CBAM(ratio=2, kernel_size=3))
    assert not gated.compiled and not gated.get_layer("short").trainable
    start = values(gated.weights)
    gates = {path for path in start if "_gate/" in path}
    assert len(gates) == 6
    gated.compile(keras.optimizers.Adam(0.01), "mse", run_eagerly=True)
    gated.fit(IMAGES, normal(4, 2), epochs=5, verbose=0)
    end = values(gated.weights)
    assert all(np.any(end[path] != start[path]) for path in gates)
    for path, value in values(model.variables).items():
        np.testing.assert_array_equal(value, before[path])
    gated.save(tmp_path / "gated.keras")
    loaded = keras.models.load_model(tmp_path / "gated.keras")
    assert_same_function(gated, loaded, IMAGES, tolerance=0.0)


def test_freezing():
    gated = surgery.gate_channels(residual(), ECA(), freeze=True)
    assert [x.path for x in gated.trainable_weights] == [
        "block0b_bn_gate/convolution/kernel",
        "block1b_bn_gate/convolution/kernel",
    ]


@pytest.mark.parametrize("data_format", ["channels_first", "channels_last"])
def test_layout_is_that_of_the_layer_before(data_format):
    """Whatever the template, or the default of Keras, says."""
    model = residual(data_format)
    after = ["block0a_conv", "block0a_relu", "block0b_bn"]
    gated = surgery.gate_channels(
        model, ECA(kernel_size=3, data_format="channels_last"), after
    )
    for name in after:
        gate = gated.get_layer(f"{name}_gate")
        assert gate.data_format == data_format
    if data_format == "channels_last":
        assert_same_function(model, gated, IMAGES)
    elif keras.config.backend() != "tensorflow":
        # Which has no such convolution on the CPU.
        assert_same_function(model, gated, np.moveaxis(IMAGES, -1, 1))


def test_policy_is_that_of_the_layer_before():
    image = keras.Input((6, 6, 3))
    x = layers.Conv2D(4, 3, dtype="mixed_bfloat16", name="conv")(image)
    model = scattered(keras.Model(image, x))
    gated = surgery.gate_channels(model, SqueezeExcite(ratio=2))
    policy = gated.get_layer("conv_gate").dtype_policy
    assert policy.name == "mixed_bfloat16"
    assert_same_function(model, gated, IMAGES, tolerance=0.0)


def test_blocks_of_convolutions_where_there_is_no_residual_branch():
    inner = keras.Sequential(
        [
            layers.DepthwiseConv2D(3, name="depthwise"),
            layers.Conv2D(5, 1, name="pointwise", activation="relu"),
        ],
        name="inner",
    )
    model = keras.Sequential(
        [
            keras.Input((6, 6, 3)),
            layers.Conv2D(4, 3, name="conv"),
            layers.BatchNormalization(name="bn"),
            layers.ReLU(name="relu"),
            inner,
            layers.GlobalAveragePooling2D(),
        ]
    )
    scattered(model)
    gated = surgery.gate_channels(model, ECA())
    assert isinstance(gated, keras.Sequential)
    assert added(model, gated) == ["relu_gate"]
    inner = gated.get_layer("inner")
    assert [x.name for x in inner.layers][1::2] == [
        "depthwise_gate",
        "pointwise_gate",
    ]
    assert_same_function(model, gated, IMAGES)


def test_sums_of_operations_and_branches_without_normalization():
    image = keras.Input((6, 6, 3))
    conv = layers.Conv2D(3, 3, padding="same", name="conv")
    x = image + layers.ReLU()(conv(image))
    x = x + conv(layers.ReLU()(x))
    # Sums without a convolution are no residual branches.
    x = layers.Add()([x, layers.LayerNormalization(name="norm")(x)])
    model = scattered(keras.Model(image, x + 1.0))
    gated = surgery.gate_channels(model, ECA())
    assert added(model, gated) == ["conv_gate"]
    assert len(gated.weights) == len(model.weights) + 1
    assert_same_function(model, gated, IMAGES)


def test_blocks_with_activations_that_are_operations():
    image = keras.Input((6, 6, 3))
    conv = layers.Conv2D(4, 3, dtype="mixed_bfloat16", name="conv")(image)
    x = keras.ops.leaky_relu(layers.BatchNormalization(name="bn")(conv))
    # No activation: it reads more than the channel.
    x = keras.ops.mean(layers.Conv2D(4, 3, name="last")(x), axis=(1, 2))
    model = scattered(keras.Model(image, x))
    gated = surgery.gate_channels(model, ECA())
    first, last = added(model, gated)
    assert (first.startswith("leaky_relu"), last) == (True, "last_gate")
    assert gated.get_layer(first).dtype_policy.name == "float32"
    assert_same_function(model, gated, IMAGES)


@pytest.mark.parametrize(
    ("template", "width"),
    [
        (SqueezeExcite(), 2),
        (SqueezeExcite(activation="silu"), 1),
        (CBAM(ratio=2, kernel_size=3), 4),
        (ChannelGate(units=3, activation="relu6"), 3),
    ],
    ids=["one unit", "silu", "cbam", "odd"],
)
def test_a_bottleneck_is_open_for_all_data(template, width):
    """Otherwise its gate, whose last kernel is zero, would never train."""
    gated = surgery.gate_channels(residual(), template, "block0b_bn")
    gate = gated.get_layer("block0b_bn_gate")
    gate = gate.channel_gate if isinstance(template, CBAM) else gate
    assert gate.reduction.kernel.shape == (8, width)
    hidden = to_numpy(gate.reduction(normal(500, 8)))
    assert np.all(np.any(hidden != 0.0, axis=1))


def test_choosing_layers_and_names():
    model = residual()
    for after in ("short", ["short"], lambda x: x.name == "short"):
        once = surgery.gate_channels(model, ECA(), after)
        assert added(model, once) == ["short_gate"]
    twice = surgery.gate_channels(once, SpatialGate(), "short")
    assert added(once, twice) == ["short_gate_2"]
    assert_same_function(model, twice, IMAGES)


@pytest.mark.parametrize(
    ("template", "after", "message"),
    [
        (ECA(), "nothing", "'nothing' is not among .*block0a_conv"),
        (ECA(), lambda x: False, "true of no layer"),
        (ECA(), "head", r"'head', with outputs of the shapes"),
        (ECA(gate_activation="tanh"), None, r"activation\(0\) = 0"),
        (ECA(gate_activation="softmax"), None, "each logit by itself"),
        (ECA(), 5, "after=5"),
        (SqueezeExcite(units=1), None, "'relu' may be shut.* units=1"),
        (GatedAttention(1, 2), None, "must be a gate on feature maps"),
        (SqueezeExcite(bias_initializer="ones"), None, "bias_initializer="),
        (
            SqueezeExcite(kernel_initializer="zeros"),
            None,
            "kernel_initializer=",
        ),
    ],
    ids=lambda x: x if isinstance(x, str) else None,
)
def test_bad_input(template, after, message):
    with pytest.raises(ValueError, match=message):
        surgery.gate_channels(residual(), template, after)


def test_built_templates_and_models_without_convolutions_are_refused():
    template = ECA()
    template.build((None, 6, 6, 3))
    with pytest.raises(ValueError, match="built"):
        surgery.gate_channels(residual(), template)
    unbuilt = keras.Sequential([layers.Conv2D(2, 3)], name="stack")
    with pytest.raises(ValueError, match="Received: stack, not built"):
        surgery.gate_channels(unbuilt, ECA())
    x = keras.Input((4,))
    model = keras.Model(x, layers.Dense(2, name="only")(x))
    with pytest.raises(ValueError, match="no convolution.*only"):
        surgery.gate_channels(model, ECA())


@pytest.mark.skipif(
    keras.config.backend() != "torch", reason="compiling them takes minutes"
)
@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("MobileNetV3Small", 6),
        ("EfficientNetB0", 9),
        ("ResNet50", 16),
        ("ConvNeXtTiny", 18),
    ],
)
def test_applications(name, count, tmp_path):
    model = getattr(keras.applications, name)(
        weights=None, input_shape=(32, 32, 3), classes=10
    )
    rng = np.random.default_rng(0)
    for layer in model.layers:
        if isinstance(layer, layers.BatchNormalization):
            size = layer.moving_mean.shape
            layer.moving_mean.assign(rng.normal(scale=0.2, size=size))
            layer.moving_variance.assign(rng.uniform(0.5, 1.5, size))
            layer.beta.assign(rng.normal(scale=0.2, size=size))
    images = normal(2, 32, 32, 3)
    gated = surgery.gate_channels(model, SqueezeExcite())
    assert len(added(model, gated)) == count
    assert_same_function(model, gated, images)
    if name != "MobileNetV3Small":
        return
    start = values(gated.weights)
    gates = [x for x in start if "_gate/" in x and x.endswith("kernel")]
    gated.compile("adam", "sparse_categorical_crossentropy")
    gated.fit(images, np.array([1, 2]), epochs=3, verbose=0)
    end = values(gated.weights)
    assert all(np.any(end[path] != start[path]) for path in gates)
    gated.save(tmp_path / "gated.keras")
    loaded = keras.models.load_model(tmp_path / "gated.keras")
    assert_same_function(gated, loaded, images, tolerance=0.0)
