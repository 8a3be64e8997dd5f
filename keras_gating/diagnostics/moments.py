"""Statistics of gate values that are merged batch by batch.

Everything is in float64, and variances are merged by the differences of means,
so that nothing cancels.
"""

import numpy as np

# Enough of them on [-r, r] that a picture of a part still has some.
_BINS = {True: 40, False: 1280}


class Moments:
    """Counts, moments and a histogram for each head.

    Args:
        bounded: whether all values are in [0, 1].
        low: gates below are nearly shut.
        high: gates above are nearly open.
    """

    def __init__(self, bounded, low, high):
        self.bounded = bounded
        self.low = low
        self.high = high
        self.count = 0
        self.mean = self.squares = None
        self.lowest = self.highest = None
        self.below = self.above = self.negative = None
        self.nonfinite = None
        self.entropy = None
        self.histogram = Histogram(bounded)

    @property
    def shape(self):
        """`(heads, features)` of the values, `None` before there are any."""
        return None if self.lowest is None else self.lowest.shape

    def update(self, values):
        """Takes in values `(positions, heads, features)`."""
        if not len(values):
            return
        values = values.astype("float64")
        heads = values.shape[1]
        with np.errstate(invalid="ignore"):
            self._merge(values, heads)

    def _merge(self, values, heads):
        if self.count == 0:
            self.nonfinite = np.zeros(heads)
            self.mean, self.squares, self.entropy = np.zeros((3, heads))
            self.below, self.above, self.negative = np.zeros((3, heads))
            self.lowest = np.full(values.shape[1:], np.inf)
            self.highest = np.full(values.shape[1:], -np.inf)
        axes = (0, 2)
        added = values.shape[0] * values.shape[2]
        total = self.count + added
        mean = values.mean(axis=axes)
        squares = np.square(values - mean[:, None]).sum(axis=axes)
        step = mean - self.mean
        self.squares += squares + step**2 * (self.count * added / total)
        self.mean += step * (added / total)
        self.count = total
        self.lowest = np.minimum(self.lowest, values.min(axis=0))
        self.highest = np.maximum(self.highest, values.max(axis=0))
        self.nonfinite += (~np.isfinite(values)).sum(axis=axes)
        self.below += (values < self.low).sum(axis=axes)
        self.above += (values > self.high).sum(axis=axes)
        self.negative += (values < 0.0).sum(axis=axes)
        if self.bounded:
            self.entropy += binary_entropy(values).sum(axis=axes)
        self.histogram.update(values)


class Histogram:
    """Counts for each head in bins whose range grows with the values.

    Bounded values have the range [0, 1]; others `[-r, r]`, r a power of 2:
    when r doubles, bins are merged in pairs, so that no value moves.
    """

    def __init__(self, bounded):
        self.bounded = bounded
        self.bins = _BINS[bounded]
        self.reach = 1.0
        self.counts = None

    @property
    def edges(self):
        low = 0.0 if self.bounded else -self.reach
        return np.linspace(low, self.reach, self.bins + 1)

    def update(self, values):
        """Takes in values `(positions, heads, features)`."""
        heads = values.shape[1]
        if self.counts is None:
            self.counts = np.zeros((heads, self.bins), "int64")
        finite = np.where(np.isfinite(values), values, np.nan)
        if self.bounded:
            finite = np.clip(finite, 0.0, 1.0)  # what rounding left outside
        else:
            while np.nanmax(np.abs(finite), initial=0.0) > self.reach:
                self._double()
        for head in range(heads):
            own = finite[:, head].ravel()
            counts, _ = np.histogram(own[~np.isnan(own)], self.edges)
            self.counts[head] += counts

    def _double(self):
        pairs = self.counts.reshape(len(self.counts), self.bins // 2, 2)
        margin = self.bins // 4
        self.counts = np.pad(pairs.sum(-1), ((0, 0), (margin, margin)))
        self.reach *= 2.0


def binary_entropy(p):
    """Entropy of a coin in bits: 1 at ½, and 0 at 0 and 1."""
    p = np.clip(p, 0.0, 1.0)
    total = np.zeros_like(p)
    for share in (p, 1.0 - p):
        logarithm = np.log2(share, out=np.zeros_like(p), where=share > 0.0)
        total -= share * logarithm
    return total
