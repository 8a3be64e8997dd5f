"""Layers of FLASH-pytorch with the weights of ours."""

import math

import torch

from keras_gating.layers import GatedAttentionUnit

try:
    from flash_pytorch import FLASH
    from flash_pytorch import GAU
except ModuleNotFoundError as error:
    if error.name not in ("flash_pytorch", "einops", "rotary_embedding_torch"):
        raise
    FLASH = GAU = None


def quadratic(dim, key_dim, length, is_causal, has_bias):
    """The peer's `GAU` and our unit, for sequences of one length.

    The peer divides inside of the square, `relu²((qk + b) / n)`; ours has
    `relu²(q'k / √s + b') / n`, the same for `q' = q √(s/n)`, `b' = b / √n`.
    """
    theirs = GAU(dim=dim, query_key_dim=key_dim, causal=is_causal)
    table = theirs.rel_pos_bias.relative_attention_bias.weight
    if not has_bias:
        theirs.rel_pos_bias = None
    ours = GatedAttentionUnit(
        key_dim=key_dim,
        divisor="length",
        position="t5" if has_bias else None,
        norm_first=True,
        normalization_epsilon=theirs.norm.eps,
    )
    copy_weights(
        ours,
        theirs,
        theirs.offsetscale,
        theirs.to_out[0],
        [math.sqrt(key_dim / length), 1.0],
        table[:, 0] * math.sqrt(dim / length) if has_bias else None,
    )
    return ours, theirs


def chunked(dim, key_dim, chunk_size, is_causal):
    """The peer's `FLASH` and our unit with chunks; both have a T5 bias.

    The peer adds the bias after dividing, `relu²(qk / c + b)`, so that
    `b' = b √c` here. Its causal form divides both terms by c.
    """
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
    table = theirs.rel_pos_bias.relative_attention_bias.weight[:, 0]
    copy_weights(
        ours,
        theirs,
        theirs.qk_offset_scale,
        theirs.to_out,
        [math.sqrt(key_dim / chunk_size), 1.0, 1.0, 1.0],
        table * math.sqrt(key_dim * chunk_size),
    )
    return ours, theirs


@torch.no_grad()
def copy_weights(ours, theirs, heads, output, factors, table):
    """Gives our unit the weights of the peer, some of them drawn anew.

    Args:
        ours: a `GatedAttentionUnit`.
        theirs: a `GAU` or a `FLASH`.
        heads: its `OffsetScale`.
        output: its output projection.
        factors: on the scale and offset of each query and key.
        table: our position bias, or `None`.
    """
    # As the peer starts, scores are so small that attention adds next to
    # nothing, and a comparison of outputs would not see it.
    heads.gamma.normal_()
    heads.beta.normal_()
    output.bias.zero_()
    hidden, shared = theirs.to_hidden[0], theirs.to_qk[0]
    dim = hidden.in_features
    ours.build((None, None, dim))
    factors = torch.tensor(factors)[:, None]
    for variable, value in (
        (ours.normalization.gamma, theirs.norm.weight),
        (ours.normalization.beta, theirs.norm.bias),
        (ours.hidden_dense.kernel, hidden.weight.T.reshape(dim, 2, -1)),
        (ours.hidden_dense.bias, hidden.bias.reshape(2, -1)),
        (ours.shared_dense.kernel, shared.weight.T),
        (ours.shared_dense.bias, shared.bias),
        (ours.query_key_scale, factors * heads.gamma),
        (ours.query_key_offset, factors * heads.beta),
        (ours.position_bias, table),
        (ours.output_dense.kernel, output.weight.T),
        (ours.output_dense.bias, output.bias),
    ):
        if variable is not None:
            variable.assign(value.detach().numpy())
