import keras
from keras import activations
from keras import constraints
from keras import initializers
from keras import regularizers

from keras_gating.functional import checks
from keras_gating.functional.gate import gated
from keras_gating.functional.glu import clamp
from keras_gating.layers.child_calls import call_in_parts
from keras_gating.layers.initialization import StackedInitializer
from keras_gating.layers.low_rank import LowRankUpdates
from keras_gating.layers.projection import dense
from keras_gating.layers.quantization import QuantizedChildren
from keras_gating.layers.trainable_flags import inherit_trainable
from keras_gating.layers.weight_arguments import weight_arguments
from keras_gating.layers.weight_arguments import weight_config


class GatedLinearUnit(LowRankUpdates, QuantizedChildren):
    """Two linear maps and their product; subclasses set `activation`.

    Args:
        units: see `GLU`.
        gate_first: see `GLU`.
        limit: see `GLU`.
        product_dtype: see `GLU`.
        use_bias: see `GLU`.
        kernel_initializer: see `GLU`.
        bias_initializer: see `GLU`.
        kernel_regularizer: see `GLU`.
        bias_regularizer: see `GLU`.
        kernel_constraint: see `GLU`.
        bias_constraint: see `GLU`.
        **kwargs: arguments of `keras.layers.Layer`, such as `name`, `dtype`
            and `trainable`.
    """

    _quantized_children = ("projection",)

    def __init__(
        self,
        units,
        gate_first=False,
        limit=None,
        product_dtype=None,
        use_bias=True,
        kernel_initializer="glorot_uniform",
        bias_initializer="zeros",
        kernel_regularizer=None,
        bias_regularizer=None,
        kernel_constraint=None,
        bias_constraint=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.units = checks.positive_integer("units", units)
        self.gate_first = checks.boolean("gate_first", gate_first)
        self.limit = (
            None if limit is None else checks.positive_number("limit", limit)
        )
        self.product_dtype = checks.float_dtype("product_dtype", product_dtype)
        self.use_bias = checks.boolean("use_bias", use_bias)
        self.kernel_initializer = initializers.get(kernel_initializer)
        self.bias_initializer = initializers.get(bias_initializer)
        self.kernel_regularizer = regularizers.get(kernel_regularizer)
        self.bias_regularizer = regularizers.get(bias_regularizer)
        self.kernel_constraint = constraints.get(kernel_constraint)
        self.bias_constraint = constraints.get(bias_constraint)
        checks.bias_arguments(self)
        self.supports_masking = True
        self.projection = None

    def build(self, input_shape):
        checks.features("inputs", input_shape)
        self.input_spec = keras.layers.InputSpec(
            ndim=len(input_shape), axes={-1: input_shape[-1]}
        )
        self.projection = dense(
            len(input_shape) - 1,
            1,
            (2, self.units),
            self.use_bias,
            "projection",
            split_axis=2,
            **{
                **weight_arguments(self),
                "kernel_initializer": StackedInitializer(
                    self.kernel_initializer
                ),
            },
            dtype=self.dtype_policy,
        )
        self.projection.build(tuple(input_shape))
        inherit_trainable(self)

    def call(self, inputs, mask=None):
        (value, gate), are_own = call_in_parts(self, self.projection, inputs)
        if self.gate_first:
            value, gate = gate, value
        value, gate = clamp(value, gate, self.limit)
        return gated(
            value,
            gate,
            self.activation,
            mask=mask,
            owner=self,
            product_dtype=self.product_dtype or self.compute_dtype,
            overwrite="both" if are_own else None,
        )

    def compute_output_shape(self, input_shape):
        checks.features("inputs", input_shape)
        return (*input_shape[:-1], self.units)

    def compute_output_spec(self, inputs, mask=None):
        return keras.KerasTensor(
            self.compute_output_shape(inputs.shape),
            dtype=self.product_dtype or self.compute_dtype,
        )

    def get_config(self):
        config = {
            "units": self.units,
            "gate_first": self.gate_first,
            "limit": self.limit,
            "product_dtype": self.product_dtype,
            "use_bias": self.use_bias,
        }
        return {**super().get_config(), **config, **weight_config(self)}


@keras.saving.register_keras_serializable(package="keras_gating")
class GLU(GatedLinearUnit):
    """Gated linear unit: a linear map times an activated linear map.

    `outputs = (x W + b) ⊙ activation(x V + c)`

    with `x` of shape `(…, d)` and both matrices `(d, units)`. They are one
    weight, the kernel `(d, 2, units)`: slice 0 is `W`, the value, and slice 1
    is `V`, the gate (`gate_first=True`: the other way round). In this layout
    both halves of a unit lie together, so the units can be distributed over
    devices without communication.

    Checkpoints differ in the order of the halves: the gate comes second in
    PyTorch's `F.glu` and in `keras.activations.glu`, first in timm's
    `SwiGLUPacked`.

    Weights: kernel `(d, 2, units)`, bias `(2, units)`.

    Args:
        units: number of output features.
        activation: name or callable, the gate's activation, computed in
            float32 under half precision. Defaults to `"sigmoid"`.
        gate_first: whether slice 0 of the kernel is the gate.
        limit: bound on what is multiplied: gate logits are clamped from above
            to `limit`, values to `[-limit, limit]`. Defaults to `None`.
        product_dtype: dtype of the product and of the output. Defaults to
            `None`, the compute dtype. `"float32"` keeps products of float16
            numbers that exceed 65504.
        use_bias: whether both maps have a bias. Defaults to `True`.
        kernel_initializer: initializer of `W` and `V`, each by itself.
        bias_initializer: initializer of the biases.
        kernel_regularizer: regularizer of the kernel.
        bias_regularizer: regularizer of the bias.
        kernel_constraint: constraint of the kernel.
        bias_constraint: constraint of the bias.
        **kwargs: arguments of `keras.layers.Layer`, such as `name`, `dtype`
            and `trainable`.

    Call arguments:
        inputs: `(…, d)`, of rank 2 or more.
        mask: padding mask of the leading axes. It does not change the output;
            recordings of gate values leave padding out.

    Returns:
        A tensor `(…, units)`.

    Raises:
        ValueError: for `units` below 1, a `limit` that is not positive, and
            unknown activations.

    Example:

    >>> import numpy as np
    >>> from keras_gating.layers import GLU
    >>> layer = GLU(8)
    >>> tuple(layer(np.ones((2, 5, 4))).shape)
    (2, 5, 8)
    >>> [tuple(weight.shape) for weight in layer.weights]
    [(4, 2, 8), (2, 8)]

    References:
        Dauphin et al. 2016, arXiv 1612.08083.
    """

    def __init__(
        self,
        units,
        activation="sigmoid",
        gate_first=False,
        limit=None,
        product_dtype=None,
        use_bias=True,
        kernel_initializer="glorot_uniform",
        bias_initializer="zeros",
        kernel_regularizer=None,
        bias_regularizer=None,
        kernel_constraint=None,
        bias_constraint=None,
        **kwargs,
    ):
        super().__init__(
            units,
            gate_first,
            limit,
            product_dtype,
            use_bias,
            kernel_initializer,
            bias_initializer,
            kernel_regularizer,
            bias_regularizer,
            kernel_constraint,
            bias_constraint,
            **kwargs,
        )
        self.activation = activations.get(activation)

    def get_config(self):
        activation = activations.serialize(self.activation)
        return {**super().get_config(), "activation": activation}
