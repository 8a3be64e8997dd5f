"""Passes of modules of torch, ours and others."""

import torch


def single_pass(function, inputs, backward):
    """A function without arguments: forward alone, or with the gradients.

    Args:
        function: module, or function of one tensor, that returns one.
        inputs: tensor.
        backward: whether to compute the gradients of the sum as well.
    """

    def forward_only():
        with torch.no_grad():
            function(inputs)

    def both():
        x = inputs.clone().requires_grad_()
        function(x).sum().backward()

    return both if backward else forward_only
