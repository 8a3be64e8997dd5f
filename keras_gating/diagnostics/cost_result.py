"""The table of costs."""

import collections.abc
import dataclasses

from keras_gating._extras import require

_UNITS = ("", "k", "M", "G", "T", "P")


@dataclasses.dataclass
class Cost:
    """What one layer costs.

    Attributes:
        parameters: number of weights.
        flops: floating-point operations of a forward pass; `None`, not known,
            if there are `unknown` operations.
        traffic: bytes read and written.
        seconds: time of a forward pass, `None` if it was not measured.
        unknown: names of operations whose FLOPs nobody can tell, such as
            kernels that are not the backend's own.

    Example:

    >>> from keras_gating import diagnostics
    >>> small = diagnostics.Cost(parameters=5, flops=10, traffic=40)
    >>> large = diagnostics.Cost(parameters=10, flops=30, traffic=50)
    >>> large.relative_to(small)["flops"]
    3.0
    """

    parameters: int
    flops: int | None
    traffic: int
    seconds: float | None = None
    unknown: tuple[str, ...] = ()

    def numbers(self):
        """A dictionary of the numbers, those that are not known as `None`."""
        return {
            name: getattr(self, name)
            for name in ("parameters", "flops", "traffic", "seconds")
        }

    def relative_to(self, other):
        """Each number over that of `other`.

        Returns:
            A dictionary; `None` stands for what has no ratio: a number over
            0, or one that is not known or was not measured.
        """
        first, second = self.numbers(), other.numbers()
        return {
            name: first[name] / second[name]
            if second[name] and first[name] is not None
            else None
            for name in first
        }


class CostTable(collections.abc.Mapping):
    """What `cost_table` returns: from names of layers to `Cost`.

    Printed by `rich`, or by `print()`, it is a table, every number with its
    ratio to that of the first layer.

    Args:
        costs: `Cost` by name.
        backend: name of the backend they were found on.
        platform: `"cpu"`, `"gpu"` or `"tpu"`.

    Example:

    >>> from keras_gating import diagnostics, layers
    >>> kinds = {"elementwise": layers.Gate(), "low rank": layers.Gate(rank=1)}
    >>> costs = diagnostics.cost_table(kinds, (2, 8), measure=False)
    >>> costs["elementwise"].parameters, costs["low rank"].parameters
    (72, 24)
    >>> costs.relative()["low rank"]["parameters"]
    0.3333333333333333
    """

    def __init__(self, costs, backend, platform):
        self._costs = dict(costs)
        self.backend = backend
        self.platform = platform

    def __getitem__(self, name):
        if name not in self._costs:
            raise KeyError(
                f"No layer {name!r}. There are: {', '.join(self._costs)}"
            )
        return self._costs[name]

    def __iter__(self):
        return iter(self._costs)

    def __len__(self):
        return len(self._costs)

    def __repr__(self):
        return f"<CostTable of {', '.join(self)}>"

    def __rich__(self):
        return _table(self)

    def print(self):
        """Prints the table (needs `rich`)."""
        require("rich.console", "diagnostics").Console().print(_table(self))

    def relative(self):
        """Dictionaries of ratios to the first layer, by name."""
        first = next(iter(self.values()))
        return {name: cost.relative_to(first) for name, cost in self.items()}

    def as_dict(self):
        """A dictionary of dictionaries of plain numbers, by name."""
        return {name: cost.numbers() for name, cost in self.items()}

    def as_frame(self):
        """A `pandas.DataFrame`, a row for each layer."""
        frame = require("pandas", "diagnostics").DataFrame
        return frame.from_dict(self.as_dict(), orient="index")


def _table(costs):
    made = require("rich.table", "diagnostics").Table(
        title=f"Forward pass on {costs.backend}, {costs.platform}",
        title_justify="left",
        caption=_footnote(costs),
        caption_justify="left",
        box=require("rich.box", "diagnostics").SIMPLE_HEAD,
    )
    made.add_column("layer", overflow="fold")
    for title in ("parameters", "FLOPs", "traffic", "time"):
        made.add_column(title, justify="right", no_wrap=True)
    text = require("rich.text", "diagnostics").Text
    relative = costs.relative()
    for name, cost in costs.items():
        shown = {
            "parameters": _with_unit(cost.parameters),
            "flops": _with_unit(cost.flops),
            "traffic": _with_unit(cost.traffic, "B"),
            "seconds": _time(cost.seconds),
        }
        cells = [
            value if ratio is None else f"{value} ×{ratio:.2f}"
            for value, ratio in zip(shown.values(), relative[name].values())
        ]
        made.add_row(text(name), *cells)
    return made


def _footnote(costs):
    unknown = {name for cost in costs.values() for name in cost.unknown}
    if not unknown:
        return None
    names = ", ".join(sorted(unknown))
    text = require("rich.text", "diagnostics").Text
    return text(f"unknown: nobody can tell the FLOPs of {names}")


def _with_unit(number, unit=""):
    if number is None:
        return "unknown"
    power = 0
    while number >= 999.5 and power < len(_UNITS) - 1:
        number, power = number / 1000, power + 1
    return f"{number:.3g} {_UNITS[power]}{unit}".rstrip()


def _time(seconds):
    if seconds is None:
        return "–"
    return f"{1e3 * seconds:.3g} ms"
