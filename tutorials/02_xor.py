# %% [markdown]
# [![Open In Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/keras-gating/keras-gating/blob/main/tutorials/02_xor.ipynb)
#
# # XOR: what adding cannot do
#
# **Can attention tell whether two bits differ?**
#
# It is the oldest hard question put to neural networks, and still a good one:
# four examples, and no sum of the two bits answers it. We look at the four
# points, solve the puzzle with one gate by hand, and then let networks try,
# with and without gates, multiplied and added.

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
# ## Four points
#
# Two bits go in. The answer is 1 when they differ.

# %%
from keras_gating.experiments.xor import INPUTS, TARGETS

BLUE, ORANGE = "#0072B2", "#E69F00"


def draw_points(axis):
    """The four examples; filled in orange where the answer is 1."""
    for (first, second), answer in zip(INPUTS, TARGETS):
        axis.scatter(
            first,
            second,
            s=160,
            color=ORANGE if answer else BLUE,
            edgecolor="black",
            zorder=3,
        )
    axis.set(xlabel="first bit", ylabel="second bit", aspect="equal")
    axis.set(xlim=(-0.5, 1.5), ylim=(-0.5, 1.5))


figure, axis = plt.subplots(figsize=(4, 4))
draw_points(axis)
for through, slope in (((0.5, 0.0), -1), ((1.0, 0.5), -1), ((0.0, 0.6), 0.1)):
    axis.axline(through, slope=slope, color="0.6", linestyle="--")
axis.set_title("each line leaves a point on the wrong side", fontsize=10)
plt.show()

# %% [markdown]
# Try a line of your own: one of the four always ends up on the wrong side. The
# best straight answer (an affine function, fitted by least squares) gives up
# and says ½ to everything:

# %%
columns = np.column_stack([INPUTS, np.ones(4)])
weights, *_ = np.linalg.lstsq(columns, TARGETS, rcond=None)
answers = columns @ weights
for bits, target, answer in zip(INPUTS.astype(int), TARGETS, answers):
    print(f"{bits}: should be {target:.0f}, best straight answer {answer:.2f}")
print(f"mean squared error {np.mean((answers - TARGETS) ** 2):.2f}")

# %% [markdown]
# ## Why attention with fixed weights is stuck as well
#
# Turn each bit into a token and let attention average the two tokens. The
# average is a sum of something that depends on the first bit and something that
# depends on the second one. Whatever the weights of the network,
#
# $$f(0,0) + f(1,1) = f(0,1) + f(1,0),$$
#
# and XOR would need $0 + 0 = 1 + 1$.
#
# `BitReader` is the little network of this experiment: two tokens of size 8,
# one query, one `GatedAttention` head, a linear readout. The arm called
# *affine* has no gate, and its attention weights are held at ½ and ½. Draw it
# at random a few times and look at the two sums:

# %%
from keras_gating.experiments.xor_arms import BitReader, arms_by_name

(affine,) = arms_by_name(["affine"])
for _ in range(4):
    network = BitReader(affine)
    network.build()
    f00, f01, f10, f11 = keras.ops.convert_to_numpy(network(INPUTS))
    print(f"{f00 + f11:+.4f} = {f01 + f10:+.4f}")

# %% [markdown]
# ## One product is enough
#
# Now a gate. A gate $g$ is a number between 0 and 1, computed by a sigmoid, and
# it *multiplies*. Let it read the first bit only:
#
# * $g$ open when the first bit is 0: let the second bit $b$ through,
# * $1 - g$ open when the first bit is 1: let $1 - b$ through.
#
# In words: *if the first bit is 0, answer the second; else answer its
# opposite.* That is XOR, from one gate that reads one bit, and no part of it
# knows both.

# %%
line = np.linspace(-0.5, 1.5, 81)
first, second = np.meshgrid(line, line, indexing="ij")
gate = 1.0 / (1.0 + np.exp(12.0 * (first - 0.5)))
solution = gate * second + (1.0 - gate) * (1.0 - second)

figure, axes = plt.subplots(1, 3, figsize=(10.5, 3.0), layout="constrained")
for axis, values, title in zip(
    axes,
    (second, gate, solution),
    ("value: the second bit", "gate: reads the first bit", "gated: XOR"),
):
    image = axis.imshow(
        values.T,
        origin="lower",
        extent=(-0.5, 1.5, -0.5, 1.5),
        cmap="PuOr_r",
        vmin=-0.5,
        vmax=1.5,
    )
    axis.contour(first, second, values, levels=[0.5], colors="black")
    draw_points(axis)
    axis.set_title(title)
figure.colorbar(image, ax=axes, label="black line: ½")
plt.show()

# %% [markdown]
# The black line marks ½. For value and gate it is straight. For their product
# it is a cross, and each of the four points has a corner of its own.
#
# ## Can training find it?
#
# We train several *arms* of the same network, from many random starts. A run
# has *solved* XOR when all four answers are within ¼ of their targets.
#
# What makes the comparison fair is the choice of arms. A gate that reads both
# bits could compute XOR inside the gate, so there are gates that read **one**
# bit. And next to each product there is an **additive** twin: same inputs, same
# number of weights, a nonlinear activation (SiLU), but a sum.

# %%
from keras_gating.experiments import xor

ARMS = [
    "affine",
    "softmax",
    "elementwise_both",
    "additive_both",
    "elementwise_one",
    "additive_one",
]
if QUICK:
    ARMS = ["elementwise_one"]
results = xor.run(
    seeds=2 if QUICK else 20, arms=ARMS, steps=20 if QUICK else 600
)
for arm in results.measurements["arms"].values():
    low, high = 100 * arm["share_low"], 100 * arm["share_high"]
    print(
        f"{arm['title']:38} {arm['solved']:2} of {arm['trials']} "
        f"({low:.0f} to {high:.0f} % with 95 % confidence)"
    )

# %% [markdown]
# What did these networks learn? One run of each arm, seen between the four
# points:

# %%
surfaces = list({s["arm"]: s for s in results.arrays["surfaces"]}.values())
columns = min(3, len(surfaces))
rows = -(-len(surfaces) // columns)
figure, axes = plt.subplots(
    rows, columns, figsize=(10.5, 3.3 * rows), layout="constrained"
)
for axis, surface in zip(np.ravel(axes), surfaces):
    image = axis.imshow(
        surface["values"].T,
        origin="lower",
        extent=(-0.5, 1.5, -0.5, 1.5),
        cmap="PuOr_r",
        vmin=-0.5,
        vmax=1.5,
    )
    line = np.linspace(-0.5, 1.5, len(surface["values"]))
    if np.ptp(surface["values"]) > 1e-3:
        axis.contour(line, line, surface["values"].T, [0.5], colors="black")
    draw_points(axis)
    solved = "solved" if surface["solved"] else "not solved"
    axis.set_title(f"{surface['title']}\n{solved}", fontsize=10)
figure.colorbar(image, ax=axes, label="answer of the network (black line: ½)")
plt.show()

# %% [markdown]
# ## What came out
#
# Twenty starts are few. The same experiment in full (`keras-gating xor`, JAX,
# 200 starts of 1000 steps) gave:
#
# | arm | solved | 95 % interval |
# | --- | --- | --- |
# | affine | 0 of 200 | 0 – 1.9 % |
# | softmax, query = mean | 70 of 200 | 28.7 – 41.8 % |
# | affine, elementwise gate on both bits | 200 of 200 | 98.1 – 100 % |
# | affine, additive SiLU on both bits | 200 of 200 | 98.1 – 100 % |
# | affine, headwise gate on one bit | 0 of 200 | 0 – 1.9 % |
# | affine, elementwise gate on one bit | 200 of 200 | 98.1 – 100 % |
# | affine, additive SiLU on one bit | 0 of 200 | 0 – 1.9 % |
#
# **From one bit, multiplying solves XOR and adding cannot.** The last two rows
# read the same bit through the same number of weights.
#
# ## What it does not show
#
# * *That a gate is needed.* A nonlinearity that reads both bits is enough, and
#   it may be added: see the row with the additive SiLU.
# * *That attention without a gate always fails.* When the query depends on the
#   bits, softmax attention is no affine function, and in a third of the starts
#   it finds XOR.
# * *That every gate will do.* A headwise gate has one value for all features.
#   One positive number cannot turn a value into its opposite, so with one bit
#   to read it never succeeds. The elementwise gate opens some features and
#   closes others.
# * *Anything about large models.* XOR takes products apart from sums. Whether a
#   task needs products is another question.
#
# ## Exercise
#
# 1. Add `"headwise_one"` and `"headwise_both"` to `ARMS` and predict both
#    results before you run them.
# 2. Which identity rules out the arm `"softmax_constant_query"`? The experiment
#    knows:

# %%
for arm in arms_by_name(["additive_one", "headwise_one"]):
    print(f"{arm.title}: {arm.obstacle}")
