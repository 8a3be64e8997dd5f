# %% [markdown]
# [![Open In Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/keras-gating/keras-gating/blob/main/tutorials/08_gated_attention_unit.ipynb)
#
# # The gated attention unit: one layer for two, and long sequences
#
# A transformer block is two layers: attention mixes the positions, a
# feed-forward layer works on each of them. The `GatedAttentionUnit` (GAU, of
# FLASH; not FlashAttention) is both at once, with a single simple head. **Can
# one layer with a gate replace two, and why is it fast on long sequences?**

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
# ## Three ways to share out attention
#
# Attention is a table of weights: how much does position i take from position
# j? Softmax makes the rows sum to 1. The unit squares what is positive,
# $\mathrm{relu}(x)^2 / n$, which is cheaper and leaves exact zeros. In the
# *chunked* form it does so only inside of blocks along the diagonal. What lies
# before a block comes through a sum that is carried along.

# %%
from keras_gating import functional

to_numpy = keras.ops.convert_to_numpy
BLUE, ORANGE, GREEN = "#0072B2", "#E69F00", "#009E73"
LENGTH, CHUNK = 32, 8
rng = np.random.default_rng(0)
query, key = rng.normal(size=(2, LENGTH, 16)).astype("float32")
scores = query @ key.T / 4.0
visible = np.tril(np.ones((LENGTH, LENGTH), bool))  # nobody sees the future

softmax = np.where(visible, np.exp(scores), 0.0)
softmax /= softmax.sum(axis=1, keepdims=True)
squared = np.where(visible, to_numpy(functional.relu2(scores)), 0.0)
squared /= visible.sum(axis=1, keepdims=True)
block = np.arange(LENGTH) // CHUNK
same_block = block[:, None] == block[None, :]

figure, axes = plt.subplots(1, 3, figsize=(9, 3.5), layout="constrained")
tables = {
    "softmax": softmax,
    "squared ReLU": squared,
    "squared ReLU in chunks": np.where(same_block, squared, 0.0),
}
for axis, (title, table) in zip(axes, tables.items()):
    axis.imshow(table / table.max(), cmap="Blues", vmax=0.6)
    axis.set(title=title, xlabel="from position j", xticks=[], yticks=[])
earlier = np.ma.masked_equal(block[:, None] > block[None, :], False)
axes[2].imshow(earlier, cmap="Oranges", vmin=0, vmax=2.5)
axes[2].text(7, 24, "carried\nalong", ha="center", va="center")
axes[0].set_ylabel("to position i")
plt.show()

# %% [markdown]
# The tables of the first two have $n^2$ entries for $n$ positions. The blocks
# have $n \cdot 8$. That is the whole secret of long sequences.
#
# ## The unit, by hand
#
# Four small steps. φ is SiLU.
#
# 1. Value and gate: $V = \varphi(X W_v)$ and $U = \varphi(X W_u)$.
# 2. One shared projection $Z = \varphi(X W_z)$; query and key are $Z$, each
#    with a scale and an offset of its own: no heads, no matrices for them.
# 3. Weights $A = \mathrm{relu}(Q K^\top / \sqrt{s})^2 / n$.
# 4. Mix and **gate**: $(U \odot A V)\, W_o$.

# %%
from keras_gating.layers import GatedAttentionUnit

x = rng.normal(size=(1, 10, 8)).astype("float32")
unit = GatedAttentionUnit(
    key_dim=4, attention_activation="relu2", use_bias=False
)
outputs = to_numpy(unit(x))
for weight in unit.weights:
    print(weight.path.partition("/")[2], tuple(weight.shape))


# %%
def silu(z):
    return z / (1 + np.exp(-z))


scale, offset, packed, shared, output = map(to_numpy, unit.weights)
value, gate = silu(np.einsum("btd,dke->kbte", x, packed))
z = silu(x @ shared)
query, key = (z * scale[i] + offset[i] for i in (0, 1))
weights = np.maximum(query @ key.transpose(0, 2, 1) / np.sqrt(4), 0) ** 2 / 10
by_hand = (gate * (weights @ value)) @ output
print("largest output:", np.abs(outputs).max())
print("largest difference:", np.abs(outputs - by_hand).max())

# %% [markdown]
# Look at the largest output. A new unit is next to *nothing*: its scales start
# at 0.02, and squaring makes small numbers smaller. Around a residual sum that
# is a good start, but see below what it asks of the optimizer.
#
# Two special cases tell what the parts do. With $A$ the identity, the unit is a
# gated feed-forward layer. With $U = 1$ it is attention without a gate.
#
# ## Is one as good as two?
#
# Two units stand in for one block of attention and feed-forward layer, with
# equal parameters. Let us train units for a short while on real text, source
# files of Python's standard library, to guess the next character.

# %%
from keras_gating.experiments import characters, gau_model, next_character
from keras_gating.experiments.population import seeded

STEPS = 2 if QUICK else 120
text = characters.Text()
inputs, targets = characters.random_windows(
    text.training, rng, STEPS * next_character.BATCH, gau_model.LENGTH
)


class Curve(keras.callbacks.Callback):
    """Keeps the loss of every step."""

    def on_train_begin(self, logs=None):
        self.total, self.losses = 0.0, []

    def on_train_batch_end(self, batch, logs=None):
        # Keras reports the mean over the steps so far.
        total = logs["loss"] * (batch + 1)
        self.losses.append(total - self.total)
        self.total = total


(arm,) = gau_model.arms_by_name(["unit"])
with seeded(0):
    model = gau_model.build(arm)
next_character.compile_model(model, 3e-3, STEPS, arm.epsilon)
model.run_eagerly = QUICK
curve = Curve()
model.fit(
    inputs,
    targets,
    batch_size=next_character.BATCH,
    shuffle=False,
    verbose=0,
    callbacks=[curve],
)

figure, axis = plt.subplots(figsize=(6.5, 3.2), layout="constrained")
axis.plot(curve.losses, color=BLUE, linewidth=1.2)
axis.set(xlabel="step", ylabel="loss, nats a character")
axis.set_title(f"four units, {model.count_params():,} parameters")
plt.show()

# %% [markdown]
# It learns. How does it compare? One short training would not tell. The full
# run of `keras-gating gau` has 3 seeds and 500 steps. It also takes parts of
# the unit away, at equal parameters (loss on other files, nats a character;
# smaller is better):
#
# | block | loss | minus the unit, 95 % interval |
# | --- | --- | --- |
# | attention, feed-forward | 2.085 ± 0.041 | +0.073 [+0.004, +0.142] |
# | unit, squared ReLU | 2.012 ± 0.038 | |
# | unit, softmax | 1.928 ± 0.041 | −0.085 [−0.116, −0.053] |
# | unit, chunks of 16 | 2.006 ± 0.037 | −0.006 [−0.073, +0.061] |
# | without the gate: U = 1 | 2.249 ± 0.063 | +0.237 [+0.137, +0.336] |
# | without attention: A = identity | 2.520 ± 0.002 | +0.507 [+0.468, +0.546] |
#
# * **The gate matters.** Without it the unit loses more than the whole
#   difference to attention and feed-forward layer.
# * **The simple weights are not free.** The same unit with softmax is better
#   here.
# * **A condition.** These numbers are with Adam's ε at 1e-10. The unit starts
#   so near to nothing that its gradients are smaller than the usual 1e-7. With
#   that, the unit reaches 2.089 and the baseline 2.085: no difference shown.
#   Nothing else changed. Whoever quotes the 0.073 has to quote the ε.
#
# ## What the unit looks at
#
# The last unit of our short training, on a line of code. Each row is a
# character that asks, each column one that is asked. The weights $A$ are worked
# out from the layer's own parts, as above; the rotary embedding tells it the
# distance.

# %%
code = "for name, value in sorted(items.items()):"
tokens = characters.encode(code.ljust(gau_model.LENGTH)).astype("int32")
units = [x for x in model.layers if isinstance(x, GatedAttentionUnit)]
unit = units[-1]
features = keras.Model(model.input, unit.input)(tokens[None])

z = keras.activations.silu(unit.shared_dense(unit.normalization(features)))
heads = functional.offset_scale(z, unit.query_key_scale, unit.query_key_offset)
positions = np.arange(gau_model.LENGTH)
query, key = (to_numpy(functional.apply_rotary(x, positions))[0] for x in heads)
weights = np.maximum(query @ key.T / np.sqrt(unit.key_dim), 0) ** 2
weights = np.tril(weights)[: len(code), : len(code)]
weights /= weights.max(axis=1, keepdims=True) + 1e-12

figure, axis = plt.subplots(figsize=(7, 6.4), layout="constrained")
axis.imshow(weights, cmap="Blues", vmin=0, vmax=1)
axis.set_xticks(range(len(code)), list(code), family="monospace", fontsize=8)
axis.set_yticks(range(len(code)), list(code), family="monospace", fontsize=8)
axis.set(xlabel="is asked", ylabel="asks")
axis.set_title("weights of the last unit, each row over its largest")
plt.show()

# %% [markdown]
# White is an exact zero, not a small number: that is the squared ReLU. Softmax
# would give every visible character something.
#
# ## Long sequences
#
# Now the cost. `cost_table` counts the operations of a forward pass, for one
# block of attention and feed-forward layer, for the two units that stand for
# it, and for two units in chunks of 256.

# %%
from keras_gating import diagnostics
from keras_gating.experiments import gau_cost

sizes = gau_cost.QUICK if QUICK else gau_cost.SIZES
lengths = (64, 128) if QUICK else (256, 1024, 4096)
forms = [form for form in gau_cost.FORMS if form.name != "blockwise"]
operations = {form.title: [] for form in forms}
for length in lengths:
    costs = diagnostics.cost_table(
        {form.title: gau_cost.build(form, length, sizes) for form in forms},
        input_shape=(1, length, sizes["dim"]),
        measure=False,
    )
    for name, cost in costs.items():
        operations[name].append(cost.flops)

figure, axis = plt.subplots(figsize=(6.5, 3.6), layout="constrained")
for (name, values), colour in zip(operations.items(), (BLUE, ORANGE, GREEN)):
    per_token = np.array(values) / lengths / 1e6
    axis.plot(lengths, per_token, "o-", color=colour, label=name)
    print(f"{name:24}", per_token.round(2), "million a position")
axis.set(xscale="log", yscale="log", xlabel="positions")
axis.set_ylabel("million operations a position")
axis.set_yticks([0.5, 1, 2, 5], [0.5, 1, 2, 5])
axis.set_xticks(lengths, lengths)
axis.minorticks_off()
axis.legend()
plt.show()

# %% [markdown]
# A flat line is a cost that is linear in the length: every further position
# costs the same. The other two climb, since each position looks at all others;
# the plain units climb faster, because their value is twice as wide.
#
# Operations are not seconds. Measured times are in the full run, for blocks of
# width 128 on two processors with nothing else running. Ratios to the time of
# attention and feed-forward layer, below 1 is faster:
#
# | length | units | units in chunks | training: units | in chunks |
# | --- | --- | --- | --- | --- |
# | 256 | 0.96 | 1.13 | 1.08 | 1.28 |
# | 1,024 | 0.74 | 0.60 | 0.56 | 0.49 |
# | 4,096 | 0.83 | 0.24 | 0.57 | 0.19 |
# | 8,192 | 0.63 | 0.12 | 0.50 | 0.11 |
#
# Short sequences gain nothing from chunks. From about a thousand positions on
# they do, and the gain grows with the length. That the plain unit is faster
# than the baseline says less: JAX's attention is slow on such processors.
#
# ## A memory that does not grow
#
# A model that writes text, token by token, keeps keys and values of all that
# was said. The chunked unit keeps a sum and the current chunk:

# %%
contexts = (1_000, 10_000, 100_000)
keep_all = GatedAttentionUnit(key_dim=32)
keep_sum = GatedAttentionUnit(key_dim=32, chunk_size=256)
for layer in (keep_all, keep_sum):
    layer.build((None, None, 64))


def size(cache):
    return sum(int(np.prod(x.shape)) for x in keras.tree.flatten(cache))


for length in contexts:
    everything = size(keep_all.init_cache(1, max_length=length))
    print(
        f"{length:7,} tokens: {everything:12,} numbers,",
        f"in chunks {size(keep_sum.init_cache(1)):,}",
    )

# %% [markdown]
# ## What it does not show
#
# * *Quality on long texts.* The cost is linear; whether a sum of the distant
#   past is enough depends on the task. Our text experiment had windows of 64.
# * *Other optimizers, larger models, more steps.* Three seeds make wide
#   intervals, and the ε above shows how much a detail can weigh.
# * *Which is better in general.* At equal parameters the unit did as well here.
#   The published speed-ups are for much larger models on other hardware.
#
# ## Exercise
#
# 1. Train the arms `"attention"` and `"no_gate"` as well and draw their curves.
#    Can you see the missing gate in 120 steps? Try another seed before you
#    answer.
# 2. Train the arm `"unit_usual"`, the same unit with Adam's usual ε. What
#    happens in the first 50 steps, and why?
# 3. Show that the mask keeps its word: change the last character of `tokens`
#    and check that no earlier output of the model changes.
