# %% [markdown]
# [![Open In Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/keras-gating/keras-gating/blob/main/tutorials/01_from_adding_to_multiplying.ipynb)
#
# # From adding to multiplying
#
# **What can attention do, and what can it not do?**
#
# We compute attention by hand, with three tokens that fit into a picture. Then
# we look at where its outputs can *never* go, and put one small thing behind
# it, a gate, which takes them there.

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
# ## Attention by hand
#
# Three tokens. Each has a *key*, which says when it wants to be found, and a
# *value*, which is what it has to say; here a point in the plane. A *query*
# comes along, is compared with the three keys, and turns the three scores into
# weights that are positive and sum to 1 (the softmax).

# %%
BLUE, ORANGE, GREEN, RED = "#0072B2", "#E69F00", "#009E73", "#D55E00"
VALUES = np.array([[0.5, 0.5], [4.0, 1.0], [1.5, 3.5]])
KEYS = np.array([[-1.0, -0.5], [1.5, 0.0], [0.0, 1.5]])


def attention_weights(queries):
    scores = np.exp(queries @ KEYS.T)
    return scores / scores.sum(axis=-1, keepdims=True)


query = np.array([1.0, 0.6])
weights = attention_weights(query)
context = weights @ VALUES

figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
names, colours = ["token 1", "token 2", "token 3"], [BLUE, ORANGE, GREEN]
axes[0].bar(names, weights, color=colours)
axes[0].set(title="how much the query looks at each", ylim=(0, 1))
axes[1].fill(*VALUES.T, color="0.93")
for value, weight, name, colour in zip(VALUES, weights, names, colours):
    axes[1].plot(*zip(context, value), color=colour, linewidth=8 * weight)
    axes[1].scatter(*value, s=120, color=colour, zorder=3)
    axes[1].annotate(name, value + (0.1, 0.1))
axes[1].scatter(*context, s=120, color="black", zorder=4)
axes[1].annotate("context", context + (-0.75, -0.45))
axes[1].set(title="the context: a weighted mean of values")
axes[1].set(xlim=(0, 5), ylim=(0, 4.2), xlabel="feature 1", ylabel="feature 2")
plt.show()

# %% [markdown]
# What comes out, the *context*, is a weighted mean:
#
# $$c = a_1 v_1 + a_2 v_2 + a_3 v_3.$$
#
# Attention **adds**. The query decides how much of each token there is in the
# sum.
#
# ## Where it cannot go
#
# Let a thousand queries ask. All their contexts lie in the triangle of the
# three values, since a mean of three points never leaves their triangle. No
# query, and no training of the keys, changes that.

# %%
queries = np.random.default_rng(0).normal(scale=1.5, size=(1000, 2))
contexts = attention_weights(queries) @ VALUES


def draw_cloud(axis, points, colour, title):
    axis.fill(*VALUES.T, color="0.9")
    axis.scatter(*points.T, s=6, color=colour)
    axis.scatter(*VALUES.T, s=80, color="black", zorder=3)
    axis.set(xlim=(-0.2, 4.4), ylim=(-0.2, 4.0), title=title)
    axis.set(xlabel="feature 1", ylabel="feature 2", aspect="equal")


figure, axis = plt.subplots(figsize=(4.4, 4))
draw_cloud(axis, contexts, BLUE, "contexts of 1000 queries")
plt.show()

# %% [markdown]
# The same holds for `GatedAttention` with its gate switched off, which is
# `keras.layers.MultiHeadAttention`. We cannot draw sixteen dimensions, but we
# can count how many of them the outputs use. For $n$ tokens and one head it is
# never more than $n - 1$: a triangle has two dimensions, wherever it floats.

# %%
from keras_gating.layers import GatedAttention

to_numpy = keras.ops.convert_to_numpy
rng = np.random.default_rng(1)


def dimensions(layer, tokens):
    """How many dimensions the outputs of 200 random queries span."""
    queries = rng.normal(size=(1, 200, 16)).astype("float32")
    context = rng.normal(size=(1, tokens, 16)).astype("float32")
    outputs = to_numpy(layer(queries, context))[0]
    sizes = np.linalg.svd(outputs - outputs.mean(axis=0), compute_uv=False)
    return int(np.sum(sizes > 1e-4 * sizes[0]))


plain = GatedAttention(num_heads=1, key_dim=16, use_gate=False)
for tokens in (2, 3, 8):
    print(
        f"{tokens} tokens: outputs span {dimensions(plain, tokens)} dimensions"
    )

# %% [markdown]
# There is a second limit, for any number of tokens. Once the weights are fixed,
# attention is *linear* in the values: double the values and you double the
# output, add two sets of values and the outputs add up. So it can mix what
# tokens say, but it cannot say "of all this, feature 2 does not matter now".
# Every feature gets the same weights.
#
# ## One product
#
# A **gate** is a number between 0 and 1 for each feature, computed from the
# query by a sigmoid, and multiplied with the context:
#
# $$c = \Big(\sum_i a_i v_i\Big) \odot g, \qquad g = \sigma(W q + b).$$
#
# The circle with a dot is the product feature by feature. Near 0 the gate
# closes a feature, near 1 it lets it pass. By hand again, for one query:

# %%
GATE_KERNEL = np.array([[3.0, -2.0], [-2.0, 3.0]])


def gates(queries):
    return 1.0 / (1.0 + np.exp(-(queries @ GATE_KERNEL)))


gate = gates(query)
print(f"context     {context.round(2)}")
print(f"gate        {gate.round(2)}")
print(f"gated       {(context * gate).round(2)}")

figure, axes = plt.subplots(1, 3, figsize=(11, 3.8), layout="constrained")
draw_cloud(axes[0], contexts, BLUE, "contexts")
axes[1].scatter(*gates(queries).T, s=6, color=GREEN)
axes[1].set(title="gates", xlabel="feature 1", ylabel="feature 2")
axes[1].set(xlim=(-0.05, 1.05), ylim=(-0.05, 1.05), aspect="equal")
draw_cloud(axes[2], contexts * gates(queries), RED, "context × gate")
plt.show()

# %% [markdown]
# The same thousand queries now leave the triangle. Those at the edges have one
# feature switched off.
#
# In Keras it is `GatedAttention`, which has a gate unless told otherwise. A new
# gate starts with all weights at zero, so $g = ½$ for every query: a constant,
# which shrinks the triangle and takes nobody out of it. (With `gate_scale=2` it
# starts as the identity.) With random weights the outputs fill all sixteen
# dimensions:

# %%
fresh = GatedAttention(num_heads=1, key_dim=16)
gated = GatedAttention(
    num_heads=1,
    key_dim=16,
    gate_initializer=keras.initializers.RandomNormal(stddev=1.0),
)
for name, layer in (("no gate", plain), ("new gate", fresh), ("gate", gated)):
    print(f"{name:9} 3 tokens, {dimensions(layer, 3):2} dimensions")

# %% [markdown]
# Two checks that a gate is what it says. Forced open, it must be as if it were
# not there; forced shut, nothing comes through but the last bias.

# %%
queries_16 = rng.normal(size=(1, 5, 16)).astype("float32")
tokens_16 = rng.normal(size=(1, 3, 16)).astype("float32")
for name in ("query_dense", "key_dense", "value_dense", "output_dense"):
    getattr(plain, name).set_weights(getattr(gated, name).get_weights())
kernel, bias = gated.output_gate.get_weights()
for word, shift in (("open", 40.0), ("shut", -40.0)):
    gated.output_gate.set_weights([0.0 * kernel, 0.0 * bias + shift])
    output = to_numpy(gated(queries_16, tokens_16))
    expected = to_numpy(plain(queries_16, tokens_16))
    if word == "shut":
        expected = to_numpy(gated.output_dense.bias)
    print(f"{word}: largest difference {np.abs(output - expected).max():.0e}")

# %% [markdown]
# ## What a trained gate looks like
#
# A task that is all about features: six tokens of four features each, and a
# query that *commands* one of the four. The answer is the mean of the commanded
# feature over the tokens, in its place, and 0 in the three others.
#
# So that features keep their names, we hold the value and output projections of
# the gated layer at the identity and train the rest. The layer without a gate
# may train everything.


# %%
def examples(count, seed):
    rng = np.random.default_rng(seed)
    tokens = rng.normal(size=(count, 6, 4)).astype("float32")
    command = np.eye(4, dtype="float32")[rng.integers(4, size=(count, 1))]
    return (command, tokens), command * tokens.mean(axis=1, keepdims=True)


def fitted(**gate_arguments):
    """A trained model of one attention layer, and its error on new data."""
    keras.utils.set_random_seed(0)
    command, tokens = keras.Input((1, 4)), keras.Input((6, 4))
    layer = GatedAttention(1, key_dim=4, name="attention", **gate_arguments)
    model = keras.Model([command, tokens], layer(command, tokens))
    if layer.use_gate:
        for dense in (layer.value_dense, layer.output_dense):
            kernel, bias = dense.get_weights()
            dense.set_weights([np.eye(4).reshape(kernel.shape), 0.0 * bias])
            dense.trainable = False
    model.compile(keras.optimizers.Adam(0.03), "mse")
    inputs, targets = examples(64 * (20 if QUICK else 600), seed=0)
    # A list: with several inputs `fit` takes a tuple for inputs and targets.
    model.fit(list(inputs), targets, batch_size=64, verbose=0)
    inputs, targets = examples(1024, seed=1)
    answers = model.predict(list(inputs), batch_size=1024, verbose=0)
    return model, np.mean((answers - targets) ** 2) / targets.var()


plain_model, plain_error = fitted(use_gate=False)
gated_model, gated_error = fitted()
print(f"no gate: {plain_error:.0%} of the variance is missed")
print(f"gate:    {gated_error:.0%}")

# %%
from keras_gating import diagnostics

commands = np.eye(4, dtype="float32")[:, None]
with diagnostics.record_gates(gated_model) as record:
    gated_model([commands, np.zeros((4, 6, 4), "float32")])
learnt = record["attention/gate"].values.reshape(4, 4)

figure, axis = plt.subplots(figsize=(4.6, 3.8), layout="constrained")
image = axis.imshow(learnt, vmin=0.0, vmax=1.0, cmap="Greens")
for row in range(4):
    for column in range(4):
        value = learnt[row, column]
        axis.text(
            column,
            row,
            f"{value:.2f}",
            ha="center",
            va="center",
            color="white" if value > 0.6 else "black",
        )
axis.set(xlabel="feature of the context", ylabel="commanded feature")
axis.set(
    xticks=range(4), yticks=range(4), xticklabels="1234", yticklabels="1234"
)
axis.set_title("the learnt gate")
figure.colorbar(image, label="0: shut, 1: open")
plt.show()

# %% [markdown]
# The gate has learnt to read the command: open for the commanded feature, shut
# for the others. Without a gate the command can only change *which tokens* the
# layer looks at, and that does not help: to answer a quarter of every mean,
# whatever the command, would miss 75 %.
#
# ## What may a gate read?
#
# Above, it read the query. It may read the context instead, or both; in
# cross-attention, where query and tokens come from different sequences, reading
# both mixes the two. Which one is right depends on the products that a task
# needs. A small version of the experiment `keras-gating sources`:
# cross-attention with a linear readout, equal numbers of parameters, and two
# targets, each a product.
#
# * *query*: the query's sign times a mean over the tokens,
# * *context*: the mean of one feature times the mean of another one.

# %%
from keras_gating.experiments import sources

ARMS = ["query", "context", "query_context"]
results = sources.run(
    seeds=2,
    quick=True,
    arms=ARMS[1:2] if QUICK else ARMS,
    steps=20 if QUICK else 400,
)
arms = results.measurements["settings"]["cross_uniform"]["arms"]
print("share of the variance explained:")
for arm in arms.values():
    shares = [
        round(arm["tasks"][task]["explained"]["estimate"], 2) + 0.0
        for task in ("query", "context")
    ]
    print(f"{arm['title']:31} query {shares[0]:.2f}, context {shares[1]:.2f}")

# %% [markdown]
# In full (`keras-gating sources`, JAX, 5 seeds, 2000 steps, attention weights
# held equal so that the answer can be proved):
#
# | gate | query × mean | mean × mean |
# | --- | --- | --- |
# | no gate | 0.00 | 0.00 |
# | output gate, query | 1.00 | 0.00 |
# | output gate, context | 0.00 | 1.00 |
# | output gate, query and context | 1.00 | 1.00 |
#
# A gate forms products of *what it reads* and *what it multiplies*, and no
# others. In the layer it is one argument: `gate_source="query"`, `"context"` or
# `"query_context"`.
#
# ## What it does not show
#
# * The triangle holds for **one head**. Two heads have two triangles, and their
#   sum spans more: $H (n - 1)$ dimensions for $H$ heads of $n$ tokens.
# * A network around attention has other ways to multiply. Softmax weights that
#   depend on the query are nonlinear in it, feed-forward layers follow, and
#   layers are stacked. With learnt attention a context gate explains some of
#   the query task too: 0.56 instead of 0.
# * The tasks here were *made* to need a product. Whether yours does is for an
#   experiment to say: on small images of digits, a gated and an ungated model
#   of equal size came out alike (95.86 % against 95.60 % and 95.66 %, with all
#   differences inside their intervals over 20 seeds).
#
# ## Exercise
#
# 1. Train the command task with `gate_granularity="headwise"`, one gate value
#    for all four features. What can it still learn, and what will the error be?
# 2. How many dimensions do three tokens span when there are two heads? Guess
#    before you look:

# %%
two_heads = GatedAttention(num_heads=2, key_dim=16, use_gate=False)
print(f"two heads, 3 tokens: {dimensions(two_heads, 3)} dimensions")
