"""Which leaf of a tree a sequence belongs to: gates in front of the readout."""

import dataclasses

import keras
import numpy as np

from keras_gating.experiments.selection import entries_by_name
from keras_gating.experiments.trees_model import balanced_tree
from keras_gating.layers import CurvatureGate
from keras_gating.layers import Gate
from keras_gating.layers import GatedAttention

DEPTH = 4
LEAVES = 2**DEPTH
TOKENS = 8
FEATURES = 8
# Everything that the readout sees is a point of so many dimensions.
POINT = 2
NOISE = 0.3
HEADS = 2
KEY_DIM = 4
BATCH = 64
TEST_SEQUENCES = 2000
# κ starts at 0 and has a few units to go.
SPEED = 3.0


@dataclasses.dataclass(frozen=True)
class Arm:
    """What stands between the attention and the readout.

    Args:
        name: key of the arm in the results.
        title: the arm in words.
        gate: whether a learnt gate is there.
        curvature: initial curvature, or `None` for a gate without one.
        learnt: whether the curvature trains.
        chart: of the curved gate.
    """

    name: str
    title: str
    gate: bool = True
    curvature: float | None = None
    learnt: bool = True
    chart: str = "stereographic"


ARMS = (
    Arm("none", "no gate", gate=False),
    Arm("sigmoid", "sigmoid gate"),
    Arm("flat", "stereographic, κ = 0", curvature=0.0, learnt=False),
    Arm("stereographic", "stereographic, κ learnt", curvature=0.0),
    Arm("negative", "stereographic, κ = −1", curvature=-1.0, learnt=False),
    Arm(
        "gnomonic",
        "sigmoid, then gnomonic, κ learnt",
        curvature=0.0,
        chart="gnomonic",
    ),
)


def sequences(rng, count, nodes):
    """Noisy tokens of a leaf's ancestors, and the leaf.

    Args:
        rng: a NumPy generator.
        count: number of sequences.
        nodes: a vector of each node of the tree, `(n, FEATURES)`, the root
            first.

    Returns:
        `(count, TOKENS, FEATURES)` and labels `(count,)`.
    """
    labels = rng.integers(LEAVES, size=count)
    above = [labels + LEAVES - 1]
    while len(above) < DEPTH:
        above.append((above[-1] - 1) // 2)
    path = np.stack(above, axis=-1)
    seen = rng.integers(DEPTH, size=(count, TOKENS))
    tokens = nodes[np.take_along_axis(path, seen, axis=1)]
    tokens = tokens + NOISE * rng.normal(size=tokens.shape)
    return tokens.astype("float32"), labels


def node_vectors(rng):
    """Random vectors of length 1 for all nodes of the tree."""
    vectors = rng.normal(size=(2 * LEAVES - 1, FEATURES))
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def leaf_distances():
    """Steps between the leaves along the tree, `(LEAVES, LEAVES)`."""
    return balanced_tree(2, DEPTH)[-LEAVES:, -LEAVES:]


def build(arm):
    """A model of an arm, `(B, TOKENS, FEATURES)` to logits `(B, LEAVES)`."""
    inputs = keras.Input((TOKENS, FEATURES))
    x = GatedAttention(HEADS, KEY_DIM, use_gate=False, name="attention")(
        inputs, inputs
    )
    pooled = keras.layers.GlobalAveragePooling1D(name="pool")(x)
    x = keras.layers.Dense(POINT, name="point")(pooled)
    curved = arm.curvature is not None
    if curved and arm.chart == "stereographic":
        x = CurvatureGate(
            arm.curvature,
            chart="stereographic",
            curvature_trainable=arm.learnt,
            curvature_speed=SPEED if arm.learnt else 1.0,
            name="gate",
        )(x, source=pooled)
    elif arm.gate:
        x = Gate(granularity="headwise", name="gate")(x, source=pooled)
    if curved and arm.chart == "gnomonic":
        x = CurvatureGate(
            arm.curvature, curvature_speed=SPEED, name="curvature"
        )(x)
    outputs = keras.layers.Dense(LEAVES, name="readout")(x)
    return keras.Model(inputs, outputs, name=arm.name)


def learnt_curvature(model):
    """κ of a model, or `None` for one without a curved gate."""
    for layer in model.layers:
        if isinstance(layer, CurvatureGate):
            return layer.current_curvature()
    return None


def arms_by_name(names=None):
    """Returns the arms called `names`, all of them by default."""
    return entries_by_name(ARMS, names, "trees", "task_arms")
