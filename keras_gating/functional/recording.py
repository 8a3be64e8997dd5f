"""Observation of gate values while a model runs eagerly."""

import contextlib
import threading
import typing

_state = threading.local()


class Observation(typing.NamedTuple):
    """The values of one gate in one call.

    Attributes:
        owner: the layer that the gate belongs to, or `None`.
        path: name of the gate, the path of its owner unless another was given.
        activation: function that made the values.
        values: tensor, before scale and dropout.
        mask: padding mask of the leading axes (True is a real position), or
            `None`.
    """

    owner: typing.Any
    path: str | None
    activation: typing.Callable
    values: typing.Any
    mask: typing.Any


@contextlib.contextmanager
def record_into(callback):
    """Calls `callback` with the values of every gate applied in this context.

    Only eager calls can be observed: a compiled function runs its Python code
    once, while it is traced, so what it computes later never gets here.
    Contexts nest, and all of them receive the values; inside
    `record_into(None)` nothing is received.

    Args:
        callback: a function `callback(path, gate, mask)`. `path` is the path
            of the layer that owns the gate (`None` for a bare function call),
            `gate` the activated values before scale and dropout, and `mask`
            the padding mask of its leading axes (True is a real position) or
            `None`. Or `None`, to stop the recording of outer contexts.

    Example:

    >>> import numpy as np
    >>> from keras_gating import functional, layers
    >>> seen = {}
    >>> gate = layers.Gate(name="g")
    >>> with functional.record_into(lambda p, g, m: seen.update({p: g.shape})):
    ...     _ = gate(np.ones((2, 3), "float32"))
    >>> [(path, tuple(shape)) for path, shape in seen.items()]
    [('g', (2, 3))]
    """
    if callback is None:
        observer = None
    else:

        def observer(seen):
            callback(seen.path, seen.values, seen.mask)

    with observe(observer):
        yield


@contextlib.contextmanager
def observe(observer):
    """As `record_into`, with one argument for the callback, `Observation`."""
    # An object of its own: contexts may end in any order, as those of
    # generators do, and each takes away what it brought.
    entry = [observer]
    _state.entries = (*getattr(_state, "entries", ()), entry)
    try:
        yield
    finally:
        _state.entries = tuple(x for x in _state.entries if x is not entry)


def record(owner, path, activation, values, mask=None):
    """Hands an `Observation` to every observer; does nothing without one."""
    observers = _observers()
    if not observers:
        return
    if path is None and owner is not None:
        path = owner.path
    seen = Observation(owner, path, activation, values, mask)
    for observer in observers:
        observer(seen)


def is_observed():
    """Whether somebody wants to see gates."""
    return bool(_observers())


def _observers():
    """Observers of the contexts that `record_into(None)` does not stop."""
    found = []
    for (observer,) in reversed(getattr(_state, "entries", ())):
        if observer is None:
            break
        found.insert(0, observer)
    return found
