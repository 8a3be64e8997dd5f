import numpy as np
import pytest

from keras_gating.experiments import triangle
from keras_gating.experiments.precision import float_type
from keras_gating.experiments.triangle_model import CASES
from keras_gating.experiments.triangle_model import cases_by_name
from keras_gating.experiments.triangle_model import vertices
from tests.experiments.reporting import check_reports
from tests.utils import to_numpy

# Of excess and integral, of K, and of the separation of parallels.
TOLERANCES = {"float64": (1e-7, 1e-10, 1e-6), "float32": (1e-5, 1e-4, 1e-2)}


def test_closed_forms_solve_the_equation_of_jacobi():
    """`J'' = −K J` along the geodesic from the centre."""
    s = np.linspace(0.0, 2.5, 2001)
    for case in CASES:
        j = case.separation(s)
        points = np.array([case.centre])
        if case.name == "saddle":
            # Along the x-axis, which lies on the surface.
            points = np.stack([s, 0.0 * s], axis=-1)[1:-1]
        k = to_numpy(case.surface.gaussian_curvature(points))
        second = np.diff(j, 2) / np.square(s[1])
        np.testing.assert_allclose(second, -k * j[1:-1], atol=1e-5)
        assert j[0] == 1.0 and abs(np.diff(j)[0]) < 1e-5
        assert np.sign(k).min() == np.sign(k).max() == case.sign


def test_triangles_are_not_thin():
    for case in CASES:
        corners = vertices(case, range(50))
        sides = np.roll(corners, -1, axis=1) - corners
        area = sides[:, 0, 0] * sides[:, 1, 1] - sides[:, 0, 1] * sides[:, 1, 0]
        assert np.all(area > 0.2 * case.size**2)
        apart = np.linalg.norm(corners - np.array(case.centre), axis=-1)
        assert apart.max() <= case.size
    np.testing.assert_array_equal(corners[3], vertices(case, [3])[0])


def test_measured_surfaces_obey_gauss_bonnet_and_jacobi(tmp_path):
    results = triangle.run(seeds=3, surfaces=["sphere", "saddle"])
    dtype = float_type()
    assert results.settings["dtype"] == dtype
    of_excess, of_curvature, of_separation = TOLERANCES[dtype]
    for name, entry in results.measurements["surfaces"].items():
        triangles, deviation = entry["triangles"], entry["deviation"]
        excess = np.array(triangles["excess"])
        assert len(excess) == 3
        np.testing.assert_allclose(
            excess, triangles["integral_of_curvature"], atol=of_excess
        )
        assert triangles["largest_difference"] <= of_excess
        sums = np.radians(triangles["angle_sums_in_degrees"])
        np.testing.assert_allclose(sums - np.pi, excess, atol=of_excess)
        assert np.all(np.sign(excess) == entry["sign"])
        assert np.all(np.abs(excess) > 0.1)
        assert entry["curvature"]["largest_error"] < of_curvature
        (case,) = cases_by_name([name])
        length = np.array(deviation["arc_length"])
        np.testing.assert_allclose(
            deviation["measured"], case.separation(length), atol=of_separation
        )
    conclusions = results.measurements["conclusions"]
    assert conclusions["supported"]
    assert conclusions["triangles"] == 6 and conclusions["surfaces"] == 2
    text = check_reports(results, tmp_path)
    assert "6 of 6 triangles" in text and text.count("supported") == 1


def test_conclusions_can_fail():
    def entry(sign, excess, ending):
        return {
            "sign": sign,
            "triangles": {"excess": excess},
            "deviation": {"measured": [1.0, ending]},
        }

    right = entry(1, [0.2, 0.3], 0.5), entry(-1, [-0.1], 2.0)
    flat = entry(0, [1e-9], 1.0 + 1e-9)
    measured = dict(enumerate((*right, flat)))
    assert triangle.conclude(measured, 1e-7)["supported"]
    for wrong in (
        entry(1, [0.2, -0.3], 0.5),
        entry(1, [0.2, 0.3], 1.5),
        entry(0, [1e-3], 1.0),
    ):
        found = triangle.conclude({**measured, "wrong": wrong}, 1e-7)
        assert not found["supported"]
        assert (
            found["triangles_with_the_sign_of_curvature"] < found["triangles"]
            or found["parallels_with_the_sign_of_curvature"] < found["surfaces"]
        )


@pytest.mark.parametrize(
    "arguments, message",
    [({"seeds": 0}, "seeds=0"), ({"surfaces": ["klein"]}, "klein")],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        triangle.run(**arguments)
