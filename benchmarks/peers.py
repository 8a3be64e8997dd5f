"""Layers of FLASH-pytorch with the weights of ours."""

import torch

from keras_gating.layers import GatedAttentionUnit
from keras_gating.surgery import copy_weights

try:
    from flash_pytorch import FLASH
    from flash_pytorch import GAU
except ModuleNotFoundError as error:
    if error.name not in ("flash_pytorch", "einops", "rotary_embedding_torch"):
        raise
    FLASH = GAU = None


def quadratic(dim, key_dim, length, is_causal, has_bias):
    """The peer's `GAU` and our unit, for sequences of one length."""
    theirs = GAU(dim=dim, query_key_dim=key_dim, causal=is_causal)
    if not has_bias:
        theirs.rel_pos_bias = None
    ours = GatedAttentionUnit(
        key_dim=key_dim,
        # The peer divides inside of the square, which is the same here for
        # one length only.
        divisor=length,
        position="t5" if has_bias else None,
        norm_first=True,
        normalization_epsilon=theirs.norm.eps,
    )
    _copy(ours, theirs, theirs.offsetscale, theirs.to_out[0])
    return ours, theirs


def chunked(dim, key_dim, chunk_size, is_causal):
    """The peer's `FLASH` and our unit with chunks; both have a T5 bias."""
    theirs = FLASH(
        dim=dim, query_key_dim=key_dim, group_size=chunk_size, causal=is_causal
    )
    ours = GatedAttentionUnit(
        key_dim=key_dim,
        chunk_size=chunk_size,
        divisor=chunk_size if is_causal else "length",
        position="t5",
        norm_first=True,
        normalization_epsilon=theirs.norm.eps,
    )
    _copy(ours, theirs, theirs.qk_offset_scale, theirs.to_out)
    return ours, theirs


@torch.no_grad()
def _copy(ours, theirs, heads, output):
    """Gives our unit the weights of the peer, some of them drawn anew."""
    # As the peer starts, scores are so small that attention adds next to
    # nothing, and a comparison of outputs would not see it.
    heads.gamma.normal_()
    heads.beta.normal_()
    output.bias.zero_()
    ours.build((None, None, output.out_features))
    copy_weights(ours, theirs.state_dict(), "flash_pytorch")
