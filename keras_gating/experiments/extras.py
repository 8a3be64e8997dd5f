"""Packages that only the experiments need."""

import functools

from keras_gating._extras import MissingExtraError
from keras_gating._extras import require as _require

__all__ = ["MissingExtraError", "require"]

require = functools.partial(_require, extra="experiments")
