"""Surfaces whose curvature is known in closed form.

Each is a map that every function of `geometry` takes, for tests, calibration
and teaching: `geometry.gaussian_curvature(surface, x)` against
`surface.gaussian_curvature(x)`.

Example:

>>> import numpy as np
>>> from keras_gating.geometry import surfaces
>>> saddle = surfaces.saddle()
>>> x = np.array([[0.0, 0.0], [1.0, 1.0]], "float32")
>>> tuple(saddle(x).shape)
(2, 3)
>>> [round(float(k), 4) for k in saddle.gaussian_curvature(x)]
[-1.0, -0.1111]
"""

import dataclasses
import math
import typing

from keras import ops

from keras_gating.functional import checks
from keras_gating.geometry.evaluation import as_points
from keras_gating.geometry.trigonometry import cos_and_sin
from keras_gating.geometry.trigonometry import cosh
from keras_gating.geometry.trigonometry import tanh

_TURN = (0.0, 2.0 * math.pi)


@dataclasses.dataclass(frozen=True)
class Surface:
    """A chart `(…, k)` to `(…, d)` of a surface of known curvature.

    Attributes:
        name: what it is called.
        bounds: a patch of the chart, `((low, high), …)` for `total_curvature`.
            Where the chart goes around, it is the whole way.
        chart: the map, on coordinates `(…,)` each; a list of them comes back.
        curvature: the curvature of all planes, on the same coordinates.
    """

    name: str
    bounds: tuple
    chart: typing.Callable = dataclasses.field(repr=False)
    curvature: typing.Callable = dataclasses.field(repr=False)

    def __call__(self, x):
        """Points of the surface, `(…, d)`."""
        return ops.stack(self.chart(*self._coordinates(x)), axis=-1)

    def gaussian_curvature(self, x):
        """K at the points `x`, `(…,)`."""
        if len(self.bounds) != 2:
            raise ValueError(
                "Gaussian curvature is that of surfaces. Received: "
                f"{self.name} of dimension {len(self.bounds)}"
            )
        return self.sectional_curvature(x)

    def sectional_curvature(self, x):
        """The curvature of every tangent plane at the points `x`, `(…,)`."""
        coordinates = self._coordinates(x)
        zero = ops.zeros_like(coordinates[0])
        return zero + self.curvature(*coordinates)

    def scalar_curvature(self, x):
        """`k (k − 1)` times the sectional curvature, `(…,)`."""
        k = len(self.bounds)
        return k * (k - 1) * self.sectional_curvature(x)

    def _coordinates(self, x):
        x = as_points(x)
        k = len(self.bounds)
        if x.shape[-1] != k:
            raise ValueError(
                f"Points of the {self.name} must have shape (..., {k}). "
                f"Received: x.shape={tuple(x.shape)}"
            )
        return [x[..., i] for i in range(k)]


def sphere(radius=1.0):
    """`r (sin θ cos φ, sin θ sin φ, cos θ)` at `(θ, φ)`; `K = 1/r²`.

    Degenerate at the poles θ = 0 and π.
    """
    checks.positive_number("radius", radius)
    unit = ellipsoid(radius, radius, radius)
    return Surface("sphere", unit.bounds, unit.chart, lambda *_: radius**-2)


def ellipsoid(a=3.0, b=2.0, c=1.0):
    """`(a sin θ cos φ, b sin θ sin φ, c cos θ)` at `(θ, φ)`.

    `K = 1 / (a²b²c² (x²/a⁴ + y²/b⁴ + z²/c⁴)²)`. Degenerate at θ = 0 and π.
    """
    checks.positive_number("a", a)
    checks.positive_number("b", b)
    checks.positive_number("c", c)

    def chart(theta, phi):
        (up, out), (east, north) = cos_and_sin(theta), cos_and_sin(phi)
        return a * out * east, b * out * north, c * up

    def curvature(theta, phi):
        x, y, z = chart(theta, phi)
        form = (x / a**2) ** 2 + (y / b**2) ** 2 + (z / c**2) ** 2
        return 1.0 / (a * b * c * form) ** 2

    return Surface("ellipsoid", ((0.0, math.pi), _TURN), chart, curvature)


def cylinder(radius=1.0):
    """`(r cos φ, r sin φ, z)` at `(φ, z)`; `K = 0`."""
    checks.positive_number("radius", radius)

    def chart(phi, z):
        cos, sin = cos_and_sin(phi)
        return radius * cos, radius * sin, z

    return Surface("cylinder", (_TURN, (-1.0, 1.0)), chart, _flat)


def cone(slope=1.0):
    """`(s cos φ, s sin φ, slope · s)` at `(s, φ)`; `K = 0`.

    Degenerate at its apex s = 0.
    """
    checks.positive_number("slope", slope)

    def chart(s, phi):
        cos, sin = cos_and_sin(phi)
        return s * cos, s * sin, slope * s

    return Surface("cone", ((0.5, 1.5), _TURN), chart, _flat)


def torus(major_radius=2.0, minor_radius=1.0):
    """A tube of radius r along a circle of radius R, at `(u, v)`.

    `((R + r cos v) cos u, (R + r cos v) sin u, r sin v)`;
    `K = cos v / (r (R + r cos v))`.
    """
    checks.positive_number("major_radius", major_radius)
    checks.positive_number("minor_radius", minor_radius)

    def chart(u, v):
        (cos_u, sin_u), (cos_v, sin_v) = cos_and_sin(u), cos_and_sin(v)
        out = major_radius + minor_radius * cos_v
        return out * cos_u, out * sin_u, minor_radius * sin_v

    def curvature(u, v):
        cos, _ = cos_and_sin(v)
        return cos / (minor_radius * (major_radius + minor_radius * cos))

    return Surface("torus", (_TURN, _TURN), chart, curvature)


def flat_torus(first_radius=1.0, second_radius=1.0):
    """A product of circles in four dimensions, at `(u, v)`; `K = 0`."""
    checks.positive_number("first_radius", first_radius)
    checks.positive_number("second_radius", second_radius)

    def chart(u, v):
        return (
            *(first_radius * y for y in cos_and_sin(u)),
            *(second_radius * y for y in cos_and_sin(v)),
        )

    return Surface("flat torus", (_TURN, _TURN), chart, _flat)


def saddle():
    """`(x, y, xy)`; `K = −1 / (1 + x² + y²)²`."""
    return Surface(
        "saddle",
        ((-1.0, 1.0), (-1.0, 1.0)),
        lambda x, y: (x, y, x * y),
        lambda x, y: -1.0 / (1.0 + x * x + y * y) ** 2,
    )


def monkey_saddle():
    """`(x, y, x³ − 3xy²)`; `K = −36ρ² / (1 + 9ρ⁴)²`, `ρ² = x² + y²`."""

    def curvature(x, y):
        square = x * x + y * y
        return -36.0 * square / (1.0 + 9.0 * square * square) ** 2

    return Surface(
        "monkey saddle",
        ((-1.0, 1.0), (-1.0, 1.0)),
        lambda x, y: (x, y, x * (x * x - 3.0 * y * y)),
        curvature,
    )


def catenoid(scale=1.0):
    """`(c cosh(v/c) cos u, c cosh(v/c) sin u, v)` at `(u, v)`.

    `K = −1 / (c² cosh⁴(v/c))`. It has the metric of the helicoid.
    """
    checks.positive_number("scale", scale)

    def chart(u, v):
        cos, sin = cos_and_sin(u)
        out = scale * cosh(v / scale)
        return out * cos, out * sin, v

    def curvature(u, v):
        return -1.0 / (scale * cosh(v / scale) ** 2) ** 2

    return Surface("catenoid", (_TURN, (-1.0, 1.0)), chart, curvature)


def helicoid(scale=1.0):
    """`(s cos φ, s sin φ, c φ)` at `(s, φ)`; `K = −c² / (c² + s²)²`."""
    checks.positive_number("scale", scale)

    def chart(s, phi):
        cos, sin = cos_and_sin(phi)
        return s * cos, s * sin, scale * phi

    def curvature(s, phi):
        return -((scale / (scale**2 + s * s)) ** 2)

    return Surface("helicoid", ((-1.0, 1.0), _TURN), chart, curvature)


def pseudosphere(radius=1.0):
    """`r (cos v / cosh u, sin v / cosh u, u − tanh u)` at `(u, v)`, u > 0.

    `K = −1/r²`. Degenerate at its rim u = 0.
    """
    checks.positive_number("radius", radius)

    def chart(u, v):
        cos, sin = cos_and_sin(v)
        out = radius / cosh(u)
        return out * cos, out * sin, radius * (u - tanh(u))

    return Surface(
        "pseudosphere",
        ((0.5, 2.5), _TURN),
        chart,
        lambda u, v: -(radius**-2),
    )


def veronese():
    """The projective plane in five dimensions, at `(θ, φ)`; `K = 1`.

    `(xy, xz, yz, (x² − y²)/2, (x² + y² − 2z²)/(2√3))` of the unit sphere.
    """
    unit = sphere()

    def chart(theta, phi):
        x, y, z = unit.chart(theta, phi)
        return (
            x * y,
            x * z,
            y * z,
            (x * x - y * y) / 2.0,
            (x * x + y * y - 2.0 * z * z) / (2.0 * math.sqrt(3.0)),
        )

    return Surface("veronese surface", unit.bounds, chart, lambda *_: 1.0)


def hypersphere(dimension=3, radius=1.0):
    """The sphere of any dimension k in `R^(k + 1)`; all planes have `1/r²`.

    The chart is stereographic: `r (2u, |u|² − 1) / (|u|² + 1)`.
    """
    checks.positive_integer("dimension", dimension)
    checks.positive_number("radius", radius)

    def chart(*u):
        square = sum(y * y for y in u)
        factor = radius / (square + 1.0)
        return *(2.0 * factor * y for y in u), factor * (square - 1.0)

    return Surface(
        "hypersphere",
        ((-1.0, 1.0),) * dimension,
        chart,
        lambda *_: radius**-2,
    )


def _flat(*_):
    return 0.0
