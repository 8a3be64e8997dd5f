"""Packages that only the experiments need."""

import importlib


class MissingExtraError(ImportError):
    """A package of the `experiments` extra is not installed."""


def require(module):
    """Imports `module` of the `experiments` extra.

    Args:
        module: its dotted name, such as `"sklearn.datasets"`.

    Returns:
        The module.

    Raises:
        MissingExtraError: when its package is not installed, with the line to
            type.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if error.name != package:
            raise
        raise MissingExtraError(
            f"{package} is not installed. Install what the experiments need "
            'with: pip install "keras-gating[experiments]"'
        ) from None
