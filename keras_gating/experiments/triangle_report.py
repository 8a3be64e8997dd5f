"""Tables and picture of the triangle experiment."""

import numpy as np

from keras_gating.experiments.figures import COLOURS
from keras_gating.experiments.figures import draw_surface
from keras_gating.experiments.figures import figure
from keras_gating.experiments.tables import table

# From where each surface is seen, in degrees: triangles face the viewer.
_VIEWS = {"plane": (40, -70), "saddle": (40, -75)}
_OTHER_VIEW = (18, 5)


def print_triangle(console, results):
    """Prints angles, curvature and separation, and what they show."""
    surfaces = results.measurements["surfaces"].values()
    shown = table(
        f"Geodesic triangles, {len(results.seeds)} on each surface",
        "surface",
        "curvature",
        "angle sums",
        "excess",
        "|excess − ∫K dA|",
        "error of K",
    )
    for entry in surfaces:
        triangles, k = entry["triangles"], entry["curvature"]
        shown.add_row(
            entry["title"],
            _range((k["lowest"], k["highest"]), "{:.3g}"),
            _range(triangles["angle_sums_in_degrees"], "{:.1f}°"),
            _range(triangles["excess"], "{:+.3f}"),
            f"{triangles['largest_difference']:.0e}",
            f"{k['largest_error']:.0e}",
        )
    console.print(shown)
    shown = table(
        "Two geodesics that start in parallel: their separation",
        "surface",
        "arc length s",
        "at the start",
        "at the end",
        "closed form",
        "largest error",
    )
    for entry in surfaces:
        deviation = entry["deviation"]
        shown.add_row(
            entry["title"],
            f"{deviation['arc_length'][-1]:g}",
            f"{deviation['measured'][0]:.4f}",
            f"{deviation['measured'][-1]:+.4f}",
            deviation["closed_form"],
            f"{deviation['largest_error']:.0e}",
        )
    console.print(shown)
    conclusions = results.measurements["conclusions"]
    verdict = "supported" if conclusions["supported"] else "not supported"
    console.print(
        "Errors are the largest ones; that of K is relative to how far the "
        "surface bends, or absolute where that is less than 1. Separation is "
        "that of neighbours, over their distance at the start; negative once "
        f"they have crossed. Computed in {results.settings['dtype']}.\n"
        "The sign of the excess is that of the curvature in "
        f"{conclusions['triangles_with_the_sign_of_curvature']} of "
        f"{conclusions['triangles']} triangles, and parallels meet, stay or "
        "part as it says on "
        f"{conclusions['parallels_with_the_sign_of_curvature']} of "
        f"{conclusions['surfaces']} surfaces: {verdict}.",
        highlight=False,
    )


def _range(values, form):
    low, high = form.format(min(values)), form.format(max(values))
    if form.format(0.0).strip("+") == low.strip("+-") == high.strip("+-"):
        return low.strip("+-")
    return low if low == high else f"{low} to {high}"


def triangles_and_parallels(results):
    """Each surface with a triangle, and how parallels separate on it."""
    surfaces = results.measurements["surfaces"]
    pictures = results.arrays["pictures"]
    made = figure(3.1 * len(surfaces) + 0.6, 6.6)
    upper, lower = made.subfigures(2, 1, height_ratios=(1.15, 1.0))
    # The darkest colours would hide the triangles.
    limit = 1.5 * max(np.abs(p["curvature"]).max() for p in pictures.values())
    for i, (name, picture) in enumerate(pictures.items()):
        axis = upper.add_subplot(1, len(surfaces), i + 1, projection="3d")
        shown = draw_surface(
            axis, picture["points"], picture["curvature"], limit
        )
        axis.view_init(*_VIEWS.get(name, _OTHER_VIEW))
        for side in picture["sides"]:
            # In front of the surface, which matplotlib cannot work out.
            axis.plot(*side.T, color="black", linewidth=2.5, zorder=10)
        entry = surfaces[name]
        degrees = entry["triangles"]["angle_sums_in_degrees"][0]
        axis.set_title(
            f"{entry['title']}\nangle sum {degrees:.1f}°", fontsize=10, y=0.98
        )
    upper.colorbar(
        shown, ax=upper.axes, label="Gaussian curvature", shrink=0.7, pad=0.01
    )
    left, right = lower.subplots(1, 2)
    for entry, colour in zip(surfaces.values(), COLOURS):
        deviation = entry["deviation"]
        lengths = deviation["arc_length"]
        left.plot(lengths, deviation["expected"], color=colour, linewidth=1)
        left.plot(
            lengths[::4],
            deviation["measured"][::4],
            color=colour,
            marker="o",
            markersize=5,
            linestyle="none",
            label=f"{entry['title']}: {deviation['closed_form']}",
        )
        right.plot(
            entry["triangles"]["integral_of_curvature"],
            entry["triangles"]["excess"],
            color=colour,
            marker="o",
            markersize=6,
            alpha=0.7,
            linestyle="none",
        )
    left.axhline(0.0, color="0.7", linewidth=1, zorder=0)
    left.set_xlabel("arc length s")
    left.set_ylabel("separation, 1 at the start")
    left.set_title(
        "parallels: measured (dots), closed form (lines)", fontsize=10
    )
    right.axline((0.0, 0.0), slope=1.0, color="0.7", linewidth=1, zorder=0)
    right.set_xlabel("∫ K dA over the triangle")
    right.set_ylabel("sum of the angles less π")
    right.set_title("triangles: Gauss and Bonnet (grey line)", fontsize=10)
    for axis in (left, right):
        axis.grid(alpha=0.3)
    handles, labels = left.get_legend_handles_labels()
    lower.legend(handles, labels, loc="outside lower center", ncols=5)
    return made


PLOTS = {"triangle": triangles_and_parallels}
