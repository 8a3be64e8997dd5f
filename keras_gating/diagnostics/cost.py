"""What layers and their gates cost."""

import contextlib
import functools
import inspect

import keras
import numpy as np
from keras import ops

from keras_gating import _backend
from keras_gating import _keras
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
      loop once more, which counts. Where an operation may be such a product
      and nobody can tell its terms (a kernel that is not the backend's own, a
      call back to Python, a graph compiled before, linear algebra), the number
      is `None`, shown as unknown, and never too small. A kernel that is
      launched behind the backend's back is not seen.
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
            value, and a model with several inputs, gets the same one for each;
            a list of shapes gives each its own. For one argument that is a
            list or a dictionary of tensors pass a list of that list, or that
            dictionary, of shapes: `[[shape, shape]]` for `Add`. Inputs are
            standard normal numbers of `floatx()`, and zeros where a model
            takes integers.
        measure: whether to measure times. Defaults to `True`.
        repeats: number of calls to time. Defaults to 20.

    Returns:
        `CostTable`, a mapping from names to `Cost`, with the attributes
        `parameters`, `flops`, `traffic` in bytes, `seconds`, which is `None` if
        it was not measured, and `unknown`. `print()` prints it, `relative()`
        are the ratios to the first layer, `as_dict()` and `as_frame()` its
        numbers.

    Raises:
        ValueError: for what is no layer, for two layers of one name, for
            shapes with unknown sizes or ones that a layer does not take, and
            for products in a loop that nobody can count before it runs.

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
    checks.boolean("measure", measure)
    checks.positive_integer("repeats", repeats)
    costs, calls = {}, {}
    for name, layer in layers.items():
        inputs = _inputs(name, layer, shapes)
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
    """A nest of symbolic tensors of these shapes."""
    if _is_shape(input_shape):
        return keras.KerasTensor(tuple(input_shape))
    with contextlib.suppress(ValueError):
        if isinstance(input_shape, dict) and input_shape:
            return {name: _shapes(x) for name, x in input_shape.items()}
        if isinstance(input_shape, (list, tuple)) and len(input_shape) > 0:
            return [_shapes(x) for x in input_shape]
    raise ValueError(
        "`input_shape` must be a tuple of positive sizes, the batch size "
        "first, or a list or dictionary of such tuples. Received: "
        f"input_shape={input_shape!r}"
    )


def _is_shape(value):
    return (
        isinstance(value, (list, tuple))
        and len(value) > 0
        and all(checks.is_integer(size) and size > 0 for size in value)
    )


def _inputs(name, layer, shapes):
    """The arguments of a call: a list of nests of tensors."""
    rng = np.random.default_rng(0)

    def made(shape, wanted=None):
        dtype = keras.config.floatx() if wanted is None else wanted.dtype
        if not keras.backend.is_float_dtype(dtype):
            return ops.zeros(shape.shape, dtype=dtype)
        values = rng.normal(size=shape.shape)
        return ops.convert_to_tensor(values, dtype=dtype)

    wanted = _keras.inputs_of(layer) if _keras.is_graph(layer) else None
    if wanted is not None:
        shapes = _in_nest(name, shapes, wanted)
        return [keras.tree.map_structure(made, shapes, wanted)]
    if isinstance(shapes, keras.KerasTensor):
        tensor = made(shapes)
        required = [
            parameter
            for parameter in inspect.signature(layer.call).parameters.values()
            if parameter.kind is parameter.POSITIONAL_OR_KEYWORD
            and parameter.default is parameter.empty
        ]
        return [tensor] * max(1, len(required))
    tensors = keras.tree.map_structure(made, shapes)
    return tensors if isinstance(tensors, list) else [tensors]


def _in_nest(name, shapes, wanted):
    """The shapes in the nest of inputs that a model takes."""
    if isinstance(shapes, keras.KerasTensor):
        return keras.tree.map_structure(lambda _: shapes, wanted)
    if isinstance(shapes, list) and len(shapes) == 1:
        # As for other layers, a list of arguments.
        if not isinstance(wanted, (list, tuple)) or len(wanted) > 1:
            shapes = shapes[0]
    is_list = isinstance(shapes, list) and isinstance(wanted, tuple)
    shapes = tuple(shapes) if is_list else shapes
    try:
        keras.tree.assert_same_structure(shapes, wanted)
    except ValueError:
        expected, received = (
            keras.tree.map_structure(lambda x: str(x.shape), nest)
            for nest in (wanted, shapes)
        )
        raise ValueError(
            f"`input_shape` must have the structure of the inputs of {name!r}, "
            f"{expected}. Received: {received}"
        ) from None
    return shapes


def _cost(name, layer, inputs):
    try:
        outputs = layer(*inputs, training=False)
    except Exception as error:
        shapes = keras.tree.map_structure(lambda x: tuple(x.shape), inputs)
        raise ValueError(
            f"The layer {name!r} could not be called with inputs of the "
            f"shapes {shapes}: {error}"
        ) from error
    products = contractions(lambda: layer(*inputs, training=False))
    weights = [variable.value for variable in layer.weights]
    # The same tensor for several inputs is read once.
    tensors = (*keras.tree.flatten(inputs), *weights)
    read = {id(x): x for x in tensors}.values()
    written = [x for x in keras.tree.flatten(outputs) if x is not None]
    least = sum(map(_backend.nbytes, (*read, *written)))
    unknown = {x.name: None for x in products if x.multiply_adds is None}
    return Cost(
        parameters=layer.count_params(),
        flops=None if unknown else 2 * sum(x.multiply_adds for x in products),
        traffic=max(least, sum(x.traffic for x in products)),
        unknown=tuple(unknown),
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
