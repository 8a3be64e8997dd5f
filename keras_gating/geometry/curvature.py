"""Curvature of the image of a map, at every point.

A map `f: R^k → R^d` carries the metric `g = Jᵀ Σ⁻¹ J` and bends by its second
fundamental form `II_ij = P_N ∂²f/∂x_i∂x_j`, where `P_N` projects on the normal
space. The equation of Gauss gives everything intrinsic:
`R(i,j,k,l) = ⟨II_ik, II_jl⟩ − ⟨II_il, II_jk⟩`.
"""

from keras import ops

from keras_gating.geometry.covariance import EUCLIDEAN
from keras_gating.geometry.covariance import inner_product
from keras_gating.geometry.covariance import whiten
from keras_gating.geometry.derivatives import jacobian_at
from keras_gating.geometry.derivatives import jet_at
from keras_gating.geometry.derivatives import second_derivative
from keras_gating.geometry.evaluation import as_floats
from keras_gating.geometry.evaluation import as_points
from keras_gating.geometry.evaluation import evaluate
from keras_gating.geometry.frames import frame_at
from keras_gating.geometry.frames import nan_unless


def second_fundamental_form(f, x, covariance=None, batch_size=None):
    """`II_ij = P_N ∂²f/∂x_i∂x_j`, `(…, d, k, k)`.

    `P_N` projects on the normal space, in the inner product of Σ⁻¹.

    Args:
        f: a layer, a model or another callable, `(n, k)` to `(n, d)`, that
            treats points independently.
        x: points, `(…, k)`.
        covariance: Σ, an array `(d, d)`, or `(d,)` for a diagonal one; also an
            indefinite signature such as `diag(1, …, 1, −1)`. Default: the
            identity.
        batch_size: number of points at a time. Default: what bounds memory.

    Returns:
        Tensor `(…, d, k, k)`; NaN at degenerate points.

    Example:

    >>> import numpy as np
    >>> from keras_gating import geometry
    >>> from keras_gating.geometry import surfaces
    >>> x = np.zeros((1, 2), "float32")
    >>> form = geometry.second_fundamental_form(surfaces.saddle(), x)
    >>> [float(form[0, 2, 0, i]) for i in range(2)]
    [0.0, 1.0]
    """
    return _evaluate(_second_fundamental_form, f, x, covariance, batch_size)


def gaussian_curvature(f, x, covariance=None, batch_size=None):
    """`K = (⟨II_11, II_22⟩ − |II_12|²) / det g` of a surface, `(…,)`.

    Positive where the surface is like a sphere, zero where it can be unrolled
    into a plane, negative where it is like a saddle.

    Args:
        f: a layer, a model or another callable, `(n, k)` to `(n, d)`, that
            treats points independently.
        x: points, `(…, k)`.
        covariance: Σ, an array `(d, d)`, or `(d,)` for a diagonal one; also an
            indefinite signature such as `diag(1, …, 1, −1)`. Default: the
            identity.
        batch_size: number of points at a time. Default: what bounds memory.

    Returns:
        Tensor `(…,)`; NaN at degenerate points.

    Raises:
        ValueError: if k is not 2.

    Example:

    >>> import numpy as np
    >>> from keras_gating import geometry
    >>> from keras_gating.geometry import surfaces
    >>> x = np.zeros((1, 2), "float32")
    >>> k = geometry.gaussian_curvature(surfaces.saddle(), x)
    >>> [float(value) for value in k]
    [-1.0]
    """
    x = surface_points(x)
    return _evaluate(_gaussian, f, x, covariance, batch_size)[0]


def curvature_scale(f, x, covariance=None, batch_size=None):
    """What rounding errors of the Gaussian curvature are relative to.

    `‖II_11‖ ‖II_22‖ + ‖II_12‖²` on an orthonormal frame. An error relative to
    K itself means nothing where K is 0 because two terms cancel.

    Args:
        f: a layer, a model or another callable, `(n, k)` to `(n, d)`, that
            treats points independently.
        x: points, `(…, k)`.
        covariance: Σ, an array `(d, d)`, or `(d,)` for a diagonal one; also an
            indefinite signature such as `diag(1, …, 1, −1)`. Default: the
            identity.
        batch_size: number of points at a time. Default: what bounds memory.

    Returns:
        Tensor `(…,)`; NaN at degenerate points.

    Raises:
        ValueError: if k is not 2.

    Example:

    >>> import numpy as np
    >>> from keras_gating import geometry
    >>> from keras_gating.geometry import surfaces
    >>> x = np.zeros((1, 2), "float32")
    >>> scale = geometry.curvature_scale(surfaces.saddle(), x)
    >>> [float(value) for value in scale]
    [1.0]
    """
    x = surface_points(x)
    return _evaluate(_gaussian, f, x, covariance, batch_size)[1]


def sectional_curvature(f, x, u, v, covariance=None, batch_size=None):
    """`K(u, v) = ⟨R(u,v)v, u⟩ / (|u|²|v|² − ⟨u,v⟩²)`, `(…,)`.

    The Gaussian curvature of the surface that geodesics along the plane of u
    and v sweep out. It costs k first and three second derivatives.

    Args:
        f: a layer, a model or another callable, `(n, k)` to `(n, d)`, that
            treats points independently.
        x: points, `(…, k)`.
        u: tangent vector, in coordinates of the domain; `(…, k)`, or
            anything that broadcasts to the shape of `x`.
        v: another one.
        covariance: Σ, an array `(d, d)`, or `(d,)` for a diagonal one; also an
            indefinite signature such as `diag(1, …, 1, −1)`. Default: the
            identity.
        batch_size: number of points at a time. Default: what bounds memory.

    Returns:
        Tensor `(…,)`; NaN at degenerate points and where u and v are
        parallel.

    Example:

    >>> import numpy as np
    >>> from keras_gating import geometry
    >>> from keras_gating.geometry import surfaces
    >>> x = np.zeros((1, 3), "float32")
    >>> k = geometry.sectional_curvature(
    ...     surfaces.hypersphere(3), x, [1.0, 0.0, 0.0], [0.0, 1.0, 0.0])
    >>> [float(value) for value in k]
    [1.0]
    """
    x = as_points(x)
    u, v = (directions(a, x, name) for a, name in ((u, "u"), (v, "v")))
    return _evaluate(_sectional, f, x, covariance, batch_size, u, v)


def riemann_tensor(f, x, covariance=None, batch_size=None):
    """`R(i,j,k,l) = ⟨II_ik, II_jl⟩ − ⟨II_il, II_jk⟩`, `(…, k, k, k, k)`.

    `R(1, 2, 1, 2)` is positive on a sphere: it is K · det g.

    Args:
        f: a layer, a model or another callable, `(n, k)` to `(n, d)`, that
            treats points independently.
        x: points, `(…, k)`.
        covariance: Σ, an array `(d, d)`, or `(d,)` for a diagonal one; also an
            indefinite signature such as `diag(1, …, 1, −1)`. Default: the
            identity.
        batch_size: number of points at a time. Default: what bounds memory.

    Returns:
        Tensor `(…, k, k, k, k)`, all indices lowered; NaN at degenerate
        points.

    Example:

    >>> import numpy as np
    >>> from keras_gating import geometry
    >>> from keras_gating.geometry import surfaces
    >>> x = np.zeros((1, 2), "float32")
    >>> r = geometry.riemann_tensor(surfaces.saddle(), x)
    >>> float(r[0, 0, 1, 0, 1]), float(r[0, 0, 1, 1, 0])
    (-1.0, 1.0)
    """
    return _evaluate(_riemann, f, x, covariance, batch_size)


def ricci_curvature(f, x, covariance=None, batch_size=None):
    """`Ric_jl = g^ik R(i,j,k,l)`, `(…, k, k)`.

    Args:
        f: a layer, a model or another callable, `(n, k)` to `(n, d)`, that
            treats points independently.
        x: points, `(…, k)`.
        covariance: Σ, an array `(d, d)`, or `(d,)` for a diagonal one; also an
            indefinite signature such as `diag(1, …, 1, −1)`. Default: the
            identity.
        batch_size: number of points at a time. Default: what bounds memory.

    Returns:
        Tensor `(…, k, k)`; NaN at degenerate points.

    Example:

    >>> import numpy as np
    >>> from keras import ops
    >>> from keras_gating import geometry
    >>> from keras_gating.geometry import surfaces
    >>> x = np.zeros((1, 2), "float32")
    >>> values = geometry.ricci_curvature(surfaces.saddle(), x)[0]
    >>> ops.convert_to_numpy(values).tolist()
    [[-1.0, 0.0], [0.0, -1.0]]
    """
    return _evaluate(_ricci, f, x, covariance, batch_size)


def scalar_curvature(f, x, covariance=None, batch_size=None):
    """`S = g^jl Ric_jl`, `(…,)`; `2K` for a surface.

    On a sphere of radius r it is `k (k − 1) / r²`.

    Args:
        f: a layer, a model or another callable, `(n, k)` to `(n, d)`, that
            treats points independently.
        x: points, `(…, k)`.
        covariance: Σ, an array `(d, d)`, or `(d,)` for a diagonal one; also an
            indefinite signature such as `diag(1, …, 1, −1)`. Default: the
            identity.
        batch_size: number of points at a time. Default: what bounds memory.

    Returns:
        Tensor `(…,)`; NaN at degenerate points.

    Example:

    >>> import numpy as np
    >>> from keras_gating import geometry
    >>> from keras_gating.geometry import surfaces
    >>> x = np.zeros((1, 2), "float32")
    >>> s = geometry.scalar_curvature(surfaces.saddle(), x)
    >>> [float(value) for value in s]
    [-2.0]
    """
    return _evaluate(_scalar, f, x, covariance, batch_size)


def mean_curvature(f, x, covariance=None, batch_size=None):
    """The vector `H = (1/k) g^ij II_ij`, `(…, d)`.

    The mean of the principal curvatures and not their sum, which some call by
    the same name. It is zero on minimal surfaces.

    Args:
        f: a layer, a model or another callable, `(n, k)` to `(n, d)`, that
            treats points independently.
        x: points, `(…, k)`.
        covariance: Σ, an array `(d, d)`, or `(d,)` for a diagonal one; also an
            indefinite signature such as `diag(1, …, 1, −1)`. Default: the
            identity.
        batch_size: number of points at a time. Default: what bounds memory.

    Returns:
        Tensor `(…, d)`; NaN at degenerate points.

    Example:

    >>> import numpy as np
    >>> from keras_gating import geometry
    >>> from keras_gating.geometry import surfaces
    >>> x = np.zeros((1, 2), "float32")
    >>> h = geometry.mean_curvature(surfaces.saddle(), x)
    >>> [abs(float(value)) for value in h[0]]
    [0.0, 0.0, 0.0]
    """
    return _evaluate(_mean, f, x, covariance, batch_size)


def christoffel_symbols(f, x, covariance=None, batch_size=None):
    """`Γ^m_ij = g^ml ⟨∂_l f, ∂²_ij f⟩`, `(…, m, i, j)`.

    The upper index comes first.

    Args:
        f: a layer, a model or another callable, `(n, k)` to `(n, d)`, that
            treats points independently.
        x: points, `(…, k)`.
        covariance: Σ, an array `(d, d)`, or `(d,)` for a diagonal one; also an
            indefinite signature such as `diag(1, …, 1, −1)`. Default: the
            identity.
        batch_size: number of points at a time. Default: what bounds memory.

    Returns:
        Tensor `(…, k, k, k)`; NaN at degenerate points.

    Example:

    >>> import numpy as np
    >>> from keras_gating import geometry
    >>> from keras_gating.geometry import surfaces
    >>> x = np.zeros((1, 2), "float32")
    >>> symbols = geometry.christoffel_symbols(surfaces.saddle(), x)
    >>> tuple(symbols.shape)
    (1, 2, 2, 2)
    """
    return _evaluate(christoffel_at, f, x, covariance, batch_size)


def curve_curvature(f, x, direction, covariance=None, batch_size=None):
    """`κ = |a_⊥| / |v|²` of the curve `t ↦ f(x + t·direction)`, `(…,)`.

    With the velocity v and the acceleration a of the image,
    `κ² = |a|²/|v|⁴ − (v·a)²/|v|⁶`. It does not depend on the length of the
    direction.

    Args:
        f: a layer, a model or another callable, `(n, k)` to `(n, d)`, that
            treats points independently.
        x: points, `(…, k)`.
        direction: vector in coordinates of the domain; `(…, k)`, or anything
            that broadcasts to the shape of `x`.
        covariance: Σ, an array `(d, d)`, or `(d,)` for a diagonal one; also an
            indefinite signature such as `diag(1, …, 1, −1)`. Default: the
            identity.
        batch_size: number of points at a time. Default: what bounds memory.

    Returns:
        Tensor `(…,)`; NaN where the curve stands still, and where an
        indefinite inner product makes κ² negative.

    Example:

    >>> import numpy as np
    >>> from keras_gating import geometry
    >>> from keras_gating.geometry import surfaces
    >>> x = np.array([[1.0, 0.0]], "float32")
    >>> kappa = geometry.curve_curvature(surfaces.cylinder(2.0), x, [1.0, 0.0])
    >>> [round(float(value), 6) for value in kappa]
    [0.5]

    References:
        Poole et al., 2016, "Exponential expressivity in deep neural networks
        through transient chaos", https://arxiv.org/abs/1606.05340
    """
    x = as_points(x)
    direction = directions(direction, x, "direction")
    return _evaluate(_curve, f, x, covariance, batch_size, direction)


def surface_points(x):
    """Returns `x` as points `(…, 2)`, else raises."""
    x = as_points(x)
    if x.shape[-1] != 2:
        raise ValueError(
            "Gaussian curvature is that of surfaces, so `x` must have shape "
            "(..., 2); `sectional_curvature` and `scalar_curvature` take any "
            f"number of dimensions. Received: x.shape={tuple(x.shape)}"
        )
    return x


def directions(u, x, name):
    """Returns `u` as one tangent vector for each point of `x`."""
    u = as_floats(u, name, x.dtype)
    fits = len(u.shape) <= len(x.shape) and all(
        own == other or (own == 1 and axis > 1)
        for axis, (own, other) in enumerate(
            zip(reversed(u.shape), reversed(x.shape)), start=1
        )
    )
    if len(u.shape) == 0 or not fits:
        raise ValueError(
            f"`{name}` must have the shape of `x`, or broadcast to it. "
            f"Received: {name}.shape={tuple(u.shape)}, "
            f"x.shape={tuple(x.shape)}"
        )
    return ops.broadcast_to(u, ops.shape(x))


def _evaluate(compute, f, x, covariance, batch_size, *pointwise):
    x = as_points(x)
    inner = inner_product(covariance, x)
    return evaluate(compute, f, x, *pointwise, batch_size=batch_size, **inner)


def christoffel_at(f, x, *shared, form=EUCLIDEAN):
    j, h = whiten(form, shared, *jet_at(f, x))
    frame = frame_at(j, form, shared)
    symbols = ops.einsum("nme,neij->nmij", frame.inverse, frame.tangential(h))
    return nan_unless(frame.regular, symbols)


def bending_at(f, x, shared, form):
    """The frame and, on it, `II'_ab` as `(n, d, a, b)`, whitened."""
    j, h = whiten(form, shared, *jet_at(f, x))
    frame = frame_at(j, form, shared)
    h = ops.einsum("ndij,nib->ndbj", h, frame.inverse)
    h = ops.einsum("ndbj,njc->ndbc", h, frame.inverse)
    return frame, frame.normal(h)


def surface_at(f, x, shared, form):
    """The frame of a surface and, on it, `II'_11, II'_12, II'_22`."""
    j, h = whiten(form, shared, *jet_at(f, x))
    frame = frame_at(j, form, shared)
    a, b, c = (
        frame.inverse[:, i, j, None] for i, j in ((0, 0), (0, 1), (1, 1))
    )
    first, mixed, second = (h[..., i, j] for i, j in ((0, 0), (0, 1), (1, 1)))
    along = b * first + c * mixed
    vectors = a * a * first, a * along, b * along + c * (b * mixed + c * second)
    return frame, [frame.normal_vector(v) for v in vectors]


def _gaussian(f, x, *shared, form=EUCLIDEAN):
    frame, bending = surface_at(f, x, shared, form)
    first, mixed, second = (
        ops.sqrt(ops.sum(vector * vector, axis=1)) for vector in bending
    )
    k = gaussian_of(frame, bending)
    scale = nan_unless(frame.regular, first * second + mixed * mixed)
    return k, scale


def gaussian_of(frame, bending):
    """`(n,)`, from what `surface_at` returns."""
    k = _plane_curvature(frame, frame, bending)
    return nan_unless(frame.regular, k)


def _plane_curvature(frame, plane, bending):
    """The equation of Gauss for `II(p,p), II(p,q), II(q,q)` of a plane."""
    first, mixed, second = bending
    k = frame.inner(first, second) - frame.inner(mixed, mixed)
    return k * _plane_sign(plane)


def _plane_sign(frame):
    """One over the determinant of the Gram matrix of a plane's frame."""
    if frame.inverse_gram is None:
        return 1.0
    return _determinant(frame.inverse_gram)


def _determinant(matrices):
    a, b = matrices[:, 0, 0], matrices[:, 0, 1]
    c, d = matrices[:, 1, 0], matrices[:, 1, 1]
    return a * d - b * c


def _scalar(f, x, *shared, form=EUCLIDEAN):
    frame, bending = bending_at(f, x, shared, form)
    return nan_unless(frame.regular, scalar_of(frame, bending))


def scalar_of(frame, bending):
    raised = frame.raised(_ricci_of(frame, bending))
    return ops.einsum("njj->n", raised)


def squared_norm_of(frame, bending):
    """`‖II‖² = g^ik g^jl ⟨II_ij, II_kl⟩`."""
    raised = frame.raised(bending)
    return ops.einsum("naij,naji->n", raised, frame.signed(raised))


def _ricci(f, x, *shared, form=EUCLIDEAN):
    frame, bending = bending_at(f, x, shared, form)
    ricci = _ricci_of(frame, bending)
    ricci = ops.einsum("nef,nfl->nel", ricci, frame.upper)
    ricci = ops.einsum("nei,nel->nil", frame.upper, ricci)
    return nan_unless(frame.regular, ricci)


def _ricci_of(frame, bending):
    raised = frame.raised(bending)
    signed = frame.signed(bending)
    trace = ops.einsum("naii->na", raised)
    return ops.einsum("na,najl->njl", trace, signed) - ops.einsum(
        "naji,nail->njl", raised, signed
    )


def _riemann(f, x, *shared, form=EUCLIDEAN):
    j, h = whiten(form, shared, *jet_at(f, x))
    frame = frame_at(j, form, shared)
    bending = frame.normal(h)
    signed = frame.signed(bending)
    products = ops.einsum("naik,najl->nijkl", bending, signed)
    swapped = ops.einsum("nail,najk->nijkl", bending, signed)
    return nan_unless(frame.regular, products - swapped)


def _second_fundamental_form(f, x, *shared, form=EUCLIDEAN):
    j, h = jet_at(f, x)
    (white,) = whiten(form, shared, j)
    frame = frame_at(white, form, shared)
    return nan_unless(frame.regular, _normal(frame, j, h, shared, form))


def _mean(f, x, *shared, form=EUCLIDEAN):
    j, h = jet_at(f, x)
    (white,) = whiten(form, shared, j)
    frame = frame_at(white, form, shared)
    h = ops.einsum("ndij,nib->ndbj", h, frame.inverse)
    h = ops.einsum("ndbj,njc->ndbc", h, frame.inverse)
    trace = ops.einsum("ndbb->nd", frame.raised(h)) / j.shape[-1]
    return nan_unless(frame.regular, _normal(frame, j, trace, shared, form))


def _normal(frame, j, vectors, shared, form):
    """The normal part of vectors that are not whitened."""
    rest = "ij"[: len(vectors.shape) - 2]
    tangents = ops.einsum("nai,nie->nae", j, frame.inverse)
    for _ in range(2):
        components = frame.tangential(*whiten(form, shared, vectors))
        vectors = vectors - ops.einsum(
            f"nae,ne{rest}->na{rest}", tangents, components
        )
    return vectors


def _sectional(f, x, u, v, *shared, form=EUCLIDEAN):
    (j,) = whiten(form, shared, jacobian_at(f, x))
    frame = frame_at(j, form, shared)
    # A plane has no scale: only the angle between u and v may degenerate.
    pair = ops.stack([_unit(j, ops.cast(a, j.dtype)) for a in (u, v)], axis=-1)
    plane = frame_at(ops.einsum("nai,nip->nap", j, pair), form, shared)
    pair = ops.einsum("nip,npq->niq", pair, plane.inverse)
    p, q = (ops.cast(pair[..., i], x.dtype) for i in range(2))
    bending = [
        frame.normal_vector(
            *whiten(form, shared, second_derivative(f, x, a, b)[1])
        )
        for a, b in ((p, p), (p, q), (q, q))
    ]
    return nan_unless(
        ops.logical_and(frame.regular, plane.regular),
        _plane_curvature(frame, plane, bending),
    )


def _unit(j, direction):
    vector = ops.einsum("nai,ni->na", j, direction)
    size = ops.sqrt(ops.sum(vector * vector, axis=1))
    return direction / size[:, None]


def _curve(f, x, direction, *shared, form=EUCLIDEAN):
    velocity, acceleration = whiten(
        form, shared, *second_derivative(f, x, direction, direction)
    )
    frame = frame_at(velocity[..., None], form, shared)
    bending = frame.normal_vector(acceleration)
    square = frame.inner(bending, bending)
    speed = frame.inner(velocity, velocity)
    return nan_unless(frame.regular, ops.sqrt(square) / ops.abs(speed))
