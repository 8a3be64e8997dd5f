"""What layers and their gates cost."""

import functools
import inspect

import keras
import numpy as np
from keras import ops

from keras_gating import _backend
from keras_gating.diagnostics.contractions import contractions
from keras_gating.diagnostics.cost_result import Cost
from keras_gating.diagnostics.cost_result import CostTable
from keras_gating.diagnostics.timing import time_in_turns
from keras_gating.functional import checks


def cost_table(layers, input_shape, measure=True, repeats=20):
    """Parameters, FLOPs, memory traffic and time of layers, side by side.

    The product of a gate is one multiplication for each number. What costs is
    the network that computes the gate, and the granularity decides how much:
    with a layer without a gate first and its gated forms after it, the table
    shows the gate's share.

    * **FLOPs** are those of one forward pass: two, a multiplication and an
      addition, for each term of the sums in matrix products, convolutions and
      attention, as the backend is asked for them. Padding of convolutions and
      masked keys count. What is elementwise does not, nor do means and
      maxima: the product of a gate has none. TensorFlow calls the body of a
      loop once more, which counts.
    * **Traffic** is what those products read and write, as if all else were
      fused into them; at least the weights, inputs and outputs, once each. It
      depends on the backend: fused attention does not write its scores.
    * **Time** is the median of compiled calls (eager ones on torch) that take
      turns, after one that compiles.

    Args:
        layers: list of layers, shown by their names, or dictionary of layers
            by the names to show; any layers and models of Keras. Those without
            weights yet are built for `input_shape`.
        input_shape: shape of the input, with the batch size. A layer whose
            call requires several tensors, such as attention with query and
            value, gets the same one for each; a list of shapes gives each its
            own. Inputs are standard normal numbers of `floatx()`.
        measure: whether to measure times. Defaults to `True`.
        repeats: number of calls to time. Defaults to 20.

    Returns:
        `CostTable`, a mapping from names to `Cost`, with the attributes
        `parameters`, `flops`, `traffic` in bytes and `seconds`, which is
        `None` if it was not measured. `print()` prints it, `relative()` are
        the ratios to the first layer, `as_dict()` and `as_frame()` its
        numbers.

    Raises:
        ValueError: for what is no layer, for two layers of one name, for a
            shape with unknown sizes or one that a layer does not take, and for
            products in a loop that nobody can count before it runs.

    Example:

    >>> from keras_gating import diagnostics, layers
    >>> costs = diagnostics.cost_table(
    ...     {
    ...         "none": layers.GatedAttention(4, 8, use_gate=False),
    ...         "headwise": layers.GatedAttention(
    ...             4, 8, gate_granularity="headwise"
    ...         ),
    ...         "elementwise": layers.GatedAttention(4, 8),
    ...     },
    ...     input_shape=(2, 16, 32),
    ...     measure=False,
    ... )
    >>> [cost.flops for cost in costs.values()]
    [327680, 335872, 393216]
    >>> [cost.parameters for cost in costs.values()]
    [4224, 4356, 5280]
    """
    layers = _by_name(layers)
    shapes = _shapes(input_shape)
    checks.positive_integer("repeats", repeats)
    costs, calls = {}, {}
    for name, layer in layers.items():
        inputs = _inputs(layer, shapes)
        costs[name] = _cost(name, layer, inputs)
        calls[name] = _compiled(layer, inputs)
    if measure:
        for call in calls.values():
            call()  # compiles
        for name, seconds in time_in_turns(calls, repeats, repeats).items():
            costs[name].seconds = float(np.median(seconds))
    return CostTable(costs, keras.config.backend(), _backend.platform())


def _by_name(layers):
    if isinstance(layers, dict):
        named = list(layers.items())
    elif isinstance(layers, (list, tuple)):
        named = [(getattr(layer, "name", None), layer) for layer in layers]
    else:
        named = []
    if not named:
        raise ValueError(
            "`layers` must be a list or a dictionary of one or more layers. "
            f"Received: layers={layers!r}"
        )
    for name, layer in named:
        if not isinstance(layer, keras.layers.Layer):
            raise ValueError(
                "`layers` must consist of Keras layers. Received: "
                f"{layer!r} of type {type(layer).__name__}"
            )
        if not isinstance(name, str):
            raise ValueError(
                f"The names of `layers` must be strings. Received: {name!r}"
            )
    names = [name for name, _ in named]
    if len(set(names)) < len(names):
        raise ValueError(
            "Two of the layers have the same name. Pass a dictionary, whose "
            f"keys are the names to show. Received: {names}"
        )
    return dict(named)


def _shapes(input_shape):
    """A list of shapes, or one shape."""

    def is_shape(value):
        return (
            isinstance(value, (list, tuple))
            and len(value) > 0
            and all(checks.is_integer(size) and size > 0 for size in value)
        )

    if is_shape(input_shape):
        return tuple(input_shape)
    several = isinstance(input_shape, (list, tuple)) and len(input_shape) > 0
    if several and all(map(is_shape, input_shape)):
        return [tuple(shape) for shape in input_shape]
    raise ValueError(
        "`input_shape` must be a tuple of positive sizes, the batch size "
        "first, or a list of such tuples. Received: "
        f"input_shape={input_shape!r}"
    )


def _inputs(layer, shapes):
    rng = np.random.default_rng(0)

    def normal(shape):
        values = rng.normal(size=shape)
        return ops.convert_to_tensor(values, dtype=keras.config.floatx())

    if isinstance(shapes, list):
        return [normal(shape) for shape in shapes]
    required = [
        parameter
        for parameter in inspect.signature(layer.call).parameters.values()
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD
        and parameter.default is parameter.empty
    ]
    return [normal(shapes)] * max(1, len(required))


def _cost(name, layer, inputs):
    try:
        outputs = layer(*inputs, training=False)
    except Exception as error:
        shapes = [tuple(x.shape) for x in inputs]
        raise ValueError(
            f"The layer {name!r} could not be called with inputs of the "
            f"shapes {shapes}: {error}"
        ) from error
    products = contractions(lambda: layer(*inputs, training=False))
    weights = [variable.value for variable in layer.weights]
    # The same tensor for several inputs is read once.
    read = {id(x): x for x in (*inputs, *weights)}.values()
    written = [x for x in keras.tree.flatten(outputs) if x is not None]
    least = sum(map(_backend.nbytes, (*read, *written)))
    return Cost(
        parameters=layer.count_params(),
        flops=2 * sum(product.multiply_adds for product in products),
        traffic=max(least, sum(product.traffic for product in products)),
    )


def _compiled(layer, inputs):
    """A compiled call that ends when its outputs are there."""
    # Not a nested function: for TensorFlow all of those would be one, which is
    # traced too often.
    function = _backend.compiled(functools.partial(_forward, layer))
    values = [variable.value for variable in layer.variables]

    def call():
        with _backend.no_gradients():
            _backend.wait(function(values, inputs))

    return call


def _forward(layer, values, inputs):
    # Weights are arguments, which a compiler cannot compute with beforehand.
    mapping = list(zip(layer.variables, values))
    with keras.StatelessScope(state_mapping=mapping):
        return layer(*inputs, training=False)
