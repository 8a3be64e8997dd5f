"""Against what geomstats computed with autograd."""

import functools

import numpy as np
import pytest
from keras import ops

from keras_gating import geometry
from keras_gating.geometry import surfaces
from keras_gating.geometry.trigonometry import cos_and_sin
from tests.geometry.maps import numpy64
from tests.marks import not_on_tensorflow
from tests.oracles import load
from tests.oracles import part
from tests.utils import assert_close
from tests.utils import tensor

pytestmark = pytest.mark.float64

ORACLES = load("geometry")[0]
CONST = ORACLES["const"]


def linear(name, x):
    return ops.einsum("ai,ni->na", tensor(CONST[name]), x)


def sigmoid(x):
    return 1.0 / (1.0 + ops.exp(-x))


IMMERSIONS = {
    "saddle_xy": lambda x: ops.concatenate([x, x[:, :1] * x[:, 1:]], axis=-1),
    "affine_map": lambda x: linear("A", x),
    "gated_linear": lambda x: linear("A", x) * sigmoid(linear("W", x)),
    "bilinear_gate": lambda x: linear("A", x) * linear("W", x),
    "elementwise_sigmoid_of_linear": lambda x: sigmoid(linear("W", x)),
    "swiglu": lambda x: (
        linear("A", x) * linear("W", x) * sigmoid(linear("W", x))
    ),
    "gated_linear_r4": lambda x: linear("A4", x) * sigmoid(linear("W4", x)),
    "sphere_patch": surfaces.sphere(),
}


def test_every_case_is_here():
    assert set(ORACLES) == {*IMMERSIONS, "fisher_rao_normal", "const"}


@functools.cache
def ours(function):
    """What one of our functions gives for all immersions, in one call."""
    x = np.concatenate([part(ORACLES[n], "in")["points"] for n in IMMERSIONS])

    def f(x):
        parts = ops.split(x, len(IMMERSIONS))
        images = [f(part) for f, part in zip(IMMERSIONS.values(), parts)]
        return ops.concatenate(
            [ops.pad(y, [(0, 0), (0, 4 - y.shape[-1])]) for y in images]
        )

    results = numpy64(getattr(geometry, function)(f, x, batch_size=len(x)))
    return dict(zip(IMMERSIONS, np.split(results, len(IMMERSIONS))))


@not_on_tensorflow
@pytest.mark.parametrize("name", IMMERSIONS)
def test_equals_geomstats(name):
    peer = ORACLES[name]
    scale = ours("curvature_scale")[name].max()

    def same(function, expected, scale=0.0):
        assert_close(ours(function)[name], expected, 1e-8, scale)

    same("metric", peer["metric"])
    same("christoffel_symbols", peer["christoffels"], 1.0)
    # Theirs is dx^l(R(X_j, X_k) X_i): lowered, our R(j, k, l, i).
    lowered = np.einsum("nijkm,nml->njkli", peer["riemann"], peer["metric"])
    same("riemann_tensor", lowered, scale)
    same("ricci_curvature", peer["ricci"], scale)
    same("scalar_curvature", peer["scalar"], scale)
    same("gaussian_curvature", peer["sectional"], scale)
    # Theirs is the trace; and of all images but one the last axis is padding.
    trace = peer["mean_curvature_vector"]
    trace = np.pad(trace, [(0, 0), (0, 4 - trace.shape[-1])])
    same("mean_curvature", trace / 2.0, 1.0)


def test_fisher_rao_metric_of_the_normal():
    """Coordinates (μ, σ), metric diag(1, 2)/σ², K = −1/2."""

    def immersion(p):
        x, y = 4.0 * p[:, 0] / np.sqrt(2.0), 4.0 * p[:, 1]
        cos, sin = cos_and_sin(x)
        q = ops.sqrt(1.0 - 1.0 / (y * y))
        artanh = (ops.log(1.0 + q) - ops.log(1.0 - q)) / 2.0
        return np.sqrt(2.0) * ops.stack([cos / y, sin / y, artanh - q], -1)

    peer = ORACLES["fisher_rao_normal"]
    x = part(peer, "in")["points"]
    assert_close(geometry.metric(immersion, x), peer["metric"], 1e-8)
    k = geometry.gaussian_curvature(immersion, x)
    assert_close(k, peer["sectional"], 1e-8)
