"""The curvature of what a map represents, measured exactly."""

from keras_gating.geometry import surfaces
from keras_gating.geometry.curvature import christoffel_symbols
from keras_gating.geometry.curvature import curvature_scale
from keras_gating.geometry.curvature import curve_curvature
from keras_gating.geometry.curvature import gaussian_curvature
from keras_gating.geometry.curvature import mean_curvature
from keras_gating.geometry.curvature import ricci_curvature
from keras_gating.geometry.curvature import riemann_tensor
from keras_gating.geometry.curvature import scalar_curvature
from keras_gating.geometry.curvature import second_fundamental_form
from keras_gating.geometry.curvature import sectional_curvature
from keras_gating.geometry.derivatives import hessian
from keras_gating.geometry.derivatives import jacobian
from keras_gating.geometry.derivatives import metric
from keras_gating.geometry.geodesics import geodesic
from keras_gating.geometry.hyperbolicity import gromov_hyperbolicity
from keras_gating.geometry.integration import total_bending
from keras_gating.geometry.integration import total_curvature
from keras_gating.geometry.trajectories import straightening
from keras_gating.geometry.triangles import geodesic_triangle

__all__ = [
    "christoffel_symbols",
    "curvature_scale",
    "curve_curvature",
    "gaussian_curvature",
    "geodesic",
    "geodesic_triangle",
    "gromov_hyperbolicity",
    "hessian",
    "jacobian",
    "mean_curvature",
    "metric",
    "ricci_curvature",
    "riemann_tensor",
    "scalar_curvature",
    "second_fundamental_form",
    "sectional_curvature",
    "straightening",
    "surfaces",
    "total_bending",
    "total_curvature",
]
