"""What the kernels of all layers have in common."""

import string

import keras
from keras import ops

from keras_gating._backend import on_torch
from keras_gating.layers.weight_axes import splittable


def dense(free, bound, output_shape, use_bias, name, split_axis=None, **kwargs):
    """A projection of the last axes of its input.

    Args:
        free: number of leading axes that pass through.
        bound: number of trailing axes that are contracted.
        output_shape: sizes of the axes that replace them.
        use_bias: whether to add a bias of shape `output_shape`.
        name: name of the layer.
        split_axis: axis of the kernel that `keras_gating.distribution` may
            split over devices; the bias follows. Defaults to `None`, none.
        **kwargs: further arguments of `EinsumDense`; initializers are cloned,
            so that no two kernels start with equal numbers.
    """
    letters = iter(string.ascii_lowercase)
    leading, contracted, created = (
        "".join(next(letters) for _ in range(count))
        for count in (free, bound, len(output_shape))
    )
    for argument in ("kernel_initializer", "bias_initializer"):
        initializer = kwargs.get(argument)
        if isinstance(initializer, keras.initializers.Initializer):
            kwargs[argument] = initializer.clone()
    kind = Projection
    if free > 1 and use_bias and _is_mistaken_for_channels(output_shape):
        kind = _FlatProjection
        leading = leading[:1]
    layer = kind(
        f"{leading}{contracted},{contracted}{created}->{leading}{created}",
        output_shape=(*[None] * (len(leading) - 1), *output_shape),
        bias_axes=created if use_bias else None,
        name=name,
        **kwargs,
    )
    if split_axis is not None:
        rank = len(output_shape)
        layer.split_axes["kernel", bound + rank] = split_axis
        # A bias has the axes that the kernel creates.
        if split_axis >= bound:
            layer.split_axes["bias", rank] = split_axis - bound
    # Otherwise Keras warns that the layer destroys the mask of its input.
    layer.supports_masking = True
    return layer


def linear(inputs, kernel, bias):
    """`inputs @ kernel + bias`, for a kernel `(D, units)`; the bias may be
    `None`.
    """
    if keras.config.backend() == "torch":
        return on_torch.linear(inputs, kernel, bias)
    outputs = ops.matmul(inputs, kernel)
    return outputs if bias is None else outputs + bias


def _is_mistaken_for_channels(bias_shape):
    """Whether Keras may add a bias of this shape along another axis.

    On TensorFlow `keras.ops.add` takes an operand with a single axis longer
    than 1 for a bias of channels, and adds it along axis 1 if the sizes agree
    there: heads `(N, 1)` along the positions of `(B, N, N, 1)`.
    """
    longer = [axis for axis, size in enumerate(bias_shape) if size > 1]
    return len(longer) == 1 and longer[0] != len(bias_shape) - 1


class Projection(keras.layers.EinsumDense):
    """An `EinsumDense` whose product and bias are one step on torch.

    It also says which axis of its weights may be split over devices.
    """

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        # By name and rank: some quantized kernels are packed into a matrix,
        # which has other axes.
        self.split_axes = {}

    def add_weight(self, shape=None, *args, name=None, **kwargs):
        shape = () if shape is None else shape
        axis = self.split_axes.get((name, len(shape)))
        return splittable(
            super().add_weight, shape, axis, *args, name=name, **kwargs
        )

    def call(self, inputs, training=None):
        backend = keras.config.backend()
        if backend == "torch":
            return self._linear(inputs, *self.kernel_and_bias())
        if self.bias is None or backend == "jax":
            return super().call(inputs)
        # Not `ops.add`, even where it adds along the right axis: LiteRT cannot
        # read the operation that it takes for this.
        outputs = ops.einsum(self.equation, inputs, self.kernel)
        return self.activation(outputs + ops.convert_to_tensor(self.bias))

    def kernel_and_bias(self):
        """The tensors that `call` multiplies with and adds, or `None`."""
        # With LoRA the kernel is no variable, but a sum.
        return [getattr(w, "value", w) for w in (self.kernel, self.bias)]

    def _linear(self, inputs, kernel, bias):
        """On torch."""
        operands, _, result = self.equation.partition("->")
        letters = operands.partition(",")[2]
        num_created = sum(letter in result for letter in letters)
        return self.activation(
            on_torch.linear(inputs, kernel, bias, num_created)
        )

    def call_in_parts(self, inputs):
        """What `call` returns, unstacked along its axis before the last.

        Only where the kernel is not distributed, for it is taken as a matrix:
        on JAX the gradient of a product with three axes takes half as long
        again. On torch, where no gradients are kept, each part is a product
        of its own with a view of the kernel, so that what follows reads
        numbers that lie side by side.

        Args:
            inputs: `(…, D)`, for a kernel `(D, parts, units)`.
        """
        kernel, bias = self.kernel_and_bias()
        depth, parts, units = kernel.shape
        if keras.config.backend() != "torch":
            flat = ops.reshape(inputs, (-1, depth))
            outputs = ops.matmul(flat, ops.reshape(kernel, (depth, -1)))
            if bias is not None:
                outputs = outputs + ops.reshape(bias, (-1,))
            shape = (*ops.shape(inputs)[:-1], parts, units)
            outputs = self.activation(ops.reshape(outputs, shape))
        elif on_torch.keeps_gradients(inputs, kernel):
            outputs = self._linear(inputs, kernel, bias)
        else:
            biases = [None] * parts
            if bias is not None:
                biases = bias.unbind(0)
            return [
                self.activation(on_torch.linear(inputs, its_kernel, its_bias))
                for its_kernel, its_bias in zip(kernel.unbind(1), biases)
            ]
        return ops.unstack(outputs, parts, axis=-2)

    def quantize(self, mode, **kwargs):
        # Keras refuses subclasses here unless told that they are alike.
        super().quantize(mode, **{**kwargs, "type_check": False})


class _FlatProjection(Projection):
    """A projection that merges the leading axes of its input into one.

    The bias then stands where its axes are the first after the batch.
    """

    @property
    def needs_whole_call(self):
        # On torch the product does not care how many leading axes there are.
        return keras.config.backend() != "torch"

    def build(self, input_shape):
        super().build((None, input_shape[-1]))

    def __call__(self, inputs, *args, **kwargs):
        # Not in `call`: quantized layers replace that by a method of theirs.
        leading = ops.shape(inputs)[:-1]
        flat = ops.reshape(inputs, (-1, inputs.shape[-1]))
        outputs = super().__call__(flat, *args, **kwargs)
        return ops.reshape(outputs, (*leading, *outputs.shape[1:]))
