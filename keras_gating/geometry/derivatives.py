"""First and second derivatives of a map, by nested forward mode."""

from keras import ops

from keras_gating.geometry.covariance import EUCLIDEAN
from keras_gating.geometry.covariance import inner_product
from keras_gating.geometry.covariance import signs
from keras_gating.geometry.covariance import whiten
from keras_gating.geometry.evaluation import as_points
from keras_gating.geometry.evaluation import evaluate


def jacobian(f, x, batch_size=None):
    """First derivatives, `J[a, i] = ∂f_a / ∂x_i`, shape `(…, d, k)`.

    Args:
        f: a layer, a model or another callable, `(n, k)` to `(n, d)`, that
            treats points independently.
        x: points, `(…, k)`.
        batch_size: number of points at a time. Default: what bounds memory.

    Returns:
        Tensor `(…, d, k)`.

    Example:

    >>> import numpy as np
    >>> from keras_gating import geometry
    >>> from keras_gating.geometry import surfaces
    >>> x = np.zeros((1, 2), "float32")
    >>> geometry.jacobian(surfaces.saddle(), x).shape[1:] == (3, 2)
    True
    """
    x = as_points(x)
    return evaluate(jacobian_at, f, x, batch_size=batch_size)


def hessian(f, x, batch_size=None):
    """Second derivatives, `H[a, i, j] = ∂²f_a / ∂x_i ∂x_j`, `(…, d, k, k)`.

    Args:
        f: a layer, a model or another callable, `(n, k)` to `(n, d)`, that
            treats points independently.
        x: points, `(…, k)`.
        batch_size: number of points at a time. Default: what bounds memory.

    Returns:
        Tensor `(…, d, k, k)`, symmetric in its last axes.

    Example:

    >>> import numpy as np
    >>> from keras import ops
    >>> from keras_gating import geometry
    >>> from keras_gating.geometry import surfaces
    >>> x = np.zeros((1, 2), "float32")
    >>> values = geometry.hessian(surfaces.saddle(), x)[0, 2]
    >>> ops.convert_to_numpy(values).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    x = as_points(x)
    return evaluate(_hessian_at, f, x, batch_size=batch_size)


def metric(f, x, covariance=None, batch_size=None):
    """The pullback metric `g = Jᵀ Σ⁻¹ J`, shape `(…, k, k)`.

    It is the Fisher–Rao metric of the Gaussians `N(f(x), Σ)` when Σ is fixed.

    Args:
        f: a layer, a model or another callable, `(n, k)` to `(n, d)`, that
            treats points independently.
        x: points, `(…, k)`.
        covariance: Σ, an array `(d, d)`, or `(d,)` for a diagonal one; also an
            indefinite signature such as `diag(1, …, 1, −1)`. Default: the
            identity.
        batch_size: number of points at a time. Default: what bounds memory.

    Returns:
        Tensor `(…, k, k)`.

    Example:

    >>> import numpy as np
    >>> from keras import ops
    >>> from keras_gating import geometry
    >>> from keras_gating.geometry import surfaces
    >>> x = np.zeros((1, 2), "float32")
    >>> values = geometry.metric(surfaces.saddle(), x)[0]
    >>> ops.convert_to_numpy(values).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    x = as_points(x)
    return evaluate(
        metric_at, f, x, batch_size=batch_size, **inner_product(covariance, x)
    )


def derivative(f, x, direction):
    """The derivative of `f` along `direction` at every point, `(n, d)`."""
    y, tangent = ops.jvp(f, (x,), (direction,))
    return _shaped(tangent, y)


def second_derivative(f, x, first, second):
    """`(∂f·first, ∂²f·first·second)` at every point, `(n, d)` each."""
    y, tangent = ops.jvp(lambda z: derivative(f, z, first), (x,), (second,))
    return y, _shaped(tangent, y)


def _shaped(tangent, y):
    # TensorFlow has no tangent where the output does not depend on the input,
    # and one of unknown shape after many traces of the same operation.
    if tangent is None:
        return ops.zeros_like(y)
    return ops.reshape(tangent, ops.shape(y))


def basis(x):
    """The k basis vectors, each as a direction at every point of `x`."""
    k = x.shape[-1]
    rows = ops.eye(k, dtype=x.dtype)
    return [ops.zeros_like(x) + rows[i] for i in range(k)]


def jacobian_at(f, x):
    """`(n, d, k)`, inside a compiled function."""
    return ops.stack([derivative(f, x, e) for e in basis(x)], axis=-1)


def jet_at(f, x):
    """Jacobian `(n, d, k)` and Hessian `(n, d, k, k)`, inside a compiled one.

    The Hessian is symmetric, so half of it is computed.
    """
    directions = basis(x)
    first, second = [], {}
    for i, e in enumerate(directions):
        for j, other in enumerate(directions[: i + 1]):
            tangent, second[i, j] = second_derivative(f, x, e, other)
            second[j, i] = second[i, j]
        first.append(tangent)
    count = range(len(directions))
    rows = [ops.stack([second[i, j] for j in count], axis=-1) for i in count]
    return ops.stack(first, axis=-1), ops.stack(rows, axis=-2)


def _hessian_at(f, x):
    return jet_at(f, x)[1]


def metric_at(f, x, *shared, form=EUCLIDEAN):
    """`(n, k, k)`, inside a compiled function."""
    (j,) = whiten(form, shared, jacobian_at(f, x))
    other = j if signs(form, shared) is None else _signed(form, shared, j)
    return ops.einsum("nai,naj->nij", j, other)


def _signed(form, shared, j):
    return j * ops.cast(signs(form, shared), j.dtype)[:, None]
