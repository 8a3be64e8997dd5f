"""Every test starts from the same seeds and from a clean Keras."""

import gc
import os
from importlib import metadata
from importlib.util import find_spec

# Compiling is what takes time on JAX, and the models here are tiny.
FLAGS = [
    "--xla_backend_optimization_level=0",
    "--xla_llvm_disable_expensive_passes=true",
]
# These halve it once more. A flag that XLA does not know ends the process, so
# they are for the releases that are known to have them.
if find_spec("jaxlib") and metadata.version("jaxlib").startswith("0.10."):
    FLAGS += [
        "--xla_cpu_use_fusion_emitters=false",
        "--xla_cpu_parallel_codegen_split_count=1",
    ]
os.environ.setdefault("XLA_FLAGS", " ".join(FLAGS))

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


@pytest.fixture(autouse=True, scope="module")
def quick_collections():
    """Takes what is there out of garbage collections, which Keras calls for.

    Every attribute that a layer loses, as in `quantize`, makes Keras look
    through all objects, and the backends alone have some 500,000.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def clean_keras():
    keras.utils.clear_session(free_memory=False)
    keras.utils.set_random_seed(0)
    policy = keras.config.dtype_policy()
    yield
    keras.config.set_dtype_policy(policy)
