"""How many examples: few and always the same ones, or `HYPOTHESIS_PROFILE`."""

import os

import keras
import pytest
from hypothesis import HealthCheck
from hypothesis import settings

_PROFILES = {
    "default": {"max_examples": 8, "derandomize": True},
    "long": {"max_examples": 1000},
}
_NAME = os.environ.get("HYPOTHESIS_PROFILE", "default")
PROFILE = settings(
    **_PROFILES[_NAME],
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
# What is found here is seldom a backend's fault, and this one starts fastest.
on_torch_unless_long = pytest.mark.skipif(
    _NAME == "default" and keras.config.backend() != "torch",
    reason="Once is enough, unless HYPOTHESIS_PROFILE=long.",
)
