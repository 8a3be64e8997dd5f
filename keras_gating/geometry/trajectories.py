"""How straight a sequence of representations is."""

from keras import ops

from keras_gating.geometry.evaluation import as_floats


def straightening(trajectory):
    """Angles between the successive steps of a trajectory, in radians.

    With the steps `s_t = x_(t+1) − x_t`, `θ_t = ∠(s_t, s_(t+1))`: 0 where the
    trajectory goes straight on, π where it turns back. A representation
    straightens a sequence by as much as the mean angle is smaller behind a
    layer than before it.

    The angle is the quotient of `|u − v|` and `|u + v|`, u and v being the
    steps at unit length. It has the precision of the dtype at every angle,
    which the arccosine of `u·v` has not near 0 and π. Made of operations with
    gradients on every backend, it can be part of a loss; the gradient of an
    angle that is exactly 0 or π is taken to be 0.

    Args:
        trajectory: tensor `(..., T, d)`, T ≥ 3 points in order of time.

    Returns:
        A tensor `(..., T − 2)`. NaN where one of the two steps is zero, since
        a step of no length has no direction.

    Raises:
        ValueError: for fewer than three points.

    Reference:
        Hénaff et al. 2019, Perceptual straightening of natural videos, Nature
        Neuroscience 22.

    Example:

    >>> import numpy as np
    >>> from keras_gating import geometry
    >>> corner = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [2.0, 1.0]])
    >>> [round(float(a), 4) for a in geometry.straightening(corner)]
    [0.0, 1.5708]
    """
    trajectory = as_floats(trajectory, "trajectory")
    shape = tuple(trajectory.shape)
    is_short = len(shape) < 2 or (shape[-2] is not None and shape[-2] < 3)
    if is_short or shape[-1] == 0:
        raise ValueError(
            "`trajectory` must have the shape (..., T, d) with at least three "
            "points in time, T, and one feature. Received: "
            f"trajectory.shape={shape}"
        )
    steps = _unit(trajectory[..., 1:, :] - trajectory[..., :-1, :])
    first, second = steps[..., :-1, :], steps[..., 1:, :]
    apart, along = _length(first - second), _length(first + second)
    # |u − v|² + |u + v|² = 4, so this is the tangent of a quarter of the angle.
    return 4.0 * _arctangent(apart / (2.0 + along))


def _unit(x):
    # The largest entry first: squares of small steps would underflow.
    x = x / ops.stop_gradient(ops.max(ops.abs(x), axis=-1, keepdims=True))
    return x / _length(x)[..., None]


def _length(x):
    # The inner `where` keeps the infinite slope at 0 out of the gradient.
    squares = ops.sum(x * x, axis=-1)
    zero = ops.equal(squares, 0.0)
    length = ops.sqrt(ops.where(zero, ops.ones_like(squares), squares))
    return ops.where(zero, ops.zeros_like(squares), length)


def _arctangent(x):
    """Arctangent on [0, 1]: that of Keras has 32 bits only, on JAX and torch.

    Three times half the argument, then the series.
    """
    for _ in range(3):
        x = x / (1.0 + ops.sqrt(1.0 + x * x))
    square, total = x * x, 0.0
    for n in reversed(range(10)):
        total = (-1) ** n / (2 * n + 1) + square * total
    return 8.0 * x * total
