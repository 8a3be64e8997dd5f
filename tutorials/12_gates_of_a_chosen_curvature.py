# %% [markdown]
# [![Open In Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/keras-gating/keras-gating/blob/main/tutorials/12_gates_of_a_chosen_curvature.ipynb)
#
# # Gates of a chosen curvature
#
# Earlier tutorials measured how gates bend space. This one turns the question
# around: hyperbolic for trees, spherical for cycles, flat for the rest, by a
# number that training may change. **Can a gate be made to bend space in a way
# that we choose, and is it good for anything?**

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
# ## How much room is there?
#
# Walk a distance $r$ from where you stand, in all directions. The places that
# you reach form a circle. How long is it? We measure, by adding up distances
# between neighbours on the circle, in three spaces of constant curvature κ.

# %%
from keras import ops

from keras_gating import functional, geometry
from keras_gating.layers import CurvatureGate

to_numpy = ops.convert_to_numpy
BLUE, ORANGE, GREEN = "#0072B2", "#E69F00", "#009E73"


def circle_length(radius, curvature, count=1000 if QUICK else 8000):
    angle = np.linspace(0.0, 2.0 * np.pi, count)
    direction = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    # A tangent vector v leads to a point at the distance 2|v|.
    points = functional.exp0(radius / 2.0 * direction, curvature)
    steps = functional.stereographic_distance(
        points[1:], points[:-1], curvature
    )
    return float(to_numpy(ops.sum(steps)))


figure, axis = plt.subplots(figsize=(6, 3.8), layout="constrained")
radii = np.linspace(0.1, 7.0, 4 if QUICK else 24)
for curvature, colour in ((-0.5, BLUE), (0.0, GREEN), (0.5, ORANGE)):
    # The other pole of a sphere is π/√κ away; nothing is further.
    far = np.pi / curvature**0.5 if curvature > 0.0 else np.inf
    reached = radii[radii < far]
    lengths = [circle_length(r, curvature) for r in reached]
    axis.plot(
        reached, lengths, color=colour, label=f"circle, κ = {curvature:g}"
    )
axis.plot(radii, 2.0**radii, "k--", label="binary tree, $2^r$ nodes at depth r")
axis.set(xlabel="distance r", ylabel="length", yscale="log")
axis.set_ylim(0.5, 2000)
axis.legend(loc="upper left")
plt.show()

# %% [markdown]
# The scale is logarithmic, so a tree is a straight line. On a sphere (orange)
# circles shrink again, to a point at the other pole. In the plane (green) they
# are $2\pi r$ long, and the tree overtakes them at depth 5: its nodes will have
# to crowd. Only negative curvature (blue) keeps up with it, for there circles
# grow like $e^{\sqrt{-\kappa}\,r}$.
#
# ## A gate that makes such a space
#
# `CurvatureGate` multiplies a vector $u$ by one number, which depends on its
# length, and with `lift=True` it adds a height. Below, two square sheets of
# paper have gone through it, one with κ = 1 and one with κ = −1, and their
# curvature $K$ is measured. The second is also measured by another rule of
# distances, which counts height with a minus sign.

# %%
from keras_gating.experiments.figures import draw_surface

side = np.linspace(-0.6, 0.6, 7 if QUICK else 25)
sheet = np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1)


def measure(gate, rule, covariance=None):
    measured = to_numpy(geometry.gaussian_curvature(gate, sheet, covariance))
    low, high = measured.min(), measured.max()
    print(f"{rule:22} K from {low:+.4f} to {high:+.4f}")
    return measured


figure = plt.figure(figsize=(8, 3.2), layout="constrained")
axes = []
chosen = (-1.0,) if QUICK else (1.0, -1.0)
for place, curvature in enumerate(chosen, start=1):
    print(f"κ = {curvature:g}")
    gate = CurvatureGate(curvature, lift=True, dtype="float64")
    usual = measure(gate, "    usual rule")
    axis = figure.add_subplot(1, len(chosen), place, projection="3d")
    scale = draw_surface(axis, to_numpy(gate(sheet)), usual, 1.5)
    limits = (axis.get_xlim(), axis.get_ylim(), axis.get_zlim())
    axis.set_box_aspect(np.ptp(limits, axis=1), zoom=1.0)
    axis.view_init(25, -60)
    axis.set_title(f"κ = {curvature:g}", fontsize=10)
    axes.append(axis)
if not QUICK:
    measure(gate, "    height with minus", [1, 1, -1])
figure.colorbar(scale, ax=axes, label="K by the usual rule", shrink=0.8)
plt.show()

# %% [markdown]
# Both are bowls. The first is a piece of a sphere: +1 everywhere by the usual
# rule. The second is a piece of a *hyperboloid*: −1 everywhere, but only by the
# rule with the minus, the one of relativity theory. **By the usual rule its
# curvature is positive**, as the colour says: +1 in the middle, and less towards
# the corners. Tutorial 11 has met it before: no complete surface in our space
# has K = −1 everywhere.
#
# The gate behind it is one square root:
#
# $$y = u \cdot \frac{1}{\sqrt{1 + \kappa |u|^2}}$$
#
# ## Opening and closing along geodesics
#
# That gate has nothing to learn but κ. A gate that opens and closes should also
# obey a rule: half open, and half open again, is a quarter open. In a curved
# space, that means to move a point towards the origin on the shortest way, to a
# share $g$ of its distance. Twelve points, and the gate in steps of 0.2:

# %%
angle = 2.0 * np.pi * np.arange(12)[:, None] / 12.0
x = 0.95 * np.concatenate([np.cos(angle), np.sin(angle)], axis=-1)
openness = np.linspace(0.0, 1.0, 6)
figure, axes = plt.subplots(
    1, 3, figsize=(9, 3.3), sharex=True, sharey=True, layout="constrained"
)
for axis, curvature in zip(axes, (-1.0, 0.0, 1.0)):
    steps = functional.mobius_scale(openness[:, None, None], x, curvature)
    steps = to_numpy(steps)  # (openness, points, 2)
    for ways, colour in ((steps.swapaxes(0, 1), BLUE), (steps, "0.8")):
        for way in ways:
            axis.plot(*way.T, color=colour, linewidth=1, zorder=0)
    axis.scatter(*steps.T, color=BLUE, s=12)
    if curvature < 0.0:
        axis.add_patch(plt.Circle((0, 0), 1.0, fill=False, color="0.5"))
    axis.set(title=f"κ = {curvature:g}", aspect="equal")
    axis.set(xlim=(-1.1, 1.1), ylim=(-1.1, 1.1))
plt.show()

a, b = 0.7, 0.5
for curvature in (-1.0, 0.0, 1.0):
    twice = functional.mobius_scale(
        a, functional.mobius_scale(b, x, curvature), curvature
    )
    once = functional.mobius_scale(a * b, x, curvature)
    origin = np.zeros_like(x)
    whole = functional.stereographic_distance(origin, x, curvature)
    part = functional.stereographic_distance(origin, once, curvature)
    same = np.allclose(to_numpy(twice), to_numpy(once), rtol=1e-5)
    print(
        f"κ = {curvature:2g}: 0.5, then 0.7 is 0.35 at once: {same}; "
        f"distances times {to_numpy(part / whole).mean():.4f}"
    )

# %% [markdown]
# On the left is Poincaré's disc, a map of hyperbolic space. Steps are equally
# long *there*; on the map they look smaller and smaller towards the grey rim,
# which is infinitely far away. The map on the right is one of a sphere, and
# stretches what is far out. As a formula, with $\exp_0$ and $\log_0$ that go
# from straight lines to the map and back:
#
# $$g \otimes x = \exp_0(g \cdot \log_0 x)$$
#
# With κ = 0 this is $g \cdot x$, the plain gate of other tutorials. As a layer:
# `CurvatureGate(chart="stereographic")`, whose $g$ is a sigmoid gate.
#
# ## Does κ find its way?
#
# κ is a weight like any other. Take the 31 nodes of a binary tree, and put them
# into two dimensions so that the distance between any two is the number of
# edges between them, as well as it goes: with κ = 0, with κ fixed on either
# side, and with κ learnt together with the points, from 0.

# %%
from keras_gating.experiments import trees
from keras_gating.experiments.trees_report import geodesic

SPACE = "binary"
results = trees.run(
    seeds=1, quick=QUICK, spaces=[SPACE], dimensions=(2,), task_arms=[]
)
(embedded,) = results.measurements["embeddings"]
for arm in embedded["arms"].values():
    distortion, curvature = arm["distortion"], arm["curvature"]
    print(
        f"{arm['title']:20} distortion {distortion['estimate']:.3f}, "
        f"κ = {curvature['estimate']:+.2f}"
    )

stored = results.arrays["pictures"][SPACE]
wanted = stored["distances"]
edges = np.argwhere(np.triu(wanted == 1.0))[: 5 if QUICK else None]
first, second = np.triu_indices(len(wanted), 1)
figure, axes = plt.subplots(1, 3, figsize=(10, 3.6), layout="constrained")
for axis, arm, colour in zip(axes, ("flat", "learnt"), (GREEN, BLUE)):
    points, curvature = stored["arms"][arm]
    for start, end in points[edges]:
        line = geodesic(start, end, curvature)
        axis.plot(*line.T, color=colour, linewidth=1)
    axis.plot(*points.T, ".", color="black")
    if curvature < 0.0:
        rim = (-curvature) ** -0.5
        axis.add_patch(plt.Circle((0, 0), rim, fill=False, color="0.5"))
    axis.set(title=f"κ = {curvature:.3g}", aspect="equal")
    axis.set_axis_off()
    got = functional.stereographic_distance(
        points[first], points[second], curvature
    )
    shift = -0.1 if arm == "flat" else 0.1
    axes[2].plot(
        wanted[first, second] + shift, to_numpy(got), ".", color=colour
    )
axes[2].axline((0, 0), slope=1, color="black", linestyle="--", linewidth=1)
axes[2].set(xlabel="edges between two nodes", ylabel="distance")
plt.show()

# %% [markdown]
# *Distortion* is the typical relative error of a distance: 0.2 is 20 %. Left is
# the tree in the plane. In the middle κ was learnt. It has become negative, and
# edges are the shortest ways of that space. With its leaves in heaps it may look
# worse, but that is the map again: near the rim a hair's breadth is a long way.
#
# On the right are the distances of all pairs of nodes; on the dashed line they
# are what they should be. In the plane (green) nodes that are far apart on the
# tree come much too near. With the learnt κ (blue) all are close to the line.
#
# ## What the full run says
#
# `keras-gating trees` (JAX, float64) embeds two balanced trees, the tree of
# Python's own exceptions, a cycle and a grid. As a control there are points
# drawn from spaces of *known* curvature, which has to come back. Mean distortion
# of three seeds in two dimensions, and in the last column that of flat space
# with five; κ > 0 is a sphere that is just large enough:
#
# | two dimensions | κ = 0 | κ = −1 | κ > 0 | learnt | its κ | five, κ = 0 |
# | --- | --- | --- | --- | --- | --- | --- |
# | points, κ = −0.5 | 0.038 | 0.024 | 0.109 | 0.000 | −0.50 | 0.028 |
# | points, κ = 0 | 0.000 | 0.057 | 0.073 | 0.000 | 0 | 0.000 |
# | points, κ = 0.25 | 0.028 | 0.080 | 0.047 | 0.000 | +0.25 | 0.017 |
# | cycle of 24 | 0.126 | 0.353 | 0.000 | 0.000 | +0.07 | 0.126 |
# | binary tree, 31 nodes | 0.197 | 0.062 | 0.294 | 0.031 | −3.0 | 0.116 |
# | ternary tree, 40 nodes | 0.263 | 0.124 | 0.381 | 0.051 | −5.4 | 0.134 |
# | Python's exceptions, 67 | 0.308 | 0.243 | 0.345 | 0.104 | −11.7 | 0.163 |
# | grid, 5 × 5 | 0.149 | 0.251 | 0.139 | 0.139 | +0.13 | 0.149 |
#
# * **The controls come back**, all 18 sets of drawn points (in two and in five
#   dimensions) up to rounding, with their κ. So does the cycle: it is a great
#   circle of a sphere with κ = (2π/24)² = 0.0685.
# * **Trees choose negative curvature.** The distortion of the binary tree falls
#   to a sixth, that of the exceptions to a third. Each tree fits two dimensions
#   with a learnt κ better than five flat ones.
# * **The wrong sign is worse than none**: trees on a sphere, cycle and grid in
#   hyperbolic space.
# * A grid gains next to nothing. Not everything has a curvature that fits.
# * **Start flat.** Here κ is held at 0 for a third of the steps. Without that,
#   the cycle gets caught elsewhere (distortion 0.093), and so does one of three
#   runs of the binary tree (0.106); the other rows change by 0.02 at most.
#
# ## And in a network?
#
# So much for points that are free to move. Now a network has to tell the 16
# leaves of a tree apart. It sees eight noisy tokens, each a node on the way to
# the leaf; attention, a mean, a point in *two* dimensions, a gate, a linear
# readout. κ is held at 0, where this is a sigmoid gate, and then at −1:

# %%
import keras_gating.experiments.trees_task as task
from keras_gating.experiments.population import seeded
from keras_gating.experiments.training import restart

STEPS = 2 if QUICK else 400
rng = np.random.default_rng(0)
nodes = task.node_vectors(rng)
inputs, leaves = task.sequences(rng, STEPS * task.BATCH, nodes)
test_inputs, test_leaves = task.sequences(rng, 1000, nodes)

arms = task.arms_by_name(["flat", "negative"])
model = task.build(arms[0])
model.compile(
    keras.optimizers.Adam(keras.optimizers.schedules.CosineDecay(0.01, STEPS)),
    keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    run_eagerly=QUICK,
)
gate = model.get_layer("gate")
both = keras.Model(model.input, [gate.output, model.output])

figure, axes = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
for axis, arm in zip(axes, arms):
    # One model does for both: κ is one of its weights.
    with seeded(0):
        restart(model, task.build(arm))
    model.fit(inputs, leaves, batch_size=task.BATCH, shuffle=False, verbose=0)
    points, logits = both.predict(
        test_inputs, batch_size=len(test_inputs), verbose=0
    )
    axis.scatter(*points.T, c=test_leaves, cmap="turbo", s=8)
    right = np.mean(logits.argmax(axis=-1) == test_leaves)
    at_rim = np.mean(np.linalg.norm(points, axis=-1) > 0.99)
    print(f"{arm.title}: {right:.0%} right", end="")
    print(f", {at_rim:.0%} at the rim" if arm.curvature else "")
    axis.set_title(arm.title)
    axis.set_aspect("equal", adjustable="datalim")
plt.show()

# %% [markdown]
# Each dot is a sequence behind the gate; leaves of one branch have like colours.
# On the left points move out as far as 30. On the right the space is a disc of
# radius 1: nearly all points end at its rim, and of two dimensions one is left.
#
# This is one seed. The full run has ten, and twice the steps. Brackets and ± are
# 95 % intervals; *steps off* is the way along the tree from the chosen leaf to
# the right one.
#
# | gate | accuracy | minus sigmoid, points | steps off | κ |
# | --- | --- | --- | --- | --- |
# | no gate | 45.5 ± 3.1 % | −3.8 [−6.2, −1.5] | 2.32 ± 0.22 | |
# | sigmoid gate | 49.4 ± 2.6 % | | 2.12 ± 0.31 | |
# | stereographic, κ = 0 | 49.4 ± 2.6 % | 0 | 2.12 ± 0.31 | 0 |
# | stereographic, κ learnt | 48.4 ± 3.6 % | −0.9 [−3.0, +1.1] | 2.16 ± 0.33 | 0.02 to 0.20 |
# | stereographic, κ = −1 | 36.6 ± 1.8 % | −12.7 [−14.8, −10.6] | 2.78 ± 0.27 | −1 |
# | sigmoid, then gnomonic, κ learnt | 35.2 ± 2.1 % | −14.2 [−16.4, −11.9] | 3.21 ± 0.24 | −1.29 to 0.11 |
#
# * **No gain from curvature.** The gate with a learnt κ is not shown to differ
#   from the sigmoid gate, which it is at κ = 0. It hardly leaves that: to 0.20
#   at most, and never below 0, for a tree.
# * **A chosen negative curvature does harm**: 12.7 points at κ = −1. So does the
#   gnomonic gate, the one with the square root, though it may learn its κ: 14.2
#   points.
# * A gate as such does help: without one, accuracy is 3.8 points lower.
#
# Why? Probably it is the readout. To be sure of a leaf it needs large numbers,
# and a disc has none; and it cuts with straight lines, which have no use for the
# room near the rim. That is a guess, which exercise 3 would test.
#
# ## What it does not show
#
# * *That curvature is of no use in networks.* A readout by distances of the
#   curved space, which hyperbolic networks have, was not tried; nor larger
#   trees, or other scales of the point.
# * *The best possible embedding.* Seeds of a graph differ by a little noise at
#   the start. That they agree says that the optimizer agrees with itself.
# * *That your data have a curvature.* These graphs were chosen for theirs, and
#   the grid already has none that fits.
#
# ## Exercise
#
# 1. Set `SPACE` to `"cycle"`, `"grid"` or `"exceptions"`. Which sign of κ do you
#    expect, and how much can it lower the distortion?
# 2. What does the gate with κ = 1 do to the square sheet when it is ten times
#    as large? Where do its corners go, and could they get further?
# 3. Give the network a readout that can use the room: logits that are minus the
#    `functional.stereographic_distance` to 16 learnt points. Is κ = −1 still
#    worse?
