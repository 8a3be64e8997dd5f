"""Matrix products and convolutions of a call, as the backend is asked for them.

What else a layer computes takes a few operations for each number; these take
a sum over many products for each.
"""

import dataclasses
import math

import keras

from keras_gating._backend.operations import Described
from keras_gating._backend.operations import operations


@dataclasses.dataclass(frozen=True)
class Contraction:
    """One matrix product, convolution or fused attention.

    Args:
        name: what the backend calls it.
        multiply_adds: number of products that it sums up; `None` for a kernel
            of which nobody here knows it.
        traffic: bytes of its operands and results.
    """

    name: str
    multiply_adds: int | None
    traffic: int


def contractions(function):
    """Lists the matrix products and convolutions of a call.

    Args:
        function: function without arguments.

    Returns:
        A list of `Contraction`. What a loop repeats is in the numbers. Kernels
        that may be such products, but have no rule, are listed as unknown.

    Raises:
        ValueError: for one in a loop whose number of rounds depends on values.
    """
    rules = _RULES[keras.config.backend()]
    found = []
    for name, operands, results, attributes, times in operations(
        function, rules
    ):
        described = (*operands, *results)
        traffic = sum(x.nbytes for x in described if isinstance(x, Described))
        if name not in rules:
            found.append(Contraction(name, None, (times or 1) * traffic))
            continue
        if times is None:
            raise ValueError(
                "The number of FLOPs depends on values: there is a product in "
                f"a loop that nobody can count before it runs. Received: {name}"
            )
        shapes = [x.shape if isinstance(x, Described) else x for x in operands]
        products = rules[name](shapes, results[0].shape, attributes)
        found.append(Contraction(name, times * products, times * traffic))
    return found


# Each rule gives the multiply-adds from the shapes of the operands, the shape
# of the result and the attributes. A transposed convolution multiplies every
# number that goes in by the kernel, any other sums one for every number that
# comes out.


def _jax_dot(shapes, result, attributes):
    (axes, _), _ = attributes["dimension_numbers"]
    return math.prod(result) * math.prod(shapes[0][axis] for axis in axes)


def _jax_convolution(shapes, result, attributes):
    images, kernel = shapes
    out_axis, in_axis = attributes["dimension_numbers"].rhs_spec[:2]
    if math.prod(attributes["lhs_dilation"]) > 1:
        return math.prod(images) * math.prod(kernel) // kernel[in_axis]
    return math.prod(result) * math.prod(kernel) // kernel[out_axis]


def _tensorflow_matmul(shapes, result, attributes):
    transposed = attributes.get("transpose_a", attributes.get("adj_x"))
    return math.prod(result) * shapes[0][-2 if transposed else -1]


def _tensorflow_einsum(shapes, result, attributes):
    operands, _, kept = attributes["equation"].partition("->")
    sizes = {}
    for labels, shape in zip(operands.split(","), shapes):
        # Broadcast axes, `...`, are never summed.
        head, _, tail = labels.partition("...")
        sizes.update(zip(head, shape))
        sizes.update(zip(reversed(tail), reversed(shape)))
    summed = (size for label, size in sizes.items() if label not in kept)
    return math.prod(result) * math.prod(summed)


def _tensorflow_convolution(shapes, result, attributes):
    return math.prod(result) * math.prod(shapes[1][:-1])


def _tensorflow_depthwise(shapes, result, attributes):
    return math.prod(result) * math.prod(shapes[1][:-2])


def _tensorflow_transposed(shapes, result, attributes):
    return math.prod(shapes[2]) * math.prod(shapes[1][:-1])


def _torch_matmul(shapes, result, attributes):
    return math.prod(result) * shapes[0][-1]


def _torch_matmul_added(shapes, result, attributes):
    return math.prod(result) * shapes[1][-1]


def _torch_convolution(shapes, result, attributes):
    images, kernel, transposed = shapes[0], shapes[1], shapes[6]
    return math.prod(images if transposed else result) * math.prod(kernel[1:])


def _torch_attention(shapes, result, attributes):
    query, key = shapes[:2]
    return (math.prod(query) + math.prod(result)) * key[-2]


_RULES = {
    "jax": {
        "dot_general": _jax_dot,
        "conv_general_dilated": _jax_convolution,
    },
    "tensorflow": {
        "MatMul": _tensorflow_matmul,
        "BatchMatMulV2": _tensorflow_matmul,
        "BatchMatMulV3": _tensorflow_matmul,
        "Einsum": _tensorflow_einsum,
        "Conv2D": _tensorflow_convolution,
        "Conv3D": _tensorflow_convolution,
        "DepthwiseConv2dNative": _tensorflow_depthwise,
        "Conv2DBackpropInput": _tensorflow_transposed,
        "Conv3DBackpropInputV2": _tensorflow_transposed,
    },
    "torch": {
        "mm": _torch_matmul,
        "bmm": _torch_matmul,
        "mv": _torch_matmul,
        "dot": _torch_matmul,
        "_int_mm": _torch_matmul,
        "addmm": _torch_matmul_added,
        "baddbmm": _torch_matmul_added,
        "baddbmm_": _torch_matmul_added,
        "addmv": _torch_matmul_added,
        "convolution": _torch_convolution,
        "_scaled_dot_product_flash_attention_for_cpu": _torch_attention,
        "_scaled_dot_product_flash_attention": _torch_attention,
        "_scaled_dot_product_efficient_attention": _torch_attention,
        "_scaled_dot_product_cudnn_attention": _torch_attention,
    },
}
