import numpy as np

from keras_gating.diagnostics.record import AttentionScores
from keras_gating.diagnostics.record import GateRecord
from keras_gating.functional import checks


def attention_sink(scores, token=0, skip=0):
    """Share of the attention that goes to the first token, for each head.

    `share_h = mean over b and t of scores[b, h, t, token]`

    Rows without a visible key, those of masked queries among them, are zero in
    recordings and have no distribution: they do not count. Under a causal mask
    the first query sees nothing but the first token, so that its share is
    always 1 and the mean is at least 1/T; `skip=1` leaves it out.

    Args:
        scores: attention probabilities `(B, heads, T, S)`, before dropout, a
            list of such arrays, or a record made by `record_gates` with
            `scores=True`.
        token: position of the key. In sequences padded on the left the first
            token is another one.
        skip: number of queries to leave out at the start.

    Returns:
        An array of one share for each head, over all samples and queries; for
        a record a dictionary from the path of a layer to such an array. A head
        without a row that counts has NaN.

    Raises:
        ValueError: for scores of another rank, a record without scores, and
            positions outside of the sequence.

    Example:

    >>> import numpy as np
    >>> from keras_gating import diagnostics
    >>> uniform = np.full((1, 2, 4, 4), 0.25)
    >>> diagnostics.attention_sink(uniform).tolist()
    [0.25, 0.25]

    References:
        Xiao et al. 2023, arXiv 2309.17453 (attention sinks); Qiu et al. 2025,
        arXiv 2505.06708 (the first token's share, with and without gates).
    """
    if isinstance(scores, GateRecord):
        return {
            path: _share(own.matrices(), token, skip)
            for path, own in recorded_scores(scores).items()
        }
    if isinstance(scores, AttentionScores):
        return _share(scores.matrices(), token, skip)
    if not isinstance(scores, (list, tuple)):
        scores = [scores]
    if not scores:
        raise ValueError(
            "`scores` must be one array or more. Received: scores=[]"
        )
    return _share([as_scores(one) for one in scores], token, skip)


def recorded_scores(record):
    """The attention probabilities of a record; raises if it has none."""
    if not record.scores:
        raise ValueError(
            "The record holds no attention probabilities: pass `scores=True` "
            f"to `record_gates`. Received: scores={record!r}"
        )
    return record.scores


def as_scores(scores):
    """An array of attention probabilities; raises for another rank."""
    scores = np.asarray(scores)
    if scores.ndim != 4:
        raise ValueError(
            "`scores` must have the shape (B, heads, T, S). Received: "
            f"scores.shape={scores.shape}"
        )
    return scores


def _share(calls, token, skip):
    taken, rows = 0.0, 0
    for scores in calls:
        _check("token", token, scores, 3)
        _check("skip", skip, scores, 2)
        scores = scores[:, :, skip:].astype("float64")
        counts = scores.sum(axis=-1) > 0.0
        # Hidden rows may hold anything but probabilities.
        taken = taken + np.where(counts, scores[..., token], 0.0).sum((0, 2))
        rows = rows + counts.sum((0, 2))
    with np.errstate(invalid="ignore"):
        return taken / rows


def _check(name, value, scores, axis):
    size = scores.shape[axis]
    if not checks.is_integer(value) or not 0 <= value < size:
        raise ValueError(
            f"`{name}` must be an integer from 0 to {size - 1} for scores of "
            f"the shape {scores.shape}. Received: {name}={value!r}"
        )
