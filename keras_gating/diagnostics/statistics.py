import collections.abc
import contextlib

from keras_gating import _backend
from keras_gating._extras import require
from keras_gating.diagnostics.activations import is_bounded
from keras_gating.diagnostics.batches import input_batches
from keras_gating.diagnostics.gate_layers import by_head
from keras_gating.diagnostics.gate_layers import check_widths
from keras_gating.diagnostics.gate_layers import real_positions
from keras_gating.diagnostics.moments import Moments
from keras_gating.diagnostics.summary import summarized
from keras_gating.diagnostics.summary_table import table
from keras_gating.diagnostics.watching import may_have_gates
from keras_gating.diagnostics.watching import no_gates
from keras_gating.diagnostics.watching import nothing_seen
from keras_gating.diagnostics.watching import watch_gates
from keras_gating.functional import checks


def gate_statistics(
    model,
    data,
    batch_size=32,
    steps=None,
    low=0.1,
    high=0.9,
    progress=False,
):
    """Statistics of every gate of a model, by layer and by head.

    They are those of the activated gate, before `scale` and dropout, at real
    positions. The model is called eagerly with `training=False`, and the
    values of a batch are merged into running sums in float64 and forgotten.

    Args:
        model: a built or unbuilt `keras.Model` or layer with gates.
        data: inputs, in any form that `fit` accepts: arrays or tensors, a list
            or dictionary of them, a tuple `(x, y)` of such, or batches in a
            `tf.data.Dataset`, a PyTorch `DataLoader`, a
            `keras.utils.PyDataset` or a generator. Targets are not read.
        batch_size: size of the batches that arrays are cut into.
        steps: number of batches to take. Generators and endless data need it.
        low: a gate in [0, 1] below this counts as nearly shut.
        high: and above this as nearly open.
        progress: whether to show a progress bar (needs `rich`).

    Returns:
        `GateStatistics`, a mapping from the path of a layer to a dictionary:

        * `count`: number of values, over positions and features;
        * `mean`, `spread` (standard deviation), `lowest`, `highest`;
        * `bounded`: whether the activation is one into [0, 1]. If so:
          `share_low` and `share_high`, the shares of values below `low` and
          above `high`; `dead` and `open`, the shares of features which are so
          at every position; `entropy`, the mean of
          `−g log₂ g − (1 − g) log₂(1 − g)`, 1 for a gate that is half open
          and 0 for one that is open or shut. If not: `share_negative`;
        * `share_nonfinite`: of infinite and NaN values. If there are any, the
          shares above are NaN;
        * `heads`: a list of such dictionaries, one for each head. Gates
          without heads, and those that heads share, have one.

    Raises:
        ValueError: for models without gates, and for data that are empty, end
            before `steps`, or have no end while `steps` is not given.

    Example:

    >>> import numpy as np
    >>> from keras_gating import diagnostics, layers
    >>> gate = layers.Gate(name="gate")
    >>> data = np.random.default_rng(0).normal(size=(100, 6))
    >>> statistics = diagnostics.gate_statistics(gate, data)
    >>> statistics["gate"]["count"], statistics["gate"]["mean"]
    (600, 0.5)
    """
    check_thresholds(low, high)
    checks.boolean("progress", progress)
    if not may_have_gates(model):
        raise no_gates(model)
    batches, count = input_batches(data, batch_size, steps)
    moments = {}

    def merge(call):
        if call.path not in moments:
            bounded = is_bounded(call.activation, call.values.ndim)
            moments[call.path] = Moments(bounded, low, high)
        values = real_positions(call.owner, call.values, call.mask)
        values = by_head(call.owner, values)
        own = moments[call.path]
        if own.shape is not None:
            check_widths(call.path, [own.shape, values.shape[1:]])
        own.update(values)

    bar = _progress_bar(count) if progress else contextlib.nullcontext()
    with watch_gates(model, merge), bar as advance:
        for x in batches:
            with _backend.no_gradients():
                model(x, training=False)
            if advance is not None:
                advance()
    if not moments:
        raise nothing_seen(model)
    return GateStatistics(moments)


class GateStatistics(collections.abc.Mapping):
    """What `gate_statistics` returns: from paths to dictionaries.

    Printed by `rich`, or by `print()`, it is a table.

    Args:
        moments: merged `Moments` of each path.

    Example:

    >>> import numpy as np
    >>> from keras_gating import diagnostics, layers
    >>> gate = layers.Gate(name="gate")
    >>> statistics = diagnostics.gate_statistics(gate, np.ones((5, 3)))
    >>> counts, edges = statistics.histogram("gate")
    >>> int(counts.sum()), float(edges[counts[0].argmax()])
    (15, 0.5)
    """

    def __init__(self, moments):
        self._moments = moments
        self._summaries = {
            path: summarized(path, own) for path, own in moments.items()
        }

    def __getitem__(self, path):
        if path not in self._summaries:
            raise KeyError(
                f"No gate {path!r}. There are: {', '.join(self._summaries)}"
            )
        return self._summaries[path]

    def __iter__(self):
        return iter(self._summaries)

    def __len__(self):
        return len(self._summaries)

    def __repr__(self):
        return f"<GateStatistics of {', '.join(self)}>"

    def __rich__(self):
        return table(self)

    def print(self, heads=False, console=None):
        """Prints a table (needs `rich`).

        Args:
            heads: whether to add a row for each head.
            console: a `rich.console.Console`. Defaults to a new one.
        """
        if console is None:
            console = require("rich.console", "diagnostics").Console()
        console.print(table(self, heads))

    def as_dict(self):
        """A dictionary of plain numbers, lists and dictionaries."""
        return {
            path: {**summary, "heads": [dict(h) for h in summary["heads"]]}
            for path, summary in self.items()
        }

    def as_frame(self):
        """A `pandas.DataFrame`, a row for each layer and head."""
        rows = [
            {"path": path, "head": number, "bounded": s["bounded"], **head}
            for path, s in self.items()
            for number, head in enumerate(s["heads"])
        ]
        frame = require("pandas", "diagnostics").DataFrame(rows)
        return frame.set_index(["path", "head"])

    def histogram(self, path):
        """Counts of the values of each head in bins of one width.

        Args:
            path: path of a layer.

        Returns:
            `(counts, edges)`, arrays `(heads, bins)` and `(bins + 1,)`.
        """
        self[path]
        histogram = self._moments[path].histogram
        return histogram.counts.copy(), histogram.edges


def check_thresholds(low, high):
    """Raises unless `0 < low ≤ high < 1`."""
    numbers = checks.is_number(low) and checks.is_number(high)
    if not numbers or not 0.0 < low <= high < 1.0:
        raise ValueError(
            "`low` and `high` must be numbers between 0 and 1, in this order. "
            f"Received: low={low!r}, high={high!r}"
        )


@contextlib.contextmanager
def _progress_bar(count):
    kit = require("rich.progress", "diagnostics")
    with kit.Progress(
        kit.TextColumn("gates"),
        kit.BarColumn(bar_width=24),
        kit.MofNCompleteColumn(),
        kit.TimeElapsedColumn(),
    ) as bar:
        task = bar.add_task("", total=count)
        yield lambda: bar.advance(task)
