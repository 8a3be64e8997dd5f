"""Refuses compiled steps of a model while its gates are watched."""

import contextlib
import functools
import threading

import keras

from keras_gating import _backend
from keras_gating._keras import sublayers

# What every `fit`, `evaluate`, `predict` and `…_on_batch` calls first.
_METHODS = (
    "make_train_function",
    "make_test_function",
    "make_predict_function",
)

_lock = threading.Lock()
_watched = []
_replaced = {}


@contextlib.contextmanager
def eager_steps_only(model):
    """Makes compiled steps of models with layers of `model` raise.

    A step that was compiled before runs none of its Python code, so nothing
    else would notice that it cannot be observed. The model that is fitted may
    contain `model`, so the methods are replaced on `keras.Model`, for all
    threads, and check which thread calls. A subclass that overrides them and
    never calls those of `keras.Model` is not guarded.
    """
    entry = (threading.get_ident(), model)
    with _lock:
        if not _watched:
            _install()
        _watched.append(entry)
    try:
        yield
    finally:
        with _lock:
            _watched.remove(entry)
            if not _watched:
                _uninstall()


def compiled_call(what):
    """The error for a call that cannot be observed."""
    return ValueError(
        "Gates and attention are recorded in eager calls only: compiled code "
        "does not reach Python, and while it is traced there are no values. "
        "Call the model itself, `model(x)`, outside of `jit`, `tf.function`, "
        "`torch.compile` and vectorized maps; for `fit` and `predict` compile "
        "the model with `run_eagerly=True`. Received: "
        f"{what}"
    )


def _install():
    for name in _METHODS:
        _replaced[name] = vars(keras.Model).get(name)
        setattr(keras.Model, name, _guarded(name, getattr(keras.Model, name)))


def _uninstall():
    for name in _METHODS:
        original = _replaced.pop(name)
        if original is None:
            delattr(keras.Model, name)
        else:
            setattr(keras.Model, name, original)


def _guarded(name, original):
    @functools.wraps(original)
    def make(self, *args, **kwargs):
        if _backend.has_compiled_steps(self) and _is_watched(self):
            kind = name.removeprefix("make_").removesuffix("_function")
            raise compiled_call(f"a compiled {kind} step of {self.name!r}")
        return original(self, *args, **kwargs)

    return make


def _is_watched(model):
    own = {id(layer) for layer in sublayers(model)}
    thread = threading.get_ident()
    return any(
        id(layer) in own
        for watcher, watched in list(_watched)
        if watcher == thread
        for layer in sublayers(watched)
    )
