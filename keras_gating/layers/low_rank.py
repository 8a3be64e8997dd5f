"""Low-rank updates (LoRA) of all projections in a layer or a model."""

import keras

from keras_gating import _keras
from keras_gating.functional import checks

_DENSE = (keras.layers.Dense, keras.layers.EinsumDense)
# Those in which Keras computes with updates.
_MODES = (None, "int8", "int4")


class LowRankUpdates(keras.layers.Layer):
    """A layer whose dense kernels can get low-rank updates."""

    def enable_lora(self, rank):
        """Trains low-rank updates of the dense kernels in their place.

        The outputs are the same until the updates are trained. Biases,
        normalizations and convolutions train on; saving merges the updates
        into the kernels.

        Args:
            rank: rank of the updates.

        Raises:
            ValueError: if the layer is not built, has no dense kernel or none
                that trains, and for kernels with a constraint or an update.
                Nothing is changed then.
        """
        enable_lora(self, rank)


def enable_lora(layer, rank, left_out=()):
    """Gives every dense kernel inside of a layer that trains an update.

    Args:
        layer: a layer or model.
        rank: rank of the updates.
        left_out: layers in it whose kernels stay as they are.
    """
    checks.positive_integer("rank", rank)
    parts = _keras.sublayers(layer)
    unbuilt = [
        part.name
        for part in parts
        if not part.built
        and (part is layer or isinstance(part, (LowRankUpdates, *_DENSE)))
    ]
    if unbuilt:
        raise ValueError(
            "`enable_lora` needs weights: build or call the layer first. "
            f"Received: {unbuilt[0]}.built=False"
        )
    excluded = {id(x) for gate in left_out for x in _keras.sublayers(gate)}
    dense = [
        part
        for part in parts
        if isinstance(part, _DENSE) and id(part) not in excluded
    ]
    projections = [part for part in dense if part.trainable]
    if not projections:
        lack = "that trains: unfreeze before what is to be adapted"
        if not dense:
            lack = "(convolutions, constants and curvatures are not dense)"
            lack += " outside of gates" if excluded else ""
        raise ValueError(
            f"`enable_lora` adds to dense kernels, and there is none {lack}. "
            f"Received: layer {layer.name!r} ({type(layer).__name__})"
        )
    # All of them before the first one is changed.
    for projection in projections:
        _check(projection)
    for projection in projections:
        projection.enable_lora(rank)


def _check(projection):
    if projection.lora_enabled:
        raise ValueError(
            "LoRA can be enabled once; saving and loading merges what it has "
            f"learned. Received: {projection.path!r} with lora_rank="
            f"{projection.lora_rank}"
        )
    if projection.kernel_constraint is not None:
        raise ValueError(
            "LoRA trains a summand of the kernel, to which a constraint of "
            f"the kernel cannot apply. Received: {projection.path!r} with "
            f"kernel_constraint={projection.kernel_constraint!r}"
        )
    mode = projection.quantization_mode
    if mode not in _MODES:
        raise ValueError(
            "LoRA goes with kernels in floating point, or quantized to "
            f"{' or '.join(_MODES[1:])}. Received: {projection.path!r} with "
            f"quantization_mode={mode!r}"
        )
