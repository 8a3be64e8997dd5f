import keras
from keras import activations
from keras import constraints
from keras import initializers
from keras import ops
from keras import regularizers

from keras_gating.functional import checks
from keras_gating.functional import vanishes_at_zero
from keras_gating.functional.gate import as_dtype
from keras_gating.functional.gate import gated
from keras_gating.layers.child_calls import call_child
from keras_gating.layers.low_rank import LowRankUpdates
from keras_gating.layers.projection import dense
from keras_gating.layers.quantization import QuantizedChildren
from keras_gating.layers.trainable_flags import inherit_trainable
from keras_gating.layers.weight_arguments import weight_config
from keras_gating.layers.weight_axes import splittable


@keras.saving.register_keras_serializable(package="keras_gating")
class Gate(LowRankUpdates, QuantizedChildren):
    """Multiplies its input by a learned gate.

    `outputs = inputs ⊙ scale · activation(source · W + b)`

    `source` shares the leading axes of `inputs`; the axes of `inputs` that
    follow are *gated*. With `inputs` of shape `(B, T, heads, size)` and
    `source` of shape `(B, T, d)`, the kernel `W` is `(d, heads, size)`.

    A new gate is half open: its kernel starts at zero, so a sigmoid is ½
    everywhere, and with `scale=2.0` the layer starts as the identity.

    Weights: the kernel (two with `rank`: `(d, rank)` and `(rank, *gated)`),
    then the bias.

    Args:
        activation: name or callable, the gate's activation. It is computed in
            float32 under half precision. Defaults to `"sigmoid"`.
        granularity: which gated axes share one value. `"elementwise"`: none,
            `"headwise"`: the last axis (one scalar per head), `"shared"`: the
            axis before the last (all heads have the same gate). Defaults to
            `"elementwise"`.
        source: `"input"`: the gate is a function of the `source` given in the
            call, or of `inputs` itself; `"constant"`: it is a learned constant,
            whose one weight is the bias. A constant gate is LayerScale with
            `activation="linear"`, and the gate of Flamingo with
            `activation="tanh"`. Defaults to `"input"`.
        rank: width of a bottleneck between two kernels, linear inside, for a
            gate with few parameters. Defaults to `None`, a single kernel.
        use_bias: whether the gate has a bias. Defaults to `True`.
        scale: factor on the activated gate. Defaults to 1.0.
        kernel_initializer: initializer of the kernel (of the last one with
            `rank`; the first is then `"glorot_uniform"`). Defaults to `None`:
            zeros, but `"glorot_uniform"` where zeros would never train, as
            with `"relu"` and no bias to lift it.
        bias_initializer: initializer of the bias. Defaults to `"zeros"`.
        dropout: probability of dropping a gate value in training (inverted
            dropout on the gate, not on the product). Defaults to 0.0.
        kernel_regularizer: regularizer of the kernels.
        bias_regularizer: regularizer of the bias.
        kernel_constraint: constraint of the kernels.
        bias_constraint: constraint of the bias.
        seed: integer seed of the dropout.
        **kwargs: arguments of `keras.layers.Layer`, such as `name`, `dtype`
            and `trainable`.

    Call arguments:
        inputs: the value, of rank 2 or more.
        source: what the gate reads, `(leading axes of inputs…, d)`. Defaults
            to `inputs`, from last axis to last axis. For a constant gate only
            its rank counts: it says which axes are gated.
        training: whether dropout is active.
        mask: padding mask of the leading axes. It does not change the output;
            recordings of gate values leave padding out.
        inputs_mask: the same; Keras fills this one when `source` is given.

    Returns:
        A tensor of the shape of `inputs`.

    Raises:
        ValueError: for unknown names, sizes below 1, and arguments that
            contradict each other or could have no effect.

    Example:

    >>> import numpy as np
    >>> from keras_gating.layers import Gate
    >>> context = np.ones((2, 5, 4, 8), "float32")
    >>> query = np.ones((2, 5, 16), "float32")
    >>> gate = Gate(granularity="headwise")
    >>> gated = gate(context, source=query)
    >>> tuple(gated.shape), tuple(gate.weights[0].shape)
    ((2, 5, 4, 8), (16, 4, 1))

    References:
        Qiu et al. 2025, Gated Attention for Large Language Models,
        arXiv 2505.06708 (sites, granularities); Touvron et al. 2021,
        arXiv 2103.17239 (LayerScale); Alayrac et al. 2022, arXiv 2204.14198
        (Flamingo).
    """

    _quantized_children = ("reduction", "projection")

    def __init__(
        self,
        activation="sigmoid",
        granularity="elementwise",
        source="input",
        rank=None,
        use_bias=True,
        scale=1.0,
        kernel_initializer=None,
        bias_initializer="zeros",
        dropout=0.0,
        kernel_regularizer=None,
        bias_regularizer=None,
        kernel_constraint=None,
        bias_constraint=None,
        seed=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.activation = activations.get(activation)
        self.granularity = checks.one_of(
            "granularity", granularity, ("elementwise", "headwise", "shared")
        )
        self.source = checks.one_of("source", source, ("input", "constant"))
        self.rank = checks.positive_integer("rank", rank, optional=True)
        self.use_bias = checks.boolean("use_bias", use_bias)
        self.scale = checks.factor("scale", scale)
        self.kernel_initializer = initializers.get(kernel_initializer)
        self.bias_initializer = initializers.get(bias_initializer)
        self.dropout = checks.probability("dropout", dropout)
        self.kernel_regularizer = regularizers.get(kernel_regularizer)
        self.bias_regularizer = regularizers.get(bias_regularizer)
        self.kernel_constraint = constraints.get(kernel_constraint)
        self.bias_constraint = constraints.get(bias_constraint)
        self.seed = checks.seed(seed)
        self.supports_masking = True
        if source == "constant":
            self._check_constant()
        else:
            checks.bias_arguments(self)
        self._check_start()
        self.reduction = None
        self.projection = None
        self.bias = None
        self._gated_sizes = self._source_size = None
        self.seed_generator = (
            keras.random.SeedGenerator(seed) if dropout > 0.0 else None
        )

    def build(self, inputs_shape, source_shape=None):
        inputs_shape = tuple(inputs_shape)
        source_shape = tuple(source_shape or inputs_shape)
        leading = self._check_shapes(inputs_shape, source_shape)
        self._gated_sizes = inputs_shape[leading:]
        gated = self._gate_shape(self._gated_sizes)
        if self.source == "constant":
            self.bias = splittable(
                self.add_weight,
                gated,
                axis=0,
                name="bias",
                initializer=self.bias_initializer,
                regularizer=self.bias_regularizer,
                constraint=self.bias_constraint,
            )
            return
        self._source_size = source_shape[-1]
        common = {
            "kernel_regularizer": self.kernel_regularizer,
            "kernel_constraint": self.kernel_constraint,
            "dtype": self.dtype_policy,
        }
        if self.rank is not None:
            self.reduction = dense(
                leading, 1, (self.rank,), False, "reduction", **common
            )
            self.reduction.build(source_shape)
            source_shape = (*source_shape[:-1], self.rank)
        self.projection = dense(
            leading,
            1,
            gated,
            self.use_bias,
            "projection",
            split_axis=1,
            kernel_initializer=self._first_kernel(),
            bias_initializer=self.bias_initializer,
            bias_regularizer=self.bias_regularizer,
            bias_constraint=self.bias_constraint,
            **common,
        )
        self.projection.build(source_shape)
        inherit_trainable(self)

    def call(
        self, inputs, source=None, training=None, mask=None, inputs_mask=None
    ):
        inputs = as_dtype(inputs, self.compute_dtype)
        logits = self._logits(inputs, source)
        mask = inputs_mask if mask is None else mask
        return self._multiplied(inputs, logits, training, mask)

    def _logits(self, inputs, source):
        """The gate before its activation."""
        if source is None:
            source = inputs
        source = as_dtype(source, self.compute_dtype)
        self._check_shapes(inputs.shape, source.shape)
        if self.source == "constant":
            return ops.convert_to_tensor(self.bias)
        if self.reduction is not None:
            source = call_child(self, self.reduction, source)
        return call_child(self, self.projection, source)

    def _multiplied(self, value, logits, training, mask):
        return gated(
            value,
            logits,
            activation=self.activation,
            scale=self.scale,
            dropout=self.dropout,
            training=training,
            seed=self.seed_generator,
            mask=mask,
            owner=self,
        )

    def compute_output_shape(self, inputs_shape, source_shape=None):
        self._check_shapes(inputs_shape, source_shape or inputs_shape)
        return tuple(inputs_shape)

    def get_config(self):
        config = {
            "activation": activations.serialize(self.activation),
            "granularity": self.granularity,
            "source": self.source,
            "rank": self.rank,
            "use_bias": self.use_bias,
            "scale": self.scale,
            "dropout": self.dropout,
            "seed": self.seed,
        }
        return {**super().get_config(), **config, **weight_config(self)}

    def _starts_at_zero(self):
        bias_is_zero = isinstance(self.bias_initializer, initializers.Zeros)
        has_bias = self.use_bias and not bias_is_zero
        return not has_bias and vanishes_at_zero(self.activation)

    def _first_kernel(self):
        if self.kernel_initializer is not None:
            return self.kernel_initializer
        return "glorot_uniform" if self._starts_at_zero() else "zeros"

    def _check_start(self):
        kernel = self.kernel_initializer
        is_constant = self.source == "constant"
        if is_constant or isinstance(kernel, initializers.Zeros):
            if self._starts_at_zero():
                raise ValueError(
                    f"A gate with activation {self.activation!r} has value 0 "
                    "and slope 0 at logit 0, so it would never train from "
                    "zeros. Pass another "
                    f"`{'bias' if is_constant else 'kernel'}_initializer`. "
                    "Received: zeros"
                )

    def _check_constant(self):
        inert = {
            "use_bias": not self.use_bias,
            "rank": self.rank is not None,
            "kernel_initializer": self.kernel_initializer is not None,
            "kernel_regularizer": self.kernel_regularizer is not None,
            "kernel_constraint": self.kernel_constraint is not None,
        }
        for name, given in inert.items():
            if given:
                raise ValueError(
                    'A gate with source="constant" has no kernel; its one '
                    f"weight is the bias. `{name}` cannot be set. Received: "
                    f"{name}={getattr(self, name)!r}"
                )

    def _check_shapes(self, inputs_shape, source_shape):
        """Returns the number of leading axes."""
        inputs_shape, source_shape = tuple(inputs_shape), tuple(source_shape)
        leading = len(source_shape) - 1
        if not 1 <= leading < len(inputs_shape) or not checks.compatible(
            inputs_shape[:leading], source_shape[:leading]
        ):
            raise ValueError(
                "`source` must share the leading axes of `inputs`, from the "
                "batch on, and leave at least one axis to be gated. Received: "
                f"inputs.shape={inputs_shape}, source.shape={source_shape}"
            )
        if self.granularity == "shared" and len(inputs_shape) - leading < 2:
            raise ValueError(
                'granularity="shared" needs two gated axes or more, heads and '
                f"features. Received: inputs.shape={inputs_shape}, "
                f"source.shape={source_shape}"
            )
        built, width = self._gated_sizes, self._source_size
        if built is not None and (
            inputs_shape[leading:] != built
            or not checks.compatible(source_shape[-1:], (width,))
        ):
            raise ValueError(
                f"The gate was built for gated axes of the sizes {built} and "
                f"a source of {width} features. Received: inputs.shape="
                f"{inputs_shape}, source.shape={source_shape}"
            )
        return leading

    def _gate_shape(self, gated):
        if None in gated:
            raise ValueError(
                f"The sizes of the gated axes must be known. Received: {gated}"
            )
        gated = list(gated)
        if self.granularity == "headwise":
            gated[-1] = 1
        elif self.granularity == "shared":
            gated[-2] = 1
        return tuple(gated)
