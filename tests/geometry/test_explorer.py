"""The numbers that the browser tests hold the curvature explorer to."""

import json

import numpy as np

from tests.geometry import explorer
from tests.marks import once

# The file is the same on every backend, so one has to make it.
pytestmark = once
REFERENCE = json.loads(explorer.FILE.read_text())
CASES = REFERENCE["cases"]


def numbers(values):
    return np.array(values, "float64")


def test_weights_are_normal():
    weights = explorer.normals(0, 4000)
    assert abs(weights.mean()) < 0.05
    assert abs(weights.std() - 1.0) < 0.05


def test_reference_has_every_case():
    expected = [{**explorer.DEFAULTS, **case} for case in explorer.CASES]
    assert [case["settings"] for case in CASES] == expected
    assert REFERENCE["points"] == explorer.POINTS.tolist()
    assert REFERENCE["resolution"] == explorer.RESOLUTION


def test_reference_is_what_geometry_measures():
    for case in CASES:
        measured = explorer.curvature(case["settings"])
        expected, scale = numbers(case["curvature"]), numbers(case["scale"])
        degenerate = np.isnan(expected)
        np.testing.assert_array_equal(np.isnan(measured), degenerate)
        error = np.abs(measured - expected)[~degenerate]
        assert np.all(error <= 1e-9 * scale[~degenerate] + 1e-15)


def test_reference_has_the_integrals():
    for case in CASES[::4]:
        measured, dropped = explorer.totals(case["settings"])
        expected = numbers(case["totals"])
        assert dropped == case["dropped"]
        np.testing.assert_allclose(measured, expected, 1e-9, 1e-12)
