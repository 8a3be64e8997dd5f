"""A thousand steps with a cache: no drift, and nothing that grows."""

import keras
import numpy as np
import pytest

from keras_gating import layers
from tests.utils import assert_close
from tests.utils import normal
from tests.utils import random_weights
from tests.utils import tensor
from tests.utils import to_numpy

STEPS = 1000
LAYERS = {
    "attention": (
        layers.GatedAttention,
        {
            "num_heads": 4,
            "key_dim": 2,
            "num_key_value_heads": 2,
            "rope_max_wavelength": 100.0,
        },
    ),
    "unit": (layers.GatedAttentionUnit, {"key_dim": 4, "position": "rope"}),
    "unit_chunked": (
        layers.GatedAttentionUnit,
        {"key_dim": 4, "position": "rope", "chunk_size": 16},
    ),
}


@pytest.mark.skipif(
    keras.config.backend() != "jax",
    reason="Compiled, it is quick, and counts what is traced and alive.",
)
@pytest.mark.parametrize("name", LAYERS)
def test_thousand_steps(name):
    import jax

    kind, arguments = LAYERS[name]
    layer = kind(**arguments)
    x = normal(1, STEPS, 4)
    traced = []

    def call(x, **cache):
        traced.append(x.shape[1])
        inputs = (x, x) if kind is layers.GatedAttention else (x,)
        return layer(*inputs, use_causal_mask=True, **cache)

    call(x[:, :1])
    random_weights(layer)
    whole = to_numpy(jax.jit(call)(tensor(x)))
    step = jax.jit(
        lambda x, cache, index: call(x, cache=cache, cache_update_index=index)
    )
    cache = layer.init_cache(1, STEPS)
    shapes = keras.tree.map_structure(lambda a: (a.shape, a.dtype), cache)
    steps, alive = [], []
    for index in range(STEPS):
        output, cache = step(
            x[:, index : index + 1], cache, np.asarray(index, "int32")
        )
        steps.append(to_numpy(output))
        if index in (STEPS // 10, STEPS - 1):
            alive.append(len(jax.live_arrays()))
    assert_close(np.concatenate(steps, axis=1), whole, 1e-5)
    assert traced == [1, STEPS, 1]
    assert keras.tree.map_structure(lambda a: (a.shape, a.dtype), cache) == (
        shapes
    )
    assert alive[0] == alive[1]
