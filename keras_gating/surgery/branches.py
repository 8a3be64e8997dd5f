"""Where a convolutional network has room for gates."""

import keras

from keras_gating import _keras

CONVOLUTIONS = (
    keras.layers.Conv1D,
    keras.layers.Conv2D,
    keras.layers.Conv3D,
    keras.layers.Conv1DTranspose,
    keras.layers.Conv2DTranspose,
    keras.layers.Conv3DTranspose,
    keras.layers.DepthwiseConv1D,
    keras.layers.DepthwiseConv2D,
    keras.layers.SeparableConv1D,
    keras.layers.SeparableConv2D,
)
NORMALIZATIONS = (
    keras.layers.BatchNormalization,
    keras.layers.GroupNormalization,
    keras.layers.LayerNormalization,
    keras.layers.RMSNormalization,
    keras.layers.UnitNormalization,
)
_ACTIVATIONS = (
    keras.layers.Activation,
    keras.layers.ReLU,
    keras.layers.LeakyReLU,
    keras.layers.PReLU,
    keras.layers.ELU,
)


class Graph:
    """Which call of a layer or operation reads which, in one model."""

    def __init__(self, model):
        # Inputs are calls too, of layers that read nothing.
        self.nodes = _keras.nodes(model)
        self._made_by = {
            id(tensor): node for node in self.nodes for tensor in node.outputs
        }
        self.readers = {id(node): [] for node in self.nodes}
        for node in self.nodes:
            for source in self.sources(node):
                self.readers[id(source)].append(node)

    def sources(self, node):
        """The calls whose outputs a call reads."""
        made_by = [self._made_by.get(id(x)) for x in node.input_tensors]
        return [source for source in made_by if source is not None]

    def upstream(self, node):
        """A call and everything it depends on, the nearest first."""
        found, queue = {id(node): node}, [node]
        while queue:
            for source in self.sources(queue.pop(0)):
                if id(source) not in found:
                    found[id(source)] = source
                    queue.append(source)
        return list(found.values())


def ends_of_branches(graph):
    """The last normalization of each residual branch with a convolution.

    The branch of a sum is what only one of its terms depends on, the term with
    the most convolutions; the others are shortcuts. A branch without
    normalization ends with its last convolution.
    """
    ends = []
    for node in graph.nodes:
        if not _is_sum(node):
            continue
        branches = _branches(graph, node)
        most = max(map(_convolutions, branches), default=0)
        ends += [
            _end(branch)
            for branch in branches
            if most and _convolutions(branch) == most
        ]
    return ends


def ends_of_blocks(graph):
    """The ends of convolution, normalization and activation in a row."""
    ends = []
    for node in graph.nodes:
        if not isinstance(node.operation, CONVOLUTIONS):
            continue
        for is_next in (_is_normalization, _is_activation):
            readers = graph.readers[id(node)]
            if len(readers) == 1 and is_next(readers[0]):
                node = readers[0]
        ends.append(node.operation)
    return ends


def _is_normalization(node):
    return isinstance(node.operation, NORMALIZATIONS)


def _is_activation(node):
    operation = node.operation
    if isinstance(operation, keras.layers.Layer):
        return isinstance(operation, _ACTIVATIONS)
    # `ops.leaky_relu` makes a `LeakyRelu`.
    names = {name.replace("_", "") for name in dir(keras.activations)}
    shapes = {tuple(x.shape) for x in (*node.input_tensors, *node.outputs)}
    return type(operation).__name__.lower() in names and len(shapes) == 1


def _is_sum(node):
    operation = node.operation
    if isinstance(operation, keras.layers.Layer):
        return isinstance(operation, keras.layers.Add)
    # `x + y` on symbolic tensors.
    return type(operation).__name__ == "Add" and len(node.input_tensors) == 2


def _branches(graph, node):
    """What each term of a sum depends on alone, the nearest first."""
    terms = [graph.upstream(source) for source in graph.sources(node)]
    known = [{id(x) for x in term} for term in terms]
    return [
        [
            x
            for x in term
            if not any(
                id(x) in other
                for number, other in enumerate(known)
                if number != position
            )
        ]
        for position, term in enumerate(terms)
    ]


def _convolutions(branch):
    return sum(isinstance(x.operation, CONVOLUTIONS) for x in branch)


def _end(branch):
    for kinds in (NORMALIZATIONS, CONVOLUTIONS):
        for node in branch:
            if isinstance(node.operation, kinds):
                return node.operation
    raise AssertionError("a branch has a convolution")
