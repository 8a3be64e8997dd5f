# %% [markdown]
# [![Open In Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/keras-gating/keras-gating/blob/main/tutorials/03_what_curvature_is.ipynb)
#
# # What curvature is
#
# **How can one tell that a surface is curved without leaving it?**
#
# The next tutorial asks what gates do to curvature. This one is about the word.
# We look at four surfaces, draw triangles on them, send walkers off side by
# side, and then measure the surface that a small neural network makes of a flat
# sheet.

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
# ## Four sheets
#
# Take a flat sheet of rubber, with coordinates $(u, v)$, and put it into space.
# A function from $(u, v)$ to $(x, y, z)$ says how. The package has some classic
# ones in `geometry.surfaces`; the plane we write ourselves. Colour is the
# *Gaussian curvature* $K$, measured by `geometry.gaussian_curvature`.

# %%
from keras_gating import geometry
from keras_gating.experiments.figures import draw_surface
from keras_gating.geometry import surfaces

to_numpy = keras.ops.convert_to_numpy


def plane(x):
    return keras.ops.stack([x[..., 0], x[..., 1], 0.0 * x[..., 0]], axis=-1)


def grid(bounds, points=11 if QUICK else 41):
    """A grid of points of the flat sheet, `(points, points, 2)`."""
    axes = [np.linspace(low, high, points) for low, high in bounds]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)


# Each with the part of the sheet to draw and where to look from.
SHEETS = {
    "plane": (plane, ((-1, 1), (-1, 1)), (40, -60)),
    "rolled sheet": (surfaces.cylinder(), ((-1.3, 1.3), (-1, 1)), (25, -30)),
    "sphere": (surfaces.sphere(), ((0.6, 2.5), (-1.3, 1.3)), (15, 5)),
    "saddle": (surfaces.saddle(), ((-1, 1), (-1, 1)), (35, -70)),
}
if QUICK:
    SHEETS = {"saddle": SHEETS["saddle"]}
figure = plt.figure(figsize=(11, 3.4), layout="constrained")
for place, (name, (surface, bounds, view)) in enumerate(SHEETS.items()):
    axis = figure.add_subplot(1, 4, place + 1, projection="3d")
    x = grid(bounds)
    curvature = to_numpy(geometry.gaussian_curvature(surface, x))
    colours = draw_surface(axis, to_numpy(surface(x)), curvature, 1.5)
    axis.view_init(*view)
    axis.set_title(name)
figure.colorbar(colours, ax=figure.axes, label="K", shrink=0.7)
plt.show()

# %% [markdown]
# The rolled sheet is as colourless as the plane: rolling up a sheet of paper
# does not stretch it, and for somebody who lives *in* the paper nothing has
# changed. A sphere cannot be made from paper without creases, and neither can a
# saddle.
#
# That is what $K$ measures. At each point a surface bends most along one
# direction and least along another one, at right angles to it; call the two
# bends $\kappa_1$ and $\kappa_2$, with a sign for the side that it bends to.
# Then
#
# $$K = \kappa_1 \kappa_2.$$
#
# * Sphere: both to the same side, $K > 0$; for radius $r$ it is $1/r^2$.
# * Saddle: one up, one down, $K < 0$.
# * Rolled sheet: one of them is 0, so $K = 0$.
#
# The numbers agree with the textbook's formulas:

# %%
for name, (surface, bounds, _) in SHEETS.items():
    if name == "plane":
        continue
    x = grid(bounds)
    measured = to_numpy(geometry.gaussian_curvature(surface, x))
    formula = to_numpy(surface.gaussian_curvature(x))
    print(
        f"{name:13} K from {measured.min():+.3f} to {measured.max():+.3f}, "
        f"largest error {np.abs(measured - formula).max():.0e}"
    )

# %% [markdown]
# ## Triangles
#
# Now stay inside. An ant on the surface cannot see the bend, but it can walk
# straight ahead (a *geodesic*: the straightest line there is), draw a triangle
# and measure its angles. In the plane they add up to 180°.

# %%
TRIANGLES = {
    "rolled sheet": ([-1.0, -0.8], [1.0, -0.8], [0.0, 0.8]),
    "sphere": ([2.2, -0.9], [2.2, 0.9], [0.8, 0.0]),
    "saddle": ([-0.9, -0.9], [0.9, -0.9], [0.0, 0.9]),
}
figure = plt.figure(figsize=(10, 3.8), layout="constrained")
for place, name in enumerate(name for name in TRIANGLES if name in SHEETS):
    surface, bounds, view = SHEETS[name]
    a, b, c = np.array(TRIANGLES[name])
    triangle = geometry.geodesic_triangle(surface, a, b, c)
    degrees = np.degrees(to_numpy(triangle.angles))
    axis = figure.add_subplot(1, 3, place + 1, projection="3d")
    x = grid(bounds)
    curvature = to_numpy(geometry.gaussian_curvature(surface, x))
    draw_surface(axis, to_numpy(surface(x)), curvature, 3.0)
    for side in to_numpy(surface(triangle.points)):
        # In front of the surface, which matplotlib cannot work out by itself.
        axis.plot(*side.T, color="black", linewidth=2.5, zorder=10)
    axis.view_init(*view)
    axis.set_title(f"{name}: {degrees.sum():.1f}°")
    angles = " + ".join(f"{angle:.1f}°" for angle in degrees)
    print(f"{name:13} {angles} = {degrees.sum():.1f}°")
plt.show()

# %% [markdown]
# More than 180° means a sphere, less means a saddle. And the surplus is not
# just a sign: it is *exactly* the curvature that the triangle encloses (the
# theorem of Gauss and Bonnet),
#
# $$\alpha + \beta + \gamma - \pi = \int K \, dA.$$
#
# The famous example is an eighth of the globe, from the pole to the equator, a
# quarter around and back: three right angles. The globe has $K = 1$ and area
# $4\pi$, so the surplus should be $4\pi / 8 = \pi/2$, which is 90°.

# %%
# This chart has its pole at (0, 0) and its equator at distance 1 from it.
globe = surfaces.hypersphere(dimension=2)
eighth = geometry.geodesic_triangle(
    globe, *np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
)
print("angles", np.degrees(to_numpy(eighth.angles)).round(6))
print(f"surplus {float(eighth.excess):.8f}, π/2 is {np.pi / 2:.8f}")

# %% [markdown]
# ## Parallels
#
# Another test from inside: two walkers start side by side, in the same
# direction, and walk straight ahead. On the plane their distance never changes.

# %%
APART, LENGTH = 0.02, 2.5
WALKS = {
    # name: where they start, to which side they stand apart, where they go.
    "rolled sheet": ((0.0, 0.0), (0.0, 1.0), (1.0, 0.0)),
    "sphere": ((np.pi / 2, 0.0), (1.0, 0.0), (0.0, 1.0)),
    "saddle": ((0.0, 0.0), (0.0, 1.0), (1.0, 0.0)),
}
EXPECTED = {
    "rolled sheet": ("1", np.ones_like),
    "sphere": ("|cos s|", lambda s: np.abs(np.cos(s))),
    "saddle": ("√(1 + s²)", lambda s: np.sqrt(1 + s**2)),
}
walked = np.linspace(0.0, LENGTH, 33)
figure, axis = plt.subplots(figsize=(6.5, 4), layout="constrained")
for name, colour in zip(WALKS, ("0.4", "#D55E00", "#0072B2")):
    if name not in SHEETS:
        continue
    start, aside, ahead = map(np.array, WALKS[name])
    pair = start + APART / 2 * np.array([[1.0], [-1.0]]) * aside
    surface = SHEETS[name][0]
    curves = geometry.geodesic(surface, pair, velocity=LENGTH * ahead, steps=32)
    one, other = to_numpy(surface(curves.points))
    distance = np.linalg.norm(one - other, axis=-1) / APART
    formula, expected = EXPECTED[name]
    axis.plot(walked, expected(walked), color=colour)
    axis.plot(walked[::2], distance[::2], "o", color=colour, label=name)
    axis.annotate(formula, (LENGTH + 0.05, distance[-1]), color=colour)
axis.set_xlim(0, 3.1)
axis.set(xlabel="distance walked, s", ylabel="how far apart, 1 at the start")
axis.set_title("dots: measured walks, lines: the formula")
axis.legend()
plt.show()

# %% [markdown]
# On the sphere they run into each other after a quarter of the globe and cross.
# On the saddle they part. Triangles and walkers agree with the colours of the
# first picture, and neither had to look from outside.
#
# ## The surface that a network makes
#
# A network with two inputs is one more way to put a flat sheet into space, if
# usually a space of more than three dimensions. So it has a curvature at each
# point, measured just like that of the sphere.
#
# Four networks with the same random weights, two layers of eight units each,
# and four activations. We draw the image of the square in its first three
# principal directions.

# %%
from keras import layers

from keras_gating.experiments.figures import principal

SQUARE = ((-1.5, 1.5), (-1.5, 1.5))


def network(activation, depth=2, seed=1):
    """Dense layers of width 8 in float64, with random weights."""
    rng = np.random.default_rng(seed)
    model = keras.Sequential(
        [keras.Input((2,))]
        + [layers.Dense(8, activation, dtype="float64") for _ in range(depth)]
    )
    for layer in model.layers:
        kernel = 2.0 * rng.normal(size=layer.kernel.shape)
        bias = 0.5 * rng.normal(size=layer.bias.shape)
        layer.set_weights([kernel / np.sqrt(len(kernel)), bias])
    return model


def gelu(x):
    return keras.ops.gelu(x, approximate=False)


ACTIVATIONS = {"none": None, "sigmoid": "sigmoid", "GELU": gelu, "ReLU": "relu"}
if QUICK:
    ACTIVATIONS = {"GELU": gelu}
figure = plt.figure(figsize=(11, 3.6), layout="constrained")
for place, (name, activation) in enumerate(ACTIVATIONS.items()):
    model = network(activation)
    x = grid(SQUARE)
    image = to_numpy(model(x.reshape(-1, 2)))
    points, size = principal(image, image)
    curvature = to_numpy(geometry.gaussian_curvature(model, x.reshape(-1, 2)))
    curvature = curvature.reshape(x.shape[:2]) * size**2
    axis = figure.add_subplot(1, 4, place + 1, projection="3d")
    colours = draw_surface(
        axis,
        points.reshape(*x.shape[:2], 3),
        np.clip(curvature, -5.0, 5.0),
        5.0,
    )
    axis.view_init(45, -60)
    total, dropped = geometry.total_curvature(
        model, SQUARE, 8 if QUICK else 32, absolute=True
    )
    axis.set_title(f"{name}\n∫|K| dA = {total:.2g}")
figure.colorbar(
    colours, ax=figure.axes, label="K · size² (clipped)", shrink=0.7
)
plt.show()

# %% [markdown]
# Two details of the picture. Shrinking a surface makes it *more* curved, since
# $K$ is $1/r^2$; so the colours are $K$ times the squared size of the image,
# and the number above is the integral of $|K|$ over the surface, which does not
# depend on size at all.
#
# Without an activation the two layers are one linear map, and the image is a
# flat parallelogram: $K = 0$ at all points, and more such layers would change
# nothing. Sigmoid and GELU bend it.
#
# ### And ReLU?
#
# The ReLU network is visibly not flat, and yet $K$ is 0. It is made of flat
# pieces that meet in creases, like folded paper, and derivatives, taken at a
# point, do not see creases. ReLU is the limit of smooth functions whose bend
# gets ever sharper:

# %%
line = np.linspace(-2, 2, 401)
figure, axis = plt.subplots(figsize=(5, 3.4), layout="constrained")
for beta, colour in ((1, "#56B4E9"), (5, "#0072B2"), (40, "black")):
    axis.plot(
        line,
        np.logaddexp(0.0, beta * line) / beta,
        color=colour,
        label=f"softplus(βx)/β, β = {beta}",
    )
axis.set(xlabel="x", title="the bend moves into one point")
axis.legend()
plt.show()

# %% [markdown]
# ## What came out, with more seeds
#
# One random network is an anecdote. The experiment `keras-gating curvature`
# (JAX, float64) draws 100 of them for each row. The median of $\int |K|\,dA$
# over the same square, by the number of layers:
#
# | activation | 1 | 2 | 4 | 8 |
# | --- | --- | --- | --- | --- |
# | none | 0 | 0 | 0 | 0 |
# | sigmoid | 0.97 | 1.29 | 1.34 | 0.98 |
# | tanh | 2.96 | 8.00 | 23.4 | 67.5 |
# | GELU | 0.83 | 4.50 | 15.4 | 45.2 |
# | ReLU | 0 | 0 | 0 | 0 |
#
# With tanh and GELU curvature grows with depth, with the sigmoid it does not:
# deep stacks of sigmoids contract.
#
# For ReLU, follow softplus on its way there (20 networks): as β goes from 1 to
# 40, the median of $\int |K|\,dA$ grows from 0.48 to 8.09 and does not stop,
# while the *signed* integral $\int K\,dA$ settles; from β = 20 to 40 a typical
# network changes by 0.21 in the signed integral and by 1.26 in the other one.
# So "a ReLU network has curvature 0" is true at almost every point and
# misleading.
#
# ## What it does not show
#
# * Curvature of random networks says nothing about what networks are good
#   *for*. Whether curved representations classify better is the question of the
#   next tutorial, and the answer has conditions.
# * $K$ is what an ant notices. A rolled sheet has $K = 0$ and is bent all the
#   same; `geometry.total_bending` sees that.
# * Where the image loses a dimension there is no curvature;
#   `gaussian_curvature` says NaN there and never guesses. `total_curvature`
#   returns the share of points it had to drop: look at it.
#
# ## Exercise
#
# A doughnut (`surfaces.torus()`) has places of both kinds. Where do you expect
# $K > 0$, where $K < 0$? What is $\int K\,dA$ over all of it, and what is $\int
# |K|\,dA$? (Hint: the outer half wraps once around a sphere's worth of
# directions, $4\pi$, and so does the inner half, the other way round.)

# %%
torus = surfaces.torus()
for absolute in (False, True):
    total, dropped = geometry.total_curvature(
        torus, torus.bounds, 8 if QUICK else 64, absolute=absolute
    )
    name = "∫|K| dA" if absolute else "∫ K dA"
    turns = round(total / np.pi, 3) + 0.0
    print(f"{name} = {turns:.3f} π, {dropped:.0%} of the points dropped")
