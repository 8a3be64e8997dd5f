# %% [markdown]
# [![Open In Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/keras-gating/keras-gating/blob/main/tutorials/06_glu_family.ipynb)
#
# # 6 · The GLU family: when does a product fit better?
#
# Most layers of a network add. A *gated linear unit* multiplies two linear maps
# of its input, and Llama, Gemma and T5 are built with such layers. **What can a
# product do that a sum cannot, and does it show on real text?**

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
# ## One unit, seen from above
#
# Take a layer with a single unit that reads two numbers, a and b. What shapes
# can it make? Here are six units, all with weights of 1. In the upper row one
# line through the plane decides everything. In the lower row two lines do: one
# for the value, one for the gate.

# %%
from keras_gating.layers import BilinearGLU, ReGLU, SwiGLU

to_numpy = keras.ops.convert_to_numpy
line = np.linspace(-2, 2, 64, dtype="float32")
plane = np.stack(np.meshgrid(line, line), axis=-1)  # (64, 64, 2)
LEVELS = np.linspace(-4.25, 4.25, 18)  # the middle band is 0

ones = np.array([[1.0], [1.0]], "float32")
value_reads_a = np.array([[1.0], [0.0]], "float32")
gate_reads_b = np.array([[0.0], [1.0]], "float32")


def plain(activation):
    layer = keras.layers.Dense(1, activation, use_bias=False)
    layer.build((None, None, 2))
    layer.set_weights([ones])
    return layer


def gated(kind):
    layer = kind(1, use_bias=False)
    layer.build((None, None, 2))
    # One kernel holds both maps: slice 0 is the value, slice 1 the gate.
    layer.set_weights([np.stack([value_reads_a, gate_reads_b], axis=1)])
    return layer


units = {
    "ReLU(a + b)": plain("relu"),
    "GELU(a + b)": plain("gelu"),
    "(a + b)², no gate": plain(keras.ops.square),
    "bilinear: a · b": gated(BilinearGLU),
    "ReGLU: a · ReLU(b)": gated(ReGLU),
    "SwiGLU: a · SiLU(b)": gated(SwiGLU),
}
figure, axes = plt.subplots(2, 3, figsize=(9, 5.4), layout="constrained")
for axis, (title, layer) in zip(axes.ravel(), units.items()):
    surface = to_numpy(layer(plane))[..., 0]
    shown = axis.contourf(
        line, line, surface, LEVELS, cmap="PuOr", extend="both"
    )
    axis.set(title=title, xticks=[-2, 0, 2], yticks=[-2, 0, 2], xlabel="a")
    axis.set_ylabel("b", rotation=0)
figure.colorbar(
    shown, ax=axes, label="output of the unit", ticks=[-4, -2, 0, 2, 4]
)
plt.show()

# %% [markdown]
# Look at "ReGLU". To the value a it adds a *condition*: a counts, but only
# where b is positive. "Bilinear" has no activation at all and is still not
# linear: it is a saddle, the product itself.
#
# The formulas, with $\odot$ for the product of two vectors, number by number:
#
# | layer | hidden features |
# | --- | --- |
# | plain | $\mathrm{act}(xW + b)$ |
# | gated | $(xW + b) \odot \mathrm{act}(xV + c)$ |
#
# and `act` gives the name: sigmoid is `GLU`, identity `BilinearGLU`, ReLU
# `ReGLU`, GELU `GEGLU`, SiLU `SwiGLU`.

# %% [markdown]
# ## A contest with equal parameters
#
# Two matrices cost twice as much as one. So a fair contest gives the plain
# layer more units: 7 against 4, and both networks have 29 parameters. They see
# a and b from the square $[-1, 1]^2$ and learn three targets:
#
# * the product a · b;
# * the condition "a > 0 **and** b > 0";
# * a radio signal, (1 + envelope) · carrier, with a the envelope and b the
#   carrier.
#
# Two controls keep us honest. *GELU* and *ReLU* are the usual layers without a
# gate. And a *square* has no gate either, but two squares make a product: $a b
# = \frac14 (a + b)^2 - \frac14 (a - b)^2$.
#
# `Population` trains many small networks side by side, here three seeds of each
# of the three targets, as if they were one model.

# %%
from keras_gating.experiments import products, products_model
from keras_gating.experiments.population import (
    Population,
    draw_weights,
    summed_squares,
)

SEEDS = range(1 if QUICK else 3)
STEPS = 3 if QUICK else 1000
TASKS = products_model.TASKS
data = products.Data(STEPS)  # new examples in every step


def train(arm, units):
    def build():
        network = products_model.Network(arm, units)
        network.build()
        return network

    networks = Population(build(), draw_weights(build, SEEDS) * len(TASKS))
    schedule = keras.optimizers.schedules.CosineDecay(0.01, STEPS)
    networks.compile(
        keras.optimizers.Adam(schedule),
        summed_squares,
        jit_compile=False if QUICK else "auto",
    )
    networks.fit(
        data.inputs,
        products.targets(data.inputs, len(SEEDS)),
        batch_size=products.BATCH,
        shuffle=False,
        verbose=0,
    )
    return networks


names = ("bilinear", "swiglu", "square", "gelu", "relu")
if QUICK:
    names = ("bilinear",)
arms = products_model.arms_by_name(names)
networks = {}
for arm in arms:
    units = products_model.units_within(arm, 29)
    networks[arm.name] = train(arm, units)
    count = products_model.parameters(arm, units)
    print(f"{arm.title:16} {units} units, {count} parameters")

# %% [markdown]
# The error is relative: 1 is what a constant achieves. We measure it twice, on
# the square of training and on one that is twice as wide, where nobody has been
# before.


# %%
def answers(networks, points):
    """Outputs by task, each (points, seeds)."""
    outputs = networks.predict(points, batch_size=512, verbose=0)
    return dict(zip(TASKS, np.split(outputs, len(TASKS), axis=-1)))


def errors(networks, task, points):
    _, target = TASKS[task]
    return products.relative_error(
        answers(networks, points)[task], target(*points.T)
    )


BLUE, ORANGE = "#0072B2", "#E69F00"
figure, axes = plt.subplots(
    1, 3, figsize=(10, 3.6), sharex=True, layout="constrained"
)
for axis, (task, (title, _)) in zip(axes, TASKS.items()):
    for row, arm in enumerate(arms):
        for part, marker in (("training", "o"), ("twice", "s")):
            error = errors(networks[arm.name], task, data.tests[part])
            axis.plot(
                np.maximum(error, 1e-6),
                np.full(len(error), -row),
                marker,
                color=BLUE if arm.gate else ORANGE,
                fillstyle="full" if part == "training" else "none",
                label=f"{part} range" if row == 0 else None,
            )
    axis.axvline(1.0, color="0.6", linewidth=1, linestyle="--")
    axis.set(title=title, xscale="log", xlim=(5e-7, 20))
    axis.set_yticks(-np.arange(len(arms)), [arm.title for arm in arms])
    axis.grid(axis="x", alpha=0.3)
axes[1].set_xlabel("relative error, a dot for each seed (dashed: a constant)")
for axis in axes[1:]:
    axis.set_yticklabels([])
axes[0].legend(fontsize=8, loc="upper right")
plt.show()

# %% [markdown]
# Blue has a gate, orange has none. A picture says why the product is easy for
# one and hard for the other. The dashed square is where the networks trained.

# %%
shown = [x for x in ("bilinear", "swiglu", "gelu", "relu") if x in names]
figure, axes = plt.subplots(
    1,
    1 + len(shown),
    figsize=(2.2 * (1 + len(shown)), 2.7),
    sharey=True,
    layout="constrained",
)
points = plane.reshape(-1, 2)
surfaces = {"target: a · b": TASKS["product"][1](*points.T)}
for name in shown:
    (arm,) = products_model.arms_by_name([name])
    surfaces[arm.title] = answers(networks[name], points)["product"][:, 0]
for axis, (title, surface) in zip(axes, surfaces.items()):
    axis.contourf(
        line,
        line,
        surface.reshape(64, 64),
        LEVELS,
        cmap="PuOr",
        extend="both",
    )
    axis.add_patch(plt.Rectangle((-1, -1), 2, 2, fill=False, linestyle="--"))
    axis.set(title=title, xlabel="a", aspect="equal")
axes[0].set_ylabel("b", rotation=0)
plt.show()

# %% [markdown]
# ## New frequencies
#
# A sum of waves has the frequencies that went in. A product has others: this is
# how AM radio works. An envelope of 3 cycles a second times a carrier of 20
# gives lines at 17, 20 and 23. Does a network that multiplies find them, and
# only them?

# %%
shown = [x for x in ("bilinear", "swiglu", "relu") if x in names]
figure, axes = plt.subplot_mosaic(
    [["signal", name] for name in shown],
    figsize=(10, 3.8),
    width_ratios=(1, 1.5),
    layout="constrained",
)
axis = axes["signal"]
time = np.arange(products.SAMPLES) / products.SAMPLES
envelope, carrier = products.signal().T
axis.plot(time, products_model.modulated(envelope, carrier), linewidth=1)
axis.plot(time, 1 + envelope, color="0.4", linestyle="--", label="1 + envelope")
axis.set(xlabel="seconds", title="the signal", xlim=(0, 1))
axis.legend(loc="lower left")
for name in shown:
    (arm,) = products_model.arms_by_name([name])
    output = answers(networks[name], products.signal())["modulated"][:, 0]
    amplitude = np.maximum(products.amplitudes(output), 1e-5)
    frequencies = np.arange(81)
    wanted = np.isin(frequencies, products.LINES)
    for chosen, colour in ((wanted, BLUE), (~wanted, ORANGE)):
        axes[name].vlines(
            frequencies[chosen], 1e-5, amplitude[:81][chosen], color=colour
        )
    axes[name].set(
        yscale="log", ylim=(1e-5, 3), xlim=(-1, 81), ylabel=arm.title
    )
    axes[name].set_yticks([1e-4, 1e-2, 1])
axes[shown[0]].set_title("amplitudes of the outputs; blue: lines of the target")
axes[shown[-1]].set_xlabel("frequency, cycles a second")
plt.show()

# %% [markdown]
# The bilinear layer makes the two side lines and nothing else. ReLU's folds put
# power on frequencies that are in neither the inputs nor the target. SwiGLU is
# in between: its gate is curved, so it makes others too, but weaker ones.
#
# ## What the full run says
#
# These are three seeds. The full run (`keras-gating products`) has 10 seeds and
# 3000 steps. Relative errors at 29 parameters, one hidden layer (geometric
# means, on the training range / on twice the range):
#
# | hidden layer | a · b | a > 0 and b > 0 | signal |
# | --- | --- | --- | --- |
# | BilinearGLU | rounding / rounding | 0.56 / 1.6 | rounding / rounding |
# | SwiGLU | 0.013 / 0.076 | 0.43 / 3.1 | 0.0065 / 0.065 |
# | square, no gate | rounding / rounding | 0.56 / 1.6 | rounding / rounding |
# | GELU, no gate | 0.050 / 0.30 | 0.42 / 0.74 | 0.030 / 0.26 |
# | ReLU, no gate | 0.086 / 0.39 | 0.31 / 0.60 | 0.058 / 0.32 |
#
# * **True products** are easier with gates than with GELU or ReLU. But a square
#   does as well as the bilinear gate, and it has no gate. What helps is a
#   product, however it is made.
# * **Conditions are not.** For "a > 0 and b > 0" plain ReLU is the best, at
#   every size of the full run. And outside of the training range the gated
#   layers are worse than a constant.

# %% [markdown]
# ## And on real text?
#
# In a transformer the gated layer takes the place of the feed-forward layer. It
# has three matrices where the plain one has two, so it gets two thirds of the
# width. That is one argument:

# %%
from keras_gating.layers import FeedForward, GatedFeedForward

x = np.zeros((1, 64, 48), "float32")
for layer in (
    FeedForward(192, activation="relu"),
    GatedFeedForward(192, variant="swiglu", width_rule="two_thirds"),
):
    layer(x)
    width = getattr(layer, "width", layer.hidden_dim)
    print(f"{type(layer).__name__:16} width {width}", layer.count_params())

# %% [markdown]
# A small test on real text: the source code of Python's standard library, which
# is on every machine that runs Python. A network reads 8 characters and guesses
# the next one. Its feed-forward layer is plain or gated, with equal parameters;
# two seeds each, and both layers of a seed see the same text.

# %%
from keras_gating.experiments import characters
from keras_gating.experiments.population import seeded
from keras_gating.experiments.training import fit_in_one_epoch, restart

READ, BATCH = 8, 128
steps = 2 if QUICK else 400
text = characters.Text()
rng = np.random.default_rng(1)
windows = characters.random_windows(text.training, rng, steps * BATCH, READ)
held_out = characters.even_windows(text.validation, 4096, READ)


def guesser(feed_forward):
    layers = keras.layers
    inputs = keras.Input((READ,), dtype="int32")
    x = layers.Embedding(characters.VOCABULARY, 16)(inputs)
    x = layers.Dense(64)(layers.Flatten()(x))
    y = layers.LayerNormalization()(x)
    x = layers.Add()([x, feed_forward()(y)])
    x = layers.LayerNormalization()(x)
    return keras.Model(inputs, layers.Dense(characters.VOCABULARY)(x))


def gated_layer(variant):
    return GatedFeedForward(192, variant=variant, width_rule="two_thirds")


kinds = {
    "ReLU": lambda: FeedForward(192, activation="relu"),
    "Bilinear": lambda: gated_layer("bilinear"),
    "SwiGLU": lambda: gated_layer("swiglu"),
}
losses = {}
for title, feed_forward in list(kinds.items())[: 1 if QUICK else None]:
    model = guesser(feed_forward)
    schedule = keras.optimizers.schedules.CosineDecay(3e-3, steps)
    model.compile(
        keras.optimizers.Adam(schedule),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        run_eagerly=QUICK,
    )
    losses[title] = []
    for seed in range(1 if QUICK else 2):
        with seeded(seed):
            restart(model, guesser(feed_forward))  # without compiling again
        fit_in_one_epoch(model, windows[0], windows[1][:, -1], BATCH)
        losses[title].append(
            model.evaluate(
                held_out[0], held_out[1][:, -1], batch_size=4096, verbose=0
            )
        )
    print(
        f"{title:9}{model.count_params():7,} parameters, loss on other files:",
        *(f"{loss:.3f}" for loss in losses[title]),
    )

# %% [markdown]
# Two seeds and a tiny network make no result, whichever is ahead: the two seeds
# of one layer differ about as much as two layers do. The experiment
# `keras-gating feedforward` does it with care: a small transformer, 5 seeds,
# 1000 steps, eight layers with 68,641 parameters in every model. It took 29
# minutes, so we draw what it found, beside the published differences (a
# T5-base, trained for 524k steps; Shazeer 2020). Left of 0 is better than ReLU.

# %%
# Minus ReLU, in nats: estimate, 95 % interval, published.
found = {
    "GELU": (0.003, -0.019, 0.025, 0.002),
    "Swish": (0.044, 0.012, 0.075, 0.006),
    "GLU": (0.040, -0.006, 0.086, -0.014),
    "Bilinear": (-0.016, -0.058, 0.026, -0.029),
    "ReGLU": (-0.004, -0.066, 0.058, -0.032),
    "GEGLU": (0.003, -0.061, 0.066, -0.044),
    "SwiGLU": (0.008, -0.054, 0.071, -0.041),
}
estimate, low, high, published = np.array(list(found.values())).T
rows = -np.arange(len(found))
figure, axis = plt.subplots(figsize=(7.5, 3.4), layout="constrained")
axis.axvline(0.0, color="0.5", linewidth=1)
axis.errorbar(
    estimate,
    rows,
    xerr=[estimate - low, high - estimate],
    fmt="o",
    color=BLUE,
    capsize=3,
    label="here: small model, 1000 steps, 5 seeds",
)
axis.plot(published, rows, "D", color=ORANGE, label="published: T5-base")
axis.set_yticks(rows, list(found))
axis.set_xlabel("loss minus that of ReLU, nats (left is better)")
figure.legend(loc="outside upper center", ncols=2)
plt.show()

# %% [markdown]
# ## What came out, and what it does not show
#
# * On this small model **no gated layer is shown to beat ReLU**. Every interval
#   of a gated layer contains 0.
# * That is not "gates do not help". The intervals are wide: they contain the
#   published gains of all gated layers but GLU as well. The published model is
#   thousands of times as large.
# * The published gains are small themselves, 0.01 to 0.04 nats. They come for
#   the same number of parameters, and that is why large models take them.
#
# **Which one to take?** `GatedFeedForward` with its default, `"swiglu"`, is
# what most published models have; `"geglu"` is as good in the published table.
#
# ## Exercise
#
# 1. How few parameters does a · b need? Call `train(arm, 1)` with the bilinear
#    arm, and with the square. One bilinear unit is enough. How many squares
#    are?
# 2. Add a target of your own to `TASKS` before training, say `"ratio": ("a / (2
#    + b)", lambda a, b: a / (2 + b))`. Which layer fits it best, and which one
#    outside of the training range?
# 3. Take off `width_rule`. By how much does the gated layer grow?
