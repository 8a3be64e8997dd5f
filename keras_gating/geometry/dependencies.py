"""What a map depends on, so that a compiled one is reused only if unchanged.

A compiled function keeps what it closed over: weights, arrays, globals. Each
call therefore describes the map anew. Two maps with equal descriptions compute
the same; where something cannot be described for certain, nothing is reused.
"""

import dataclasses
import functools
import hashlib
import types

import keras
import numpy as np
from keras import ops

# Their modules, functions and classes do not change while a program runs.
_FIXED_PACKAGES = frozenset(
    {
        "builtins",
        "functools",
        # Reached through the `build` of every layer.
        "inspect",
        "itertools",
        "jax",
        "jaxlib",
        "keras",
        "keras_gating",
        "math",
        "numpy",
        "operator",
        "tensorflow",
    }
)
# Objects of these are known by identity: initializers, dtype policies and
# other parts of layers, compiled functions, locks.
_OPAQUE = frozenset(
    {
        "_abc",
        "_thread",
        "inspect",
        "jax",
        "jaxlib",
        "keras",
        "keras_gating",
        "tensorflow",
        "threading",
        "weakref",
    }
)
# Parts of a class that say nothing about what it computes.
_IGNORED = frozenset(
    {
        "__annotations__",
        "__dataclass_fields__",
        "__dataclass_params__",
        "__doc__",
        "__firstlineno__",
        "__static_attributes__",
    }
)
_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis))


class Dependencies:
    """Everything found from `f` on.

    Attributes:
        key: hashable; equal keys mean equal maps. `None` if unknown.
        variables: Keras variables, whose values are no part of the key.
        layers: Keras layers, sub-layers included.
    """

    def __init__(self, f):
        self.variables = []
        self.layers = []
        self._complete = True
        self._seen = {}
        # What the key names by identity has to live as long as the key.
        self._kept = []
        description = self._describe(f)
        self.key = None
        if self._complete:
            self.key = (
                description,
                keras.config.floatx(),
                keras.config.epsilon(),
                keras.config.dtype_policy().name,
                keras.config.image_data_format(),
            )

    def _describe(self, value):
        if isinstance(value, _PLAIN):
            return type(value), value
        if isinstance(value, np.generic):
            return value.dtype.str, value.tobytes()
        if id(value) in self._seen:
            return "seen", self._seen[id(value)]
        self._seen[id(value)] = len(self._seen)
        self._kept.append(value)
        if isinstance(value, np.ndarray):
            return self._array(value)
        if isinstance(value, keras.Variable):
            self.variables.append(value)
            return self._identity(value)
        if isinstance(value, keras.Layer):
            return self._layer(value)
        if ops.is_tensor(value):
            return self._identity(value)
        if isinstance(value, (tuple, list)):
            return type(value), tuple(map(self._describe, value))
        if isinstance(value, (set, frozenset)):
            return type(value), frozenset(map(self._describe, value))
        if isinstance(value, (slice, range)):
            return type(value), *map(
                self._describe, (value.start, value.stop, value.step)
            )
        if isinstance(value, dict):
            items = ((self._describe(k), v) for k, v in value.items())
            return type(value), tuple((k, self._describe(v)) for k, v in items)
        if isinstance(value, types.FunctionType):
            return self._function(value)
        if isinstance(value, types.MethodType):
            return "method", *map(
                self._describe, (value.__func__, value.__self__)
            )
        if isinstance(value, functools.partial):
            return "partial", *map(
                self._describe, (value.func, value.args, value.keywords)
            )
        if isinstance(value, type):
            return self._class(value)
        if dataclasses.is_dataclass(value) and _is_frozen(value):
            return self._described_by(value, vars(value))
        return self._other(value)

    def _identity(self, value):
        return type(value), id(value)

    def _unknown(self):
        self._complete = False

    def _array(self, value):
        if value.dtype.hasobject:
            return self._unknown()
        content = hashlib.blake2b(value.tobytes()).digest()
        return value.dtype.str, value.shape, content

    def _layer(self, layer):
        self.layers.append(layer)
        variables = tuple(map(self._describe, layer.variables))
        return id(layer), variables, self._described_by(layer, vars(layer))

    def _described_by(self, value, attributes):
        described = (
            (name, self._describe(attributes[name])) for name in attributes
        )
        return self._describe(type(value)), tuple(described)

    def _class(self, cls):
        if _is_fixed(cls.__module__):
            return self._identity(cls)
        attributes = tuple(
            (name, self._describe(_unwrapped(attribute)))
            for name, attribute in vars(cls).items()
            if name not in _IGNORED
            and not isinstance(attribute, types.GetSetDescriptorType)
        )
        return id(cls), attributes, tuple(map(self._describe, cls.__bases__))

    def _function(self, function):
        fixed = _is_fixed(function.__module__)
        if fixed and not function.__closure__:
            return self._identity(function)
        cells = []
        for cell in function.__closure__ or ():
            try:
                cells.append(self._describe(cell.cell_contents))
            except ValueError:  # nothing in it yet
                self._unknown()
        attributes = (
            function.__defaults__,
            function.__kwdefaults__,
            vars(function),
            {} if fixed else _globals(function),
        )
        described = tuple(map(self._describe, attributes))
        return function.__code__, tuple(cells), described

    def _other(self, value):
        if isinstance(value, types.ModuleType):
            fixed = _is_fixed(value.__name__)
        elif isinstance(value, types.BuiltinFunctionType):
            owner = value.__self__  # a module, unless it is a method
            fixed = owner is None or isinstance(owner, types.ModuleType)
        elif isinstance(value, (np.ufunc, np.dtype)):
            fixed = True
        else:
            fixed = _package(type(value).__module__) in _OPAQUE
            # Optimizers and metrics have state as well.
            for variable in getattr(value, "variables", ()) if fixed else ():
                self._describe(variable)
        return self._identity(value) if fixed else self._unknown()


def _is_frozen(value):
    return type(value).__dataclass_params__.frozen


def _package(module):
    return (module or "").partition(".")[0]


def _is_fixed(module):
    return _package(module) in _FIXED_PACKAGES


def _unwrapped(attribute):
    if isinstance(attribute, (staticmethod, classmethod)):
        return attribute.__func__
    if isinstance(attribute, property):
        return attribute.fget, attribute.fset
    return attribute


def _globals(function):
    """The globals that a function may read, its inner functions too."""
    codes, names = [function.__code__], set()
    while codes:
        code = codes.pop()
        names.update(code.co_names)
        codes += [c for c in code.co_consts if isinstance(c, types.CodeType)]
    known = function.__globals__
    return {name: known[name] for name in sorted(names) if name in known}
