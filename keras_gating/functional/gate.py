"""The one multiplication that every gate of the package goes through."""

import keras
from keras import ops

from keras_gating import _backend
from keras_gating._backend import in_place
from keras_gating.functional import checks
from keras_gating.functional.recording import record

# Zero value and zero slope at 0 (as the backends differentiate them): behind a
# kernel and a bias of zeros such a gate would stay shut for ever.
_VANISHING = frozenset(
    {"relu", "relu6", "tanh_shrink", "soft_shrink", "hard_shrink"}
)


def apply_gate(
    inputs,
    logits,
    activation="sigmoid",
    scale=1.0,
    dropout=0.0,
    training=False,
    seed=None,
    mask=None,
    path=None,
    product_dtype=None,
    owner=None,
):
    """Multiplies `inputs` by an activated gate.

    `outputs = inputs ⊙ dropout(scale · activation(logits))`

    The activation is computed in float32 when `logits` are float16 or
    bfloat16; the product has the dtype of `inputs` unless another is asked
    for.

    Args:
        inputs: the value, a tensor of any shape.
        logits: the gate before its activation; broadcasts against `inputs`.
        activation: name or callable.
        scale: factor on the activated gate. A sigmoid gate with `scale=2` is
            the identity at logit 0.
        dropout: probability with which a gate value is set to zero during
            training; the others are divided by `1 - dropout`.
        training: whether dropout is active.
        seed: integer or `keras.random.SeedGenerator` for the dropout.
        mask: padding mask of the leading axes of `inputs`, handed to
            recordings only. One of all axes may have sizes 1.
        path: name under which the values are recorded. Defaults to the path
            of `owner`.
        product_dtype: dtype of the product. `"float32"` keeps a product of
            two float16 numbers that exceeds 65504.
        owner: the layer that the gate belongs to, `self` in a layer's `call`.
            `diagnostics` records the gates of a model by it.

    Returns:
        A tensor with the shape of `inputs`.

    Raises:
        ValueError: for shapes and numbers that do not fit.

    Example:

    >>> import numpy as np
    >>> from keras_gating import functional
    >>> value = np.array([2.0, 4.0], "float32")
    >>> logits = np.array([0.0, 100.0], "float32")
    >>> [float(y) for y in functional.apply_gate(value, logits)]
    [1.0, 4.0]
    """
    activation = keras.activations.get(activation)
    checks.factor("scale", scale)
    checks.probability("dropout", dropout)
    checks.float_dtype("product_dtype", product_dtype)
    inputs, logits = as_float(inputs, "inputs"), as_float(logits, "logits")
    checks.broadcasts("logits", logits.shape, "inputs", inputs.shape)
    return gated(
        inputs,
        logits,
        activation,
        scale,
        dropout,
        training,
        seed,
        mask,
        path,
        product_dtype,
        owner,
    )


def gated(
    inputs,
    logits,
    activation,
    scale=1.0,
    dropout=0.0,
    training=False,
    seed=None,
    mask=None,
    path=None,
    product_dtype=None,
    owner=None,
    overwrite=None,
):
    """`apply_gate` for layers, which have checked all but the mask.

    In a short sequence the checks would take as long as the product.

    Args:
        overwrite: what the caller holds alone and may be overwritten, see
            `in_place`: `"inputs"`, `"both"` with the logits, or `None`.
    """
    if mask is not None:
        _check_mask(mask, inputs.shape)
    logits = to_float32(logits)
    if overwrite == "both":
        gate = in_place.activated(activation, logits)
    else:
        gate = activation(logits)
    record(owner, path, activation, gate, mask)
    if scale != 1.0:
        gate = gate * scale
    if dropout > 0.0 and training:
        gate = keras.random.dropout(gate, dropout, seed=seed)
    dtype = inputs.dtype if product_dtype is None else product_dtype
    inputs, gate = as_dtype(inputs, dtype), as_dtype(gate, dtype)
    return in_place.product(inputs, gate) if overwrite else inputs * gate


def as_float(x, name="x"):
    """A gate is a fraction: integers would cut it off."""
    x = checks.converted(name, x)
    is_float = checks.is_float(name, x)
    return x if is_float else ops.cast(x, keras.config.floatx())


def as_dtype(x, dtype):
    """Casts tensors of other dtypes; to ask for no change costs time too."""
    standard = keras.backend.standardize_dtype
    return x if standard(x.dtype) == standard(dtype) else ops.cast(x, dtype)


def to_float32(x):
    """Casts half precision to float32 and leaves float32 and float64 alone."""
    dtype = keras.backend.standardize_dtype(x.dtype)
    return ops.cast(x, "float32") if dtype in ("float16", "bfloat16") else x


def _check_mask(mask, shape):
    if len(checks.shape_of("mask", mask)) == len(shape):
        checks.broadcasts("mask", mask.shape, "inputs", shape)
    else:
        checks.padding_mask("mask", mask, shape)


def vanishes_at_zero(activation):
    """Whether a gate with this activation cannot leave logits of zero.

    True when the activation is 0 at 0 and a small step to one side at least
    leaves it there, so that no gradient flows: `relu` or `tanh_shrink`, but
    not `silu`, `tanh` or `leaky_relu`.

    Args:
        activation: name or callable.

    Returns:
        A Python bool; False for a callable that cannot be evaluated here
        (while a function is traced).

    Example:

    >>> from keras_gating import functional
    >>> [functional.vanishes_at_zero(name) for name in ("relu", "silu")]
    [True, False]
    """
    activation = keras.activations.get(activation)
    if getattr(activation, "__name__", None) in _VANISHING:
        return True
    step = 1e-5
    points = ops.convert_to_tensor([0.0, step, -step], dtype="float32")
    values = _backend.concrete(activation(points))
    if values is None or values[0] != 0.0:
        return False
    return bool(min(abs(values[1]), abs(values[2])) < 1e-3 * step)
