"""Where the axes of an attention call stand."""

import dataclasses
import string

from keras import ops

from keras_gating.functional import checks

# Every axis has a letter of its own in the equations, attention axes have two.
_LARGEST_RANK = 26


@dataclasses.dataclass(frozen=True)
class AttentionLayout:
    """Axes of multi-head attention over inputs of any rank.

    With inputs `(B, dims…, features)` whose attention axes are a part of
    `dims` and whose other `dims` are free (treated like the batch):

    * projected: `(B, dims…, heads, size)`;
    * scores: `(B, free…, heads, T…, S…)`, T of the query, S of the key;
    * a mask without heads: `(B, free…, T…, S…)`, or any number of its
      trailing axes from `(T…, S…)` on.

    Args:
        rank: rank of the inputs, 3 or more.
        axes: the attention axes, positive integers in `[1, rank - 2]`.

    Example:

    >>> from keras_gating.functional import AttentionLayout
    >>> layout = AttentionLayout.resolve(rank=4, axes=(-2,))
    >>> layout.axes, layout.free
    ((2,), (1,))
    >>> layout.scores_shape((8, 3, 5, 16), (8, 3, 7, 16), num_heads=2)
    (8, 3, 2, 5, 7)
    """

    rank: int
    axes: tuple

    @classmethod
    def resolve(cls, rank, axes):
        """Layout for `axes` that may be `None` (all) or negative."""
        if not checks.is_integer(rank) or not 3 <= rank <= _LARGEST_RANK:
            raise ValueError(
                "Attention needs inputs (batch, length, features), of rank 3 "
                f"to {_LARGEST_RANK}. Received: rank={rank!r}"
            )
        every = tuple(range(1, rank - 1))
        if axes is None:
            return cls(rank, every)
        if not isinstance(axes, (list, tuple)) or not all(
            map(checks.is_integer, axes)
        ):
            raise ValueError(
                "`axes` must be a tuple of integers, or `None` for all. "
                f"Received: axes={axes!r}"
            )
        resolved = tuple(axis + rank if axis < 0 else axis for axis in axes)
        if not set(resolved) <= set(every) or len(set(resolved)) < len(axes):
            raise ValueError(
                "`attention_axes` must be distinct axes between the batch and "
                f"the features, among {every} for inputs of rank {rank}. "
                f"Received: attention_axes={tuple(axes)}"
            )
        return cls(rank, resolved)

    @property
    def count(self):
        return len(self.axes)

    @property
    def free(self):
        return tuple(a for a in range(1, self.rank - 1) if a not in self.axes)

    @property
    def scores_rank(self):
        return 2 + len(self.free) + 2 * self.count

    @property
    def is_flat(self):
        """Whether inputs are plain sequences `(B, T, features)`."""
        return self.rank == 3

    def equations(self):
        """Einsum equations of the scores (key, query) and of the context."""
        letters = string.ascii_letters
        target = letters[: self.rank + 1]
        fresh = letters[self.rank + 1 :]
        source = "".join(
            fresh[self.axes.index(axis)] if axis in self.axes else letter
            for axis, letter in enumerate(target)
        )
        batch = "".join(target[a] for a in (0, *self.free, self.rank - 1))
        rows = "".join(target[axis] for axis in self.axes)
        scores = batch + rows + fresh[: self.count]
        return f"{source},{target}->{scores}", f"{scores},{source}->{target}"

    def scores_shape(self, query_shape, source_shape, num_heads):
        free = tuple(query_shape[axis] for axis in self.free)
        rows = tuple(query_shape[axis] for axis in self.axes)
        columns = tuple(source_shape[axis] for axis in self.axes)
        return (query_shape[0], *free, num_heads, *rows, *columns)

    def query_mask(self, mask):
        """`(B, dims…)` → `(B, free…, T…, 1…)`."""
        mask = self._gathered(mask)
        for _ in self.axes:
            mask = ops.expand_dims(mask, -1)
        return mask

    def source_mask(self, mask):
        """`(B, dims…)` → `(B, free…, 1…, S…)`."""
        mask = self._gathered(mask)
        for _ in self.axes:
            mask = ops.expand_dims(mask, -1 - self.count)
        return mask

    def with_heads(self, mask):
        """Any mask → the rank of the scores, heads and the rest broadcast."""
        for _ in range(self.scores_rank - len(mask.shape)):
            mask = ops.expand_dims(mask, -1 - 2 * self.count)
        return mask

    def without_heads(self, mask):
        """Any mask without heads → `(B, free…, T…, S…)`, sizes 1 added."""
        for _ in range(self.scores_rank - 1 - len(mask.shape)):
            mask = ops.expand_dims(mask, -1 - 2 * self.count)
        return mask

    def seeing_rows(self, mask):
        """Queries that see a key, in the rank of the scores, keys reduced."""
        columns = tuple(range(-self.count, 0))
        return ops.any(self.with_heads(mask), axis=columns, keepdims=True)

    def visible_rows(self, mask):
        """Queries that see a key: `(B, dims…, heads or 1, 1)`."""
        rows = self.seeing_rows(mask)
        rows = rows[(..., *[0] * self.count)]
        # (B, free…, heads, T…) → (B, free…, T…, heads) → (B, dims…, heads, 1)
        rows = ops.moveaxis(rows, 1 + len(self.free), -1)
        order = (*self._scattered_order(), self.rank - 1)
        return ops.expand_dims(ops.transpose(rows, order), -1)

    def fill_empty_rows(self, mask, sources):
        """Shows `sources`, `(B or 1, dims…)`, to queries that see no key."""
        filled = ops.logical_and(
            ops.logical_not(self.seeing_rows(mask)),
            self.with_heads(self.source_mask(sources)),
        )
        return ops.logical_or(self.with_heads(mask), filled)

    def visible_sources(self, mask):
        """Keys that some query sees: `(B or 1, dims…, 1)`."""
        heads = 1 + len(self.free)
        sources = self.with_heads(mask)
        # One at a time: of several axes OpenVINO reduces only the first.
        for _ in range(1 + self.count):
            sources = ops.any(sources, axis=heads)
        return ops.expand_dims(
            ops.transpose(sources, self._scattered_order()), -1
        )

    def _gathered(self, mask):
        """`(B, dims…)` → `(B, free…, attention…)`, missing axes broadcast."""
        for _ in range(self.rank - 1 - len(mask.shape)):
            mask = ops.expand_dims(mask, -1)
        return ops.transpose(mask, (0, *self.free, *self.axes))

    def _scattered_order(self):
        gathered = (0, *self.free, *self.axes)
        return tuple(gathered.index(axis) for axis in range(self.rank - 1))
