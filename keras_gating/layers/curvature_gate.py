import functools
import math

import keras
import numpy as np
from keras import ops

from keras_gating.functional import checks
from keras_gating.functional import exp0
from keras_gating.functional import gnomonic
from keras_gating.functional import log0
from keras_gating.functional import masks
from keras_gating.layers.gate import Gate


@keras.saving.register_keras_serializable(package="keras_gating")
class CurvatureGate(Gate):
    """A gate that bends what it multiplies by a chosen or learnt curvature κ.

    Vectors are those of the last axis. Negative curvature has the room that
    trees need, positive curvature closes on itself like cycles, and κ = 0 is
    the plain product.

    `chart="gnomonic"`: `outputs = x ⊙ (1 + κ|x|²)^(−1/2)`. The gate is κ
    alone. With `lift=True` the height `√|κ| |x|² / (q (1 + q))`,
    `q = √(1 + κ|x|²)`, is one more feature, and the image has constant
    sectional curvature κ in any dimension: a sphere for κ > 0, and for κ < 0
    the hyperboloid, under the form diag(1, …, 1, −1). Under the Euclidean
    metric the points of the hyperboloid have positive curvature.

    `chart="stereographic"`: `outputs = g ⊗ x = exp₀(g ⊙ log₀ x)`, with the
    gate `g = scale · activation(source · W + b)` of `Gate`. A gate of one
    number a vector, `granularity="headwise"`, moves points along geodesics
    through the origin, to g times their distance from it.

    κ is the weight itself, and may start at 0 and leave to both sides. (A
    square, such as `c |c|`, has no gradient there.) It stays in float32 where
    weights are in half precision, whose steps are too coarse for it.

    For κ < 0 the space is the ball `|x| < 1/√−κ`. Vectors outside of it, or
    closer to its rim than 1e-3 of the radius in float32 (1e-5 in float64, 0.02
    in half precision), are moved to that distance from the rim along the
    radius. For κ > 0 the stereographic gate keeps the same share of the way
    away from the point opposite to the origin, which is at infinity.

    Weights: κ, then in the stereographic chart those of `Gate`.

    Args:
        curvature: the initial κ. Defaults to 0.0.
        trainable: whether the layer trains. Defaults to `True`.
        chart: `"gnomonic"` or `"stereographic"`. Defaults to `"gnomonic"`.
        granularity: which features share a learnt gate value, as in `Gate`;
            the gnomonic chart has only `"headwise"`, one value a vector.
            Defaults to `"headwise"`.
        lift: whether to append the height (gnomonic chart only). Defaults to
            `False`.
        curvature_trainable: whether κ trains; `False` fixes it while the
            gate's other weights train. Defaults to `True`.
        curvature_speed: how many times faster κ moves than other weights
            under an optimizer like Adam, whose steps have the size of the
            learning rate. The weight is then κ divided by this number.
            Defaults to 1.0.
        **kwargs: in the stereographic chart the other arguments of `Gate`,
            such as `activation`, `source`, `rank`, `scale` and `dropout`; and
            arguments of `keras.layers.Layer`, such as `name` and `dtype`.

    Call arguments:
        inputs: vectors, `(…, d)`, of rank 2 or more.
        source: what the learnt gate reads, as in `Gate`. The gnomonic chart
            has none.
        training: whether dropout is active.
        mask: padding mask of the leading axes. It does not change the output
            but for NaN and infinity in the padding, which count as 0 so that
            gradients stay finite; recordings leave padding out.
        inputs_mask: the same; Keras fills this one when `source` is given.

    Returns:
        A tensor of the shape of `inputs`, with one more feature with the lift.

    Raises:
        ValueError: for unknown names, numbers that are none, and arguments of
            the other chart.

    Example:

    >>> import numpy as np
    >>> from keras import ops
    >>> from keras_gating.layers import CurvatureGate
    >>> layer = CurvatureGate(curvature=-1.0, lift=True)
    >>> x = np.array([[0.6, 0.0]], "float32")
    >>> ops.convert_to_numpy(layer(x)).round(4).tolist()
    [[0.75, 0.0, 0.25]]
    >>> layer.current_curvature()
    -1.0

    A learnt gate in the stereographic chart, for attention:

    >>> gate = CurvatureGate(chart="stereographic", curvature=-1.0)
    >>> context = np.ones((2, 5, 4, 8), "float32")
    >>> query = np.ones((2, 5, 16), "float32")
    >>> tuple(gate(context, source=query).shape)
    (2, 5, 4, 8)

    References:
        Ganea et al. 2018, Hyperbolic neural networks, arXiv 1805.09112;
        Bachmann et al. 2020, Constant curvature graph convolutional networks,
        arXiv 1911.05076 (the stereographic model).
    """

    def __init__(
        self,
        curvature=0.0,
        trainable=True,
        chart="gnomonic",
        granularity="headwise",
        lift=False,
        curvature_trainable=True,
        curvature_speed=1.0,
        **kwargs,
    ):
        super().__init__(granularity=granularity, trainable=trainable, **kwargs)
        self.curvature = curvature
        self.chart = checks.one_of(
            "chart", chart, ("gnomonic", "stereographic")
        )
        self.lift = checks.boolean("lift", lift)
        self.curvature_trainable = checks.boolean(
            "curvature_trainable", curvature_trainable
        )
        self.curvature_speed = checks.positive_number(
            "curvature_speed", curvature_speed
        )
        if not checks.is_number(curvature):
            raise ValueError(
                "`curvature` must be a finite number. Received: "
                f"curvature={curvature!r}"
            )
        if not _holds(curvature, curvature_speed):
            raise ValueError(
                "`curvature`, and `curvature / curvature_speed`, which is the "
                "weight, must be numbers that float32 holds. Received: "
                f"curvature={curvature!r}, curvature_speed={curvature_speed!r}"
            )
        # A layer may be frozen for a while, and be saved like that.
        if curvature_speed != 1.0 and not curvature_trainable:
            raise ValueError(
                "`curvature_speed` has no effect on a curvature that does not "
                f"train. Received: curvature_speed={curvature_speed}, "
                f"curvature_trainable={curvature_trainable}"
            )
        if chart == "gnomonic":
            self._check_gnomonic()
        elif lift:
            raise ValueError(
                'Only chart="gnomonic" has a lift. Received: '
                f"chart={chart!r}, lift={lift!r}"
            )
        self.kappa = None

    def build(self, inputs_shape, source_shape=None):
        half = keras.backend.standardize_dtype(self.variable_dtype) in (
            "float16",
            "bfloat16",
        )
        self.kappa = self.add_weight(
            name="kappa",
            shape=(),
            initializer=keras.initializers.Constant(
                self.curvature / self.curvature_speed
            ),
            dtype="float32" if half else self.variable_dtype,
            trainable=self.curvature_trainable,
            autocast=False,
        )
        if self.chart == "stereographic":
            super().build(inputs_shape, source_shape)
            return
        self._check_gnomonic_call(inputs_shape, source_shape)
        checks.features("inputs", inputs_shape)
        self._gated_sizes = tuple(inputs_shape)[-1:]

    def call(
        self, inputs, source=None, training=None, mask=None, inputs_mask=None
    ):
        inputs = ops.cast(inputs, self.compute_dtype)
        curvature = self.curvature_speed * ops.convert_to_tensor(self.kappa)
        mask = inputs_mask if mask is None else mask
        if self.chart == "gnomonic":
            self._check_gnomonic_call(inputs.shape, source)
        if mask is not None:
            checks.padding_mask("mask", mask, inputs.shape)
            visible = masks.as_boolean_mask(mask, "mask")
            # κ is shared by all vectors, so its gradient would sum 0 · NaN
            # over the padding.
            inputs = _finite(inputs, visible)
            source = None if source is None else _finite(source, visible)
        if self.chart == "gnomonic":
            return gnomonic(inputs, curvature, self.lift, mask, self)
        logits = self._logits(inputs, source)
        tangent = log0(inputs, curvature)
        return exp0(
            self._multiplied(tangent, logits, training, mask), curvature
        )

    def current_curvature(self):
        """κ as it is now, a Python number."""
        if not self.built:
            raise ValueError(
                "`current_curvature` needs weights: build or call the gate "
                f"first. Received: {self.name}.built=False"
            )
        return self.curvature_speed * float(ops.convert_to_numpy(self.kappa))

    def compute_output_shape(self, inputs_shape, source_shape=None):
        if self.chart == "gnomonic":
            self._check_gnomonic_call(inputs_shape, source_shape)
            *leading, features = inputs_shape
            return (*leading, features + 1 if self.lift else features)
        return super().compute_output_shape(inputs_shape, source_shape)

    def get_config(self):
        config = {
            "curvature": self.curvature,
            "chart": self.chart,
            "lift": self.lift,
            "curvature_trainable": self.curvature_trainable,
            "curvature_speed": self.curvature_speed,
        }
        return {**super().get_config(), **config}

    def _check_gnomonic(self):
        for name, default in _learnt_gate().items():
            value = Gate.get_config(self)[name]
            if _content(value) != _content(default):
                raise ValueError(
                    'The gate of chart="gnomonic" is the curvature alone, so '
                    f"`{name}` has no effect; it is for "
                    f'chart="stereographic". Received: {name}={value!r}'
                )

    def _check_gnomonic_call(self, inputs_shape, source):
        if source is not None:
            raise ValueError(
                'The gate of chart="gnomonic" is the curvature alone and '
                'reads no `source`; it is for chart="stereographic". '
                f"Received: source={source!r}"
            )
        built = self._gated_sizes
        if built is not None and tuple(inputs_shape)[-1:] != built:
            raise ValueError(
                f"The gate was built for {built[0]} features. Received: "
                f"inputs.shape={tuple(inputs_shape)}"
            )


def _finite(x, visible):
    """Zero for NaN and infinity in the padding."""
    features = len(x.shape) - 1
    if len(visible.shape) > features:
        # A source stands for all positions of the axes it has not.
        axes = tuple(range(features, len(visible.shape)))
        visible = ops.any(visible, axis=axes)
    visible = masks.with_rank(visible, len(x.shape))
    return masks.hide(x, visible, keep_finite=True)


def _holds(curvature, speed):
    """Whether float32 gives a curvature back from weight and speed."""
    with np.errstate(over="ignore", invalid="ignore"):
        product = np.float32(speed) * np.float32(curvature / speed)
    return math.isclose(product, curvature, rel_tol=1e-5, abs_tol=1e-30)


def _content(value):
    """What says which object a configuration stands for."""
    # Keras numbers the objects that one file shares.
    if isinstance(value, dict):
        return value["class_name"], value["config"]
    return value


@functools.cache
def _learnt_gate():
    """The arguments of `Gate` by themselves, as this layer leaves them."""
    plain = Gate(granularity="headwise", name="plain")
    shared = keras.layers.Layer.get_config(plain)
    config = plain.get_config()
    return {name: config[name] for name in config if name not in shared}
