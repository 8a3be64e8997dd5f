# %% [markdown]
# [![Open In Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/keras-gating/keras-gating/blob/main/tutorials/04_gated_attention_and_curvature.ipynb)
#
# # Gated attention and curvature
#
# **Do gates bend the space of representations, and does bending help?**
#
# The short answers: a gate bends what would be flat; many tokens bend without a
# gate; and accuracy goes along with curvature a little, and can be had without.
# This tutorial shows the pictures behind each half-sentence. It uses the
# curvature $K$ of tutorial 03: the rolled sheet has 0, the sphere more, the
# saddle less.

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
# ## The map
#
# One head of attention to fixed tokens. The query $x$ has two coordinates, so
# all queries form a flat square, and attention carries the square to some
# surface in the space of contexts. With keys $K$, values $V$ and gate weights
# $G$, all random:
#
# $$f(x) = \mathrm{softmax}(x K + b)\, V \;\odot\; \sigma(x G + g).$$
#
# Leave out the second factor and it is attention without a gate. Here are the
# surfaces, drawn in their first three principal directions. Colour is
# curvature.

# %%
from keras_gating import geometry
from keras_gating.experiments.curvature_maps import HEADS, RandomHead
from keras_gating.experiments.figures import draw_surface, principal
from keras_gating.experiments.precision import float_type

to_numpy = keras.ops.convert_to_numpy
SQUARE = ((-1.5, 1.5), (-1.5, 1.5))
kinds = {head.name: head for head in HEADS}


def random_map(name, seed):
    """A random attention map of one kind, in float64."""
    layer = RandomHead(kinds[name], dtype=float_type())
    layer.build()
    layer.draw(seed)
    return layer


def draw_image(axis, points, curvature, limit=3.0):
    """A surface in its first three principal directions."""
    flat = points.reshape(-1, points.shape[-1])
    drawn, size = principal(flat, flat)
    # Small surfaces are curved more, so K is taken for the size.
    colours = np.clip(curvature * size**2, -limit, limit)
    shape = points.shape[:2]
    made = draw_surface(axis, drawn.reshape(*shape, 3), colours, limit)
    axis.view_init(45, -60)
    return made


line = np.linspace(-1.5, 1.5, 9 if QUICK else 37)
grid = np.stack(np.meshgrid(line, line, indexing="ij"), axis=-1)
SHOWN = ("tokens_3", "constant", "elementwise", "tokens_8")
if QUICK:
    SHOWN = ("elementwise",)
maps = {name: random_map(name, seed=3) for name in SHOWN}
figure = plt.figure(figsize=(11, 3.4), layout="constrained")
for place, (name, layer) in enumerate(maps.items()):
    x = grid.reshape(-1, 2)
    image = to_numpy(layer(x)).reshape(*grid.shape[:2], -1)
    curvature = to_numpy(geometry.gaussian_curvature(layer, x))
    axis = figure.add_subplot(1, 4, place + 1, projection="3d")
    colours = draw_image(axis, image, curvature.reshape(grid.shape[:2]))
    axis.set_title(kinds[name].title, fontsize=10)
figure.colorbar(
    colours, ax=figure.axes, label="K · size² (clipped)", shrink=0.7
)
plt.show()

# %% [markdown]
# From the left:
#
# * **3 tokens.** A flat piece of the triangle of the three values. Tutorial 01
#   said why: a mean of three points never leaves their plane.
# * **A constant gate**, which does not read the query: another flat piece. It
#   stretches the plane and does not bend it.
# * **A gate that reads the query**: bent.
# * **8 tokens, no gate at all**: bent as well!
#
# The last one is the reason for caution. "Attention is flat and gates make it
# curved" is true for few tokens only. Eight values span seven dimensions, and a
# surface has room to bend in there. The rule:
#
# > Attention without a gate is flat exactly when the values span no more
# > dimensions > than the query has: in general, when heads × (tokens − 1) is 2
# > for a square of > queries.
#
# The total curvature $\int |K|\,dA$ of each, for a few random maps:

# %%
SEEDS = 1 if QUICK else 10
for name, layer in maps.items():
    totals = []
    for seed in range(SEEDS):
        layer.draw(seed)
        total, dropped = geometry.total_curvature(
            layer, SQUARE, 8 if QUICK else 24, absolute=True
        )
        totals.append(total)
    print(f"{kinds[name].title:27} median ∫|K| dA = {np.median(totals):.2g}")

# %% [markdown]
# The full run (`keras-gating curvature`, JAX, float64, 100 maps of each kind)
# has more kinds:
#
# | random attention, one head unless said | median ∫\|K\| dA |
# | --- | --- |
# | 3 tokens | flat |
# | 3 tokens, constant gate | flat |
# | 8 tokens, D = 2 | flat |
# | 8 tokens, values of rank 2 | flat |
# | 4 tokens, D = 3 | 0.23 |
# | 2 heads of 3 tokens | 0.72 |
# | 8 tokens | 1.38 |
# | 3 tokens, headwise gate | 0.43 |
# | 3 tokens, elementwise gate | 1.53 |
# | 3 tokens, additive SiLU | 0.54 |
#
# *Flat* means below $10^{-24}$. Look at the last row as well: *adding* a
# nonlinear function of the query bends too. Curvature is no privilege of
# multiplication.
#
# ## Does it help?
#
# Now train. Two tasks in the square: which side of a straight line a point is
# on, and whether it is inside a circle. Three arms:
#
# * 3 tokens without a gate, which must stay flat,
# * 3 tokens with an elementwise gate,
# * a control: 24 tokens without a gate and only **two** features. It cannot
#   bend either, since the plane has no room to bend in; but it is an able
#   network.

# %%
from keras_gating.experiments import curvature

ARMS = ["ungated", "elementwise", "planar_24"]
results = curvature.run(
    quick=True,
    seeds=2,
    parts=["training"],
    tokens=[3],
    arms=ARMS[1:2] if QUICK else ARMS,
    tasks=["circle"] if QUICK else ["linear", "circle"],
    steps=20 if QUICK else 1000,
)
training = results.measurements["training"]
for arm in training["arms"].values():
    for task, entry in arm["tasks"].items():
        accuracy = np.mean(entry["accuracies"])
        total = entry["curvature"]["median"]
        print(f"{arm['title']:24} {task:7} {accuracy:6.1%} right, ", end="")
        print(f"∫|K| dA = {total:.2g}")

# %% [markdown]
# The images of the square under the first two, trained on the circle. Beside
# each, the two classes, seen along the straight cut through the surface that
# tells them apart best (by least squares): the cut is the dashed line.


# %%
def side_of_cut(points, labels):
    """Which side of the best cut points are on: below or above 0."""
    columns = np.column_stack([points, np.ones(len(points))])
    weights, *_ = np.linalg.lstsq(columns, 2.0 * labels - 1.0, rcond=1e-6)
    return columns @ weights


pictures = [p for p in results.arrays["pictures"] if p["task"] == "circle"]
figure = plt.figure(figsize=(9.5, 7), layout="constrained")
for row, picture in enumerate(pictures):
    axis = figure.add_subplot(2, 2, 2 * row + 1, projection="3d")
    colours = draw_image(axis, picture["after"], picture["curvature"])
    axis.view_init(60, -60)
    axis.set_title(picture["title"])
    axis = figure.add_subplot(2, 2, 2 * row + 2)
    points, labels = picture["points_after"], picture["labels"]
    side = side_of_cut(points, labels)
    along = principal(points, points)[0][:, 0]
    for label, colour in ((0, "#0072B2"), (1, "#D55E00")):
        own = labels == label
        name = "inside" if label else "outside"
        axis.scatter(side[own], along[own], s=9, color=colour, label=name)
    axis.axvline(0.0, color="black", linestyle="--")
    right = np.mean((side > 0.0) == (labels > 0.5))
    axis.set_title(f"this cut has {right:.0%} right")
    axis.set(xticks=[], yticks=[], xlabel="across the cut")
figure.legend(
    *axis.get_legend_handles_labels(), loc="outside lower center", ncols=2
)
plt.show()

# %% [markdown]
# On top, the network without a gate: a flat piece of a plane, and inside and
# outside of the circle overlap whatever the cut. Below, the gate has folded the
# sheet so that one cut takes the inside off.
#
# A beautiful story, and the third arm spoils it: flat by construction, and
# nearly as accurate as the gate. The network with 3 tokens does not fail
# *because* it is flat; three exponentials simply cannot bound a region.
#
# ## What came out in full
#
# `keras-gating curvature` (JAX, 10 seeds, 20 arms, 8 tasks, 1000 or 2000 steps,
# nothing tuned). Test accuracy, and in brackets the median of $\int |K|\,dA$:
#
# | task | 3 tokens, no gate | 3, elementwise gate | 8, no gate | 8, elementwise gate | 24, D = 2, no gate |
# | --- | --- | --- | --- | --- | --- |
# | linear | 99.7 % (flat) | 99.8 % (0.68) | 99.6 % (0.47) | 99.6 % (2.5) | 99.6 % (flat) |
# | circle | 75.2 % (flat) | 97.9 % (6.7) | 96.8 % (5.3) | 98.0 % (7.6) | 97.3 % (flat) |
# | XOR quadrants | 79.0 % (flat) | 98.6 % (10.2) | 98.9 % (5.4) | 99.0 % (13.0) | 98.9 % (flat) |
# | moons | 88.5 % (flat) | 98.7 % (4.6) | 99.8 % (0.38) | 99.8 % (4.3) | 99.8 % (flat) |
# | 1-turn spirals | 77.8 % (flat) | 99.3 % (10.1) | 99.3 % (12.9) | 99.7 % (12.9) | 99.5 % (flat) |
# | 1.75-turn spirals | 64.3 % (flat) | 99.3 % (24.8) | 86.4 % (16.9) | 99.7 % (28.2) | 98.3 % (flat) |
# | checkerboard | 62.8 % (flat) | 97.5 % (16.5) | 85.8 % (16.1) | 98.2 % (29.7) | 98.6 % (flat) |
# | rings | 60.9 % (flat) | 75.2 % (25.0) | 70.0 % (6.3) | 81.5 % (27.5) | 73.3 % (flat) |
#
# * **With 3 tokens** the elementwise gate raises curvature on all 8 tasks and
#   accuracy on the 7 curved ones, and not on the straight one.
# * **With 8 tokens** it raises accuracy on the 3 hardest tasks only. A headwise
#   gate is nowhere shown to be more accurate there.
# * **Within an arm and a task**, do the more curved seeds classify better? A
#   little: the correlation is +0.32 [+0.25, +0.39] with 3 tokens and +0.09
#   [+0.05, +0.13] with 8. On the straight boundary it is −0.03 [−0.27, +0.24]
#   and −0.39 [−0.58, −0.17].
#
# The brackets are 95 % intervals, from a bootstrap over 10 seeds, which makes
# them rather narrow.
#
# ### A trap
#
# Throw all arms and tasks into one pot, and the correlation is +0.38 with 3
# tokens and −0.26 with 8. The sign flips, because the pot compares *arms and
# tasks* with one another: hard tasks bend a lot and score low. Only comparisons
# within an arm and a task are about curvature itself.
#
# ## What it does not show
#
# * *That accuracy needs curvature, or a gate.* See the last column of the
#   table.
# * *That the product is special.* An additive SiLU has 98.2 % on the circle
#   with 3 tokens, where the gate has 97.9 %.
# * *That curvature causes anything.* Correlations within arms are small and
#   differ by arm.
# * *Anything about large models.* The squares have two dimensions, and the
#   contexts eight.
# * Where a softmax saturates, the image loses a dimension and has no curvature;
#   such points are dropped. With 3 tokens and no gate it was up to 70 % of the
#   square, for an elementwise gate none.
#
# ## Exercise
#
# 1. `kinds` has twelve maps. Which of them are flat? Guess from tokens, heads,
#    features and rank, then ask the `hull` of each:
# 2. Add `"additive"` to the arms that are trained, and compare.

# %%
for name in ("tokens_4", "heads_2", "rank_2", "planar_gated"):
    head = kinds[name]
    print(f"{head.title:27} spans {head.hull} dimensions: ", end="")
    print("flat" if head.must_be_flat else "may bend")
