"""What the package needs of Keras and what has no public name there."""

import functools
import importlib
import inspect

import keras

_HOOKS = (
    "call",
    "compute_loss",
    "compute_metrics",
    "predict_step",
    "test_step",
    "train_step",
)
# What torch does around or in place of the calls of a module.
_AROUND = (
    "_forward_pre_hooks",
    "_forward_hooks",
    "_backward_pre_hooks",
    "_backward_hooks",
    "_compiled_call_impl",
)
_REPLACED = frozenset(("call", "forward"))


@functools.cache
def _private(module, name):
    """Something of Keras' own modules, looked up when it is needed."""
    try:
        return getattr(importlib.import_module(f"keras.src.{module}"), name)
    except (ImportError, AttributeError) as error:
        raise ImportError(
            "keras_gating needs some parts of Keras that have no public name, "
            f"and this release has them elsewhere: there is no `{name}` in "
            f"keras.src.{module}. Install another release of Keras, or a newer "
            f"one of keras_gating. Received: Keras {keras.__version__}"
        ) from error


def get_keras_mask(x):
    """The mask that Keras carries along with a tensor, or `None`."""
    return _private("backend", "get_keras_mask")(x)


def set_keras_mask(x, mask):
    """Gives a tensor a mask to carry along, or takes it off with `None`."""
    _private("backend", "set_keras_mask")(x, mask)


def functional_class():
    """The class of models that are made of a graph."""
    return _private("models.functional", "Functional")


def sublayers(layer, include_self=True):
    """The layer itself and every layer inside of it, each once."""
    if not isinstance(layer, keras.layers.Layer):
        raise ValueError(
            "`model` must be a model or layer of Keras. Received: "
            f"model={layer!r}"
        )
    return list(layer._flatten_layers(include_self=include_self))


def layers_in_scope():
    """Layers that are being built or called, inner ones last."""
    attribute = _private("backend.common.global_state", "get_global_attribute")
    scopes = attribute("name_scope_stack") or []
    callers = [scope.caller for scope in scopes]
    return [x for x in callers if isinstance(x, keras.layers.Layer)]


def children(layer):
    """The layers right inside of a layer."""
    return list(layer._flatten_layers(include_self=False, recursive=False))


def is_graph(layer):
    """Whether a layer is a model that is made of a graph or a list of layers.

    Not one that overrides `call`: nobody knows what that does with its layers.
    """
    kinds = (functional_class(), keras.Sequential)
    return isinstance(layer, kinds) and "call" not in overridden_hooks(layer)


def overridden_hooks(model):
    """Names of the methods that make a model more than its layers."""
    is_list = isinstance(model, keras.Sequential)
    kind = keras.Sequential if is_list else functional_class()
    return [
        name
        for name in _HOOKS
        if inspect.getattr_static(type(model), name)
        is not inspect.getattr_static(kind, name)
    ]


def listed_layers(model):
    """The layers of a sequential model, with that of its input, if any."""
    # `layers` leaves out the input.
    return list(model._layers)


def inputs_of(model):
    """The symbolic inputs of a graph, in their nest; `None` without any."""
    # `input` of a sequential model is what it was called on, if it was.
    graph = _graph(model)
    return None if graph is None else graph.input


def _graph(model):
    """What holds the graph: of a sequential model `None` before it is built."""
    is_list = isinstance(model, keras.Sequential)
    return model._functional if is_list else model


def layer_of(tensor):
    """The layer or operation that made a symbolic tensor."""
    return tensor._keras_history.operation


def nodes(model):
    """The calls of layers and operations in a graph, producers first."""
    graph = _graph(model)
    if graph is None:
        return []
    by_depth = graph._nodes_by_depth
    return [
        node
        for depth in sorted(by_depth, reverse=True)
        for node in by_depth[depth]
        if node.operation is not None
    ]


def symbolic_calls(layer):
    """All calls of a layer or operation on symbolic tensors, as they came."""
    return list(layer._inbound_nodes)


def first_call(layer):
    """Arguments of the first symbolic call of a layer, as new inputs."""
    for node in symbolic_calls(layer):
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


def parent_path(layer):
    """Path of what a layer was built in, `None` before it is built."""
    return layer._parent_path


def set_parent_path(layer, path):
    """Sets what the paths of a layer and of its weights begin with."""
    layer._parent_path = path


def settle_layout(variable):
    """Asks the distribution, if any, for the layout of a new weight now.

    Of a weight that is made while a call is traced, as in a model without a
    `build`, Keras on JAX asks when it gets its values, after the call.
    """
    distribution = keras.distribution.distribution()
    if distribution is None or getattr(variable, "_layout", "none") is not None:
        return
    layout = distribution.get_variable_layout(variable)
    variable._layout = getattr(layout, "backend_layout", layout)


def is_watched(layer):
    """Whether anything is to happen around calls of a layer, or in their place.

    Recomputing for gradients, hooks and compiled calls of torch, and methods
    that were replaced in this one object.
    """
    return (
        layer._remat_mode is not None
        or any(getattr(layer, name, None) for name in _AROUND)
        or not _REPLACED.isdisjoint(vars(layer))
    )


def pass_arguments_on(layer):
    """Lets a layer hand its call arguments on as they are."""
    layer._convert_input_args = False
    layer._allow_non_tensor_positional_args = True


def argument(layer, name):
    """What the constructor of a layer of Keras got, `None` if it has no such.

    In some layers the attribute is private.
    """
    return getattr(layer, f"_{name}", getattr(layer, name, None))


def child_layers(owner):
    """Pairs of a path and a layer, for every layer in an attribute of `owner`.

    A path is a list: the name of the attribute and, for lists, tuples and
    dictionaries, the indices and keys that lead to the layer.
    """
    # With a name of its own, or Keras would count it.
    bare = keras.layers.Layer(name="bare")
    for name in sorted(_names(owner) - _names(bare)):
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
