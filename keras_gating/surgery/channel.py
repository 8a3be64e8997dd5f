import typing

import keras

from keras_gating import _keras
from keras_gating.functional import checks
from keras_gating.layers import CBAM
from keras_gating.layers.channel.base import FeatureMapGate
from keras_gating.surgery import bottlenecks
from keras_gating.surgery.branches import CONVOLUTIONS
from keras_gating.surgery.branches import NORMALIZATIONS
from keras_gating.surgery.branches import Graph
from keras_gating.surgery.branches import ends_of_blocks
from keras_gating.surgery.branches import ends_of_branches
from keras_gating.surgery.copying import ModelCopy
from keras_gating.surgery.copying import check_model
from keras_gating.surgery.freezing import freeze_all_but_gates
from keras_gating.surgery.identity import identity_scale
from keras_gating.surgery.selection import selected


def gate_channels(model, layer, after=None, freeze=False):
    """A copy of a convolutional model, with gates, that computes the same.

    A clone of `layer` is put behind each chosen layer. It starts as the
    identity: its last kernel (of both gates of a `CBAM`) is zero, and
    `gate_scale` is `1 / gate_activation(0)`, 2 for a sigmoid. The other
    kernel keeps its initializer, so that the gate can leave the identity. A
    bottleneck of ReLU, which might be shut for all data and then never train,
    has at least two units, and its units in pairs kernels of opposite sign:
    one of the two is always open.

    Names, weights, dtype policies, `trainable` flags and sharing of layers are
    kept. The result is a functional or sequential model, and not compiled.

    Args:
        model: a functional or sequential model. It stays as it is.
        layer: the gate to put in, a template that is not built:
            `SqueezeExcite`, `ECA`, `ChannelGate`, `SpatialGate` or `CBAM`. Its
            `gate_scale`, `gate_initializer` and, where its bottleneck would
            have a single unit, `ratio` are replaced as said above, and
            `data_format` and `dtype` by those of the layer before it. Name:
            that of the layer before it and `_gate`.
        after: behind which layers: a function of a layer that returns a bool,
            or names or paths of layers, in models inside of `model` too.
            Defaults to `None`: the last normalization of each residual branch,
            or where it has none its last convolution; in models without
            residual branches each convolution, with the normalization and
            activation (a layer or an operation such as `keras.ops.relu`) that
            follow it.
        freeze: whether only gates are to train, see `freeze_all_but_gates`.

    Returns:
        A `keras.Model`, or a `keras.Sequential` if `model` is one.

    Raises:
        ValueError: where nothing is chosen; for models that are not built; for
            templates that are built or cannot start as the identity; for
            layers whose output is no feature map, and layers that cannot be
            copied from their configuration.

    Example:

    >>> import keras
    >>> from keras_gating import layers, surgery
    >>> model = keras.Sequential(
    ...     [
    ...         keras.Input((8, 8, 3)),
    ...         keras.layers.Conv2D(8, 3, name="conv"),
    ...         keras.layers.ReLU(name="relu"),
    ...     ]
    ... )
    >>> gated = surgery.gate_channels(model, layers.SqueezeExcite(ratio=4))
    >>> [layer.name for layer in gated.layers]
    ['conv', 'relu', 'relu_gate']

    References:
        Hu et al. 2017, Squeeze-and-Excitation Networks, arXiv 1709.01507.
    """
    checks.boolean("freeze", freeze)
    check_model(model)
    config = _template(layer)
    chosen = _positions(model, after)
    taken = {x.name for x in _keras.sublayers(model)}
    gates = {
        id(place.operation): type(layer).from_config(
            {
                **config,
                **bottlenecks.wide_enough(layer, place.channels),
                "name": _free_name(f"{place.operation.name}_gate", taken),
                "data_format": place.data_format,
                "dtype": place.dtype_policy,
            }
        )
        for place in chosen
    }
    copy = ModelCopy(follow=lambda x: gates.get(id(x)))(model)
    for gate in gates.values():
        bottlenecks.open_units(gate)
    if freeze:
        freeze_all_but_gates(copy)
    return copy


def _template(layer):
    """The configuration of the gates, which start as the identity."""
    if not isinstance(layer, (FeatureMapGate, CBAM)):
        raise ValueError(
            "`layer` must be a gate on feature maps: SqueezeExcite, ECA, "
            f"ChannelGate, SpatialGate or CBAM. Received: layer={layer!r}"
        )
    if layer.built:
        raise ValueError(
            "`layer` is a template, whose weights would be lost; pass one that "
            f"is not built. Received: {layer.name!r}, built"
        )
    for name in ("kernel_initializer", "bias_initializer"):
        initializer = getattr(layer, name, None)
        is_zero = isinstance(initializer, keras.initializers.Zeros)
        if initializer is not None and is_zero != (name == "bias_initializer"):
            raise ValueError(
                "A gate that starts as the identity and can leave it has "
                "biases of zero, and only its last kernel is zero. Received: "
                f"{name}={initializer!r}"
            )
    return {
        **layer.get_config(),
        "gate_scale": identity_scale(layer.gate_activation),
        "gate_initializer": "zeros",
    }


def _free_name(name, taken):
    number = 2
    free = name
    while free in taken:
        free = f"{name}_{number}"
        number += 1
    taken.add(free)
    return free


class _Place(typing.NamedTuple):
    """A layer or operation to put a gate behind, and what its output is."""

    operation: typing.Any
    data_format: str
    channels: int | None
    dtype_policy: typing.Any


def _positions(model, after):
    """The places where gates go."""
    models = [x for x in _keras.sublayers(model) if _keras.is_graph(x)]
    unbuilt = [x.name for x in models if not x.built]
    if unbuilt:
        raise ValueError(
            "A sequential model without a `keras.Input` has no feature maps "
            "before it is built: build it, or call it once, before. Received: "
            f"{', '.join(unbuilt)}, not built"
        )
    graphs = [Graph(x) for x in models]
    candidates = {
        id(node.operation): node.operation
        for graph in graphs
        for node in graph.nodes
        if isinstance(node.operation, keras.layers.Layer)
        and not isinstance(node.operation, keras.layers.InputLayer)
    }
    if after is None:
        chosen = [x for graph in graphs for x in ends_of_branches(graph)]
        if not chosen:
            chosen = [x for graph in graphs for x in ends_of_blocks(graph)]
        if not chosen:
            raise ValueError(
                "There is no convolution to put a gate behind. Received: "
                f"{model.name!r} with the layers "
                + ", ".join(x.path for x in candidates.values())
            )
    else:
        chosen = selected("after", after, list(candidates.values()))
    positions = {}
    for graph in graphs:
        for node in graph.nodes:
            if any(node.operation is x for x in chosen):
                positions[id(node.operation)] = _place(graph, node)
    return list(positions.values())


def _place(graph, node):
    shapes = [tuple(x.shape) for x in node.outputs]
    if len(shapes) != 1 or len(shapes[0]) not in (3, 4, 5):
        raise ValueError(
            "A gate is put behind a layer with one output of rank 3, 4 or 5. "
            f"Received: {node.operation.name!r}, with outputs of the shapes "
            f"{shapes}"
        )
    sources = graph.upstream(node)
    data_format = _data_format(sources)
    axis = -1 if data_format == "channels_last" else 1
    # An operation has none of its own.
    policy = next(
        x.operation.dtype_policy
        for x in sources
        if isinstance(x.operation, keras.layers.Layer)
    )
    return _Place(node.operation, data_format, shapes[0][axis], policy)


def _data_format(sources):
    """Where the channels are in what the first of some calls returns."""
    for source in sources:
        operation = source.operation
        if isinstance(operation, NORMALIZATIONS):
            axis = getattr(operation, "axis", -1)
            axis = axis[-1] if isinstance(axis, (list, tuple)) else axis
            rank = len(source.outputs[0].shape)
            is_last = axis in (-1, rank - 1)
            return "channels_last" if is_last else "channels_first"
        if isinstance(operation, CONVOLUTIONS):
            return operation.data_format
    return keras.config.image_data_format()
