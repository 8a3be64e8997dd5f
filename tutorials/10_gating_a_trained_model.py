# %% [markdown]
# [![Open In Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/keras-gating/keras-gating/blob/main/tutorials/10_gating_a_trained_model.ipynb)
#
# # Gating a trained model: surgery that changes nothing, at first
#
# You have a model that works, and training it again is out of the question.
# **Can it get gates now, without losing what it knows, and do they help?**

# %%
import os
import subprocess
import sys

REPOSITORY = "https://github.com/keras-gating/keras-gating"
if "google.colab" in sys.modules:
    # Colab has Keras' backends already, and keeps them as they are.
    wanted = f"keras-gating[experiments] @ git+{REPOSITORY}"
    pip = [sys.executable, "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, wanted], check=True)

# Read once, when Keras is first imported. Without the second line JAX has no
# float64, in which curvature is measured; networks train in float32.
BACKEND = os.environ.setdefault("KERAS_BACKEND", "jax")
os.environ.setdefault("JAX_ENABLE_X64", "1")
# A shorter run of everything below.
QUICK = os.environ.get("KERAS_GATING_QUICK") == "1"

import keras
import matplotlib.pyplot as plt
import numpy as np

import keras_gating
from keras_gating.experiments.results import environment

assert keras.config.backend() == BACKEND, (
    f"Keras was imported before this cell, on {keras.config.backend()}: "
    "restart the runtime and run the cells from the top"
)
keras.utils.set_random_seed(0)
plt.rcParams.update({"figure.facecolor": "white", "figure.dpi": 100})
versions = environment()
print(f"keras-gating {keras_gating.__version__}, Keras {keras.__version__}")
print(f"{BACKEND} {versions['backend_version']}, Python {versions['python']}")

# %% [markdown]
# ## A gate that does nothing, yet
#
# A sigmoid gate with weights of zero is ½. Times two, it is 1, and multiplying
# by 1 changes nothing. But its slope is at its largest there, so it can leave:

# %%
to_numpy = keras.ops.convert_to_numpy
BLUE, ORANGE, GREEN = "#0072B2", "#E69F00", "#009E73"
z = np.linspace(-6, 6, 121)
sigmoid = 1 / (1 + np.exp(-z))
figure, axis = plt.subplots(figsize=(6, 3.2), layout="constrained")
axis.plot(z, 2 * sigmoid, color=BLUE, label="gate, 2 σ(z)")
axis.plot(z, 2 * sigmoid * (1 - sigmoid), color=ORANGE, label="its slope")
axis.plot(0, 1, "o", color=BLUE, markersize=9)
axis.annotate(
    "here it starts", (0, 1), (1.8, 0.9), arrowprops={"arrowstyle": "->"}
)
axis.set(xlabel="logit z", ylabel="factor", ylim=(-0.1, 2.1))
axis.legend()
plt.show()

# %% [markdown]
# The surgeon makes a *copy* of a model with such gates. The original stays as
# it is. Three patients are waiting: a convolutional network, a small vision
# transformer and a language model.
#
# ## First patient: a convolutional network
#
# One residual block on scikit-learn's digits. First it has to be trained, for
# it is to be a trained model.

# %%
from keras_gating.experiments.digits import Split
from keras_gating.experiments.population import seeded

layers = keras.layers
split = Split(seed=0)
few = slice(64 if QUICK else None)
EPOCHS = 1 if QUICK else 4


def convolutional_network():
    def convolution(x):
        x = layers.Conv2D(16, 3, padding="same", data_format="channels_last")(x)
        return layers.BatchNormalization(momentum=0.9)(x)

    image = keras.Input((8, 8, 1))
    x = layers.ReLU()(convolution(image))
    y = layers.ReLU()(convolution(x))
    x = layers.ReLU()(layers.Add()([x, convolution(y)]))
    x = layers.GlobalMaxPooling2D(data_format="channels_last")(x)
    return keras.Model(image, layers.Dense(10)(x))


def train(model, inputs, epochs, learning_rate=5e-3):
    model.compile(
        keras.optimizers.Adam(learning_rate),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        run_eagerly=QUICK,
    )
    model.fit(
        inputs[few],
        split.train_labels[few],
        batch_size=32,
        epochs=epochs,
        verbose=0,
    )


def accuracy(model, inputs):
    right = to_numpy(model(inputs)).argmax(axis=-1) == split.test_labels
    return f"{right.mean():.2%}"


with seeded(0):
    network = convolutional_network()
train(network, split.train_images[..., None], EPOCHS)
test_images = split.test_images[..., None]
print("accuracy", accuracy(network, test_images))

# %% [markdown]
# Now the surgery. `gate_channels` takes a template, here
# squeeze-and-excitation, and puts a clone at the end of each residual branch.
# `freeze=True` leaves nothing but the gates trainable.

# %%
from keras_gating import diagnostics, surgery
from keras_gating.layers import SqueezeExcite

gated = surgery.gate_channels(network, SqueezeExcite(ratio=4), freeze=True)
print("new:", [x.name for x in gated.layers if x.name.endswith("_gate")])
change = to_numpy(gated(test_images)) - to_numpy(network(test_images))
print(f"largest change of a logit: {np.abs(change).max():.1e}")

train(gated, split.train_images[..., None], EPOCHS)
trained = sum(int(np.prod(v.shape)) for v in gated.trainable_variables)
print(f"{trained} of {gated.count_params():,} weights trained")
print("accuracy", accuracy(network, test_images), "→", end=" ")
print(accuracy(gated, test_images))

# %% [markdown]
# Is the change due to the gates or to more training? One number cannot tell.
# The right control trains something else for as long; exercise 1 does it.
#
# ## Second patient: a small vision transformer
#
# It cuts an image into 16 patches and lets them attend to each other. Its
# attention is Keras' own, and sits *inside* of a block, as in most code that
# people write.

# %%


@keras.saving.register_keras_serializable(package="tutorial")
class Block(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.norm = layers.LayerNormalization()
        self.attention = layers.MultiHeadAttention(4, 8)
        self.hidden = layers.Dense(64, activation="gelu")
        self.output_dense = layers.Dense(32)

    def build(self, shape):
        self.norm.build(shape)
        self.attention.build(shape, shape)
        self.hidden.build(shape)
        self.output_dense.build((*shape[:-1], 64))

    def call(self, inputs):
        x = self.norm(inputs)
        x = inputs + self.attention(x, x)
        return x + self.output_dense(self.hidden(x))


@keras.saving.register_keras_serializable(package="tutorial")
class Positions(layers.Layer):
    def build(self, shape):
        self.vectors = self.add_weight(name="vectors", shape=shape[1:])

    def call(self, inputs):
        return inputs + self.vectors


with seeded(0):
    patches = keras.Input((16, 4))
    x = Positions()(layers.Dense(32)(patches))
    x = layers.GlobalAveragePooling1D()(Block(name="block")(x))
    vision = keras.Model(patches, layers.Dense(10)(x))
train(vision, split.train, 2 * EPOCHS)
print("accuracy", accuracy(vision, split.test))

# %% [markdown]
# `gate_attention` finds the attention inside of the block. Any gate that can
# start as the identity will do; here one number for each head and patch.

# %%
import tempfile

gated_vision = surgery.gate_attention(vision, gate_granularity="headwise")
change = to_numpy(gated_vision(split.test)) - to_numpy(vision(split.test))
print(f"largest change of a logit: {np.abs(change).max():.1e}")
for variable in diagnostics.gate_variables(gated_vision):
    print(variable.path, tuple(variable.shape))

# The copy is a model like any other: it is saved, loaded, trained.
with tempfile.TemporaryDirectory() as folder:
    gated_vision.save(f"{folder}/gated.keras")
    loaded = keras.saving.load_model(f"{folder}/gated.keras")
train(loaded, split.train, EPOCHS)
print("accuracy after more training", accuracy(loaded, split.test))

# %% [markdown]
# What did the gates do? For a few images, the gate of each head at each of the
# 4 × 4 patches: blue turns a head down, red turns it up.

# %%
with diagnostics.record_gates(loaded) as record:
    loaded(split.test[:6])
(recorded,) = record.values()
factors = 2 * recorded.calls[0][..., 0]  # (images, patches, heads)

figure, axes = plt.subplots(5, 6, figsize=(8, 6.6), layout="constrained")
for column, image, own in zip(axes.T, split.test_images, factors):
    column[0].imshow(image, cmap="gray_r")
    for axis, head in zip(column[1:], own.T):
        shown = axis.imshow(
            head.reshape(4, 4), cmap="RdBu_r", vmin=0.5, vmax=1.5
        )
    for axis in column:
        axis.set(xticks=[], yticks=[])
for number, axis in enumerate(axes[1:, 0]):
    axis.set_ylabel(f"head {number}")
figure.colorbar(shown, ax=axes[1:], label="factor")
plt.show()

# %% [markdown]
# A part of each pattern is the same for all images: there the gate reads the
# *place*. The rest changes with the digit.
#
# ## Third patient: a language model
#
# A causal transformer with Keras' attention learns to predict the next
# character of Python's own source code, for a short while. Then it gets
# elementwise gates.

# %%
from keras_gating.experiments import (
    characters,
    next_character,
    retrofit_model,
)

steps = 2 if QUICK else 60
text = characters.Text()
with seeded(0):
    language = retrofit_model.build()
next_character.compile_model(language, 3e-3, steps)
language.run_eagerly = QUICK
next_character.train(language, text, 0, steps, retrofit_model.LENGTH)

gated_language = surgery.gate_attention(language)
windows, _ = characters.even_windows(text.validation, 64, 64)
before, after = (to_numpy(m(windows)) for m in (language, gated_language))
print(f"largest change of a logit: {np.abs(after - before).max():.1e}")

# %% [markdown]
# ## Does it pay?
#
# The full run of `keras-gating retrofit` has 3 seeds: 600 steps without gates
# (loss 2.430 ± 0.010 nats), then 300 more in seven ways, on the same batches.
# No gate came near 0: these are not the sparse gates of the large models that
# had them from birth.
#
# | arm | gates from 1, at the end | loss at the end, minus no gate |
# | --- | --- | --- |
# | zero kernel, as here | 0.049 ± 0.005 | −0.0036 [−0.0049, −0.0023] |
# | starts open, bias 4 | 0.002 ± 0.000 | −0.0002 [−0.0002, −0.0001] |
# | random kernel | 0.187 ± 0.012 | +0.0031 [−0.0002, +0.0064] |
# | 10 × the rate for gates | 0.237 ± 0.038 | −0.0115 [−0.0155, −0.0075] |
# | gates first, then all, 10 × | 0.234 ± 0.027 | +0.0098 [+0.0043, +0.0153] |
# | no gate, 10 × the rate elsewhere | | −0.0039 [−0.0079, +0.0000] |
#
# * At the learning rate of the rest the gates move little, and gain little:
#   0.004 nats.
# * **Give the gates a higher rate**: they move five times as far and gain three
#   times as much, more than the same rate gains without gates.
# * Do not open them by a large bias: the sigmoid is flat there. Do not start
#   from a random kernel: that changes what the model knows.
# * Training the gates alone first costs more than it brings, if the steps are
#   taken from the rest.
#
# All of it is about hundredths of a nat, with one small model and Adam.

# %% [markdown]
# ## A model from the shelf (in Colab)
#
# Backbones of `keras_hub` are functional models with blocks, so the same
# surgeon can gate them: BERT, RoBERTa, GPT-2, OPT, BART, CLIP, DINOv2 and
# others. Presets are downloads, so this cell runs in Colab only.

# %%
if "google.colab" in sys.modules:
    import keras_hub

    backbone = keras_hub.models.BertBackbone.from_preset("bert_tiny_en_uncased")
    gated_backbone = surgery.gate_attention(backbone)
    tokens = {
        "token_ids": np.array([[101, 7592, 2088, 102]]),
        "segment_ids": np.zeros((1, 4), "int32"),
        "padding_mask": np.ones((1, 4), "int32"),
    }
    before = backbone(tokens)["sequence_output"]
    after = gated_backbone(tokens)["sequence_output"]
    print(np.abs(to_numpy(after) - to_numpy(before)).max())
    for variable in diagnostics.gate_variables(gated_backbone):
        print(variable.path, tuple(variable.shape))
else:
    print("Open this notebook in Colab to gate BERT.")

# %% [markdown]
# ## What it does not show
#
# * *That your large model gains.* How far gates get depends on the optimizer,
#   the rate and the number of steps. Start with the same number of steps
#   without gates as a control.
# * *Every model.* Attention that is not Keras' own (T5, Llama, Gemma) and
#   models with a `call` of their own are refused, by name. The guide "Gating a
#   trained model" has the list.
#
# ## Exercise
#
# 1. The control for the convolutional network: make a clone
#    (`keras.models.clone_model`, then `set_weights`), train only its last layer
#    for as long, and compare with the gated one.
# 2. Gate the vision transformer at the values: `gate_site="value"`. Is the
#    largest change still zero? Why must it be?
# 3. Ask the surgeon for `gate_activation="tanh"` and read what he says.
