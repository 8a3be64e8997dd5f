import numpy as np

from keras_gating import geometry
from keras_gating.diagnostics.figures import draw_surface
from keras_gating.diagnostics.figures import figure
from keras_gating.diagnostics.figures import principal
from keras_gating.diagnostics.figures import signed_colours
from keras_gating.functional import checks
from keras_gating.geometry import evaluation
from keras_gating.geometry import integration


def plot_curvature(f, bounds, resolution=40, kind="surface", limit=None):
    """Draws the image of a patch, coloured by its Gaussian curvature.

    Orange is positive, like a sphere; violet is negative, like a saddle; grey
    is where the image has lost a dimension and there is no curvature.

    Args:
        f: a layer, a model or another callable, `(n, 2)` to `(n, d)`.
        bounds: `((low, high), (low, high))`, the patch of inputs.
        resolution: number of points along each axis, 2 or more.
        kind: `"surface"`, the image in three dimensions (in its first three
            principal directions if d is larger), or `"map"`, a heat map over
            the patch of inputs.
        limit: curvature at the end of the colours. Defaults to what 95 % of
            the points stay below; the others are clipped.

    Returns:
        A `matplotlib.figure.Figure`.

    Raises:
        ValueError: for bounds of another dimension and unknown kinds, and
            where `geometry.gaussian_curvature` raises.
        ImportError: if matplotlib is not installed.

    Example:

    >>> from keras import ops
    >>> from keras_gating import diagnostics
    >>> def saddle(x):
    ...     return ops.concatenate([x, x[:, :1] * x[:, 1:]], axis=-1)
    >>> bounds = ((-1, 1), (-1, 1))
    >>> figure = diagnostics.plot_curvature(saddle, bounds, resolution=9)
    >>> figure.axes[-1].get_ylabel()
    'Gaussian curvature'
    """
    checks.one_of("kind", kind, ("surface", "map"))
    if checks.positive_integer("resolution", resolution) < 2:
        raise ValueError(
            "`resolution` must be 2 or more points along each axis. Received: "
            f"resolution={resolution}"
        )
    if limit is not None:
        checks.positive_number("limit", limit)
    bounds = integration.checked_bounds(bounds)
    if len(bounds) != 2:
        raise ValueError(
            "A patch has two dimensions, ((low, high), (low, high)). Received: "
            f"bounds of {len(bounds)} dimensions"
        )
    axes = [np.linspace(low, high, resolution) for low, high in bounds]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 2)
    points = evaluation.as_points(points.astype("float32"))
    curvature = evaluation.as_numpy(geometry.gaussian_curvature(f, points))
    curvature = curvature.reshape(resolution, resolution)
    if limit is None:
        limit = _limit(curvature)
    if kind == "map":
        return _map(bounds, curvature, limit)
    image = evaluation.as_numpy(evaluation.example(f, points))
    return _surface(image, curvature, limit)


def _limit(curvature):
    known = np.abs(curvature[np.isfinite(curvature)])
    # What is flat but for rounding has to look flat.
    return max(float(np.quantile(known, 0.95)), 1e-3) if known.size else 1.0


def _surface(image, curvature, limit):
    resolution = len(curvature)
    features = image.shape[-1]
    if features > 3:
        image, _ = principal(image, image)
    image = np.pad(image, ((0, 0), (0, 3 - image.shape[-1])))
    made = figure(5.6, 4.4)
    axis = made.add_subplot(projection="3d")
    shown = draw_surface(
        axis,
        image.reshape(resolution, resolution, 3),
        np.clip(curvature, -limit, limit),
        limit,
    )
    axis.view_init(45, -60)
    if features > 3:
        axis.set_title(
            f"first 3 principal directions of {features}", fontsize=10, y=0.95
        )
    _colour_bar(made, shown, axis, curvature, limit, shrink=0.7, pad=0.02)
    return made


def _map(bounds, curvature, limit):
    made = figure(5.4, 4.4)
    axis = made.add_subplot()
    scale = signed_colours(limit)
    # A cell around each point, and rows are the first input.
    half = (bounds[:, 1] - bounds[:, 0]) / (len(curvature) - 1) / 2.0
    extent = bounds + np.outer(half, (-1.0, 1.0))
    shown = axis.imshow(
        np.ma.masked_invalid(curvature.T),
        origin="lower",
        aspect="auto",
        extent=extent.ravel().tolist(),
        cmap=scale.cmap,
        norm=scale.norm,
    )
    axis.set(xlabel="first input", ylabel="second input")
    _colour_bar(made, shown, axis, curvature, limit)
    return made


def _colour_bar(made, shown, axis, curvature, limit, **style):
    known = curvature[np.isfinite(curvature)]
    above, below = (known > limit).any(), (known < -limit).any()
    made.colorbar(
        shown,
        ax=axis,
        label="Gaussian curvature",
        extend={
            (True, True): "both",
            (True, False): "max",
            (False, True): "min",
            (False, False): "neither",
        }[bool(above), bool(below)],
        **style,
    )
