"""Gated linear units on tensors that hold value and gate together."""

from keras import ops

from keras_gating.functional import checks
from keras_gating.functional.gate import apply_gate
from keras_gating.functional.gate import as_float


def glu(
    inputs,
    activation="sigmoid",
    axis=-1,
    gate_first=False,
    limit=None,
    product_dtype=None,
):
    """Multiplies one half of a tensor by the other, activated half.

    `outputs = value ⊙ activation(gate)`, value the first half along `axis` and
    gate the second (`gate_first=True`: the other way round).

    Args:
        inputs: tensor with an even size along `axis`.
        activation: name or callable, applied to the gate half alone.
        axis: the axis to halve.
        gate_first: whether the gate is the first half.
        limit: bound on what is multiplied: gate logits are clamped from above
            to `limit`, values to `[-limit, limit]`. Defaults to `None`.
        product_dtype: dtype of the product and of the result. Defaults to
            `None`, that of `inputs`.

    Returns:
        A tensor with half the size along `axis`.

    Raises:
        ValueError: if the size along `axis` is odd or unknown, and for other
            arguments that do not fit.

    Reference:
        Dauphin et al. 2016, arXiv 1612.08083; Shazeer 2020, arXiv 2002.05202.

    Example:

    >>> import numpy as np
    >>> from keras_gating import functional
    >>> [float(y) for y in functional.glu(np.array([3.0, 0.0], "float32"))]
    [1.5]
    """
    inputs = as_float(inputs, "inputs")
    checks.boolean("gate_first", gate_first)
    if limit is not None:
        checks.positive_number("limit", limit)
    shape = tuple(inputs.shape)
    is_axis = checks.is_integer(axis) and -len(shape) <= axis < len(shape)
    size = shape[axis] if is_axis else None
    if size is None or size % 2:
        raise ValueError(
            "A gated linear unit halves an axis of known, even size. Received: "
            f"inputs.shape={shape}, axis={axis!r}"
        )
    value, gate = ops.split(inputs, 2, axis=axis)
    if gate_first:
        value, gate = gate, value
    value, gate = clamp(value, gate, limit)
    return apply_gate(value, gate, activation, product_dtype=product_dtype)


def clamp(value, gate, limit):
    """Bounds value and gate logits before they are multiplied.

    The gate from above only, since the activations in use vanish below; the
    value on both sides.

    Args:
        value: tensor.
        gate: tensor, the gate before its activation.
        limit: positive number, or `None` for no bounds.
    """
    if limit is None:
        return value, gate
    # Not `ops.minimum`, which on torch makes float32 of float64.
    gate = ops.clip(gate, float("-inf"), limit)
    return ops.clip(value, -limit, limit), gate
