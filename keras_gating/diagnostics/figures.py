"""Parts that all pictures share, those of the experiments too.

`matplotlib.figure.Figure` is used directly: no window system is chosen and
nothing global is set.
"""

import numpy as np

from keras_gating._extras import require

# Okabe and Ito's palette, which colour-blind readers can tell apart.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9")


def figure(width, height):
    """An empty figure of so many inches."""
    made = require("matplotlib.figure", "plots").Figure
    return made(figsize=(width, height), layout="constrained")


def draw_surface(axis, points, values, limit):
    """A surface coloured by values from `-limit` to `limit`.

    Args:
        axis: with `projection="3d"`.
        points: `(rows, columns, 3)`.
        values: `(rows, columns)`; NaN is drawn in grey.
        limit: of the colours.

    Returns:
        What `colorbar` takes.
    """
    scale = signed_colours(limit)
    faces = (values[1:, 1:] + values[:-1, :-1]) / 2.0
    axis.plot_surface(
        *np.moveaxis(points, -1, 0),
        facecolors=scale.to_rgba(np.ma.masked_invalid(faces)),
        rcount=len(points),
        ccount=len(points),
        linewidth=0.2,
        edgecolor=(0.0, 0.0, 0.0, 0.2),
        shade=False,
    )
    low, high = (f(points, axis=(0, 1)) for f in (np.min, np.max))
    # Equal scales, and what is flat but for rounding has to look flat.
    half = np.maximum(high - low, 0.15 * (high - low).max()) / 2.0
    low, high = (low + high) / 2.0 - half, (low + high) / 2.0 + half
    axis.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    axis.set_zlim(low[2], high[2])
    axis.set_box_aspect(half)
    axis.set_axis_off()
    return scale


def signed_colours(limit):
    """Colours from `-limit` to `limit`; what is no number is grey."""
    palette = require("matplotlib", "plots").colormaps["PuOr_r"]
    return require("matplotlib.cm", "plots").ScalarMappable(
        require("matplotlib.colors", "plots").Normalize(-limit, limit),
        palette.with_extremes(bad="0.6"),
    )


def principal(points, of):
    """The first three principal components, and the size of the cloud.

    Args:
        points: `(n, d)`, what is projected.
        of: `(m, d)`, the cloud whose directions are taken.

    Returns:
        `(n, 3)`, zeros where there are fewer than three directions, and the
        root mean square distance of `of` from its centre.
    """
    centred = of - of.mean(axis=0)
    size = np.sqrt(np.square(centred).sum(axis=1).mean())
    _, _, directions = np.linalg.svd(centred, full_matrices=False)
    directions = directions[:3]
    projected = (points - of.mean(axis=0)) @ directions.T
    missing = 3 - projected.shape[1]
    return np.pad(projected, ((0, 0), (0, missing))), size
