"""Attention that is held by other layers."""

import contextlib

import keras
from keras import tree

from keras_gating import _keras
from keras_gating.layers.trainable_flags import part_flags
from keras_gating.layers.trainable_flags import set_part_flags


@keras.saving.register_keras_serializable(package="keras_gating")
class WithGatedAttention(keras.layers.Wrapper):
    """A layer in which some sub-layers are replaced.

    The constructor of a layer such as a transformer block makes its attention
    itself, so gates put into such a layer would be lost when it is loaded.
    This wrapper remembers what was replaced, makes the layer from its own
    configuration, and replaces the sub-layers again.

    Call arguments, masks and return values are those of the layer, which is
    the attribute `layer`.

    Args:
        layer: the layer; its attributes are changed.
        replacements: a list of `{"places": …, "layer": …}`: a new sub-layer
            and the places where it belongs. A place is a list of paths, each
            from one layer to the next inside of it; a path is a list of the
            name of an attribute and, for containers, an index or a key.
        trainable_parts: the `trainable` flags of the layer and of all layers
            in it, which Keras does not save. Defaults to `None`, as they are.
        **kwargs: arguments of `keras.layers.Layer`.
    """

    def __init__(self, layer, replacements, trainable_parts=None, **kwargs):
        kwargs.setdefault("name", layer.name)
        kwargs.setdefault("dtype", layer.dtype_policy)
        # Before the change, after which the layer may not know how.
        configuration = keras.saving.serialize_keras_object(layer)
        super().__init__(layer, **kwargs)
        if _keras.parent_path(layer) is None:
            # What it builds later has the same path as without a wrapper.
            _keras.set_parent_path(layer, "")
        self._layer_configuration = configuration
        self._flags = trainable_parts
        self._places = []
        for replacement in replacements:
            for *outer, path in replacement["places"]:
                owner = _follow(layer, outer)
                _keras.replace_child(owner, path, replacement["layer"])
            self._places.append(replacement["places"])
        # The layer converts its arguments itself, and looks for masks.
        _keras.pass_arguments_on(self)
        self.supports_masking = True
        self.built = True

    def call(self, *args, **kwargs):
        return self.layer(*args, **kwargs)

    def compute_output_spec(self, *args, **kwargs):
        # Not by its own method of this name, which does not build the layer.
        outputs = self.layer(*args, **kwargs)
        if self._flags is not None:
            # Only now is there everything that has a flag.
            set_part_flags(self.layer, self._flags)
            self._flags = None
        return tree.map_structure(
            lambda x: keras.KerasTensor(x.shape, x.dtype), outputs
        )

    def compute_output_shape(self, *args, **kwargs):
        return self.layer.compute_output_shape(*args, **kwargs)

    def compute_mask(self, inputs, previous_mask):
        if not self.layer.supports_masking:
            return None
        return self.layer.compute_mask(inputs, previous_mask)

    def get_config(self):
        replacements = []
        for places in self._places:
            sublayer = _follow(self.layer, places[0])
            path = sublayer.path
            if _keras.is_graph(sublayer):
                # What it holds was built below the layer that holds it.
                owner = _follow(self.layer, places[0][:-1])
                path = f"{owner.path}/{sublayer.name}"
            replacements.append(
                {
                    "places": places,
                    "path": path,
                    "layer": keras.saving.serialize_keras_object(sublayer),
                }
            )
        return {
            **keras.layers.Layer.get_config(self),
            "layer": self._layer_configuration,
            "replacements": replacements,
            "trainable_parts": self._flags or part_flags(self.layer),
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        def made(configuration):
            return keras.saving.deserialize_keras_object(
                configuration, custom_objects=custom_objects
            )

        config = dict(config)
        replacements = []
        for replacement in config.pop("replacements"):
            with _below(replacement["path"]):
                sublayer = made(replacement["layer"])
            places = replacement["places"]
            replacements.append({"places": places, "layer": sublayer})
        return cls(made(config.pop("layer")), replacements, **config)


@contextlib.contextmanager
def _below(path):
    """What is built in this context gets the parents of a path."""
    with contextlib.ExitStack() as stack:
        for name in path.split("/")[:-1]:
            stack.enter_context(keras.name_scope(name))
        yield


def _follow(layer, place):
    """The layer at a place inside of another."""
    for path in place:
        for number, step in enumerate(path):
            layer = layer[step] if number else getattr(layer, step)
    return layer


def places_of(layer, is_wanted):
    """Where layers are inside of another one.

    Args:
        layer: the layer.
        is_wanted: a function of a layer, whether it is looked for; what is
            inside of such a layer is not.

    Returns:
        A list of pairs `(sub-layer, places)`, as `WithGatedAttention` takes
        them.
    """
    found: dict = {}
    _collect(layer, is_wanted, [], found, {id(layer)})
    return list(found.values())


def _collect(owner, is_wanted, outer, found, entered):
    for path, child in _keras.child_layers(owner):
        place = [*outer, path]
        if is_wanted(child):
            found.setdefault(id(child), (child, []))[1].append(place)
        elif id(child) not in entered:
            entered.add(id(child))
            _collect(child, is_wanted, place, found, entered)
