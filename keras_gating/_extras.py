"""Packages that are not needed to import this one."""

import importlib


class MissingExtraError(ImportError):
    """A package of an extra is not installed."""


def require(module, extra):
    """Imports `module`, which the named extra installs.

    Args:
        module: its dotted name, such as `"sklearn.datasets"`.
        extra: name of the extra, such as `"experiments"`.

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
            f"{package} is not installed. Install it with: "
            f'pip install "keras-gating[{extra}]"'
        ) from None
