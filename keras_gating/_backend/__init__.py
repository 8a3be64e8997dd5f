"""The one part that knows which backend runs underneath Keras."""

import contextlib
import importlib.util
import math
import sys

import numpy as np

_BACKENDS = ("jax", "tensorflow", "torch")


def _missing_backend_message(missing):
    installed = [name for name in _BACKENDS if importlib.util.find_spec(name)]
    if not installed:
        return (
            "keras_gating needs a Keras backend, and none of "
            f"{', '.join(_BACKENDS)} is installed. Install one with: "
            "pip install 'keras-gating[jax]'"
        )
    choice = installed[0]
    return (
        f"Keras is set to the backend '{missing}', which is not installed. "
        f"Installed: {', '.join(installed)}. Choose one before starting "
        f"Python:\n    export KERAS_BACKEND={choice}\n"
        "or before the first import of keras or keras_gating:\n"
        f'    import os; os.environ["KERAS_BACKEND"] = "{choice}"'
    )


def _forget_keras():
    # What a failed `import keras` leaves behind has the backend's name fixed
    # in it, and would make the advice above useless in a running notebook.
    for name in list(sys.modules):
        if name.partition(".")[0] == "keras":
            del sys.modules[name]


try:
    import keras
except ModuleNotFoundError as error:
    if error.name not in (*_BACKENDS, "openvino"):
        raise
    _forget_keras()
    raise ImportError(_missing_backend_message(error.name)) from None


def compiled(function, xla=True):
    """Compiles `function`, or returns it as it is where nothing compiles.

    `jax.jit` on JAX, XLA on TensorFlow with a fallback to graph mode for what
    XLA cannot compile, `function` itself elsewhere. Arguments are nests of
    tensors. On JAX whatever the function closes over, weights included, is
    read when it is traced: compile anew after changing it.

    Args:
        function: what to compile.
        xla: False for graph mode on TensorFlow from the start. Second
            derivatives need it: under XLA TensorFlow has none through
            concatenation and slices, and once tried the fallback has none
            either.
    """
    backend = keras.config.backend()
    if backend == "jax":
        import jax

        return jax.jit(function)
    if backend == "tensorflow":
        return _compiled_tensorflow(function, use_xla=xla)
    return function


def _compiled_tensorflow(function, use_xla):
    import tensorflow as tf

    # What is written in `keras.ops` needs no conversion of Python's own
    # control flow.
    graph = tf.function(function, autograph=False)
    xla = tf.function(function, autograph=False, jit_compile=True)

    def call(*args, **kwargs):
        nonlocal use_xla
        # Inside another graph a compilation would fail later, out of reach.
        if not use_xla or not tf.executing_eagerly():
            return graph(*args, **kwargs)
        try:
            return xla(*args, **kwargs)
        except (
            tf.errors.InvalidArgumentError,
            tf.errors.UnimplementedError,
            tf.errors.InternalError,
        ):
            # The graph raises again if the arguments themselves are wrong.
            outputs = graph(*args, **kwargs)
        use_xla = False
        return outputs

    return call


def argmax(x, axis):
    """Place of the first maximum along an axis.

    That of Keras sorts out negative zeros by their bits first, on TensorFlow,
    which ONNX, OpenVINO and LiteRT have no operation for.
    """
    if keras.config.backend() != "tensorflow":
        return keras.ops.argmax(x, axis=axis)
    import tensorflow as tf

    return tf.argmax(x, axis=axis, output_type="int32")


def no_gradients():
    """A context in which torch keeps nothing for gradients."""
    if keras.config.backend() != "torch":
        return contextlib.nullcontext()
    import torch

    return torch.no_grad()


def wait(outputs):
    """Blocks until tensors are computed."""
    backend = keras.config.backend()
    if backend == "jax":
        import jax

        jax.block_until_ready(outputs)
    elif backend == "tensorflow":
        import tensorflow as tf

        if platform() != "cpu":
            tf.test.experimental.sync_devices()
    elif backend == "torch":
        import torch

        if torch.accelerator.is_available():
            torch.accelerator.synchronize()


def nbytes(tensor):
    """Number of bytes of a tensor."""
    dtype = tensor.dtype
    itemsize = dtype.size if hasattr(dtype, "size") else dtype.itemsize
    return math.prod(tensor.shape) * itemsize


def platform():
    """Returns where tensors live by default: `"cpu"`, `"gpu"` or `"tpu"`."""
    backend = keras.config.backend()
    if backend == "jax":
        import jax

        return jax.default_backend()
    if backend == "tensorflow":
        import tensorflow as tf

        for kind in ("TPU", "GPU"):
            if tf.config.list_logical_devices(kind):
                return kind.lower()
    if backend == "torch":
        import torch

        accelerators = (torch.cuda, torch.xpu, torch.backends.mps)
        if any(module.is_available() for module in accelerators):
            return "gpu"
    return "cpu"


def is_on_cpu(tensor):
    """Whether what is computed from a tensor is computed on a CPU."""
    if keras.config.backend() == "torch":
        # What the machine has breaks the graphs of torch.compile.
        return tensor.device.type == "cpu"
    return platform() == "cpu"


def is_symbolic():
    """Whether Keras is only working out shapes, as when it builds a model."""
    with keras.SymbolicScope() as scope:
        return scope.original_scope is not None


def has_compiled_steps(model):
    """Whether `fit`, `evaluate` and `predict` of a model are compiled."""
    backend = keras.config.backend()
    if backend == "torch":
        return bool(model.jit_compile)
    if model.run_eagerly:
        return False
    if backend == "tensorflow":
        import tensorflow as tf

        return not tf.config.functions_run_eagerly()
    if backend == "jax":
        import jax

        return bool(model.jit_compile) and not jax.config.jax_disable_jit
    return False


def concrete(x):
    """Returns the value of `x` as a NumPy array, or `None` while unknown.

    Unknown are symbolic tensors and whatever a backend is tracing. Reading
    waits for the device, so this is for small tensors that a check needs.
    """
    backend = keras.config.backend()
    if backend == "torch":
        from keras_gating._backend.on_torch import is_traced

        # First, so that torch.compile and torch.export see a constant branch.
        if is_traced():
            return None
    if isinstance(x, keras.KerasTensor):
        return None
    if isinstance(x, keras.Variable):
        x = x.value
    if not keras.ops.is_tensor(x):
        return np.asarray(x)
    if backend == "jax":
        import jax

        if isinstance(x, jax.core.Tracer) or not x.is_fully_addressable:
            return None
    if backend == "tensorflow" and not hasattr(x, "numpy"):
        return None
    try:
        return keras.ops.convert_to_numpy(x)
    except RuntimeError:
        # torch has no test in its public interface for tensors without
        # storage (those of torch.func, fake and meta tensors).
        if backend != "torch":
            raise
        return None
