"""Runs a computation on a map at many points: compiled, and in batches."""

import inspect
import math

import keras
import numpy as np
from keras import ops

from keras_gating import _backend
from keras_gating import functional
from keras_gating.functional import checks
from keras_gating.geometry.dependencies import Dependencies

_BACKENDS = ("jax", "tensorflow", "torch")
# What one batch occupies, about.
_BATCH_BYTES = 2**28
_MOST_POINTS = 2**14
# Compiled programs by what they depend on, the latest last.
_KEPT = 32
_compiled: dict = {}


def evaluate(compute, f, x, *pointwise, shared=(), batch_size=None, **options):
    """Computes something at every point of `x`.

    Args:
        compute: a module-level function `compute(f, x, *pointwise, *shared,
            **options)` of tensors whose first axis counts points. It returns
            a nest of tensors with the same first axis. The `f` it gets may be
            differentiated as often as needed.
        f: the map, `(n, k)` to `(n, d)`.
        x: tensor `(…, k)` from `as_points`.
        pointwise: further tensors that share the leading axes of `x`.
        shared: a tuple of tensors handed to `compute` as they are.
        batch_size: number of points at a time, or `None` for a number that
            bounds memory.
        options: Python values for `compute`.

    Returns:
        What `compute` returns, the first axis replaced by the leading axes
        of `x`.
    """
    checks.positive_integer("batch_size", batch_size, optional=True)
    _check_map(f)
    leading = tuple(ops.shape(x)[:-1])
    flat = [
        ops.reshape(a, (-1, *a.shape[len(leading) :])) for a in (x, *pointwise)
    ]
    run = program(compute, f, flat[0][: batch_size or _MOST_POINTS], **options)
    outputs = _in_batches(run, flat, shared, batch_size or run.batch_size)
    return keras.tree.map_structure(
        lambda y: ops.reshape(y, (*leading, *y.shape[1:])), outputs
    )


def example(f, x):
    """`f(x)` as it is computed without compiling; it builds layers."""
    _check_map(f)
    return _checked(_inference(f)(x), x)


def _check_map(f):
    if not callable(f):
        raise ValueError(
            "`f` must be a layer, a model or another callable. Received: "
            f"f={f!r}"
        )


def program(compute, f, x, **options):
    """`compute` with `f` compiled into it, for points like `x`, `(n, k)`.

    The first time `f` is evaluated at these points themselves.

    It is called as `run(x, *pointwise, *shared)` and has the weights and
    constants of `f` as they are now, so use it within one call of a public
    function only. What was compiled for an equal map before is used again.
    """
    shape = x.shape[-1], keras.backend.standardize_dtype(x.dtype)
    key = compute, tuple(sorted(options.items())), *shape
    dependencies = Dependencies(f)
    known = _compiled.pop((*key, dependencies.key), None)
    if known is None:
        features = example(f, x).shape[-1]
        dependencies = Dependencies(f)
        _refuse_half_precision(dependencies.layers)
        known = _Compiled(compute, options, dependencies, features, *shape)
    # Traced again, for other shapes say, it has to read the constants of this
    # map: those of the equal one before may have changed since.
    known.f = f
    if dependencies.key is not None:
        _compiled[*key, dependencies.key] = known
        while len(_compiled) > _KEPT:
            _compiled.pop(next(iter(_compiled)))
    return Program(known)


class Program:
    """A compiled computation with the present values of its weights."""

    def __init__(self, compiled):
        self.features = compiled.features
        self.batch_size = compiled.batch_size
        self._run = compiled.run
        self._values = [
            ops.convert_to_tensor(v.value) for v in compiled.variables
        ]

    def __call__(self, *arrays):
        # On torch each result would keep all that led to it, up to the
        # weights.
        outputs = self._run(self._values, *arrays)
        return keras.tree.map_structure(ops.stop_gradient, outputs)


class _Compiled:
    f = None

    def __init__(self, compute, options, dependencies, features, k, dtype):
        self.features = features
        self.batch_size = _affordable(features, k, dtype, dependencies)
        # Without a key there may be variables that were not found: then the
        # program serves one call, and all of them are constants.
        known = dependencies.key is not None
        variables = self.variables = dependencies.variables if known else []
        # Keeps alive what the key names by identity.
        self._dependencies = dependencies

        def run(values, *arrays):
            state = list(zip(variables, values))
            f = _traced(self.f, state, features)
            return compute(f, *arrays, **options)

        self.run = _backend.compiled(run, xla=False)


def _affordable(features, k, dtype, dependencies):
    """How many points to take at a time.

    The width of the layers stands for the size of what they compute on the
    way.
    """
    shapes = [tuple(v.shape) for v in dependencies.variables]
    width = sum(shape[-1] for shape in shapes if shape)
    numbers = 8 * (features + width) * (k + 1) ** 2
    size = 8 if dtype == "float64" else 4
    return min(_MOST_POINTS, max(1, _BATCH_BYTES // (numbers * size)))


def _refuse_half_precision(layers):
    for layer in layers:
        if layer.compute_dtype in ("float16", "bfloat16"):
            raise ValueError(
                "Second derivatives in half precision mean nothing, so all "
                "layers of `f` must compute in float32 or float64: build the "
                "model anew with that dtype and give it these weights. "
                f"Received: layer '{layer.name}' computes in "
                f"{layer.compute_dtype}"
            )


class _Scope(keras.StatelessScope):
    """Drops updates (of a seed, say), and keeps the values of outer scopes."""

    def get_current_value(self, variable):
        value = super().get_current_value(variable)
        if value is None and self.original_scope is not None:
            value = self.original_scope.get_current_value(variable)
        return value


def _traced(f, state, features):
    f = _inference(f)

    def call(x):
        with _Scope(state):
            y = f(x)
        # Graphs of TensorFlow may have lost the shape on the way.
        return ops.reshape(y, (ops.shape(x)[0], features))

    return call


def _inference(f):
    """`f` without dropout, recordings, and fused kernels."""
    arguments = {}
    if isinstance(f, keras.Layer):
        if "training" in inspect.signature(f.call).parameters:
            arguments["training"] = False

    def call(x):
        with functional.explicit_attention(), functional.record_into(None):
            return f(x, **arguments)

    return call


def _checked(y, x):
    """Returns `y` if it can be `f(x)`, else raises."""
    if not ops.is_tensor(y):
        raise ValueError(
            f"`f` must return one tensor of shape (..., d). Received: {y!r}"
        )
    if len(y.shape) != 2 or y.shape[0] != x.shape[0] or not y.shape[1]:
        raise ValueError(
            "`f` must map points of shape (n, k) to (n, d). Received: "
            f"f(x).shape={tuple(y.shape)} for x.shape={tuple(x.shape)}"
        )
    dtype = keras.backend.standardize_dtype(y.dtype)
    if dtype not in ("float32", "float64"):
        raise ValueError(
            "`f` must compute in float32 or float64, since second derivatives "
            f"in lower precision mean nothing. Received: f(x).dtype={dtype}"
        )
    return y


def _in_batches(run, arrays, shared, batch_size):
    count = arrays[0].shape[0]
    if count is None or count <= batch_size:
        return run(*arrays, *shared)
    # Batches of one size, so that one program serves all of them.
    batches = math.ceil(count / batch_size)
    size = math.ceil(count / batches)
    missing = batches * size - count
    padded = [
        ops.concatenate([a, *([a[-1:]] * missing)], axis=0) for a in arrays
    ]
    outputs = [
        run(*(a[i * size : (i + 1) * size] for a in padded), *shared)
        for i in range(batches)
    ]
    return keras.tree.map_structure(
        lambda *ys: ops.concatenate(ys, axis=0)[:count], *outputs
    )


def as_points(x, name="x"):
    """Returns `x` as a tensor `(…, k)` of float32 or float64, else raises."""
    _check_backend()
    x = as_floats(x, name)
    if len(x.shape) < 1 or not x.shape[-1]:
        raise ValueError(
            f"`{name}` must be points, an array of shape (..., k) with a known "
            f"k of 1 or more. Received: {name}.shape={tuple(x.shape)}"
        )
    return x


def as_floats(x, name, dtype=None):
    """Returns `x` as a tensor of `dtype`, or of float32 or float64."""
    try:
        if not ops.is_tensor(x) and np.asarray(x).dtype.kind in "OSU":
            raise TypeError("no numbers")
        x = ops.convert_to_tensor(x)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"`{name}` must be an array of numbers. Received: {name}={x!r}"
        ) from error
    given = keras.backend.standardize_dtype(x.dtype)
    if not keras.backend.is_float_dtype(given) and "int" not in given:
        raise ValueError(
            f"`{name}` must hold real numbers. Received: {name}.dtype={given}"
        )
    if dtype is None:
        dtype = given if keras.backend.is_float_dtype(given) else "float32"
        if dtype in ("float16", "bfloat16"):
            dtype = "float32"
    return ops.cast(x, dtype)


def as_numpy(x):
    """A tensor as an array of float64."""
    return np.asarray(ops.convert_to_numpy(x), "float64")


def _check_backend():
    backend = keras.config.backend()
    if backend not in _BACKENDS:
        raise ValueError(
            "Curvature needs second derivatives, which Keras has on the "
            f"backends {', '.join(_BACKENDS)}. Received: backend={backend!r}"
        )
