"""Hands over the gate values of one model's own layers."""

import contextlib
import typing

from keras import ops

from keras_gating import _backend
from keras_gating._keras import sublayers
from keras_gating.diagnostics.guard import compiled_call
from keras_gating.functional import recording
from keras_gating.layers.gate_kinds import has_gate

_KNOWN_PACKAGES = ("keras", "keras_gating")


class GateCall(typing.NamedTuple):
    """The values of one gate of a model in one call, as arrays.

    Attributes:
        path: path of the layer that owns the gate, made unique.
        owner: that layer, or `None`.
        activation: function that made the values.
        values: as the layer made them, before scale and dropout.
        mask: padding mask of the leading axes, or `None`.
    """

    path: str
    owner: typing.Any
    activation: typing.Callable
    values: typing.Any
    mask: typing.Any


@contextlib.contextmanager
def watch_gates(model, on_call):
    """Calls `on_call` with a `GateCall` for every gate of `model`."""
    keys = UniquePaths(model)

    def observer(seen):
        # Building a model works out shapes first, by calls without values.
        if _backend.is_symbolic():
            return
        path = keys.path(seen.owner, seen.path)
        if path is None:
            return
        on_call(
            GateCall(
                path,
                seen.owner,
                seen.activation,
                readable(seen.values, path),
                None if seen.mask is None else readable(seen.mask, path),
            )
        )

    synchronize(model)
    with recording.observe(observer):
        yield


def readable(x, path):
    """The array of a tensor; raises if it has no value yet."""
    if ops.is_tensor(x):
        # A gradient on JAX that is not compiled wraps values that are known.
        x = ops.stop_gradient(x)
    value = _backend.concrete(x)
    if value is None:
        raise compiled_call(f"a traced call of {path!r}")
    return value


def synchronize(model):
    """Gives a model its weights back in the middle of an epoch.

    On JAX a running `fit` keeps them to itself until the epoch ends; callbacks
    may ask for them. Only the model that is fitted can give them, so for a
    part of it this raises while they are gone.
    """
    sync = getattr(model, "jax_state_sync", None)
    if sync is not None:
        sync()
    gone = [weight.path for weight in model.weights if not _has_value(weight)]
    if gone:
        raise ValueError(
            "Weights have no values at the moment: on JAX `fit`, `evaluate` "
            "and `predict` keep those of the model that they run, and of all "
            "that is inside of it, to themselves. Observe that model, or call "
            "its `jax_state_sync()` before. Received: "
            f"{type(model).__name__} {model.name!r} without a value for "
            f"{len(gone)} of its weights, {gone[0]!r} the first"
        )


def _has_value(variable):
    try:
        # Not `_value`: a stateless scope may have the value instead.
        return variable.value is not None
    except TypeError:
        # Keras takes it for one that was never initialized, and calls an
        # initializer that it no longer has.
        return False


def has_gates(model):
    """Whether some layer is known to have gates."""
    return any(map(has_gate, sublayers(model)))


def may_have_gates(model):
    """Whether some layer has gates, or cannot be told not to have any.

    A user's own layer may make some in `build` or `call`, or call
    `functional.apply_gate` itself.
    """
    return has_gates(model) or any(
        type(layer).__module__.partition(".")[0] not in _KNOWN_PACKAGES
        for layer in sublayers(model)
    )


def no_gates(model):
    """The error for a model without gates."""
    return ValueError(
        "The model has no gates. Expected a layer of keras_gating with gates, "
        "or one that calls `functional.apply_gate(…, owner=self)`. Received: "
        f"{type(model).__name__} {model.name!r}"
    )


def nothing_seen(model):
    """The error for calls among which was none of a gate of the model."""
    if not has_gates(model):
        return no_gates(model)
    return ValueError(
        "No gate of the model was called. Call the model itself, `model(x)`: a "
        "function that was compiled before does not reach Python. Received: "
        f"nothing of {type(model).__name__} {model.name!r}"
    )


class UniquePaths:
    """Names for the layers of a model, two layers never under one name.

    Keras gives equal paths to layers of equal names, such as those of two
    models inside a third; the second gets `#2` and so on, in the order of the
    model's layers.
    """

    def __init__(self, model):
        self._model = model
        self._paths = {}
        # Keeps owners alive, so that no other layer gets the id of one.
        self._owners = []

    def path(self, owner, path):
        """The name, or `None` if the owner is no layer of the model."""
        identity = (id(owner), path)
        if identity not in self._paths:
            layers = sublayers(self._model)
            if owner is None:
                is_own = any(layer.path == path for layer in layers)
            else:
                is_own = any(layer is owner for layer in layers)
            if not is_own or path is None:
                return None
            self._owners.append(owner)
            self._paths[identity] = self._unused(owner, path, layers)
        return self._paths[identity]

    def _unused(self, owner, path, layers):
        twins = [
            layer
            for layer in layers
            if layer.path == path and (has_gate(layer) or layer is owner)
        ]
        before = [layer is owner for layer in twins]
        number = before.index(True) + 1 if True in before else 1
        taken = set(self._paths.values())
        name = path if number == 1 else f"{path}#{number}"
        while name in taken:
            number += 1
            name = f"{path}#{number}"
        return name
