"""Triangles and parallels tell the sign of curvature apart.

By the theorem of Gauss and Bonnet the angles of a geodesic triangle exceed π
by the integral of the curvature over it, and by Jacobi's equation `J'' = −K J`
geodesics that start in parallel meet where K is positive and part where it is
negative. The experiment measures angles, curvature and separation by the
derivatives of a chart, on surfaces where all of them are known.
"""

import math

import numpy as np

from keras_gating import geometry
from keras_gating.experiments.precision import float_type
from keras_gating.experiments.results import Results
from keras_gating.experiments.results import stopwatch
from keras_gating.experiments.training import Progress
from keras_gating.experiments.triangle_model import cases_by_name
from keras_gating.experiments.triangle_model import deviation
from keras_gating.experiments.triangle_model import integral_over_triangles
from keras_gating.experiments.triangle_model import vertices
from keras_gating.functional import checks
from keras_gating.geometry.evaluation import as_numpy

POINTS = 500
# An excess, in radians, or a change of the separation below this is none.
NONE_BELOW = {"float64": 1e-7, "float32": 1e-3}
GRID_POINTS = 41


def run(seeds=20, quick=False, surfaces=None, on_progress=None):
    """Measures triangles, curvature and separation on every surface.

    Args:
        seeds: number of seeds, each a triangle; they are 0, 1, …
        quick: 3 seeds at most, to try the program out.
        surfaces: names of surfaces, all of `triangle_model.CASES` by default.
        on_progress: function `(description, share done)`, called often.

    Returns:
        `Results`, with one entry for each surface in
        `measurements["surfaces"]`, and in `arrays["pictures"]` what its
        picture needs.
    """
    seeds = checks.positive_integer("seeds", seeds)
    elapsed = stopwatch()
    cases = cases_by_name(surfaces)
    seeds = list(range(min(seeds, 3) if quick else seeds))
    dtype = float_type()
    progress = Progress(len(cases), on_progress)
    measured, pictures = {}, {}
    for case in cases:
        progress.describe(case.title)
        corners = vertices(case, seeds)
        measured[case.name] = {
            "title": case.title,
            "sign": case.sign,
            "triangles": _triangles(case, corners, dtype),
            "curvature": _curvature(case, dtype),
            "deviation": _deviation(case, dtype),
        }
        pictures[case.name] = _picture(case, corners[0], dtype)
        progress.advance(1)
    return Results(
        experiment="triangle",
        seeds=seeds,
        settings={
            "quick": quick,
            "dtype": dtype,
            "none_below": NONE_BELOW[dtype],
            "points": POINTS,
        },
        measurements={
            "surfaces": measured,
            "conclusions": conclude(measured, NONE_BELOW[dtype]),
        },
        elapsed_seconds=elapsed(),
        arrays={"pictures": pictures},
    )


def conclude(measured, none_below):
    """Whether triangles and parallels show the sign of the curvature.

    Args:
        measured: entries of surfaces by name.
        none_below: an excess below this is none.
    """

    def sign(value):
        return 0 if abs(value) < none_below else int(np.sign(value))

    right = {"triangles": 0, "parallels": 0}
    triangles = 0
    for entry in measured.values():
        signs = [sign(excess) for excess in entry["triangles"]["excess"]]
        triangles += len(signs)
        right["triangles"] += signs.count(entry["sign"])
        ending = entry["deviation"]["measured"][-1]
        right["parallels"] += sign(1.0 - ending) == entry["sign"]
    return {
        "triangles_with_the_sign_of_curvature": right["triangles"],
        "triangles": triangles,
        "parallels_with_the_sign_of_curvature": right["parallels"],
        "surfaces": len(measured),
        "supported": right["triangles"] == triangles
        and right["parallels"] == len(measured),
    }


def _triangles(case, corners, dtype):
    triangle = geometry.geodesic_triangle(
        case.surface, *(corners[:, i].astype(dtype) for i in range(3))
    )
    excess = as_numpy(triangle.excess)
    integral = integral_over_triangles(case.surface, corners, dtype)
    sums = np.degrees(as_numpy(triangle.angles).sum(axis=-1))
    return {
        "angle_sums_in_degrees": _numbers(sums),
        "excess": _numbers(excess),
        "integral_of_curvature": _numbers(integral),
        "largest_difference": float(np.abs(excess - integral).max()),
    }


def _curvature(case, dtype):
    """K at random points, against the closed form."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-case.size, case.size, size=(POINTS, 2))
    x = (np.array(case.centre) + x).astype(dtype)
    k = as_numpy(geometry.gaussian_curvature(case.surface, x))
    scale = as_numpy(geometry.curvature_scale(case.surface, x))
    error = np.abs(k - as_numpy(case.surface.gaussian_curvature(x)))
    # Where nothing bends, as on a plane, there is nothing to be relative to.
    relative = error / np.maximum(scale, 1.0)
    return {
        "lowest": float(k.min()),
        "highest": float(k.max()),
        "largest_error": float(relative.max()),
    }


def _deviation(case, dtype):
    length, measured = deviation(case, dtype)
    expected = case.separation(length)
    return {
        "closed_form": case.separation_text,
        "arc_length": _numbers(length),
        "measured": _numbers(measured),
        "expected": _numbers(expected),
        "largest_error": float(np.abs(measured - expected).max()),
    }


def _picture(case, corners, dtype):
    """Points and curvature of the surface, and the sides of one triangle."""
    axes = [
        np.linspace(c - 1.3 * case.size, c + 1.3 * case.size, GRID_POINTS)
        for c in case.centre
    ]
    if case.name == "pseudosphere":
        # All around, from near the rim.
        axes = [
            np.linspace(0.35, 3.0, GRID_POINTS),
            np.linspace(-math.pi, math.pi, GRID_POINTS),
        ]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).astype(dtype)
    triangle = geometry.geodesic_triangle(case.surface, *corners.astype(dtype))
    return {
        "points": as_numpy(case.surface(grid)),
        "curvature": as_numpy(geometry.gaussian_curvature(case.surface, grid)),
        "sides": as_numpy(case.surface(triangle.points)),
    }


def _numbers(values):
    return [float(value) for value in values]
