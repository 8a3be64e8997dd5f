# %% [markdown]
# [![Open In Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/keras-gating/keras-gating/blob/main/tutorials/05_value_modulators_and_glu_style.ipynb)
#
# # Gates on values, keys and halves
#
# **Where should the gate stand, and what should it read?**
#
# So far the gate stood behind attention and read the query. It may stand
# elsewhere: on the values before they are averaged, on the keys, or it may need
# no weights at all and be one half of the context. Each place multiplies other
# things with each other, and a task tells them apart.

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
# ## The places
#
# Attention, and the five places where `GatedAttention` can put a gate
# (`gate_site`), each marked with ⊙:

# %%
BLUE, ORANGE, GREEN, RED = "#0072B2", "#E69F00", "#009E73", "#D55E00"
BOXES = {
    "query": (0.0, 2.0),
    "keys": (0.0, 1.0),
    "values": (0.0, 0.0),
    "weights": (2.2, 1.5),
    "weighted sum": (4.4, 0.75),
    "output\nprojection": (6.6, 0.75),
}
ARROWS = [
    ("query", "weights", "query"),
    ("keys", "weights", "key"),
    ("values", "weighted sum", "value"),
    ("weights", "weighted sum", None),
    ("weighted sum", "output\nprojection", "output"),
]
figure, axis = plt.subplots(figsize=(9, 3.4), layout="constrained")
half_widths = {"weights": 0.4, "weighted sum": 0.62, "output\nprojection": 0.5}
for start, end, site in ARROWS:
    (x0, y0), (x1, y1) = BOXES[start], BOXES[end]
    x1 -= half_widths[end]
    axis.annotate("", (x1, y1), (x0, y0), arrowprops={"arrowstyle": "->"})
    if site:
        x = (x0 + 0.4 + x1) / 2
        y = y0 + (y1 - y0) * (x - x0) / (x1 - x0)
        axis.text(x, y, "⊙", color=RED, fontsize=20, ha="center", va="center")
        label = y - 0.36 if site == "key" else y + 0.22
        axis.text(x, label, f'"{site}"', color=RED, ha="center")
x, y = BOXES["output\nprojection"]
axis.annotate("", (x + 2.0, y), (x, y), arrowprops={"arrowstyle": "->"})
axis.text(x + 1.3, y, "⊙", color=RED, fontsize=20, ha="center", va="center")
axis.text(x + 1.3, y + 0.22, '"projection"', color=RED, ha="center")
for name, (x, y) in BOXES.items():
    axis.text(
        x,
        y,
        name,
        ha="center",
        va="center",
        bbox={"boxstyle": "round,pad=0.4", "facecolor": "#E8F1FA"},
        zorder=4,
    )
axis.set(xlim=(-0.9, 8.9), ylim=(-0.5, 2.5))
axis.set_axis_off()
plt.show()

# %% [markdown]
# Two more choices. `gate_source` says what an output gate reads: `"query"`,
# `"context"`, `"query_context"`. With `"split"` there is nothing to read: half
# of the context is the value, the other half the gate, as in a gated linear
# unit (GLU).
#
# ## Before or after the sum
#
# The difference between a gate on the values and one on the output is where the
# product stands:
#
# $$\text{value gate: } \sum_i a_i\,(v_i \odot g_i) \qquad\qquad
# \text{output gate: } \Big(\sum_i a_i\, v_i\Big) \odot g.$$
#
# A mean of products, or a product of means. That is not the same. Here are two
# sets of tokens with two features, $x$ and $y$. Their means are equal. In one,
# $x$ and $y$ go together, in the other one they oppose each other.

# %%
x = np.array([0.4, 0.8, 1.2, 1.6])
SETS = {"together": np.stack([x, x], -1), "opposed": np.stack([x, 2.0 - x], -1)}

figure, axes = plt.subplots(1, 2, figsize=(8, 3.7), layout="constrained")
for axis, (name, tokens), colour in zip(axes, SETS.items(), (BLUE, ORANGE)):
    axis.scatter(*tokens.T, s=90, color=colour, label="tokens")
    mean = tokens.mean(axis=0)
    axis.scatter(*mean, s=140, marker="X", color="black", label="mean")
    of_products = np.mean(tokens[:, 0] * tokens[:, 1])
    of_means = mean[0] * mean[1]
    axis.set_title(
        f"{name}\nmean of x·y {of_products:.2f}, mean x · mean y {of_means:.2f}",
        fontsize=10,
    )
    axis.set(xlabel="x", ylabel="y", xlim=(0, 2), ylim=(0, 2), aspect="equal")
    axis.legend(loc="lower right" if name == "together" else "upper right")
plt.show()

# %% [markdown]
# A gate that stands behind an average sees only the cross, and the crosses are
# at the same place. To see whether $x$ and $y$ belong *to the same token*, the
# product has to come first: a gate on the values.
#
# ## In Keras
#
# The value gate is `gate_site="value"`. It reads the token itself. Here it is
# against its formula, in NumPy, with the weights of the layer:

# %%
from keras_gating.layers import GatedAttention

to_numpy = keras.ops.convert_to_numpy
rng = np.random.default_rng(0)
query = rng.normal(size=(1, 3, 6)).astype("float32")
tokens = rng.normal(size=(1, 5, 6)).astype("float32")


def sigmoid(logits):
    return 1.0 / (1.0 + np.exp(-logits))


def weights_of(dense):
    """Kernel and bias of one head's projection, without the head's axis."""
    kernel, bias = dense.get_weights()
    return kernel.reshape(6, -1), bias.ravel()


layer = GatedAttention(
    num_heads=1,
    key_dim=4,
    gate_site="value",
    gate_initializer="glorot_uniform",
)
output, scores = layer(query, tokens, return_attention_scores=True)
value_kernel, value_bias = weights_of(layer.value_dense)
gate_kernel, gate_bias = weights_of(layer.value_gate)
values = tokens[0] @ value_kernel + value_bias
gates = sigmoid(tokens[0] @ gate_kernel + gate_bias)
context = to_numpy(scores)[0, 0] @ (values * gates)
output_kernel, output_bias = layer.output_dense.get_weights()
expected = context @ output_kernel[0] + output_bias
print(f"largest difference {np.abs(to_numpy(output)[0] - expected).max():.0e}")

# %% [markdown]
# The other variants take one line each. They differ in what they cost: a gate
# has weights of its own, one for each feature it reads and each feature it
# gates, and the GLU style has none, but its output is half as wide.

# %%
VARIANTS = {
    "no gate": {"use_gate": False},
    "output gate": {},
    "value gate": {"gate_site": "value"},
    "key and output gate": {"gate_site": ("key", "output")},
    "headwise output gate": {"gate_granularity": "headwise"},
    "halves (GLU style)": {"gate_source": "split"},
}
for name, arguments in VARIANTS.items():
    layer = GatedAttention(4, key_dim=8, **arguments)
    layer.build((None, None, 32), (None, None, 32))
    print(f"{name:21} {layer.count_params():5} parameters")

# %% [markdown]
# The pair of key and output gate is the form `Attention(Q, G_K) ⊙ G_V`: the key
# gate has a say in *what is found*, the output gate in what comes through.
#
# ## Which products can each one form?
#
# An experiment with three targets, each the product of two things. A query
# looks at four tokens; a linear readout follows; all arms have about 350
# parameters.
#
# * *query × mean*: a sign in the query, times the mean of a feature,
# * *mean × mean*: of two features,
# * *mean of products*: as in the picture above.
#
# Attention weights are held equal, so that nothing but the gate can multiply.

# %%
from keras_gating.experiments import sources

ARMS = ["query", "split", "key_output", "value"]
results = sources.run(
    seeds=2,
    quick=True,
    arms=ARMS[1:2] if QUICK else ARMS,
    steps=20 if QUICK else 400,
)
arms = results.measurements["settings"]["cross_uniform"]["arms"].values()
TASKS = {
    "query": "query\n× mean",
    "context": "mean\n× mean",
    "tokens": "mean of\nproducts",
}
shares = np.array(
    [[a["tasks"][t]["explained"]["estimate"] for t in TASKS] for a in arms]
)
figure, axis = plt.subplots(figsize=(5.6, 3.6), layout="constrained")
axis.imshow(shares, vmin=0.0, vmax=1.2, cmap="Greens", aspect="auto")
for (row, column), share in np.ndenumerate(shares.round(2) + 0.0):
    colour = "white" if share > 0.8 else "black"
    axis.text(
        column, row, f"{share:.2f}", color=colour, ha="center", va="center"
    )
axis.set_xticks(range(len(TASKS)), TASKS.values())
axis.set_yticks(range(len(arms)), [arm["title"] for arm in arms])
axis.set_title("share of the variance explained (1: all of it)", fontsize=10)
plt.show()

# %% [markdown]
# ## What came out in full
#
# `keras-gating sources` (JAX, 5 seeds, 2000 steps), cross-attention. Before the
# slash the weights of attention are held equal, after it they are learnt:
#
# | gate | query × mean | mean × mean | mean of products |
# | --- | --- | --- | --- |
# | no gate | 0.00 / 0.00 | 0.00 / 0.00 | 0.00 / 0.33 |
# | output gate, query | 1.00 / 1.00 | 0.00 / 0.00 | 0.00 / 0.32 |
# | output gate, context | 0.00 / 0.56 | 1.00 / 1.00 | 0.22 / 0.44 |
# | output gate, query and context | 1.00 / 1.00 | 1.00 / 1.00 | 0.22 / 0.44 |
# | halves of the context (GLU) | 0.00 / 0.50 | 1.00 / 1.00 | 0.22 / 0.44 |
# | key and output gate, query | 1.00 / 1.00 | 0.00 / 0.00 | 0.00 / 0.40 |
# | value gate | 0.00 / 0.47 | 0.22 / 0.26 | 1.00 / 1.00 |
#
# * A gate forms products of **what it reads** and **what it multiplies**.
# * Only the value gate multiplies within a token.
# * The GLU style does what a gate on the context does, without weights of its
#   own.
# * The key gate adds something only where attention is learnt: 0.40 against
#   0.32 for the output gate alone.
# * The quarters are no accident. The product of two means of four tokens shares
#   a quarter of its variance with the mean of four products.
#
# Learnt attention softens all of this, because its weights carry the query into
# the context and choose among tokens, which is itself nonlinear. It does not
# close the gaps.
#
# ## What it does not show
#
# * Which product *your* task needs. The targets here are made to separate the
#   arms.
# * That one layer has to do it all. A feed-forward layer behind attention can
#   multiply features of the context, and one before it features of a token.
# * Anything about language models. There, gates on the output and on the values
#   were compared at scale by Qiu et al. (2025, arXiv 2505.06708): perplexity
#   6.026 without a gate, 5.761 with an elementwise gate on the output, 5.820
#   with one on the values, 6.016 on the keys. That is their measurement, not
#   ours.
#
# ## Exercise
#
# Swap the sets of tokens: let `x` be `[0, 0, 2, 2]` and `y` once `[0, 0, 2,
# 2]`, once `[0, 2, 0, 2]`. Which products differ now? Then find two sets of
# four tokens with the same mean of products and different products of means.
# Which gate tells *these* apart?

# %%
first = np.array([0.0, 0.0, 2.0, 2.0])
for second in ([0.0, 0.0, 2.0, 2.0], [0.0, 2.0, 0.0, 2.0]):
    second = np.array(second)
    print(f"mean of products {np.mean(first * second):.2f}, ", end="")
    print(f"product of means {first.mean() * second.mean():.2f}")
