"""What a recording holds: gate values and attention probabilities."""

import collections.abc

import numpy as np

from keras_gating.diagnostics.activations import is_bounded
from keras_gating.diagnostics.gate_layers import by_head
from keras_gating.diagnostics.gate_layers import check_widths
from keras_gating.diagnostics.gate_layers import real_positions
from keras_gating.diagnostics.moments import Moments
from keras_gating.diagnostics.statistics import GateStatistics
from keras_gating.diagnostics.statistics import check_thresholds


class GateRecord(collections.abc.Mapping):
    """A mapping from the path of a layer to the `GateValues` of its gate.

    Attributes:
        scores: a mapping from the path of an attention layer to its
            `AttentionScores`; empty unless `record_gates` was told to record
            them.

    Example:

    >>> import numpy as np
    >>> from keras_gating import diagnostics, layers
    >>> layer = layers.GLU(2, name="glu")
    >>> with diagnostics.record_gates(layer) as record:
    ...     _ = layer(np.ones((3, 4)))
    >>> list(record), record.statistics()["glu"]["count"]
    (['glu'], 6)
    """

    def __init__(self):
        self._gates = {}
        self.scores = _Paths("attention")

    def __getitem__(self, path):
        if path not in self._gates:
            raise KeyError(_missing("gate", path, self._gates))
        return self._gates[path]

    def __iter__(self):
        return iter(self._gates)

    def __len__(self):
        return len(self._gates)

    def statistics(self, low=0.1, high=0.9):
        """`GateStatistics` of what was recorded, see `gate_statistics`.

        Args:
            low: a gate in [0, 1] below this counts as nearly shut.
            high: and above this as nearly open.
        """
        check_thresholds(low, high)
        moments = {}
        for path, gate in self.items():
            moments[path] = Moments(gate.is_bounded, low, high)
            moments[path].update(gate.by_head)
        return GateStatistics(moments)

    def __repr__(self):
        parts = [f"{path}: {values!r}" for path, values in self.items()]
        parts += [f"{path}: {own!r}" for path, own in self.scores.items()]
        return f"<GateRecord {', '.join(parts) or 'of nothing'}>"

    def add_gate(self, call):
        """Takes in a `GateCall`."""
        if call.path not in self._gates:
            self._gates[call.path] = GateValues(call.owner, call.activation)
        self._gates[call.path].add(call.values, call.mask)

    def add_scores(self, call):
        """Takes in an `AttentionCall`."""
        if call.path not in self.scores:
            self.scores[call.path] = AttentionScores()
        self.scores[call.path].add(call.probabilities, call.layout)


class GateValues:
    """The values of one gate in all recorded calls.

    `numpy.asarray` of it is `values`.

    Attributes:
        calls: list of arrays, one for each call, as the layer made them and
            with padding.
        masks: list of their padding masks (True is a real position) or `None`.
        layer: the layer that owns the gate.
        activation: function that made the values.

    Example:

    >>> import numpy as np
    >>> from keras_gating import diagnostics, layers
    >>> gate = layers.Gate(granularity="headwise", name="gate")
    >>> with diagnostics.record_gates(gate) as record:
    ...     _ = gate(np.ones((5, 2, 4)), source=np.ones((5, 3)))
    >>> record["gate"].values.shape, record["gate"].by_head.shape
    ((5, 2, 1), (5, 2, 1))
    """

    def __init__(self, layer, activation):
        self.layer = layer
        self.activation = activation
        self.calls = []
        self.masks = []

    @property
    def values(self):
        """Real positions of all calls, `(positions, gated axes…)`.

        A gate that does not depend on a position, such as a constant one, has
        one position in each call; a channel gate one for each sample.
        """
        calls = [
            real_positions(self.layer, values, mask)
            for values, mask in zip(self.calls, self.masks)
        ]
        path = getattr(self.layer, "path", None)
        check_widths(path, [values.shape[1:] for values in calls])
        return np.concatenate(calls)

    @property
    def by_head(self):
        """The same as `(positions, heads, features)`."""
        return by_head(self.layer, self.values)

    @property
    def is_bounded(self):
        """Whether the activation only takes values between 0 and 1."""
        return is_bounded(self.activation, self.calls[0].ndim)

    def add(self, values, mask):
        self.calls.append(values)
        self.masks.append(mask)

    def __array__(self, dtype=None, copy=None):
        return self.values if dtype is None else self.values.astype(dtype)

    def __len__(self):
        return len(self.values)

    def __repr__(self):
        shapes = ", ".join(str(values.shape) for values in self.calls)
        return f"<GateValues of calls {shapes}>"


class AttentionScores:
    """The attention probabilities of one layer in all recorded calls.

    Rows of queries that see no key, masked ones among them, are zero.

    Attributes:
        calls: list of arrays `(B, heads, T, S)`, one for each call. With
            attention over several axes or with free axes they are
            `(B, free…, heads, T…, S…)`.

    Example:

    >>> import keras
    >>> import numpy as np
    >>> from keras_gating import diagnostics
    >>> layer = keras.layers.MultiHeadAttention(2, 4, name="attention")
    >>> x = np.ones((1, 3, 8))
    >>> _ = layer(x, x)
    >>> with diagnostics.record_gates(layer, scores=True) as record:
    ...     _ = layer(x, x)
    >>> record.scores["attention"].matrices()[0].shape
    (1, 2, 3, 3)
    """

    def __init__(self):
        self.calls = []
        self._layouts = []

    def matrices(self):
        """The calls as a list of `(B, heads, T, S)`.

        Free axes are merged with the batch, attention axes with each other.
        """
        return [
            _as_matrices(scores, layout)
            for scores, layout in zip(self.calls, self._layouts)
        ]

    def add(self, scores, layout):
        self.calls.append(scores)
        self._layouts.append(layout)

    def __repr__(self):
        shapes = ", ".join(str(scores.shape) for scores in self.calls)
        return f"<AttentionScores of calls {shapes}>"


class _Paths(dict):
    """A dictionary whose error says what there is."""

    def __init__(self, kind):
        super().__init__()
        self._kind = kind

    def __missing__(self, path):
        raise KeyError(_missing(self._kind, path, self))


def _as_matrices(scores, layout):
    leading = 1 + len(layout.free)
    shape = scores.shape
    rows = shape[leading + 1 : leading + 1 + layout.count]
    columns = shape[leading + 1 + layout.count :]
    return scores.reshape(
        int(np.prod(shape[:leading])),
        shape[leading],
        int(np.prod(rows)),
        int(np.prod(columns)),
    )


def _missing(kind, path, there):
    return f"No {kind} {path!r}. Recorded: {', '.join(there) or 'nothing'}"
