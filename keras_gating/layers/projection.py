"""What the kernels of all layers have in common."""

import string

import keras


def dense(free, bound, output_shape, use_bias, name, **kwargs):
    """An `EinsumDense` over the last axes of its input.

    Args:
        free: number of leading axes that pass through.
        bound: number of trailing axes that are contracted.
        output_shape: sizes of the axes that replace them.
        use_bias: whether to add a bias of shape `output_shape`.
        name: name of the layer.
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
    layer = keras.layers.EinsumDense(
        f"{leading}{contracted},{contracted}{created}->{leading}{created}",
        output_shape=(*[None] * (free - 1), *output_shape),
        bias_axes=created if use_bias else None,
        name=name,
        **kwargs,
    )
    # Otherwise Keras warns that the layer destroys the mask of its input.
    layer.supports_masking = True
    return layer
