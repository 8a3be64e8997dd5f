"""Sizes that a computation may depend on."""


def known_size(x, axis=1):
    """The size of an axis where it is a number, else `None`.

    It is none in a symbolic tensor, and while a model is traced for all sizes:
    there a comparison fails or holds the exported model to one size.
    """
    size = x.shape[axis]
    return size if isinstance(size, int) else None
