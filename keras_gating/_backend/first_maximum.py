"""A maximum for torch.compile; only imported where torch is there."""

import torch


class FirstMaximum(torch.autograd.Function):
    """As `torch.amax(x, axis)`, with a gradient that is made in one loop.

    Torch's own writes into a tensor of zeros, which is then read again.
    """

    @staticmethod
    def forward(ctx, x, axis):
        maximum, first = torch.max(x, dim=axis)
        ctx.save_for_backward(first)
        ctx.axis, ctx.rank, ctx.count = axis, x.ndim, x.shape[axis]
        return maximum

    @staticmethod
    def backward(ctx, gradient):
        (first,) = ctx.saved_tensors
        places = torch.arange(ctx.count, device=first.device)
        # Of rank 1 it lies along the last axis.
        places = places.reshape(-1, *[1] * (ctx.rank - ctx.axis - 1))
        is_first = places == first.unsqueeze(ctx.axis)
        return torch.where(is_first, gradient.unsqueeze(ctx.axis), 0.0), None
