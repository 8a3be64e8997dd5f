import numpy as np

from keras_gating.diagnostics.figures import figure
from keras_gating.diagnostics.paths import chosen_paths
from keras_gating.diagnostics.record import AttentionScores
from keras_gating.diagnostics.record import GateRecord
from keras_gating.diagnostics.sinks import as_scores
from keras_gating.diagnostics.sinks import recorded_scores
from keras_gating.functional import checks

_COLUMNS = 8


def plot_attention(scores, paths=None, sample=0, call=0, tokens=None):
    """Draws attention probabilities, a row of heat maps for each layer.

    Each panel is a head, with queries from top to bottom and keys from left to
    right. All panels have one scale, from 0 to the largest probability. Rows
    of queries that see no key are grey.

    Args:
        scores: a record made by `record_gates` with `scores=True`, the scores
            of one of its layers, or an array `(B, heads, T, S)`.
        paths: paths of the layers of a record to show. Defaults to all.
        sample: which sample of the batch.
        call: which call of each layer, if it was called several times.
        tokens: names of the positions, for the axes of self-attention.

    Returns:
        A `matplotlib.figure.Figure`.

    Raises:
        ValueError: for a record without scores, scores of another rank, and a
            sample, call, path or number of tokens that does not fit.
        ImportError: if matplotlib is not installed.

    Example:

    >>> import numpy as np
    >>> from keras_gating import diagnostics
    >>> uniform = np.full((1, 2, 4, 4), 0.25)
    >>> figure = diagnostics.plot_attention(uniform, tokens=list("gate"))
    >>> len(figure.axes)
    3
    """
    matrices = _matrices(scores, paths, call)
    for one in matrices.values():
        _check_index("sample", sample, len(one))
    chosen = {path: one[sample] for path, one in matrices.items()}
    columns = min(_COLUMNS, max(map(len, chosen.values())))
    rows = {path: -(-len(heads) // columns) for path, heads in chosen.items()}
    total = sum(rows.values())
    made = figure(1.6 * columns + 1.4, 1.75 * total + 0.2 * len(rows) + 0.5)
    grid = made.subplots(total, columns, squeeze=False)
    largest = max(float(heads.max()) for heads in chosen.values()) or 1.0
    start = 0
    for path, heads in chosen.items():
        own = grid[start : start + rows[path]].ravel()
        start += rows[path]
        for number, (axis, head) in enumerate(zip(own, heads)):
            shown = _draw(axis, head, largest)
            title = f"head {number}"
            if number == 0 and path is not None:
                title = f"{path}\n{title}"
            axis.set_title(title, fontsize=9, loc="left")
            _name(axis, head.shape, tokens)
            if number % columns:
                axis.set_yticklabels([])
        for axis in own[len(heads) :]:
            axis.set_axis_off()
    made.supylabel("query", fontsize=10)
    made.supxlabel("key", fontsize=10)
    label = "probability"
    if any((heads.sum(-1) <= 0.0).any() for heads in chosen.values()):
        label += " (grey: sees no key)"
    made.colorbar(shown, ax=grid, label=label)
    return made


def _matrices(scores, paths, call):
    """From paths (`None` for an array) to `(B, heads, T, S)`."""
    if isinstance(scores, GateRecord):
        recorded = recorded_scores(scores)
        own = {path: recorded[path] for path in chosen_paths(paths, recorded)}
    elif paths is not None:
        raise ValueError(
            f"`paths` chooses layers of a record. Received: paths={paths!r} "
            f"with scores of type {type(scores).__name__}"
        )
    elif isinstance(scores, AttentionScores):
        own = {None: scores}
    else:
        _check_index("call", call, 1)
        return {None: as_scores(scores)}
    for one in own.values():
        _check_index("call", call, len(one.calls))
    return {path: one.matrices()[call] for path, one in own.items()}


def _check_index(name, value, size):
    if not checks.is_integer(value) or not 0 <= value < size:
        raise ValueError(
            f"`{name}` must be an integer from 0 to {size - 1}. Received: "
            f"{name}={value!r}"
        )


def _draw(axis, head, largest):
    hidden = np.repeat(head.sum(-1, keepdims=True) <= 0.0, head.shape[1], 1)
    shown = axis.imshow(
        np.ma.masked_array(head, hidden), vmin=0.0, vmax=largest, cmap="magma"
    )
    axis.set_facecolor("0.6")
    axis.tick_params(labelsize=7)
    return shown


def _name(axis, shape, tokens):
    if tokens is None:
        axis.xaxis.get_major_locator().set_params(integer=True)
        axis.yaxis.get_major_locator().set_params(integer=True)
        return
    if any(size != len(tokens) for size in shape):
        raise ValueError(
            "`tokens` names the positions of queries and keys alike, here "
            f"{shape[0]} and {shape[1]}. Received: {len(tokens)} tokens"
        )
    places = range(len(tokens))
    axis.set_xticks(places, tokens, rotation=90)
    axis.set_yticks(places, tokens)
