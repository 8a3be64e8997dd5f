"""Where a test runs, when not everywhere."""

import keras
import pytest

once = pytest.mark.skipif(
    keras.config.backend() != "torch",
    reason="says the same on every backend, and torch is the quickest",
)
