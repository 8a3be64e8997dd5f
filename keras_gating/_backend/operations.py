"""Which operations a call asks the backend for."""

import re
import typing

import keras

from keras_gating._backend import nbytes

# Operations of the backends that sum up products, or call what may. Not in
# here are those that cost a few FLOPs for each number.
_SUMMING = {
    "jax": re.compile(r"dot|conv_|fft"),
    "tensorflow": re.compile(
        r"MatMul|Conv\d|Conv$|Convolution|Einsum|FFT|Cholesky|Qr$|Svd|Eig"
        r"|Inverse$|Solve|Determinant|^Lu$|LSTM|GRU|RNN|Attention|Xla"
        r"|PyFunc|RemoteCall|BatchFunction|^(Stateless)?(While|If|Case)$"
    ),
    "torch": re.compile(
        r"mm(_|$)|gemm|matmul|mv(_|$)|(^|_)dot|attention|einsum|addr(_|$)"
        r"|(^|_)ger$|^bilinear$|conv(olution|_|\d)|fft|cdist|matrix_exp"
        r"|(^|_)(rnn|lstm|gru)(_|$)|transformer|cholesky|svd|eig|solve"
        r"|linalg_(?!vector_norm|norm|cross|diagonal)|inverse|qr$|orgqr"
        r"|geqrf|(^|_)lu(_|$)"
    ),
}
# What JAX has beside `jax.lax` and costs little: random numbers, notes.
_SMALL_JAX = re.compile(
    r"random_|threefry|iota|copy|name$|debug_|sharding|layout|pvary"
)
# The inner program of these runs as often as only they know.
_CLOSED_JAX = ("pallas_call", "core_map", "run_state")


class Described(typing.NamedTuple):
    """What is known of a tensor."""

    shape: tuple
    nbytes: int


def operations(function, names):
    """Lists operations that a call asks the backend for.

    This is what the code says, before a compiler has optimized it. JAX traces
    the function; TensorFlow and torch call it.

    Args:
        function: function without arguments. Gradients are not computed.
        names: the operations to list, by the backend's own names for them.

    Returns:
        A list of `(name, operands, results, attributes, times)`, for the
        operations with these names, and for others that may sum up products:
        kernels that are not the backend's own, calls back to Python, linear
        algebra, and on TensorFlow graphs that were compiled before. Of a
        tensor among the operands and results there is `Described`, its shape
        and number of bytes; other operands are themselves. `times` says how
        often a loop repeats the operation: on JAX `None` if that depends on
        values, and all branches of a condition are listed.
    """
    found = []
    backend = keras.config.backend()
    if backend == "jax":
        import jax

        _list_jax(jax.make_jaxpr(function)().jaxpr, names, 1, found)
    elif backend == "tensorflow":
        _list_tensorflow(function, names, found)
    elif backend == "torch":
        _list_torch(function, names, found)
    return found


def _list_jax(program, names, times, found):
    from jax import lax

    own = {getattr(lax, x).name for x in vars(lax) if x.endswith("_p")}
    for equation in program.eqns:
        name, attributes = equation.primitive.name, equation.params
        nested = [getattr(x, "jaxpr", x) for x in _leaves(attributes)]
        nested = [x for x in nested if hasattr(x, "eqns")]
        is_own = name in own and not _SUMMING["jax"].search(name)
        is_small = is_own or _SMALL_JAX.match(name)
        is_call = nested and name not in _CLOSED_JAX
        if name in names or not (is_small or is_call):
            operands = [variable.aval for variable in equation.invars]
            results = [variable.aval for variable in equation.outvars]
            found.append(_operation(name, operands, results, attributes, times))
            continue
        inner = times
        if name == "while":
            inner = None
        elif name == "scan" and times is not None:
            inner = times * attributes["length"]
        for one in nested:
            _list_jax(one, names, inner, found)


def _leaves(attributes):
    return keras.tree.flatten(list(attributes.values()))


def _list_tensorflow(function, names, found):
    import tensorflow as tf

    # Not in TensorFlow's public interface. A graph alone would be, but does
    # not say how often a loop runs.
    from tensorflow.python.eager import context
    from tensorflow.python.framework import op_callbacks

    functions = context.context()
    known = set(functions.list_function_names())
    traced = {}

    def text(x):
        if hasattr(x, "WhichOneof"):
            # In a graph.
            kind = x.WhichOneof("value")
            x = getattr(x, kind) if kind else None
        return x.decode(errors="replace") if isinstance(x, bytes) else x

    def keep(name, inputs, attributes, outputs, op_name=None, graph=None):
        name = text(name)
        if graph is not None:
            traced[id(graph)] = graph
        elif functions.has_function(name):
            # What a call traces is listed by that, as often as it runs if it
            # is its first call, and of one graph: loops are several.
            is_listed = name not in known and len(traced) == 1
            known.add(name)
            traced.clear()
            if is_listed:
                return
        is_own = hasattr(tf.raw_ops, name)
        if name in names or not is_own or _SUMMING["tensorflow"].search(name):
            tensors = [x for x in (*inputs, *outputs) if hasattr(x, "dtype")]
            if not all(x.shape.is_fully_defined() for x in tensors):
                shapeless = f"{name} of no known shape"
                name = shapeless if name in names else name
                found.append((name, [], [], {}, 1))
                return
            attributes = [text(x) for x in attributes]
            attributes = dict(zip(attributes[::2], attributes[1::2]))
            found.append(_operation(name, inputs, outputs, attributes))

    op_callbacks.add_op_callback(keep)
    try:
        function()
    finally:
        op_callbacks.remove_op_callback(keep)


def _list_torch(function, names, found):
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    class Listener(TorchDispatchMode):
        def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
            kwargs = kwargs or {}
            outputs = operation(*args, **kwargs)
            # Of higher-order operations there is but a name.
            namespace = getattr(operation, "namespace", None)
            packet = getattr(operation, "overloadpacket", operation)
            name = packet.__name__
            is_own = namespace in ("aten", "prim", "prims")
            if not is_own:
                name = f"{namespace}::{name}"
            if name in names or not is_own or _SUMMING["torch"].search(name):
                results = outputs if isinstance(outputs, tuple) else [outputs]
                found.append(_operation(name, args, results, kwargs))
            return outputs

    with torch.no_grad(), Listener():
        function()


def _operation(name, operands, results, attributes, times=1):
    def described(x):
        if not hasattr(x, "dtype"):
            return x
        return Described(tuple(x.shape), nbytes(x))

    operands = [described(x) for x in operands]
    results = [described(x) for x in results]
    return name, operands, results, attributes, times
