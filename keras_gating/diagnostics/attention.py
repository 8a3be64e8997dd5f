"""Hands over the attention probabilities of one model's own layers."""

import contextlib
import functools
import inspect
import threading
import typing

import keras
from keras import ops

from keras_gating import _backend
from keras_gating import _keras
from keras_gating import functional
from keras_gating._keras import sublayers
from keras_gating.diagnostics.watching import UniquePaths
from keras_gating.diagnostics.watching import readable
from keras_gating.functional import masks
from keras_gating.functional import recording
from keras_gating.functional.gate import to_float32
from keras_gating.layers import GatedAttention

_KINDS = (
    GatedAttention,
    keras.layers.MultiHeadAttention,
    keras.layers.GroupQueryAttention,
)

_METHOD = "_compute_attention"
_FLAG = "return_attention_scores"

_lock = threading.Lock()


class AttentionCall(typing.NamedTuple):
    """The attention probabilities of one layer in one call.

    Attributes:
        path: path of the layer, made unique.
        probabilities: array `(B, free…, heads, T…, S…)`.
        layout: `functional.AttentionLayout`, which names the axes.
    """

    path: str
    probabilities: typing.Any
    layout: typing.Any


def attention_layers(model):
    """The layers of a model whose probabilities can be recorded."""
    return [layer for layer in sublayers(model) if isinstance(layer, _KINDS)]


@contextlib.contextmanager
def watch_attention(model, on_call):
    """Calls `on_call` with an `AttentionCall` for every attention of `model`.

    Outputs stay what they are, to the last bit: the layers attend as they
    always do, and the probabilities are computed beside that.
    """
    observer = _Observer(threading.get_ident(), UniquePaths(model), on_call)
    layers = attention_layers(model)
    with contextlib.ExitStack() as stack:
        for layer in layers:
            stack.enter_context(_observed(layer, observer))
        yield
        later = [
            layer for layer in attention_layers(model) if layer not in layers
        ]
        if later:
            raise ValueError(
                "Attention layers were made in the recorded call, too late to "
                "be seen: build the model, or call it once, before. Received: "
                f"{', '.join(layer.name for layer in later)}"
            )


@contextlib.contextmanager
def _observed(layer, observer):
    """Hands the calls of one layer to an observer as well.

    Contexts of several threads may end in any order, so they share one wrapper
    and the last one takes it away. It goes into the `__dict__`: an assignment
    would be tracked by Keras.
    """
    own = vars(layer)
    with _lock:
        wrapper = own.get(_METHOD)
        if not isinstance(wrapper, _Wrapper):
            wrapper = own[_METHOD] = _Wrapper(layer)
        wrapper.observers.append(observer)
    try:
        yield
    finally:
        with _lock:
            wrapper.observers.remove(observer)
            # Somebody else may have put something around it.
            if not wrapper.observers and own.get(_METHOD) is wrapper:
                wrapper.restore()


class _Observer(typing.NamedTuple):
    thread: int
    paths: UniquePaths
    on_call: typing.Callable


class _Wrapper:
    """Takes the place of `_compute_attention` of one object."""

    def __init__(self, layer):
        original = getattr(layer, _METHOD)
        functools.update_wrapper(self, original)
        self.original = original
        self.layer = layer
        self.is_own = _METHOD in vars(layer)
        self.observers = []

    def restore(self):
        if self.is_own:
            vars(self.layer)[_METHOD] = self.original
        else:
            del vars(self.layer)[_METHOD]

    def __call__(self, *args, **kwargs):
        result = self.original(*args, **kwargs)
        thread = threading.get_ident()
        observers = [
            observer
            for observer in list(self.observers)
            if observer.thread == thread
        ]
        if observers and not _backend.is_symbolic():
            scores, layout = _probabilities(
                self.layer, self.original, args, kwargs, result
            )
            for observer in observers:
                path = observer.paths.path(self.layer, self.layer.path)
                call = AttentionCall(path, readable(scores, path), layout)
                observer.on_call(call)
        return result


def _probabilities(layer, original, args, kwargs, result):
    call = _arguments(layer, original, args, kwargs)
    query, key, value = (call[name] for name in ("query", "key", "value"))
    rank = len(query.shape) - 1
    layout = functional.AttentionLayout.resolve(rank, _axes(layer))
    mask = call.get("attention_mask")
    if mask is not None:
        mask = layout.with_heads(masks.as_boolean_mask(mask))
    if call.get("use_causal_mask"):
        sizes = [
            tuple(ops.shape(x)[axis] for axis in layout.axes)
            for x in (query, key)
        ]
        causal = layout.with_heads(functional.causal_mask(*sizes))
        mask = masks.intersection(mask, causal)
    if _is_overridden(layer, original):
        # What it computes only the layer itself can tell.
        scores = _own_scores(layer, original, args, kwargs, result)
    else:
        _, scores = functional.dot_product_attention(
            to_float32(query),
            to_float32(key),
            to_float32(value),
            mask=mask,
            layout=layout,
            return_scores=True,
        )
    scores = to_float32(scores)
    if mask is not None:
        # A row without a visible key has no distribution.
        scores = masks.hide(scores, layout.seeing_rows(mask))
    return scores, layout


def _arguments(layer, original, args, kwargs):
    """The arguments of a call under the names that Keras has for them.

    It passes them by position, so an override may name them as it likes or
    take `*args`. Where one after the first three kept a name of Keras, that
    says which argument is meant.
    """
    signature = inspect.signature(original)
    bound = signature.bind(*args, **kwargs)
    call = {**bound.arguments, **bound.kwargs}
    names = _parameters(layer)
    for number, (name, value) in enumerate(zip(names, bound.args)):
        if number < 3 or name not in signature.parameters:
            call[name] = value
    return call


def _method(layer):
    kind = next(kind for kind in _KINDS if isinstance(layer, kind))
    return kind._compute_attention


def _parameters(layer):
    return list(inspect.signature(_method(layer)).parameters)[1:]


def _axes(layer):
    if isinstance(layer, GatedAttention):
        return layer.layout.axes
    # Those that the layer was built with, if it has any choice.
    return _keras.argument(layer, "attention_axes")


def _is_overridden(layer, original):
    return getattr(original, "__func__", None) is not _method(layer)


def _own_scores(layer, original, args, kwargs, result):
    scores = result[1]
    if scores is None:
        asking = _asking_for_scores(layer, original, args, kwargs)
        if asking is not None:
            # Gates inside of it have been seen.
            with recording.observe(None):
                scores = original(*asking.args, **asking.kwargs)[1]
    if scores is None:
        raise ValueError(
            f"{type(layer).__name__} overrides `_compute_attention` and gives "
            f"no scores. Received: layer {layer.name!r}"
        )
    return scores


def _asking_for_scores(layer, original, args, kwargs):
    """The call with the flag set, or `None` if it has none."""
    signature = inspect.signature(original)
    if _FLAG in signature.parameters:
        call = signature.bind(*args, **kwargs)
        call.arguments[_FLAG] = True
        return call
    names = _parameters(layer)
    if _FLAG not in names or len(args) <= names.index(_FLAG):
        return None
    args = list(args)
    args[names.index(_FLAG)] = True
    return signature.bind(*args, **kwargs)
