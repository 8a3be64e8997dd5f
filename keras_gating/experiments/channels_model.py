"""The arms of the channels experiment: a small residual network."""

import dataclasses

import keras

from keras_gating.experiments.selection import entries_by_name
from keras_gating.layers import CBAM
from keras_gating.layers import ECA
from keras_gating.layers import SqueezeExcite

IMAGE = 8
CLASSES = 10
# Channels and side of each stage; a stage is one residual block.
STAGES = ((16, 8), (32, 4))
# The networks are narrow: the usual 16 would leave one or two features.
RATIO = 4
SPATIAL_KERNEL = 7
ADAPTIVE_KERNEL = 3

_GATES = {
    "se": ("SE", SqueezeExcite, {"ratio": RATIO}),
    "eca": ("ECA", ECA, {}),
    "cbam": ("CBAM", CBAM, {"ratio": RATIO, "kernel_size": SPATIAL_KERNEL}),
}
_PLACES = {
    "branch": "before the sum",
    "after": "after the sum",
    "last": "before the sum, last stage only",
}


@dataclasses.dataclass(frozen=True)
class Arm:
    """One network.

    Args:
        name: key of the arm in the results.
        title: the arm in words.
        gate: `"se"`, `"eca"`, `"cbam"` or `None`.
        place: `"branch"`, `"after"`, `"last"` or `None`.
    """

    name: str
    title: str
    gate: str | None = None
    place: str | None = None

    def has_gate(self, stage, place):
        """Whether a gate is at `place` (`"branch"`, `"after"`) of a stage."""
        if self.place == "last":
            return place == "branch" and stage == len(STAGES) - 1
        return place == self.place


ARMS = (
    Arm("none", "no gate"),
    *(
        Arm(f"{gate}_{place}", f"{title}, {words}", gate, place)
        for gate, (title, *_) in _GATES.items()
        for place, words in _PLACES.items()
    ),
)

# Every gate against none, and the cheap one against SE in the same place.
PAIRS = tuple((arm.name, "none") for arm in ARMS[1:]) + tuple(
    (f"eca_{place}", f"se_{place}") for place in _PLACES
)


def build(arm):
    """A model of `arm`: images `(B, 8, 8, 1)` to class logits `(B, 10)`."""
    layers = keras.layers
    inputs = keras.Input((IMAGE, IMAGE, 1))
    x = inputs
    for stage, (channels, _) in enumerate(STAGES):
        x = _convolution(x, channels, 2 if stage else 1)
        x = layers.ReLU()(x)
        y = layers.ReLU()(_convolution(x, channels))
        y = _convolution(y, channels)
        if arm.has_gate(stage, "branch"):
            y = _gate(arm)(y)
        x = layers.ReLU()(layers.Add()([x, y]))
        if arm.has_gate(stage, "after"):
            x = _gate(arm)(x)
    x = layers.GlobalAveragePooling2D(data_format="channels_last")(x)
    return keras.Model(inputs, layers.Dense(CLASSES)(x), name=arm.name)


def cost(arm):
    """Parameters and operations of a network, in closed form.

    An operation is a multiplication or an addition of convolutions, matrix
    products, pooling and gating; normalization and activations are left out,
    as they are the same in all arms but for a few numbers a channel.

    Returns:
        `{"parameters": …, "operations": …}` for one image.
    """
    parameters = operations = 0
    before = 1
    for stage, (channels, side) in enumerate(STAGES):
        for inputs in (before, channels, channels):
            # The kernel, and four vectors of the batch normalization.
            parameters += 9 * inputs * channels + 4 * channels
            operations += 2 * 9 * inputs * channels * side**2
        for place in ("branch", "after"):
            if arm.has_gate(stage, place):
                weights, work = gate_cost(arm.gate, channels, side**2)
                parameters += weights
                operations += work
        before = channels
    positions = STAGES[-1][1] ** 2
    parameters += (before + 1) * CLASSES
    operations += positions * before + (2 * before + 1) * CLASSES
    return {"parameters": parameters, "operations": operations}


def gate_cost(gate, channels, positions):
    """Parameters and operations of one gate on so many channels, positions.

    Each formula has a term for pooling and product, `positions · channels`
    numbers at a time, and one for its maps.
    """
    values = positions * channels
    width = channels // RATIO
    if gate == "se":
        parameters = 2 * channels * width + width + channels
        return parameters, 2 * values + 4 * channels * width + width + channels
    if gate == "eca":
        return ADAPTIVE_KERNEL, 2 * values + 2 * ADAPTIVE_KERNEL * channels
    # Mean and maximum through the MLP, whose outputs are added; then both
    # over channels, and one convolution of the two maps.
    window = 2 * SPATIAL_KERNEL**2
    parameters = 2 * channels * width + window
    channel = 3 * values + 8 * channels * width + channels
    spatial = 3 * values + 2 * window * positions
    return parameters, channel + spatial


def _convolution(x, channels, stride=1):
    x = keras.layers.Conv2D(
        channels,
        3,
        strides=stride,
        padding="same",
        use_bias=False,
        data_format="channels_last",
    )(x)
    return keras.layers.BatchNormalization(momentum=0.9)(x)


def _gate(arm):
    _, kind, arguments = _GATES[arm.gate]
    return kind(**arguments, data_format="channels_last")


def arms_by_name(names=None):
    """Returns the arms called `names`, all of them by default."""
    return entries_by_name(ARMS, names, "channels")
