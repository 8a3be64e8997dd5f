"""What surgery needs of Keras and what has no public name there."""

import inspect

import keras
from keras.src.backend import get_keras_mask
from keras.src.backend import set_keras_mask
from keras.src.models.functional import Functional

__all__ = [
    "Functional",
    "child_layers",
    "first_call",
    "get_keras_mask",
    "is_graph",
    "nodes",
    "overridden_hooks",
    "replace_child",
    "set_keras_mask",
]

_HOOKS = (
    "call",
    "compute_loss",
    "compute_metrics",
    "predict_step",
    "test_step",
    "train_step",
)


def is_graph(layer):
    """Whether a layer is a model that is made of a graph or a list of layers.

    Not one that overrides `call`: nobody knows what that does with its layers.
    """
    kinds = (Functional, keras.Sequential)
    return isinstance(layer, kinds) and "call" not in overridden_hooks(layer)


def overridden_hooks(model):
    """Names of the methods that make a model more than its layers."""
    kind = keras.Sequential if isinstance(model, keras.Sequential) else None
    kind = kind or Functional
    return [
        name
        for name in _HOOKS
        if inspect.getattr_static(type(model), name)
        is not inspect.getattr_static(kind, name)
    ]


def nodes(model):
    """The calls of layers and operations in a graph, producers first."""
    if isinstance(model, keras.Sequential):
        model = model._functional
    if model is None:
        return []
    by_depth = model._nodes_by_depth
    return [
        node
        for depth in sorted(by_depth, reverse=True)
        for node in by_depth[depth]
        if node.operation is not None
    ]


def first_call(layer):
    """Arguments of the first symbolic call of a layer, as new inputs."""
    for node in layer._inbound_nodes:
        arguments = node.arguments
        return keras.tree.map_structure(
            _as_new_input, (list(arguments.args), dict(arguments.kwargs))
        )
    raise ValueError(
        "A layer that holds attention must have been called in a functional "
        f"or sequential model. Received: {layer.name!r} "
        f"({type(layer).__name__})"
    )


def _as_new_input(x):
    if not isinstance(x, keras.KerasTensor):
        return x
    return keras.Input(batch_shape=x.shape, dtype=x.dtype, sparse=x.sparse)


def child_layers(owner):
    """Pairs of a path and a layer, for every layer in an attribute of `owner`.

    A path is a list: the name of the attribute and, for lists, tuples and
    dictionaries, the indices and keys that lead to the layer.
    """
    own = _names(owner) - _names(keras.layers.Layer())
    for name in sorted(own):
        # TensorFlow's book-keeping, made when it is first needed.
        if not name.startswith("_self_unconditional_"):
            yield from _layers_in(getattr(owner, name, None), [name])


def _names(layer):
    # On torch, attributes that are layers are kept in a dictionary of its own.
    return {*vars(layer), *vars(layer).get("_modules", ())}


def _layers_in(value, path):
    if isinstance(value, keras.layers.Layer):
        yield path, value
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from _layers_in(item, [*path, index])
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _layers_in(item, [*path, key])


def replace_child(owner, path, new):
    """Puts a layer in the place of another, in attribute and tracking."""
    name, *keys = path
    value = getattr(owner, name)
    old = value
    for key in keys:
        old = old[key]
    store = owner._tracker
    if old is not new and not store.is_in_store("layers", new):
        store.replace_tracked_value("layers", old, new)
    value = new if not keys else _with_item(value, keys, new)
    setattr(owner, name, value)


def _with_item(container, keys, new):
    key, *further = keys
    item = new if not further else _with_item(container[key], further, new)
    if isinstance(container, tuple):
        items = [*container[:key], item, *container[key + 1 :]]
        is_named = hasattr(container, "_fields")
        return type(container)(*items) if is_named else tuple(items)
    container[key] = item
    return container
