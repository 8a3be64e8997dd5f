"""A copy of a model, some of whose layers are others."""

import keras

from keras_gating import _keras
from keras_gating.layers.trainable_flags import set_trainable


class ModelCopy:
    """Copies models made of a graph: layers, weights, flags, but no compiling.

    Every layer is made again from its configuration and gets the weights and
    `trainable` flags of the original, sub-layers included. A layer that stands
    in several places, or in several models of a nest, is copied once.

    Args:
        convert: a function that gets a layer and this object, and returns what
            stands in the place of the layer, built and with its weights, or
            `None` for a plain copy.
        follow: a function that gets a layer of the original and returns the
            layer that is put behind its copy, or `None`.
    """

    def __init__(self, convert=None, follow=None):
        self._convert = convert or (lambda layer, copy: None)
        self._follow = follow or (lambda layer: None)
        self._copies = {}
        self._models = []
        self._plain = []
        self._flags = []
        self._variables = {}

    def __call__(self, model):
        """The copy of a model."""
        copy = self.model(model)
        self._finish()
        return copy

    def model(self, model):
        """The copy of a model in the nest, weights and flags still to come."""
        # The first in the list are the outer ones, whose flags are for all.
        position = len(self._models)
        if isinstance(model, keras.Sequential):
            copy = self._sequential(model)
        else:
            copy = self._functional(model)
        self._models.insert(position, (model, copy))
        self._copies[id(model)] = copy
        return copy

    def plain(self, layer, built_by=None):
        """A copy of a layer; with `built_by`, arguments of a call, at once."""
        copy = _from_config(layer)
        if built_by is not None:
            args, kwargs = built_by
            copy(*args, **kwargs)
            _copy_weights(layer, copy)
            _copy_flags(layer, copy)
        return copy

    def _layer(self, layer):
        copy = self._copies.get(id(layer))
        if copy is None:
            copy = self._convert(layer, self)
            if copy is not None:
                self._note(layer, [(v, copy) for v in layer.variables])
                self._flags += _flags(copy)
            elif _keras.is_graph(layer):
                return self.model(layer)
            else:
                copy = self.plain(layer)
                if isinstance(layer, keras.layers.Layer):
                    self._plain.append((layer, copy))
            self._copies[id(layer)] = copy
        return copy

    def _functional(self, model):
        def new_input(tensor):
            layer = _keras.layer_of(tensor)
            return type(layer).from_config(layer.get_config()).output

        sources = {}

        def copied(layer):
            copy = self._layer(layer)
            if id(copy) not in sources:
                sources[id(copy)] = layer
                _call_once(layer, copy)
            return copy

        def call(copy, *args, **kwargs):
            outputs = copy(*args, **kwargs)
            for gate in self._followed(sources[id(copy)]):
                outputs = gate(outputs)
            return outputs

        # Without what the original was compiled with.
        view = keras.Model(model.input, model.output, name=model.name)
        return keras.models.clone_model(
            view,
            input_tensors=keras.tree.map_structure(new_input, model.input),
            clone_function=copied,
            call_function=call,
        )

    def _sequential(self, model):
        # A list of layers remembers the shape of its input.
        layers = []
        for layer in _keras.listed_layers(model):
            if isinstance(layer, keras.layers.InputLayer):
                layers.append(type(layer).from_config(layer.get_config()))
                continue
            layers.append(self._layer(layer))
            layers += self._followed(layer)
        return keras.Sequential(layers, name=model.name)

    def _finish(self):
        for model, copy in self._models:
            set_trainable(copy, model.trainable)
        for layer, copy in self._plain:
            _copy_weights(layer, copy)
            _copy_flags(layer, copy)
            self._note(layer, zip(layer.variables, copy.variables))
        _restore(self._flags)

    def _followed(self, layer):
        gate = self._follow(layer)
        if gate is None:
            return []
        self._flags.append((gate, gate.trainable))
        return [gate]

    def _note(self, layer, pairs):
        for variable, target in pairs:
            # The variable is kept, so that its id stays its own.
            _, known = self._variables.setdefault(
                id(variable), (variable, target)
            )
            if known is not target:
                raise ValueError(
                    "The layers of a model must share weights by being the "
                    f"same layer. Received: {variable.path!r} of layer "
                    f"{layer.name!r} ({type(layer).__name__}) is in another "
                    "layer too, and their copies would have one each"
                )


def _call_once(layer, copy):
    """Makes the first call of a copy one with as many outputs as the layer's.

    Keras looks at the first call of a layer to tell how many outputs each has,
    and a copy is called in the order of the graph.
    """
    calls = _keras.symbolic_calls(layer)
    if len({len(call.outputs) for call in calls}) > 1:
        args, kwargs = _keras.first_call(layer)
        copy(*args, **kwargs)


def check_model(model):
    """Raises unless a model is nothing but its layers."""
    hooks: list[str] | None = None
    if isinstance(model, (_keras.functional_class(), keras.Sequential)):
        hooks = _keras.overridden_hooks(model)
        if not hooks:
            return
    own = f" with its own {', '.join(hooks)}" if hooks else ""
    raise ValueError(
        "Surgery takes functional and sequential models. Of a subclass that "
        "is called on one input, make one by "
        "`keras.Model(inputs, model(inputs))`; "
        "of a functional model with methods of its own, by "
        f"`keras.Model(model.input, model.output)`. Received: {type(model)}"
        f"{own}"
    )


def _from_config(layer):
    if type(layer) is keras.layers.Lambda:
        # Its configuration holds the code of the function without its module.
        return keras.layers.Lambda(
            layer.function,
            output_shape=_keras.argument(layer, "output_shape"),
            mask=layer.mask,
            arguments=layer.arguments,
            name=layer.name,
            dtype=layer.dtype_policy,
        )
    config = layer.get_config()
    try:
        copy = type(layer).from_config(config)
        if copy.name != layer.name:
            # Keras' own configuration may lack the name.
            copy = type(layer).from_config({**config, "name": layer.name})
        return copy
    except (NotImplementedError, TypeError, ValueError) as error:
        raise ValueError(
            f"Layer {layer.name!r} ({type(layer).__name__}) cannot be copied, "
            f"since it cannot be made from its configuration: {error}"
        ) from error


def _copy_weights(layer, copy):
    if _signature(layer) != _signature(copy):
        raise ValueError(
            f"Layer {layer.name!r} ({type(layer).__name__}) cannot be copied: "
            "what its configuration makes has other sub-layers or other "
            f"weights. Received: {_signature(layer)}, and from the "
            f"configuration {_signature(copy)}"
        )
    for source, target in zip(layer.variables, copy.variables):
        # A copy, since training on JAX gives its buffers away.
        target.assign(keras.ops.copy(source))


def _signature(layer):
    kinds = [type(child).__name__ for child in _keras.sublayers(layer)]
    return kinds, [tuple(variable.shape) for variable in layer.variables]


def _flags(layer):
    """Everything with a `trainable` flag in a layer, with the flag."""
    objects = [*_keras.sublayers(layer), *layer.variables]
    return [(x, x.trainable) for x in objects]


def _copy_flags(layer, copy):
    flags = [flag for _, flag in _flags(layer)]
    objects = [x for x, _ in _flags(copy)]
    _restore(list(zip(objects, flags)))


def _restore(flags):
    # The flag of a layer is passed on to what is in it, which comes later.
    for x, flag in flags:
        x.trainable = flag
