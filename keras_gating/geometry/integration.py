"""Integrals of curvature over a patch of the domain."""

import math
import typing

import keras
import numpy as np
from keras import ops
from numpy.polynomial import legendre

from keras_gating.functional import checks
from keras_gating.geometry.covariance import EUCLIDEAN
from keras_gating.geometry.covariance import inner_product
from keras_gating.geometry.curvature import bending_at
from keras_gating.geometry.curvature import gaussian_of
from keras_gating.geometry.curvature import scalar_of
from keras_gating.geometry.curvature import squared_norm_of
from keras_gating.geometry.curvature import surface_at
from keras_gating.geometry.evaluation import as_numpy
from keras_gating.geometry.evaluation import as_points
from keras_gating.geometry.evaluation import evaluate
from keras_gating.geometry.frames import nan_unless

# Nodes where σ_min is below this, times the largest σ_max of the patch, are
# dropped: there the image has collapsed, and curvature is rounding.
_COLLAPSED = 1e-6


class Integral(typing.NamedTuple):
    """The value of an integral, and the share of nodes it had to leave out."""

    value: float
    dropped: float


def total_curvature(
    f,
    bounds,
    resolution=64,
    absolute=False,
    covariance=None,
    dtype=None,
    batch_size=None,
):
    """`∫ K dA`, or `∫ |K| dA`, over a patch of the domain.

    It depends neither on the scale of the map nor on its chart, so it compares
    maps where curvature itself, which grows as the image shrinks, does not. In
    k > 2 dimensions it is `∫ |S|^(k/2) dV`, with the scalar curvature S, and
    `absolute` has to be True.

    Args:
        f: a layer, a model or another callable, `(n, k)` to `(n, d)`, that
            treats points independently.
        bounds: the patch, `((low, high), …)` for each of k dimensions.
        resolution: number of Gauss–Legendre nodes along each axis.
        absolute: whether to integrate |K|. Curvatures of both signs cancel
            otherwise.
        covariance: Σ, an array `(d, d)`, or `(d,)` for a diagonal one; also an
            indefinite signature such as `diag(1, …, 1, −1)`. Default: the
            identity.
        dtype: `"float32"` or `"float64"`, that of the nodes. Default: float64
            where `f` takes it.
        batch_size: number of points at a time. Default: what bounds memory.

    Returns:
        A named tuple `(value, dropped)` of Python floats: the integral, and the
        share of nodes it leaves out because they are degenerate, or because
        the smallest singular value of J there is below 1e-6 of the largest one
        on the patch.

    Raises:
        ValueError: for bounds and resolutions that are none.

    Example:

    >>> from keras_gating import geometry
    >>> from keras_gating.geometry import surfaces
    >>> sphere = surfaces.sphere(radius=3.0)
    >>> value, dropped = geometry.total_curvature(sphere, sphere.bounds, 32)
    >>> round(value, 3), dropped
    (12.566, 0.0)
    """
    checks.boolean("absolute", absolute)
    bounds = checked_bounds(bounds)
    if len(bounds) > 2 and not absolute:
        raise ValueError(
            "The signed total curvature is that of surfaces. In k > 2 "
            "dimensions pass `absolute=True`, for ∫ |S|^(k/2) dV. Received: "
            f"bounds={bounds}"
        )
    return _integrate(
        _scalar_density if len(bounds) > 2 else _gaussian_density,
        f,
        bounds,
        resolution,
        covariance,
        dtype,
        batch_size,
        absolute=absolute,
    )


def total_bending(
    f, bounds, resolution=64, covariance=None, dtype=None, batch_size=None
):
    """`∫ ‖II‖² dV` over a patch of the domain.

    Unlike `total_curvature` it sees how the image bends in space without being
    curved in itself, as a cylinder does. For a surface it does not depend on
    scale.

    Args:
        f: a layer, a model or another callable, `(n, k)` to `(n, d)`, that
            treats points independently.
        bounds: the patch, `((low, high), …)` for each of k dimensions.
        resolution: number of Gauss–Legendre nodes along each axis.
        covariance: Σ, an array `(d, d)`, or `(d,)` for a diagonal one; also an
            indefinite signature such as `diag(1, …, 1, −1)`. Default: the
            identity.
        dtype: `"float32"` or `"float64"`, that of the nodes. Default: float64
            where `f` takes it.
        batch_size: number of points at a time. Default: what bounds memory.

    Returns:
        A named tuple `(value, dropped)` of Python floats: the integral, and the
        share of nodes it leaves out because they are degenerate, or because
        the smallest singular value of J there is below 1e-6 of the largest one
        on the patch.

    Example:

    >>> from keras_gating import geometry
    >>> from keras_gating.geometry import surfaces
    >>> cylinder = surfaces.cylinder(radius=3.0)
    >>> value, _ = geometry.total_bending(cylinder, cylinder.bounds, 16)
    >>> round(value, 3)  # (1/r²) times the area
    4.189
    """
    bounds = checked_bounds(bounds)
    return _integrate(
        _bending_density, f, bounds, resolution, covariance, dtype, batch_size
    )


def _integrate(
    density, f, bounds, resolution, covariance, dtype, batch_size, **options
):
    points, weights = _nodes(bounds, resolution)
    if dtype is not None:
        checks.one_of("dtype", dtype, ("float32", "float64"))

    def outputs_in(dtype):
        x = as_points(points.astype(dtype))
        inner = inner_product(covariance, x)
        outputs = evaluate(
            density, f, x, batch_size=batch_size, **options, **inner
        )
        return map(as_numpy, outputs)

    try:
        value, largest, smallest = outputs_in(dtype or "float64")
    except Exception:
        if dtype is not None:
            raise
        # Constants of another dtype, or a device without 64 bits; whatever
        # else is wrong with `f` shows again.
        value, largest, smallest = outputs_in(keras.config.floatx())
    scale = np.max(largest, where=np.isfinite(largest), initial=0.0)
    kept = np.isfinite(value) & (smallest >= _COLLAPSED * scale)
    if not np.any(kept):
        return Integral(math.nan, 1.0)
    value = np.sum(value[kept] * weights[kept])
    return Integral(float(value), float(np.mean(~kept)))


def _gaussian_density(f, x, *shared, form=EUCLIDEAN, absolute=False):
    frame, bending = surface_at(f, x, shared, form)
    curvature = gaussian_of(frame, bending)
    curvature = ops.abs(curvature) if absolute else curvature
    return curvature * frame.volume, frame.largest, frame.smallest


def _scalar_density(f, x, *shared, form=EUCLIDEAN, absolute=True):
    frame, bending = bending_at(f, x, shared, form)
    size = ops.abs(scalar_of(frame, bending)) ** (x.shape[-1] / 2)
    value = nan_unless(frame.regular, size * frame.volume)
    return value, frame.largest, frame.smallest


def _bending_density(f, x, *shared, form=EUCLIDEAN):
    frame, bending = bending_at(f, x, shared, form)
    value = squared_norm_of(frame, bending) * frame.volume
    value = nan_unless(frame.regular, value)
    return value, frame.largest, frame.smallest


def _nodes(bounds, resolution):
    """Gauss–Legendre nodes `(n, k)` and weights `(n,)` of a box."""
    checks.positive_integer("resolution", resolution)
    unit, unit_weights = legendre.leggauss(resolution)
    low, high = bounds[:, 0], bounds[:, 1]
    half = (high - low) / 2
    axes = [c + h * unit for c, h in zip((high + low) / 2, half)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    weights = np.ones(1)
    for h in half:
        weights = np.outer(weights, h * unit_weights).reshape(-1)
    return points.reshape(-1, len(bounds)), weights


def checked_bounds(bounds):
    try:
        values = np.asarray(bounds, dtype="float64")
    except (TypeError, ValueError):
        values = np.zeros(())
    fits = values.ndim == 2 and values.shape[0] >= 2 and values.shape[1] == 2
    if not (
        fits
        and np.all(np.isfinite(values))
        and np.all(values[:, 0] < values[:, 1])
    ):
        raise ValueError(
            "`bounds` must be ((low, high), ...), finite numbers for each of "
            f"2 or more dimensions. Received: bounds={bounds!r}"
        )
    return values
