"""Which layers of a model are meant."""

import keras


def selected(name, choice, layers):
    """The layers that a choice names.

    Args:
        name: name of the argument, for messages.
        choice: a function of a layer, a name or path, several of them, or
            `None` for all layers.
        layers: a list of layers.

    Returns:
        A list of layers.

    Raises:
        ValueError: if nothing is chosen, and for names of no layer.
    """
    if isinstance(choice, keras.layers.Layer):
        raise ValueError(
            f"`{name}` takes the name of a layer or a function of layers. "
            f"Received: the layer {choice.name!r}"
        )
    if choice is None:
        return list(layers)
    # Before a layer is built it has no path.
    known = ", ".join(layer.path or layer.name for layer in layers)
    if callable(choice):
        chosen = [layer for layer in layers if choice(layer)]
        if not chosen:
            raise ValueError(
                f"`{name}` is true of no layer. Received: {name}={choice!r}, "
                f"and the layers {known}"
            )
        return chosen
    names = [choice] if isinstance(choice, str) else choice
    is_list = isinstance(names, (list, tuple, set, frozenset))
    if not is_list or not all(isinstance(x, str) for x in names):
        raise ValueError(
            f"`{name}` must be a function of a layer, a name or path of a "
            f"layer, or a list of such names. Received: {name}={choice!r}"
        )
    ours = {x for layer in layers for x in (layer.name, layer.path)}
    unknown = [x for x in names if x not in ours]
    if unknown or not names:
        raise ValueError(
            f"`{name}` must name layers. Received: {name}={choice!r}, where "
            f"{', '.join(map(repr, unknown)) or 'nothing'} is not among {known}"
        )
    return [x for x in layers if x.name in names or x.path in names]
