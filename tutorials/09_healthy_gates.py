# %% [markdown]
# [![Open In Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/keras-gating/keras-gating/blob/main/tutorials/09_healthy_gates.ipynb)
#
# # Healthy gates: how to start them, watch them and pay for them
#
# A gate is a number that multiplies. Near 0 or 1 it stops to learn; a stack of
# half-open gates lets nothing through; and its network costs more than its
# product. **How do you see that a gate is in trouble, and what helps?**

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
# ## Where a gate learns
#
# A gate learns through the *slope* of its activation. Where the slope is gone,
# the gradient is gone. Shaded: less than 1 % of the largest slope is left.

# %%
from keras_gating.experiments.saturation_slopes import (
    ACTIVATIONS,
    vanished,
    vanished_share,
)

to_numpy = keras.ops.convert_to_numpy
BLUE, ORANGE, GREEN, PURPLE = "#0072B2", "#E69F00", "#009E73", "#CC79A7"
by_name = {activation.name: activation for activation in ACTIVATIONS}
names = ("sigmoid", "tanh", "gelu", "silu")
z = np.linspace(-8, 8, 321, dtype="float32")

figure, axes = plt.subplots(
    1, 4, figsize=(10.5, 2.8), sharey=True, layout="constrained"
)
for axis, name in zip(axes, names):
    slope = by_name[name].slope(np.float64(z))
    axis.plot(z, to_numpy(keras.activations.get(name)(z)), color=BLUE)
    axis.plot(z, slope, color=ORANGE)
    axis.fill_between(
        z, -1.5, 2, where=vanished(by_name[name], z), color="0.85"
    )
    axis.set(title=by_name[name].title, xlabel="logit", ylim=(-1.2, 2))
axes[0].legend(["gate", "slope"], loc="upper left")
plt.show()

# %% [markdown]
# How much of a layer is in the shade? That depends on how far its logits
# spread. For normal logits the share is exact, nothing has to be trained:

# %%
spreads = np.geomspace(0.3, 30, 41)
figure, axis = plt.subplots(figsize=(6.5, 3.4), layout="constrained")
for name, colour in zip(names, (BLUE, GREEN, ORANGE, PURPLE)):
    shares = [100 * sum(vanished_share(by_name[name], s)) for s in spreads]
    axis.plot(spreads, shares, color=colour, label=by_name[name].title)
axis.set(xscale="log", xlabel="spread of the logits")
axis.set_ylabel("vanished slopes, %")
axis.set_xticks([0.3, 1, 3, 10, 30], [0.3, 1, 3, 10, 30])
axis.minorticks_off()
axis.legend()
plt.show()
for spread in (3.0, 10.0):
    row = {n: f"{sum(vanished_share(by_name[n], spread)):.1%}" for n in names}
    print(f"spread {spread:g}:", row)

# %% [markdown]
# It is often said that sigmoid gates saturate and that GELU-like gates do not.
# Look again: **up to a spread of 3, GELU has lost more slopes than the
# sigmoid**, because it is flat on its whole left side. Only at wide spreads
# both GELU and SiLU are ahead. What matters first is the spread: keep logits
# small.
#
# ## Watch a gate while it trains
#
# One hidden layer of gated units, $\mathrm{readout}(Wx \odot g(Vx))$, learns
# scikit-learn's digits. Its gate kernel $V$ starts at zero, at the usual size,
# or ten times as large. `GateMonitor` looks at the gates after each epoch.

# %%
from keras_gating import diagnostics
from keras_gating.experiments import saturation_model
from keras_gating.experiments.population import seeded

images = saturation_model.Images(seed=0)
EPOCHS = 1 if QUICK else 12
with seeded(0):
    model = saturation_model.build("sigmoid")
start = model.get_weights()
model.compile(
    keras.optimizers.Adam(3e-3),
    keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
    run_eagerly=QUICK,
)
histories, statistics, values = {}, {}, {}
for scale in (10,) if QUICK else (0, 1, 10):
    model.set_weights(start)
    saturation_model.scale_start(model, scale)
    monitor = diagnostics.GateMonitor(
        images.test[:200],
        batch_size=200,
        statistics=["share_low", "share_high"],
    )
    fitted = model.fit(
        images.train,
        images.train_labels,
        validation_data=(images.test, images.test_labels),
        batch_size=64,
        epochs=EPOCHS,
        verbose=0,
        callbacks=[monitor],
    )
    histories[scale] = fitted.history
    statistics[scale] = diagnostics.gate_statistics(
        model, images.test[:200], batch_size=200, low=0.01, high=0.99
    )
    with diagnostics.record_gates(model) as record:
        model(images.test[:200])
    values[scale] = record["gate"].values
print(list(fitted.history))

# %% [markdown]
# Everything that the monitor finds is in the history, like any metric. `low` is
# 0.01 and `high` 0.99 by default: beyond them less than 4 % of the sigmoid's
# slope is left.

# %%
figure, (left, right) = plt.subplots(
    1, 2, figsize=(10, 3.2), layout="constrained"
)
for (scale, history), colour in zip(histories.items(), (GREEN, BLUE, ORANGE)):
    low, high = (
        np.array(history[key])
        for key in sorted(k for k in history if k.startswith("gate/"))[::-1]
    )
    epochs = np.arange(1, len(low) + 1)
    label = f"{scale} × the usual start"
    left.plot(epochs, 100 * (low + high), ".-", color=colour, label=label)
    right.plot(
        epochs, 100 * np.array(history["val_accuracy"]), ".-", color=colour
    )
left.set(xlabel="epoch", ylabel="gates next to 0 or 1, %", ylim=(-3, 100))
right.set(xlabel="epoch", ylabel="test accuracy, %", ylim=(80, 100))
left.legend(loc="center")
plt.show()

# %% [markdown]
# Gates that start in the shade stay there: training hardly brings them back.
# `record_gates` keeps the values themselves, `gate_statistics` sums them up
# (and `plot_gates` draws them, for any model).

# %%
figure, axes = plt.subplots(
    1, len(values), figsize=(10, 2.6), squeeze=False, layout="constrained"
)
for axis, (scale, recorded) in zip(axes[0], values.items()):
    axis.hist(recorded.ravel(), bins=40, range=(0, 1), color=BLUE)
    axis.set(title=f"{scale} × the usual start", xlabel="gate", yticks=[])
axes[0, 0].set_ylabel("how many, after training")
plt.show()
for scale, numbers in statistics.items():
    chosen = ("mean", "spread", "share_low", "share_high", "entropy")
    print(scale, {key: round(numbers["gate"][key], 2) for key in chosen})

# %% [markdown]
# The full run of `keras-gating saturation` (10 seeds, 20 epochs, a cosine)
# tests the folklore with eight activations and a bilinear control. Test
# accuracy:
#
# | gate | 0 × | 1 × | 3 × | 10 × |
# | --- | --- | --- | --- | --- |
# | sigmoid | 96.8 ± 0.4 % | 96.7 ± 0.5 % | 96.1 ± 0.3 % | 94.7 ± 0.6 % |
# | tanh | 97.1 ± 0.4 % | 95.7 ± 0.7 % | 92.3 ± 0.8 % | 87.4 ± 1.0 % |
# | GELU | 96.9 ± 0.3 % | 96.3 ± 0.3 % | 93.3 ± 0.4 % | 87.5 ± 0.9 % |
# | SiLU | 96.9 ± 0.3 % | 96.4 ± 0.3 % | 93.4 ± 0.5 % | 87.4 ± 0.9 % |
# | bilinear | 96.7 ± 0.4 % | 95.5 ± 0.6 % | 90.6 ± 0.9 % | 83.1 ± 1.4 % |
#
# Half of the folklore is true: a sigmoid gate that starts ten times too wide
# loses 61 % of its slopes. The other half fails: with wide starts the
# saturating sigmoid is the *most* accurate of these, and the bilinear "gate",
# which cannot saturate, fares worst. A wide start hurts for other reasons too.
# The remedy is **the start, not the activation**: from zero no gate here is
# shown to differ from the sigmoid. (ReLU, not in this table, never trains from
# zero.) Kernels of gates start at zero in this package.
#
# ## A stack of gates
#
# A gate that starts at ½ halves what passes. One after another, $L$ of them
# leave $2^{-L}$. Here is what is left of a signal after each gate of a stack,
# nothing trained, for four ways to start, and with a residual sum (dashed):

# %%
from keras_gating.layers import Gate

DEPTH = 12
signal = np.random.default_rng(0).normal(size=(256, 16)).astype("float32")
starts = {
    "open (bias 3)": {"bias_initializer": keras.initializers.Constant(3.0)},
    "half open": {},
    "2σ: the identity": {"scale": 2.0},
    "closed (bias −3)": {"bias_initializer": keras.initializers.Constant(-3.0)},
}
curves = {}
for name, arguments in starts.items():
    x, sizes = signal, [1.0]
    for _ in range(DEPTH):
        x = to_numpy(Gate(**arguments)(x))
        sizes.append(x.std() / signal.std())
    curves[name] = sizes
for name in ("half open, x + gate(x)", "the same, normalized"):
    x, sizes = signal, [1.0]
    for _ in range(DEPTH):
        x = x + to_numpy(Gate()(x))
        if "normalized" in name:
            x = x / x.std()
        sizes.append(x.std() / signal.std())
    curves[name] = sizes

figure, axis = plt.subplots(figsize=(7.5, 3.6), layout="constrained")
colours = (BLUE, ORANGE, GREEN, PURPLE, ORANGE, "0.4")
for (name, sizes), colour in zip(curves.items(), colours):
    style = ".-" if name in starts else ".--"
    axis.plot(sizes, style, color=colour, label=name)
axis.set(yscale="log", xlabel="layer", ylabel="size of the signal")
figure.legend(loc="outside right upper", fontsize=9)
plt.show()

# %% [markdown]
# Half-open gates leave less than a thousandth after 12 layers. A residual sum
# alone makes the signal grow, by 1.5 a layer; normalization keeps it.
#
# Gradients on their way back are multiplied by the same numbers. Whether that
# breaks training is what `keras-gating depth` asks: stacks of gated
# self-attention learn a target that one layer can compute. Share of its
# variance explained, five seeds, 400 steps:
#
# | stack | 2 blocks | 6 blocks | 12 blocks | first / last gradient, 12 |
# | --- | --- | --- | --- | --- |
# | product, half open | 1.00 ± 0.00 | 1.00 ± 0.00 | 0.11 ± 0.29 | 2.6e-4 |
# | product, open | 0.99 ± 0.00 | 0.90 ± 0.27 | 0.98 ± 0.02 | 0.32 |
# | product, closed | 0.96 ± 0.03 | 0.00 ± 0.00 | 0.00 ± 0.00 | 9.2e-16 |
# | normalized, product | 0.99 ± 0.00 | 0.99 ± 0.00 | 0.84 ± 0.16 | 1.5 |
# | residual, not normalized | 0.99 ± 0.00 | 1.00 ± 0.00 | 1.00 ± 0.00 | 0.71 |
# | post-norm block, half open | 0.93 ± 0.01 | 0.95 ± 0.02 | 0.95 ± 0.03 | 1.2 |
#
# * Without a residual sum the start decides: 12 half-open layers hardly train,
#   12 open ones do.
# * With a residual sum every start trains at every depth. `GatedAttentionBlock`
#   has it built in, with normalization.
# * The normalization itself is not shown to be needed here: the sum without it
#   was the best at every depth.
#
# ## Dropout and decay: do gates overfit?
#
# `gate_dropout` drops values of the gate in training. Here is what it does to
# the gate of a layer: a fifth of the values are 0, the others larger by 1/0.8,
# so that the mean stays.

# %%
ones = np.ones((1, 10000), "float32")
gate = Gate(dropout=0.2, seed=0)
for training in (False, True):
    values, counts = np.unique(
        to_numpy(gate(ones, training=training)).round(4), return_counts=True
    )
    print(f"training={training}:", dict(zip(values.tolist(), counts.tolist())))

# %% [markdown]
# Does it help? In `keras-gating overfitting` an encoder sees 100 digits and is
# tested on 1697 others (10 seeds, 50 epochs):
#
# | encoder | test loss | test accuracy |
# | --- | --- | --- |
# | ungated | 0.89 ± 0.12 | 76.8 ± 2.6 % |
# | ungated, as many parameters | 0.84 ± 0.09 | 78.5 ± 2.1 % |
# | gated | 0.86 ± 0.13 | 77.2 ± 2.8 % |
# | gated, dropout 0.2 in the gate | 0.90 ± 0.13 | 77.3 ± 2.7 % |
# | gated, dropout 0.5 in the gate | 1.01 ± 0.15 | 76.5 ± 2.7 % |
# | gated, weight decay 1 of the gates | 0.86 ± 0.13 | 77.3 ± 2.8 % |
# | gated, weight decay 1 of all | 0.68 ± 0.08 | 79.8 ± 2.2 % |
#
# Gates are not shown to overfit more than other parameters, and dropout of the
# gate helps nothing here; strong dropout harms. Weight decay of *all* weights
# lowers the test loss, and does so without a gate too.
#
# ## What a gate costs
#
# The product is one multiplication a number. What costs is the network that
# makes the gate. `gate_granularity` and `gate_rank` set its size.

# %%
from keras_gating.layers import GatedAttention

costs = diagnostics.cost_table(
    {
        "no gate": GatedAttention(4, 16, use_gate=False),
        "headwise": GatedAttention(4, 16, gate_granularity="headwise"),
        "rank 8": GatedAttention(4, 16, gate_rank=8),
        "elementwise": GatedAttention(4, 16),
    },
    input_shape=(1, 64, 64),
    measure=False,
)
for name, ratio in costs.relative().items():
    print(
        f"{name:12}{costs[name].parameters:7,} parameters"
        f" (× {ratio['parameters']:.2f}),",
        f"{costs[name].flops / 1e6:.2f} million operations",
        f"(× {ratio['flops']:.2f})",
    )

# %% [markdown]
# With `measure=True` the table has times as well, on your own machine.
#
# ## A short list for your own model
#
# 1. Start kernels at zero (the default). Use `gate_scale=2.0` where the gate
#    should begin as the identity, for example in a stack without residual sums
#    or in a trained model.
# 2. Put a residual sum around the product.
# 3. Watch with `GateMonitor`; it warns when nine of ten values are next to 0 or
#    1. Then lower the learning rate, or normalize what the gate reads.
# 4. Begin with a headwise gate if parameters count.
# 5. Treat overfitting as without gates.
#
# ## What it does not show
#
# All of it is small: one hidden layer on digits, 12 blocks of width 16, a
# hundred images, and Adam, which divides by the size of the gradient. Plain
# gradient descent would feel vanished slopes more.
#
# ## Exercise
#
# 1. Train with `saturation_model.build("silu")` from 10 × the usual start.
#    Which keys does the monitor log now, and why not `share_low`?
# 2. Give `GateMonitor` the arguments `saturation=0.5` and `action="stop"` and
#    start at 10 ×. When does training end?
# 3. In the stack, start the gates at ½ and use `scale=2.0` in every second one.
#    What is left after 12 layers? Compute it first.
