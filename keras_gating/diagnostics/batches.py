"""Batches of inputs out of whatever `fit` accepts."""

import itertools
import numbers

import keras
import numpy as np

from keras_gating.functional import checks

_KINDS = (
    "an array, a nest of arrays, a tuple (x, y), a tf.data.Dataset, a PyTorch "
    "DataLoader, a keras.utils.PyDataset or a generator"
)


def input_batches(data, batch_size=32, steps=None):
    """The inputs of every batch, without targets and weights.

    Args:
        data: arrays, nests of arrays, `(x, y)` or `(x, y, sample_weight)` of
            them, or an iterable of batches: `tf.data.Dataset`, `DataLoader`,
            `keras.utils.PyDataset`, generator.
        batch_size: size of the batches that arrays are cut into.
        steps: number of batches. Defaults to all; what has no end needs it.

    Returns:
        `(batches, count)`: an iterator, and its length or `None`.
    """
    checks.positive_integer("batch_size", batch_size)
    checks.positive_integer("steps", steps, optional=True)
    if _is_nest_of_numbers(data):
        raise ValueError(
            "`data` must consist of arrays: make one of the numbers by "
            f"`np.array(data)`. Received: a {type(data).__name__} of numbers"
        )
    if isinstance(data, keras.utils.PyDataset):
        batches, count = _of_dataset(data)
    elif _is_nest_of_arrays(data):
        batches, count = _of_arrays(data, batch_size)
    elif hasattr(data, "__iter__") and not isinstance(data, (str, bytes, dict)):
        batches, count = _of_iterable(data)
    else:
        raise ValueError(
            f"`data` must be {_KINDS}. Received: {type(data).__name__}"
        )
    if count is None and steps is None:
        raise ValueError(
            "The data have no end that could be known: pass `steps`, the "
            f"number of batches. Received: {type(data).__name__}, steps=None"
        )
    if count == 0:
        raise ValueError(
            f"The data are empty. Received: {type(data).__name__} without any "
            "batch"
        )
    known = None if count in (None, _UNKNOWN) else count
    if steps is not None and known is not None and steps > known:
        raise _ended(data, known, steps)
    return _counted(data, batches, steps), steps or known


# The data end, but where is not known.
_UNKNOWN = -1


def _counted(data, batches, steps):
    number = 0
    for batch in itertools.islice(batches, steps):
        number += 1
        yield batch
    if steps is not None and number < steps:
        raise _ended(data, number, steps)
    if number == 0:
        raise ValueError(
            f"The data are empty. Received: {type(data).__name__} without any "
            "batch"
        )


def _ended(data, number, steps):
    return ValueError(
        f"The data ended early. Received: {type(data).__name__} with {number} "
        f"batches, steps={steps}"
    )


def _is_nest_of_arrays(data):
    if isinstance(data, (tuple, list, dict)):
        leaves = keras.tree.flatten(data)
        return bool(leaves) and all(map(_is_array, leaves))
    return _is_array(data)


def _is_nest_of_numbers(data):
    if not isinstance(data, (tuple, list, dict)):
        return False
    leaves = keras.tree.flatten(data)
    return bool(leaves) and all(isinstance(x, numbers.Number) for x in leaves)


def _is_array(leaf):
    # A DataFrame and a dataset are iterable too, but only one is an array.
    return keras.ops.is_tensor(leaf) or hasattr(leaf, "__array__")


def _of_arrays(data, batch_size):
    x = _inputs(data, lists_too=False)
    x = keras.tree.map_structure(_as_array, x)
    leaves = keras.tree.flatten(x)
    if any(len(leaf.shape) == 0 for leaf in leaves):
        raise ValueError(
            "Arrays need an axis for the batch. Received: a number among "
            "the inputs"
        )
    sizes = [leaf.shape[0] for leaf in leaves]
    if len(set(sizes)) > 1:
        raise ValueError(
            "All inputs must have the same number of samples. Received: "
            f"sizes {sizes}"
        )

    def batch(start):
        part = slice(start, start + batch_size)
        return keras.tree.map_structure(lambda leaf: leaf[part], x)

    starts = range(0, sizes[0], batch_size)
    return map(batch, starts), len(starts)


def _of_dataset(data):
    count = data.num_batches
    numbers = itertools.count() if count is None else range(count)
    return (_batch(data[number]) for number in numbers), count


def _of_iterable(data):
    batches = map(_batch, data)
    if hasattr(data, "cardinality"):  # tf.data: -1 is infinite, -2 unknown
        count = int(data.cardinality())
        return batches, {-1: None, -2: _UNKNOWN}.get(count, count)
    if hasattr(data, "__next__"):
        return batches, None
    try:
        return batches, len(data)
    except TypeError:
        # Such as the loader of an iterable-style dataset.
        return batches, _UNKNOWN


def _batch(batch):
    x = _inputs(batch, lists_too=True)
    return keras.tree.map_structure(_as_array, x)


def _inputs(data, lists_too):
    """The first of `(x, y, sample_weight)`.

    A list is several inputs where it is the data, and such a tuple where it is
    a batch of a loader, as in `fit`.
    """
    kinds = (tuple, list) if lists_too else tuple
    if not isinstance(data, kinds):
        return data
    if not 1 <= len(data) <= 3:
        raise ValueError(
            "A tuple is (x,), (x, y) or (x, y, sample_weight); several inputs "
            f"are a list or a dictionary. Received: {len(data)} items"
        )
    return data[0]


def _as_array(leaf):
    """Tensors of the backend stay what they are, others become arrays."""
    if keras.ops.is_tensor(leaf):
        return leaf
    if not hasattr(leaf, "__array__"):
        raise ValueError(
            f"A batch must consist of arrays. Received: {type(leaf).__name__}"
        )
    return np.asarray(leaf)
