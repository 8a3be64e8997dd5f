"""What PyTorch does better in ways of its own."""

import functools
import math

# Number of scores of a head from which copies pay.
_LONG = 2**22


def linear(x, kernel, bias, num_created=1):
    """A projection with its bias in one pass over the memory.

    XLA brings the two together by itself. What `keras.ops` would ask about
    each new shape takes as long as the product of a short sequence.

    Args:
        x: tensor, `(…, *contracted axes)`.
        kernel: tensor, `(*contracted axes, *created axes)`.
        bias: tensor, `(*created axes)`, or `None`.
        num_created: number of created axes.

    Returns:
        A tensor `(…, *created axes)`.
    """
    import torch

    num_bound = kernel.ndim - num_created
    bound, created = kernel.shape[:num_bound], kernel.shape[num_bound:]
    depth, width = math.prod(bound), math.prod(created)
    leading = x.shape[: x.ndim - num_bound]
    outputs = torch.nn.functional.linear(
        x.reshape(*leading, depth),
        kernel.reshape(depth, width).T,
        None if bias is None else bias.reshape(width),
    )
    return outputs.reshape(*leading, *created)


def attention(query, key, value, mask, is_causal):
    """PyTorch's attention on tensors as they lie in memory, if they are short.

    `keras.ops.dot_product_attention` copies all three first, which is not worth
    it before their heads are far longer than a page of memory.

    Args:
        query: `(B, T, heads, D)`, scaled already.
        key: `(B, S, heads, D)`, with fewer heads if `attention_shares_keys`.
        value: `(B, S, heads, Dv)`, the same.
        mask: tensor that is added to the scores, or `None`.
        is_causal: hide later keys from every query; only without a mask.

    Returns:
        A tensor `(B, T, heads, Dv)`.
    """
    import torch

    tensors = [x.transpose(1, 2) for x in (query, key, value)]
    # Compiled for any length, it would be for those on one side.
    if not is_traced() and query.shape[1] * key.shape[1] >= _LONG:
        tensors = [x.contiguous() for x in tensors]
    context = torch.nn.functional.scaled_dot_product_attention(
        *tensors,
        attn_mask=mask,
        is_causal=is_causal,
        scale=1.0,
        # Sizes are tensors while torch traces, where all have as many heads.
        enable_gqa=not is_traced() and key.shape[2] < query.shape[2],
    )
    return context.transpose(1, 2)


@functools.cache
def attention_shares_keys():
    """Whether the kernel for CPUs takes keys that several heads share.

    Before PyTorch 2.9 another one is taken for these, which keeps all scores.
    """
    import torch

    major, minor = torch.__version__.split(".")[:2]
    return (int(major), int(minor)) >= (2, 9)


def mean(x, axes):
    """Mean over axes, on torch, whose gradient is a view.

    As torch computes it in float32 and float64; but the gradient of torch's
    own is written out for every number, and one that is added to others need
    not be.
    """
    # Not `math.prod`, which sizes that are unknown to torch.compile stop.
    count = 1
    for axis in axes:
        count = count * x.shape[axis]
    return x.sum(axes) / count


def single_convolution(x, kernel, margin):
    """A convolution of one channel with one kernel, without its overhead.

    On a few hundred numbers torch's own takes three times as long. A compiler
    that finds one also brings every tensor of rank 4 before it to a layout in
    which the second axis is that of the channels.

    Args:
        x: tensor, `(B, L)`.
        kernel: tensor, `(k,)`.
        margin: zeros to put on both sides.

    Returns:
        A tensor `(B, L + 2 · margin - k + 1)`.
    """
    import torch

    padded = torch.nn.functional.pad(x, (margin, margin))
    return padded.unfold(-1, kernel.shape[0], 1) @ kernel


def first_maximum(x, axes):
    """Maximum over axes, on torch; of equal ones the first has the gradient.

    Args:
        x: tensor.
        axes: neighbouring axes, in order, counted from the front.
    """
    import torch

    if not keeps_gradients(x):
        # Takes a tenth of the time, and shares gradients among equal maxima.
        return torch.amax(x, dim=axes)
    axis = axes[0]
    x = x.flatten(axis, axes[-1])
    if torch.compiler.is_dynamo_compiling():
        from keras_gating._backend import first_maximum as compiled

        return compiled.FirstMaximum.apply(x, axis)
    return torch.max(x, dim=axis).values


def relu2(x):
    """`max(x, 0)²`, on torch, with a gradient in two passes, not four.

    Only where `keeps_plain_gradients` holds, and where x stays as it is.
    """
    return _relu2_function()(x)


@functools.cache
def _relu2_function():
    import torch

    class Relu2(torch.autograd.Function):
        # `torch.func` asks for both, of functions of whatever tensors.
        generate_vmap_rule = True

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def forward(x):
            y = torch.relu(x)
            return y.mul_(y)

        @staticmethod
        def backward(ctx, gradient):
            # Not in place: it may be differentiated in turn.
            (x,) = ctx.saved_tensors
            zero = x.new_zeros(())
            return torch.addcmul(zero, gradient, torch.relu(x), value=2)

    return Relu2.apply


def has_global_hooks():
    """Whether something is to happen around the calls of all modules."""
    import torch

    return torch.nn.modules.module._has_any_global_hook()


def is_traced():
    """Whether torch is making a graph of what is computed."""
    import torch

    return torch.compiler.is_compiling() or is_jit_traced()


def is_jit_traced():
    """Whether torch is making a graph for a converter such as OpenVINO's."""
    import torch

    return torch.jit.is_tracing()


def keeps_gradients(*tensors):
    """Whether torch remembers what is computed from tensors for gradients."""
    import torch

    if is_jit_traced():
        # Traces are made and compared with gradients and without.
        return True
    needed = any(tensor.requires_grad for tensor in tensors)
    return needed and torch.is_grad_enabled()


def is_grad_enabled():
    """Whether torch may remember what anything is computed from."""
    import torch

    return torch.is_grad_enabled()


def is_eager(*tensors):
    """Whether all are tensors of torch, which computes them here and now."""
    import torch

    # Those of a functional model are no tensors of torch.
    are_tensors = all(isinstance(x, torch.Tensor) for x in tensors)
    return are_tensors and not is_traced()


def keeps_plain_gradients(x):
    """Whether torch keeps gradients of a tensor, in its usual way alone."""
    return is_eager(x) and keeps_gradients(x) and not is_transformed(x)


def needs_no_gradients(*tensors):
    """Whether tensors of torch are for their values alone, here and now."""
    return (
        is_eager(*tensors)
        and not keeps_gradients(*tensors)
        and not any(map(is_transformed, tensors))
    )


def is_writable(x):
    """Whether a tensor may be stored into, and each number has its own place.

    Tensors of `torch.inference_mode` refuse it outside. Expanded ones, and
    windows that overlap, have several numbers in one place.
    """
    import torch

    if x.is_inference() and not torch.is_inference_mode_enabled():
        return False
    extent = 1
    for stride, size in sorted(zip(x.stride(), x.shape)):
        if size > 1 and stride < extent:
            return False
        extent = max(extent, stride * size)
    return True


def memory(x):
    """The first address of a tensor, and that after its last number."""
    if x.numel() == 0:
        return 0, 0
    steps = ((size - 1) * stride for size, stride in zip(x.shape, x.stride()))
    return x.data_ptr(), x.data_ptr() + (sum(steps) + 1) * x.element_size()


def is_transformed(x):
    """Whether derivatives may be taken forward, or by `torch.func`."""
    import torch

    try:
        # The transformations of `torch.func` wrap tensors, and what they wrap
        # has no memory to point at.
        x.data_ptr()
    except RuntimeError:
        return True
    return torch.autograd.forward_ad.unpack_dual(x).tangent is not None
