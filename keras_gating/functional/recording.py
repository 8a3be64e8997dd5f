"""Observation of gate values while a model runs eagerly."""

import contextlib
import threading

_state = threading.local()


@contextlib.contextmanager
def record_into(callback):
    """Calls `callback` with the values of every gate applied in this context.

    Only eager calls can be observed: a compiled function runs its Python code
    once, while it is traced, so what it computes later never gets here.
    Contexts nest; the innermost one receives the values.

    Args:
        callback: a function `callback(path, gate, mask)`. `path` is the path
            of the layer that owns the gate (`None` for a bare function call),
            `gate` the activated values before scale and dropout, and `mask`
            the padding mask of its leading axes (True is a real position) or
            `None`.

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
    previous = getattr(_state, "callback", None)
    _state.callback = callback
    try:
        yield
    finally:
        _state.callback = previous


def record(path, gate, mask=None):
    """Hands `gate` to the active callback; does nothing when there is none."""
    callback = getattr(_state, "callback", None)
    if callback is not None:
        callback(path, gate, mask)
