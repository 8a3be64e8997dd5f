from keras_gating import _keras
from keras_gating.layers import low_rank
from keras_gating.layers.gate_kinds import is_gate


def enable_lora(model, rank, include_gates=True):
    """Trains low-rank updates of all dense kernels of a model in their place.

    Every `Dense` and `EinsumDense` in the model, those inside of layers of
    Keras and of the package too, computes with `W + A B` from here on, and `A`
    and `B` train while `W` does not. `B` starts at zero, so the outputs are
    the same until then.

    What is frozen stays frozen and gets no update, so freezing is how layers
    are left out. What is not dense (biases, normalizations, convolutions,
    embeddings) trains on unless it is frozen. Saving merges the updates into
    the kernels.

    Call this before `compile`.

    Args:
        model: a built model or layer; changed in place.
        rank: rank of the updates.
        include_gates: whether the kernels of gates get updates too: of `Gate`
            layers, which those of `GatedAttention` are, and of gates on
            feature maps. If not, they keep training as they are, as new gates
            in a trained model should. The GLU family and `GatedAttentionUnit`
            get updates either way: value and gate are halves of one kernel.

    Raises:
        ValueError: if something is not built, if no dense kernel trains, and
            for kernels with a constraint, an update, or quantized to float8.
            Nothing is changed then.

    Example:

    >>> import keras
    >>> from keras_gating import layers, surgery
    >>> inputs = keras.Input((4, 64))
    >>> outputs = layers.GatedAttention(4, 16, use_bias=False)(inputs, inputs)
    >>> model = keras.Model(inputs, outputs)
    >>> surgery.enable_lora(model, 2, include_gates=False)
    >>> paths = [w.path for w in model.trainable_weights]
    >>> [path for path in paths if "lora" not in path]
    ['gated_attention/gate/projection/kernel']

    References:
        Hu et al. 2021, arXiv 2106.09685.
    """
    gates = [x for x in _keras.sublayers(model) if is_gate(x)]
    low_rank.enable_lora(model, rank, () if include_gates else gates)
