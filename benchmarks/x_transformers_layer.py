"""The gated attention of x-transformers, with the weights of ours."""

from importlib.util import find_spec

import keras

IS_INSTALLED = find_spec("x_transformers") is not None
# Names of theirs, and the ends of the paths of ours.
_KERNELS = {
    "to_q": "/query/kernel",
    "to_k": "/key/kernel",
    "to_v": "/value/kernel",
    "to_v_gate": "/gate/projection/kernel",
    "to_out": "/attention_output/kernel",
}


def with_weights_of(ours, heads, width):
    """The peer with an elementwise gate, and PyTorch's kernel for attention.

    Args:
        ours: `GatedAttention` with an elementwise gate, built, whose biases
            are zero: the peer has none.
        heads: number of heads.
        width: features of a head.
    """
    import torch
    from x_transformers.x_transformers import Attention

    dim = heads * width
    theirs = Attention(
        dim, heads=heads, dim_head=width, gate_values=True, flash=True
    )
    kernels = {
        f"{name}.weight": torch.tensor(
            keras.ops.convert_to_numpy(_weight(ours, path)).reshape(dim, dim)
        ).T
        for name, path in _KERNELS.items()
    }
    theirs.load_state_dict(kernels)
    return theirs


def _weight(layer, path):
    (weight,) = (w for w in layer.weights if w.path.endswith(path))
    return weight
