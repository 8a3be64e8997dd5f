"""Low-rank updates: what trains, what stays, and that saving merges them."""

import keras
import numpy as np
import pytest

from keras_gating import layers
from tests.cases import CASES
from tests.contract.helpers import assert_all_close
from tests.contract.helpers import by_case
from tests.contract.helpers import create
from tests.contract.helpers import differ
from tests.contract.helpers import draw
from tests.contract.helpers import functional_model
from tests.contract.helpers import outputs
from tests.contract.helpers import train_on
from tests.marks import once
from tests.utils import normal
from tests.utils import random_weights
from tests.utils import relative_path
from tests.utils import to_numpy

pytestmark = once


def dense_kernels(case):
    return {
        path
        for path in case.weights
        if path.endswith("/kernel") and "convolution/" not in path
    }


DENSE = [case for case in CASES if dense_kernels(case)]
OTHERS = [case for case in CASES if case not in DENSE]
# Arguments change which kernels there are, not what becomes of them.
ONE_OF_EACH = list({case.layer: case for case in reversed(DENSE)}.values())


def values(layer):
    return {relative_path(layer, w): to_numpy(w) for w in layer.weights}


def test_which_layers_have_dense_kernels():
    assert {case.layer.__name__ for case in OTHERS} == {
        "CurvatureGate",
        "ECA",
        "Gate",
        "SpatialGate",
    }


@pytest.mark.parametrize(**by_case(ONE_OF_EACH))
def test_only_updates_train(case, tmp_path):
    layer = random_weights(create(case))
    expected = outputs(case, layer)
    layer.enable_lora(2)
    assert_all_close(outputs(case, layer), expected)
    # The second factor starts at zero, and then the first has no gradient.
    for weight in layer.weights:
        if weight.path.endswith("lora_kernel_b"):
            weight.assign(normal(*weight.shape))
    before = values(layer)
    expected = outputs(case, layer)
    model = functional_model(case, layer)
    model.compile(keras.optimizers.SGD(0.05), "mse")
    assert np.isfinite(train_on(case, layer, model, draw(case)))
    after = values(layer)
    idle = {path for path in after if not differ([after[path]], [before[path]])}
    assert idle - set(case.idle_weights) == dense_kernels(case)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    (merged,) = (x for x in loaded.layers if type(x) is case.layer)
    assert set(values(merged)) == {p for p in after if "lora" not in p}
    assert_all_close(outputs(case, merged), outputs(case, layer), 1e-5)
    assert differ(outputs(case, merged), expected)


@pytest.mark.parametrize(**by_case(OTHERS))
def test_no_dense_kernel(case):
    layer = create(case)
    with pytest.raises(ValueError, match=f"there is none.*{layer.name}"):
        layer.enable_lora(2)


@pytest.mark.parametrize(
    "kind", [layers.GatedAttention, layers.GatedAttentionBlock]
)
def test_gates_can_be_left_out(kind):
    layer = kind(2, 4, gate_site=("output", "value"), gate_rank=1)
    with pytest.raises(ValueError, match="needs weights.*built=False"):
        layer.enable_lora(2)
    shapes = [(2, 5, 8)] * (2 if kind is layers.GatedAttention else 1)
    layer.build(*shapes)
    gates = {path for path in values(layer) if "gate/" in path}
    assert len(gates) == 6
    layer.enable_lora(2, include_gates=False)
    trained = {relative_path(layer, w) for w in layer.trainable_weights}
    assert {path for path in trained if "gate/" in path} == gates
    kernels = {path for path in values(layer) if path.endswith("/kernel")}
    assert kernels & trained == {p for p in gates if p.endswith("/kernel")}
    assert sum("lora" in path for path in trained) == 2 * 4
