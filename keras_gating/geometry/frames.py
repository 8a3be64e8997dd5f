"""Orthonormal frames of the tangent space, and what is degenerate.

Everything here runs inside a compiled function, on derivatives that
`covariance.whiten` has prepared. Frames are built from the Jacobian itself:
`g = JᵀJ` would square its condition number.
"""

import math
import typing

import keras
import numpy as np
from keras import ops

from keras_gating.geometry.covariance import signs


class Frame(typing.NamedTuple):
    """Orthonormal tangent vectors at n points, `J = vectors · upper`.

    They are orthonormal once the signs of an indefinite inner product are
    left out; with these, their Gram matrix is well scaled, and `inverse_gram`
    its inverse (`None` stands for the identity).
    """

    vectors: typing.Any  # (n, d, k)
    upper: typing.Any  # (n, k, k)
    inverse: typing.Any  # of upper, (n, k, k)
    output_signs: typing.Any  # (d,), or None where all are 1
    inverse_gram: typing.Any  # (n, k, k), or None
    volume: typing.Any  # √|det g|, (n,)
    largest: typing.Any  # singular value of J, (n,)
    smallest: typing.Any
    regular: typing.Any  # whether the point is not degenerate, (n,)

    def tangential(self, vectors):
        """Components `(n, k, …)` along the frame of `(n, d, …)`."""
        rest = _letters(vectors)
        components = ops.einsum(
            f"nae,na{rest}->ne{rest}", self.vectors, self.signed(vectors)
        )
        if self.inverse_gram is None:
            return components
        return ops.einsum(
            f"nef,nf{rest}->ne{rest}", self.inverse_gram, components
        )

    def normal(self, vectors):
        """The part of `(n, d, …)` that is normal to the tangent space."""
        rest = _letters(vectors)
        # What rounding leaves of the tangential part, the second pass takes.
        for _ in range(2):
            vectors = vectors - ops.einsum(
                f"nae,ne{rest}->na{rest}",
                self.vectors,
                self.tangential(vectors),
            )
        return vectors

    def normal_vector(self, vector):
        """The same for one vector `(n, d)`, without a matrix product.

        Several times faster than small products are in compiled functions.
        """
        k = self.vectors.shape[-1]
        frame = [self.vectors[..., i] for i in range(k)]
        for _ in range(2):
            components = [self.inner(e, vector) for e in frame]
            if self.inverse_gram is not None:
                components = [
                    sum(
                        self.inverse_gram[:, i, j] * components[j]
                        for j in range(k)
                    )
                    for i in range(k)
                ]
            for e, component in zip(frame, components):
                vector = vector - component[:, None] * e
        return vector

    def signed(self, vectors):
        """What `(n, d, …)` is to be multiplied with for inner products."""
        return _signed(vectors, self.output_signs)

    def inner(self, u, v):
        """Inner products of vectors `(n, d)`."""
        return ops.sum(u * self.signed(v), axis=1)

    def raised(self, form):
        """A bilinear form `(n, …, k, k)` on the frame, last index raised."""
        if self.inverse_gram is None:
            return form
        rest = "ab"[: len(form.shape) - 3]
        return ops.einsum(f"n{rest}ij,njl->n{rest}il", form, self.inverse_gram)


def frame_at(j, form, shared):
    """The frame of the whitened Jacobian `j`, `(n, d, k)`."""
    d, k = j.shape[1:]
    if d < k:
        raise ValueError(
            "`f` must not map to fewer dimensions than it starts from. "
            f"Received: points of {k} dimensions, f(x) of {d}"
        )
    threshold = math.sqrt(epsilon(j))
    vectors, upper = orthonormalize(j)
    inverse = inverse_of_upper(upper)
    largest, smallest = singular_values(upper, inverse)
    regular = smallest > threshold * largest  # False where either is NaN
    volume = product_of_diagonal(upper)
    output_signs = inverse_gram = None
    if form.indefinite:
        output_signs = ops.cast(signs(form, shared), j.dtype)
        inverse_gram, size, least = _gram(vectors, output_signs)
        volume = volume * ops.sqrt(size)
        regular = ops.logical_and(regular, least > threshold)
    return Frame(
        vectors,
        upper,
        inverse,
        output_signs,
        inverse_gram,
        volume,
        largest,
        smallest,
        regular,
    )


def _gram(vectors, output_signs):
    """Inverse, absolute determinant and least singular value of the Gram.

    Its entries are in [-1, 1]; it is singular where the tangent space touches
    the null cone.
    """
    gram = ops.einsum("nai,naj->nij", vectors, _signed(vectors, output_signs))
    rotation, upper = orthonormalize(gram)
    inverse = inverse_of_upper(upper)
    _, least = singular_values(upper, inverse)
    size = product_of_diagonal(upper)
    return ops.einsum("nij,nlj->nil", inverse, rotation), size, least


def orthonormalize(matrices):
    """`QR` of `(n, d, k)` by Gram–Schmidt, applied twice to each column."""
    k = matrices.shape[-1]
    zero = ops.zeros_like(matrices[:, 0, 0])
    columns, upper = [], [[zero] * k for _ in range(k)]
    for i in range(k):
        column = matrices[..., i]
        for _ in range(2):
            found = [ops.sum(q * column, axis=1) for q in columns]
            for row, (c, q) in enumerate(zip(found, columns)):
                column = column - c[:, None] * q
                upper[row][i] = upper[row][i] + c
        upper[i][i] = ops.sqrt(ops.sum(column * column, axis=1))
        columns.append(column / upper[i][i][:, None])
    rows = [ops.stack(row, axis=-1) for row in upper]
    return ops.stack(columns, axis=-1), ops.stack(rows, axis=1)


def inverse_of_upper(upper):
    """Inverse of triangular matrices `(n, k, k)`, by back substitution."""
    k = upper.shape[-1]
    zero = ops.zeros_like(upper[:, 0, 0])
    inverse = [[zero] * k for _ in range(k)]
    for j in range(k):
        inverse[j][j] = 1.0 / upper[:, j, j]
        for i in reversed(range(j)):
            known = sum(
                upper[:, i, m] * inverse[m][j] for m in range(i + 1, j + 1)
            )
            inverse[i][j] = -known / upper[:, i, i]
    return ops.stack([ops.stack(row, axis=-1) for row in inverse], axis=1)


def singular_values(upper, inverse):
    """Largest and smallest of triangular matrices, `(n,)` each.

    The smallest is the inverse of the largest of the inverse: as an eigenvalue
    of `JᵀJ` it would be lost in rounding just where it matters.
    """
    return spectral_norm(upper), 1.0 / spectral_norm(inverse)


def spectral_norm(matrices):
    """Largest singular value of `(n, k, k)`, to three digits at least.

    `λ_max ≤ trace(Mᵖ)^(1/p) ≤ k^(1/p) λ_max` for `M = A Aᵀ`; p is 2¹⁰.
    """
    size = ops.sqrt(ops.sum(matrices * matrices, axis=(1, 2)))
    k = matrices.shape[-1]
    if k == 1:
        return size
    if k == 2:
        # Of 2 × 2: σ₁² + σ₂² is the squared norm, σ₁ σ₂ the determinant.
        a, b = matrices[:, 0, 0], matrices[:, 0, 1]
        c, d = matrices[:, 1, 0], matrices[:, 1, 1]
        plus = ops.sqrt((a + d) * (a + d) + (b - c) * (b - c))
        minus = ops.sqrt((a - d) * (a - d) + (b + c) * (b + c))
        return (plus + minus) / 2.0
    scaled = matrices / size[:, None, None]
    power = ops.einsum("nij,nlj->nil", scaled, scaled)
    eye = ops.eye(k, dtype=power.dtype)
    logarithm = ops.zeros_like(size)
    for step in range(1, 11):
        trace = ops.sum(power * eye, axis=(1, 2))
        logarithm = logarithm + ops.log(trace) / 2.0**step
        power = power / trace[:, None, None]
        power = ops.einsum("nij,njl->nil", power, power)
    trace = ops.sum(power * eye, axis=(1, 2))
    return size * ops.exp(logarithm + ops.log(trace) / 2.0**11)


def product_of_diagonal(matrices):
    """`(n,)` of `(n, k, k)`."""
    product = matrices[:, 0, 0]
    for i in range(1, matrices.shape[-1]):
        product = product * matrices[:, i, i]
    return product


def nan_unless(regular, values):
    """`values` `(n, …)`, NaN where `regular` `(n,)` is False."""
    shape = (-1, *[1] * (len(values.shape) - 1))
    return ops.where(
        ops.reshape(regular, shape), values, ops.full_like(values, math.nan)
    )


def epsilon(tensor):
    """The distance from 1 to the next larger number of the tensor's dtype."""
    dtype = keras.backend.standardize_dtype(tensor.dtype)
    return float(np.finfo(dtype).eps)


def _signed(vectors, output_signs):
    if output_signs is None:
        return vectors
    shape = (-1, *[1] * (len(vectors.shape) - 2))
    return vectors * ops.reshape(output_signs, shape)


def _letters(vectors):
    return "ijlm"[: len(vectors.shape) - 2]
