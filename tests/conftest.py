"""Every test starts from the same seeds and from a clean Keras."""

import os

# Compiling is what takes time on JAX, and the models here are tiny.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_backend_optimization_level=0 "
    "--xla_llvm_disable_expensive_passes=true",
)

import keras  # noqa: E402
import pytest  # noqa: E402


def pytest_report_header():
    return f"keras {keras.__version__} on {keras.config.backend()}"


def pytest_runtest_setup(item):
    if item.get_closest_marker("float64") is None:
        return
    enabled = os.environ.get("JAX_ENABLE_X64", "").lower() in ("1", "true")
    if keras.config.backend() == "jax" and not enabled:
        pytest.skip("needs JAX_ENABLE_X64=1, set before JAX is imported")


@pytest.fixture(autouse=True)
def clean_keras():
    keras.utils.clear_session(free_memory=False)
    keras.utils.set_random_seed(0)
    policy = keras.config.dtype_policy()
    yield
    keras.config.set_dtype_policy(policy)
