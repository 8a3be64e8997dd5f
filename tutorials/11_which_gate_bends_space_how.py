# %% [markdown]
# [![Open In Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/keras-gating/keras-gating/blob/main/tutorials/11_which_gate_bends_space_how.ipynb)
#
# # Which gate bends space, and how?
#
# A gate multiplies, and a product bends. But a sigmoid bends in another way
# than a GELU, and a gate with one number for all features in another way than
# one with a number for each. **How much does each gate function bend, which
# way, and can one build a gate for a chosen curvature?**

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
# ## A sheet of paper, and three gates
#
# Take a flat sheet: a linear map of the patch $[-2, 2]^2$ into eight
# dimensions. Now a gate multiplies it. The pictures show the sheet before and
# after, seen from where it is widest. Colours are Gaussian curvature K: orange
# like a sphere, violet like a saddle, white flat. All have the same weights.

# %%
from keras_gating import geometry
from keras_gating.experiments import functions
from keras_gating.experiments.figures import draw_surface, principal
from keras_gating.experiments.functions_model import (
    FUNCTIONS,
    SETTINGS,
    GatedMap,
)

to_numpy = keras.ops.convert_to_numpy
BLUE, ORANGE, GREEN, PURPLE = "#0072B2", "#E69F00", "#009E73", "#CC79A7"
SIDE = 9 if QUICK else 25
line = np.linspace(-2, 2, SIDE)
patch = np.stack(np.meshgrid(line, line, indexing="ij"), -1).reshape(-1, 2)
settings = {setting.name: setting for setting in SETTINGS}


def image_and_curvature(f, points):
    """Image (side, side, 3) of a square of points, and its curvature."""
    image = to_numpy(f(keras.ops.convert_to_tensor(points)))
    curvature = to_numpy(geometry.gaussian_curvature(f, points))
    if image.shape[1] > 3:
        image, _ = principal(image, image)
    return image.reshape(SIDE, SIDE, 3), curvature.reshape(SIDE, SIDE)


def draw(maps, limit, points=patch, view=(35, -60)):
    figure = plt.figure(figsize=(3 * len(maps), 3.2), layout="constrained")
    axes = []
    for place, (title, f) in enumerate(maps.items(), start=1):
        image, curvature = image_and_curvature(f, points)
        axis = figure.add_subplot(1, len(maps), place, projection="3d")
        scale = draw_surface(axis, image, curvature.clip(-limit, limit), limit)
        sides = (axis.get_xlim(), axis.get_ylim(), axis.get_zlim())
        axis.set_box_aspect(np.ptp(sides, axis=1), zoom=1.1)
        axis.view_init(*view)
        axis.set_title(title, fontsize=10)
        axes.append(axis)
    figure.colorbar(scale, ax=axes, label="curvature K", shrink=0.7)
    plt.show()


def gated(setting, function, seed=4):
    made = GatedMap(settings[setting], function, dtype="float64")
    made.build()
    made.draw(seed)
    return made


sheets = {
    "no gate": gated("linear_elementwise", keras.ops.ones_like),
    "sigmoid, a gate a feature": gated(
        "linear_elementwise", FUNCTIONS["sigmoid"]
    ),
    "GELU, a gate a feature": gated("linear_elementwise", FUNCTIONS["GELU"]),
    "sigmoid, one gate for all": gated("linear_headwise", FUNCTIONS["sigmoid"]),
}
draw(dict(list(sheets.items())[:2]) if QUICK else sheets, limit=0.5)

# %% [markdown]
# With a gate for each feature the sheet bends. With one gate for all it changes
# its outline and stays white: along a line on which the gate is the same, all
# points are multiplied alike, so the line stays straight. Such a sheet is at
# most *rolled*, like paper, and can be unrolled. That is what curvature means:
# not what looks bent, but what cannot be unrolled.
#
# To compare gate functions one picture will not do. We need many draws of the
# weights, and one number for how much a patch bends: $\int |K|\, dA$, the total
# curvature. It does not change when the image is made larger or smaller.
#
# ## The contest
#
# `functions.run` draws random weights, the *same* ones for every gate function
# φ in $y = v \odot \varphi(Gx + g)$, and measures. In full it takes 100 draws
# and eight functions; here are eight draws and two functions.

# %%
if QUICK:
    results = functions.run(
        2, True, ["sigmoid"], ["softmax_elementwise"], resolution=6
    )
else:
    results = functions.run(
        seeds=8,
        functions=["sigmoid", "GELU"],
        settings=["softmax_elementwise", "softmax_headwise"],
        resolution=24,
    )
print("measured in", results.settings["dtype"])

figure, axes = plt.subplots(1, 2, figsize=(9.5, 3), layout="constrained")
for setting, colour in zip(
    results.measurements["settings"].values(), (BLUE, ORANGE)
):
    shift = 0.12 if colour == BLUE else -0.12
    for row, entry in enumerate(setting["functions"].values()):
        values = np.array(entry["values"], float)
        shares = np.array(entry["positive_shares"], float)
        for axis, numbers in zip(axes, (values, shares)):
            axis.plot(
                numbers,
                np.full(len(numbers), shift - row),
                "o",
                color=colour,
                alpha=0.6,
                label=setting["title"] if row == 0 else None,
            )
            axis.set_yticks(
                -np.arange(len(setting["functions"])), setting["functions"]
            )
axes[0].set(xscale="log", xlabel="∫|K| dA: how much")
axes[1].set(xlim=(-0.03, 1.03), xlabel="share of it where K > 0: which way")
figure.legend(
    *axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=2
)
plt.show()

# %% [markdown]
# Each dot is one draw. The spread is wide: two draws of one function differ
# more than two functions do. That is why the full run has 100 draws, paired, in
# float64. Medians of $\int |K|\, dA$ and, in brackets, the share with K > 0.
# The gated value is attention, as above, or linear in the input; the gate has a
# number for *each* feature or *one* for all:
#
# | φ | attention, each | attention, one | linear, each | linear, one |
# | --- | --- | --- | --- | --- |
# | sigmoid | 2.38 (0.16) | 0.56 (0.45) | 1.41 (0.02) | flat |
# | tanh | 5.11 (0.24) | 1.10 (0.53) | 4.11 (0.07) | flat |
# | GELU | 3.62 (0.25) | 1.91 (0.56) | 3.94 (0.16) | flat |
# | SiLU | 3.02 (0.21) | 1.69 (0.57) | 3.41 (0.11) | flat |
# | softplus | 2.08 (0.09) | 0.41 (0.40) | 1.79 (0.04) | flat |
# | identity | 2.16 (0.03) | 0.61 (0.48) | 2.53 (0.04) | flat |
# | exp | 3.06 (0.12) | 0.34 (0.37) | 3.30 (0.08) | flat |
# | ReLU | 1.86 (0.08) | 0.20 (0.40) | 2.90 (0.13) | flat |
#
# * **The product bends, whatever φ is.** The identity, no activation at all, is
#   in the middle of the field.
# * A gate for each feature bends mostly like a *saddle*: less than a quarter of
#   its curvature, or about that, is positive. One gate for all features of
#   attention bends as much like a sphere as like a saddle.
# * One gate for all, on a linear value, is **flat for every φ**: at most
#   rolled, as above.
# * With ReLU, half of the patch is left out for headwise gates: where a gate is
#   exactly 0, the image is a single point.

# %% [markdown]
# ## A gate of a chosen curvature
#
# Turn the question round: which gate bends like a sphere, everywhere the same?
# Take the plane at height 1, the points $(a, b, 1)$, and let one gate multiply
# all three numbers. The gate that pulls every point to distance 1 from the
# origin is
#
# $$g(a, b) = \frac{1}{\sqrt{1 + a^2 + b^2}}.$$
#
# It is even a sigmoid gate that starts as the identity: $2\,\sigma(z)$ with $z
# = -\log(2\sqrt{1 + a^2 + b^2} - 1)$. For other gates there is a rule: **the
# sign of K is the sign of the determinant of the second derivatives of $1/g$.**
# If $1/g$ is a bowl, K is positive; if it is a saddle, negative; if it is a
# plane, K is zero.

# %%
from keras_gating import functional


def on_the_plane(inverse):
    """The gate 1 / inverse(a, b) on the points (a, b, 1)."""

    def f(x):
        points = keras.ops.concatenate([x, keras.ops.ones_like(x[:, :1])], -1)
        # 2 σ(z) = 1 / inverse
        logit = -keras.ops.log(2.0 * inverse(x[:, :1], x[:, 1:]) - 1.0)
        return functional.apply_gate(points, logit, scale=2.0)

    return f


gates = {
    "1/g = √(1 + a² + b²)": on_the_plane(
        lambda a, b: keras.ops.sqrt(1.0 + a * a + b * b)
    ),
    "1/g = 2 + ab": on_the_plane(lambda a, b: 2.0 + a * b),
    "1/g = 2 + a/2 + b/4": on_the_plane(lambda a, b: 2.0 + a / 2 + b / 4),
}
small = 0.4 * patch
shown = dict(list(gates.items())[:1]) if QUICK else gates
draw(shown, limit=1.5, points=small, view=(30, -25))
for title, f in shown.items():
    curvature = to_numpy(geometry.gaussian_curvature(f, small))
    print(f"{title:22} K from {curvature.min():+.6f} to {curvature.max():+.6f}")

# %% [markdown]
# The first is a piece of the unit sphere, K = 1 at every point. The second is
# saddle-shaped everywhere, the third exactly flat.
#
# ## The other geometry
#
# Hyperbolic space has K = −1 everywhere, and room for trees: there is more
# space the further out one goes. A classic result says that no complete surface
# in ordinary three-dimensional space has it. But the rule of distances may be
# another one. The gate $g = 1/\sqrt{1 - a^2 - b^2}$ puts points on a
# *hyperboloid*, and with the sign of the third direction reversed in the
# metric, as in the geometry of relativity, its curvature is −1:

# %%


def hyperbolic(x):
    points = keras.ops.concatenate([x, keras.ops.ones_like(x[:, :1])], -1)
    square = keras.ops.sum(x * x, axis=-1, keepdims=True)
    return points / keras.ops.sqrt(1.0 - square)


disk = 0.3 * patch  # inside of the unit circle
reversed_sign = np.diag([1.0, 1.0, -1.0])
for name, covariance in (("usual", None), ("reversed", reversed_sign)):
    curvature = to_numpy(
        geometry.gaussian_curvature(hyperbolic, disk, covariance)
    )
    low, high = curvature.min(), curvature.max()
    print(f"{name:9} metric: K from {low:+.6f} to {high:+.6f}")

# %% [markdown]
# One map, two answers, both right. Curvature belongs to a map *and* to the way
# distances are measured. Whoever says that a network "is hyperbolic" has to say
# in which metric. In the usual one this surface is curved like a bowl.
#
# ## What it does not show
#
# * *That more curvature is better.* Nothing here was trained. Tutorial 4 has
#   trained networks: there accuracy and curvature go together on some tasks and
#   not on others, and flat networks solve curved tasks.
# * *Which gate function to take.* A function that bends more is no better for
#   that. GELU bends more than the sigmoid here, and in tutorial 9 the sigmoid
#   is the more accurate one when weights start wide.
# * *That trees embed better by a gate.* Gates of constant negative curvature
#   exist, as you have just seen. Tutorial 12 gives trees such a space, and then
#   asks whether a network is better with it.
# * *Other draws.* Weights are standard normal, the patch is $[-2, 2]^2$, there
#   are eight features. Another scale gives other numbers.
#
# ## Exercise
#
# 1. Make a sphere of radius 2: points $(a, b, 2)$ and the gate $1/\sqrt{1 +
#    (a^2 + b^2)/4}$. Which K do you expect, and which comes out?
# 2. Find a gate with $1/g$ a bowl in one place and a saddle in another, and
#    draw it. Does the colour change where you expect it?
# 3. Draw `gated("linear_headwise", FUNCTIONS["tanh"])` with `draw`. Why is it
#    white, like all gates of its kind? (Along which lines does the gate not
#    change?)
