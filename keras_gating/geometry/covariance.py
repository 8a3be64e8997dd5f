"""Inner products of the output space, reduced to a sum of signed squares.

With `Σ = Q diag(λ) Qᵀ` and `W = |λ|^(-1/2) Qᵀ`, `⟨u, v⟩ = uᵀ Σ⁻¹ v` is
`Σ_a sign(λ_a) (Wu)_a (Wv)_a`: after multiplying all derivatives by W, only
the signs are left, and for a covariance that is positive definite none.
"""

import typing

import numpy as np
from keras import ops

from keras_gating import _backend


class Form(typing.NamedTuple):
    """What kind of inner product the shared arrays of a computation hold."""

    kind: str = "euclidean"
    indefinite: bool = False


EUCLIDEAN = Form()


def inner_product(covariance, x):
    """`shared` and `form` for `evaluate`, in the dtype of `x`."""
    if covariance is None:
        return {"shared": (), "form": EUCLIDEAN}
    values = _concrete(covariance)
    if values.ndim == 1:
        kind, scale = "diagonal", values
        inverse_root = np.sqrt(1.0 / np.abs(np.where(values == 0, 1, values)))
    else:
        kind = "matrix"
        scale, vectors = np.linalg.eigh((values + values.T) / 2)
        safe = np.abs(np.where(scale == 0, 1, scale))
        inverse_root = vectors.T / np.sqrt(safe)[:, None]
    epsilon = np.finfo("float64").eps
    # Units may differ, so a diagonal may be as uneven as it likes.
    smallest = epsilon * np.abs(scale).max() if kind == "matrix" else 0.0
    if np.abs(scale).min() <= smallest:
        raise ValueError(
            "`covariance` must be invertible. Received a "
            f"{'matrix' if kind == 'matrix' else 'diagonal'} with "
            f"{'eigenvalues' if kind == 'matrix' else 'entries'} {scale}"
        )
    arrays = [inverse_root, np.sign(scale)]
    indefinite = bool(np.any(scale < 0))
    return {
        "shared": tuple(
            ops.convert_to_tensor(a, dtype=x.dtype)
            for a in arrays[: 1 + indefinite]
        ),
        "form": Form(kind, indefinite),
    }


def whiten(form, shared, *derivatives):
    """`W` times each of the derivatives, `(n, d, …)`."""
    if form.kind == "euclidean":
        return derivatives
    root = shared[0]
    features = derivatives[0].shape[1]
    if root.shape[0] != features:
        raise ValueError(
            f"`covariance` must have the size of f(x), {features}. Received: "
            f"a covariance of size {root.shape[0]}"
        )
    return tuple(_times(form, root, y) for y in derivatives)


def signs(form, shared):
    """`(d,)`, or `None` where all are 1."""
    return shared[1] if form.indefinite else None


def _times(form, root, y):
    root = ops.cast(root, y.dtype)
    if form.kind == "diagonal":
        return y * ops.reshape(root, (-1, *[1] * (len(y.shape) - 2)))
    rest = "ijk"[: len(y.shape) - 2]
    return ops.einsum(f"ab,nb{rest}->na{rest}", root, y)


def _concrete(covariance):
    values = _backend.concrete(covariance)
    if values is None:
        raise ValueError(
            "`covariance` must be a fixed array, not one that a surrounding "
            f"compiled function computes. Received: {covariance!r}"
        )
    try:
        if np.iscomplexobj(values):
            raise TypeError("complex numbers")
        values = np.asarray(values, dtype="float64")
    except (TypeError, ValueError) as error:
        raise ValueError(
            "`covariance` must be an array of real numbers. Received: "
            f"covariance={covariance!r}"
        ) from error
    square = values.ndim == 2 and values.shape[0] == values.shape[1]
    if not (values.ndim == 1 or square) or not values.size:
        raise ValueError(
            "`covariance` must have shape (d, d), or (d,) for a diagonal one. "
            f"Received: covariance.shape={values.shape}"
        )
    if not np.all(np.isfinite(values)):
        raise ValueError(
            f"`covariance` must be finite. Received: covariance={values}"
        )
    if square and not np.allclose(values, values.T, rtol=1e-5, atol=0.0):
        raise ValueError(
            f"`covariance` must be symmetric. Received: covariance={values}"
        )
    return values
