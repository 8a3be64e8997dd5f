"""The two-layer network of squeeze-and-excitation and of CBAM."""

from keras import activations
from keras import constraints
from keras import initializers
from keras import regularizers

from keras_gating.functional import checks
from keras_gating.layers.channel.base import FeatureMapGate
from keras_gating.layers.child_calls import call_child
from keras_gating.layers.projection import dense
from keras_gating.layers.quantization import QuantizedChildren
from keras_gating.layers.trainable_flags import inherit_trainable
from keras_gating.layers.weight_arguments import weight_arguments
from keras_gating.layers.weight_arguments import weight_config

# That of all gates with a bottleneck, where nothing else is given.
DEFAULT_RATIO = 16


class BottleneckGate(QuantizedChildren, FeatureMapGate):
    """Channels → `width` → channels; subclasses say what goes in."""

    _quantized_children = ("reduction", "expansion")

    def __init__(
        self,
        ratio,
        units,
        divisor,
        activation,
        use_bias,
        kernel_initializer,
        bias_initializer,
        kernel_regularizer,
        bias_regularizer,
        kernel_constraint,
        bias_constraint,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.ratio = _checked_ratio(ratio)
        self.units = checks.positive_integer("units", units, optional=True)
        self.divisor = checks.positive_integer("divisor", divisor, True)
        if units is not None and (
            ratio != DEFAULT_RATIO or divisor is not None
        ):
            raise ValueError(
                "`units` is the width itself, so `ratio` and `divisor` have "
                f"no effect. Received: units={units}, ratio={ratio}, "
                f"divisor={divisor}"
            )
        self.activation = activations.get(activation)
        self.use_bias = checks.boolean("use_bias", use_bias)
        self.kernel_initializer = initializers.get(kernel_initializer)
        self.bias_initializer = initializers.get(bias_initializer)
        self.kernel_regularizer = regularizers.get(kernel_regularizer)
        self.bias_regularizer = regularizers.get(bias_regularizer)
        self.kernel_constraint = constraints.get(kernel_constraint)
        self.bias_constraint = constraints.get(bias_constraint)
        checks.bias_arguments(self)
        self.reduction = self.expansion = None
        starts_at_zero = isinstance(self.bias_initializer, initializers.Zeros)
        if not use_bias or starts_at_zero:
            self._check_start()

    def width(self, channels):
        """Size of the bottleneck for this number of channels."""
        if self.units is not None:
            return self.units
        if self.divisor is None:
            return max(1, int(channels // self.ratio))
        steps = int(channels / self.ratio + self.divisor / 2) // self.divisor
        return max(1, steps) * self.divisor

    def build(self, input_shape):
        channels = self._channels(input_shape)
        self._demand(channels)
        width = self.width(channels)
        common = {**weight_arguments(self), "dtype": self.dtype_policy}
        self.reduction = dense(
            1,
            1,
            (width,),
            self.use_bias,
            "reduction",
            activation=self.activation,
            **common,
        )
        self.reduction.build((None, channels))
        self.expansion = dense(
            1,
            1,
            (channels,),
            self.use_bias,
            "expansion",
            **{**common, "kernel_initializer": self.gate_initializer},
        )
        self.expansion.build((None, width))
        inherit_trainable(self)

    def _logits(self, pooled):
        """`(B, C)`, from pooled channels of the same shape."""
        hidden = call_child(self, self.reduction, pooled)
        return call_child(self, self.expansion, hidden)

    def get_config(self):
        config = {
            name: getattr(self, name)
            for name in ("ratio", "units", "divisor", "use_bias")
        }
        config["activation"] = activations.serialize(self.activation)
        return {**super().get_config(), **config, **weight_config(self)}


def _checked_ratio(ratio):
    checks.positive_number("ratio", ratio)
    if ratio < 1:
        raise ValueError(
            "`ratio` is the factor by which the channels are reduced, 1 or "
            f"more; pass 1/ratio, here ratio={1 / ratio:g}. Received: "
            f"ratio={ratio!r}"
        )
    return ratio
