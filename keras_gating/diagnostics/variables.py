from keras_gating._keras import sublayers
from keras_gating.diagnostics.watching import no_gates
from keras_gating.functional import checks
from keras_gating.layers.gate_kinds import gate_weights
from keras_gating.layers.gate_kinds import has_gate
from keras_gating.layers.gate_kinds import is_packed


def gate_variables(model, packed=False):
    """The weights of all gates of a model.

    For freezing them, for a learning rate of their own, or for
    `optimizer.exclude_from_weight_decay(var_list=gate_variables(model))`.

    Args:
        model: a built `keras.Model` or layer.
        packed: whether to add the kernels and biases that hold value and gate
            side by side: `(d, 2, units)` of the GLU family and of
            `GatedAttentionUnit`. Half of such a weight is no gate, so by
            default they are left out.

    Returns:
        A list of `keras.Variable`, each once, in the order of the layers:
        kernels and biases of each `Gate` and the curvature of each
        `CurvatureGate`, all weights of `SqueezeExcite`, `ECA` and `CBAM`
        (their networks do nothing but gate). A gate with
        `gate_source="split"` has no weights.

    Raises:
        ValueError: if there are none, and for layers that are not built.

    Example:

    >>> import numpy as np
    >>> from keras_gating import diagnostics, layers
    >>> layer = layers.GatedAttention(num_heads=2, key_dim=4, name="attention")
    >>> layer.build((None, 5, 8), (None, 5, 8))
    >>> [weight.path for weight in diagnostics.gate_variables(layer)]
    ['attention/gate/projection/kernel', 'attention/gate/projection/bias']
    """
    checks.boolean("packed", packed)
    found = {}
    for layer in sublayers(model):
        if has_gate(layer) and not layer.built:
            raise ValueError(
                "A layer has no weights before it is built: build or call the "
                f"model first. Received: {layer.name}.built=False"
            )
        for variable in gate_weights(layer, packed):
            found[id(variable)] = variable
    if not found:
        if not packed and any(map(is_packed, sublayers(model))):
            raise ValueError(
                "All gates of the model share their weights with the value. "
                "Pass `packed=True` for the weights of both. Received: "
                f"{type(model).__name__} {model.name!r}"
            )
        raise no_gates(model)
    return list(found.values())
