"""Public functions: right arguments, and the kinds of some of them."""

import keras
import numpy as np

from keras_gating import diagnostics
from keras_gating import distribution
from keras_gating import functional
from keras_gating import geometry
from keras_gating import layers
from keras_gating import surgery
from keras_gating.geometry import surfaces
from tests.fuzz import kinds
from tests.fuzz.kinds import BOOLEAN
from tests.fuzz.kinds import SIZE
from tests.fuzz.kinds import one_of
from tests.fuzz.kinds import optional
from tests.utils import normal

QUERY, KEY = normal(2, 3, 4), normal(2, 5, 4)
HEADS = normal(2, 3, 2, 4)
SQUARE = one_of("visible", 3)
DTYPE = optional(one_of("float32"))


def attention():
    return {
        "query": HEADS,
        "key": normal(2, 5, 2, 4),
        "value": normal(2, 5, 2, 4),
        "mask": np.ones((2, 2, 3, 5), bool),
    }


def quadratic():
    return {
        "query": QUERY,
        "key": KEY,
        "value": normal(2, 5, 6),
        "mask": np.ones((2, 3, 5), bool),
        "key_mask": np.ones((2, 5), bool),
    }


def chunked():
    return {
        "queries": (KEY, KEY),
        "keys": (KEY, KEY),
        "value": normal(2, 5, 6),
        "chunk_size": 2,
        "key_mask": np.ones((2, 5), bool),
    }


FUNCTIONAL = {
    functional.apply_gate: (
        lambda: {
            "inputs": QUERY,
            "logits": QUERY,
            "mask": np.ones((2, 3), bool),
        },
        {
            "activation": kinds.ACTIVATION,
            "scale": kinds.FACTOR,
            "dropout": kinds.PROBABILITY,
            "product_dtype": DTYPE,
        },
    ),
    functional.vanishes_at_zero: (
        lambda: {},
        {"activation": kinds.ACTIVATION},
    ),
    functional.glu: (
        lambda: {"inputs": QUERY},
        {
            "activation": kinds.ACTIVATION,
            "axis": kinds.Kind((-1,), kinds.among(-1, 0)),
            "gate_first": BOOLEAN,
            "limit": optional(kinds.POSITIVE),
            "product_dtype": DTYPE,
        },
    ),
    functional.dot_product_attention: (
        attention,
        {"is_causal": BOOLEAN, "return_scores": BOOLEAN},
    ),
    functional.quadratic_attention: (
        quadratic,
        {
            "activation": one_of("relu2", "laplace"),
            "is_causal": BOOLEAN,
            "block_size": optional(SIZE),
        },
    ),
    functional.mixed_chunk_attention: (
        chunked,
        {
            "chunk_size": SIZE,
            "activation": one_of("relu2"),
            "is_causal": BOOLEAN,
        },
    ),
    functional.offset_scale: (
        lambda: {
            "inputs": QUERY,
            "scale": normal(2, 4),
            "offset": normal(2, 4),
        },
        {},
    ),
    functional.apply_rotary: (
        lambda: {"x": QUERY, "positions": np.arange(3)},
        {
            "max_wavelength": kinds.POSITIVE,
            "width": optional(kinds.Kind((2, 4))),
            "axis": kinds.Kind((1,), kinds.among(0, -1)),
        },
    ),
    functional.relative_position_bucket: (
        lambda: {"distance": np.arange(-3, 4)},
        {"num_buckets": SIZE, "max_distance": SIZE, "is_causal": BOOLEAN},
    ),
    functional.relative_position_bias: (
        lambda: {
            "table": normal(32),
            "num_queries": 3,
            "num_keys": 4,
        },
        {"max_distance": SIZE, "is_causal": BOOLEAN},
    ),
    functional.as_boolean_mask: (
        lambda: {"mask": np.ones((2, 3), bool)},
        {},
    ),
    functional.causal_mask: (
        lambda: {"target_shape": (3,), "source_shape": (4,), "offset": 0},
        {},
    ),
    functional.sliding_window_mask: (
        lambda: {
            "target_length": 3,
            "source_length": 4,
            "window": 2,
            "offset": 0,
        },
        {"window": SIZE},
    ),
    functional.gnomonic: (
        lambda: {"inputs": QUERY, "curvature": -0.1},
        {"lift": BOOLEAN},
    ),
    functional.exp0: (lambda: {"v": QUERY, "curvature": 0.5}, {}),
    functional.log0: (lambda: {"x": QUERY, "curvature": 0.5}, {}),
    functional.mobius_scale: (
        lambda: {"gate": QUERY, "x": QUERY, "curvature": 0.5},
        {},
    ),
    functional.mobius_add: (
        lambda: {"x": QUERY, "y": QUERY, "curvature": 0.5},
        {},
    ),
    functional.stereographic_distance: (
        lambda: {"x": QUERY, "y": QUERY, "curvature": 0.5},
        {},
    ),
    functional.relu2: (lambda: {"x": QUERY}, {}),
    functional.laplace: (lambda: {"x": QUERY}, {}),
    functional.AttentionLayout.resolve: (
        lambda: {"rank": 4, "axes": (1,)},
        {},
    ),
}

SADDLE = surfaces.saddle()
POINTS = normal(2, 2)
LINE = (np.array([0.0, 0.0]), np.array([0.3, 0.1]))
BATCH = {"batch_size": optional(SIZE)}


def at_points(**further):
    return lambda: {"f": SADDLE, "x": POINTS, "covariance": None, **further}


GEOMETRY = {
    geometry.jacobian: (lambda: {"f": SADDLE, "x": POINTS}, BATCH),
    geometry.hessian: (lambda: {"f": SADDLE, "x": POINTS}, BATCH),
    **{
        function: (at_points(), BATCH)
        for function in (
            geometry.metric,
            geometry.gaussian_curvature,
            geometry.curvature_scale,
            geometry.mean_curvature,
            geometry.scalar_curvature,
            geometry.ricci_curvature,
            geometry.riemann_tensor,
            geometry.second_fundamental_form,
            geometry.christoffel_symbols,
        )
    },
    geometry.sectional_curvature: (
        at_points(u=np.array([1.0, 0.0]), v=np.array([0.0, 1.0])),
        BATCH,
    ),
    geometry.curve_curvature: (
        at_points(direction=np.array([1.0, 0.0])),
        BATCH,
    ),
    geometry.geodesic: (
        lambda: {"f": SADDLE, "start": LINE[0], "end": LINE[1], "steps": 4},
        {"steps": SIZE},
    ),
    geometry.geodesic_triangle: (
        lambda: {
            "f": SADDLE,
            "a": LINE[0],
            "b": LINE[1],
            "c": np.array([0.0, 0.2]),
            "steps": 4,
        },
        {"steps": SIZE},
    ),
    geometry.total_curvature: (
        lambda: {"f": SADDLE, "bounds": SADDLE.bounds, "resolution": 4},
        {
            "resolution": SIZE,
            "absolute": BOOLEAN,
            "dtype": optional(one_of("float32")),
            **BATCH,
        },
    ),
    geometry.total_bending: (
        lambda: {"f": SADDLE, "bounds": SADDLE.bounds, "resolution": 4},
        {
            "resolution": SIZE,
            "dtype": optional(one_of("float32")),
            **BATCH,
        },
    ),
    geometry.straightening: (lambda: {"trajectory": normal(5, 3)}, {}),
    geometry.gromov_hyperbolicity: (
        lambda: {"points": normal(5, 3)},
        {"relative": BOOLEAN},
    ),
    surfaces.torus: (
        lambda: {},
        {"major_radius": kinds.POSITIVE, "minor_radius": kinds.POSITIVE},
    ),
    surfaces.ellipsoid: (
        lambda: {},
        {name: kinds.POSITIVE for name in "abc"},
    ),
}


def transformer():
    x = keras.Input((3, 4))
    y = keras.layers.MultiHeadAttention(2, 2, name="attention")(x, x)
    return keras.Model(x, y)


def convolutional():
    return keras.Sequential(
        [keras.Input((4, 4, 2)), keras.layers.Conv2D(3, 1, name="conv")]
    )


def built(layer, *shape):
    layer.build(shape)
    return layer


GATE = built(layers.Gate(name="gate"), 2, 3, 4)
MODEL, CONVOLUTIONAL = transformer(), convolutional()
DATA = normal(2, 3, 4)
MESH = keras.distribution.DeviceMesh((1, 1), ("batch", "model"), ["cpu:0"])

OTHERS = {
    diagnostics.gate_statistics: (
        lambda: {"model": GATE, "data": DATA},
        {
            "batch_size": SIZE,
            "steps": optional(SIZE),
            "low": kinds.Kind((0.1,)),
            "high": kinds.Kind((0.9,)),
            "progress": BOOLEAN,
        },
    ),
    diagnostics.gate_variables: (lambda: {"model": GATE}, {"packed": BOOLEAN}),
    diagnostics.attention_sink: (
        lambda: {"scores": np.full((2, 2, 3, 3), 1 / 3, "float32")},
        {"token": kinds.Kind((0,), kinds.among(0, -1))},
    ),
    diagnostics.cost_table: (
        lambda: {
            "layers": [layers.Gate()],
            "input_shape": (2, 3, 4),
            "measure": False,
        },
        {"measure": kinds.Kind((False,), kinds.among(True, 0))},
    ),
    diagnostics.GateMonitor: (
        lambda: {"data": DATA},
        {
            "batch_size": SIZE,
            "steps": optional(SIZE),
            "low": kinds.Kind((0.1,)),
            "high": kinds.Kind((0.9,)),
            "saturation": kinds.POSITIVE,
            "factor": kinds.Kind((0.1,), kinds.nothing),
            "patience": SIZE,
        },
    ),
    surgery.gate_attention: (
        lambda: {"model": MODEL},
        {
            "freeze": BOOLEAN,
            "gate_site": kinds.Kind(("output",)),
            "num_heads": kinds.Kind((), kinds.nothing),
        },
    ),
    surgery.gate_channels: (
        lambda: {"model": CONVOLUTIONAL, "layer": layers.ECA()},
        {"freeze": BOOLEAN},
    ),
    surgery.freeze_all_but_gates: (lambda: {"model": GATE}, {}),
    surgery.copy_weights: (
        lambda: {
            "layer": built(layers.SwiGLU(3), 2, 4),
            "weights": {},
            "layout": "keras",
        },
        {"layout": kinds.Kind(("keras",)), "prefix": kinds.Kind(("",))},
    ),
    distribution.layout_map: (
        lambda: {"device_mesh": MESH, "model_axis": "model"},
        {"model_axis": kinds.Kind(("model",))},
    ),
}

FUNCTIONS = {
    function.__qualname__: (function, *rest)
    for table in (FUNCTIONAL, GEOMETRY, OTHERS)
    for function, rest in table.items()
}
