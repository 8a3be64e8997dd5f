"""The gated attention of Qwen3-Next and Qwen3.5, with the same weights.

transformers has it for PyTorch, keras-hub for every backend. Heads share keys
and values, queries and keys are normalized, rotary embedding turns a quarter of
each head, and what a head gives is gated for each feature.

Each layer is a module with two ways to call it: `causal(length)` makes a
function of the module and a sequence, `step(x)` what `cached_step` takes, with
a cache that holds the sequence `x`.
"""

from importlib.util import find_spec

import keras
import numpy as np

from keras_gating import _backend
from keras_gating.layers import GatedAttention
from keras_gating.surgery import copy_weights

_ROTARY = {"base": 10000, "fraction": 0.25}
_EPSILON = 1e-6


def build(dim, heads, key_value_heads, width):
    """The layers that are installed, by name; ours is the first."""
    shape = dim, heads, key_value_heads, width
    weights = _checkpoint(*shape)
    layers = {"ours": _Ours(weights, *shape)}
    if find_spec("keras_hub") is not None:
        layers["keras-hub"] = _KerasHub(weights, *shape)
    has_peer = find_spec("transformers") is not None
    is_on_cpu = _backend.platform() == "cpu"
    if has_peer and is_on_cpu and keras.config.backend() == "torch":
        layers["transformers"] = _Transformers(weights, *shape)
    return layers


def _checkpoint(dim, heads, key_value_heads, width):
    """Weights as transformers names and shapes them, drawn at random."""
    random = np.random.default_rng(0)
    shapes = {
        "q_proj": (2 * heads * width, dim),
        "k_proj": (key_value_heads * width, dim),
        "v_proj": (key_value_heads * width, dim),
        "o_proj": (dim, heads * width),
        "q_norm": (width,),
        "k_norm": (width,),
    }
    return {
        f"{name}.weight": random.normal(
            scale=shape[-1] ** -0.5, size=shape
        ).astype("float32")
        for name, shape in shapes.items()
    }


class _Ours:
    def __init__(self, weights, dim, heads, key_value_heads, width):
        self.module = GatedAttention(
            heads,
            width,
            num_key_value_heads=key_value_heads,
            use_bias=False,
            query_key_normalization="rms",
            normalization_epsilon=_EPSILON,
            rope_max_wavelength=_ROTARY["base"],
            rope_fraction=_ROTARY["fraction"],
        )
        self.module.build((None, None, dim), (None, None, dim))
        copy_weights(self.module, weights, "qwen3_next")

    def causal(self, length):
        return lambda layer, x: layer(x, x, use_causal_mask=True)

    def step(self, x):
        def call(x, cache, index):
            return self.module(
                x,
                x,
                use_causal_mask=True,
                cache=cache,
                cache_update_index=index,
                donate_cache=True,
            )

        cache = self.module.init_cache(*x.shape[:2])
        return _filled(call, self.module.weights, x, cache)


class _KerasHub:
    """Its decoder makes the mask, once for each pass and layer."""

    def __init__(self, weights, dim, heads, key_value_heads, width):
        # Not in its public interface, which has whole models alone.
        from keras_hub.src.models.qwen3_5 import qwen3_5_attention

        self.module = qwen3_5_attention.Qwen3_5Attention(
            heads,
            key_value_heads,
            width,
            partial_rotary_factor=_ROTARY["fraction"],
            rope_max_wavelength=_ROTARY["base"],
            layer_norm_epsilon=_EPSILON,
        )
        self.module.build((None, None, dim))
        names = {
            "query": "q_proj",
            "key": "k_proj",
            "value": "v_proj",
            "attention_output": "o_proj",
            "query_norm": "q_norm",
            "key_norm": "k_norm",
        }
        for weight in self.module.weights:
            child = weight.path.split("/")[-2]
            array = weights[f"{names[child]}.weight"]
            weight.assign(array.T.reshape(weight.shape))
        self.cache_shape = (key_value_heads, width)

    def causal(self, length):
        mask = _lower_triangle(length)
        return lambda layer, x: layer(x, attention_mask=mask)

    def step(self, x):
        batch, length = x.shape[:2]
        mask = _lower_triangle(length)

        def call(x, cache, index):
            return self.module(
                x,
                attention_mask=mask[:, -x.shape[1] :],
                cache=cache,
                cache_update_index=index,
            )

        cache = keras.ops.zeros((batch, 2, length, *self.cache_shape))
        return _filled(call, self.module.weights, x, cache)


class _Transformers:
    """Its model makes the tables of rotary embedding, once for all layers."""

    def __init__(self, weights, dim, heads, key_value_heads, width):
        import torch
        from transformers import Qwen3NextConfig
        from transformers.models.qwen3_next import modeling_qwen3_next

        config = Qwen3NextConfig(
            hidden_size=dim,
            num_attention_heads=heads,
            num_key_value_heads=key_value_heads,
            head_dim=width,
            rms_norm_eps=_EPSILON,
            rope_parameters={
                "rope_type": "default",
                "rope_theta": _ROTARY["base"],
                "partial_rotary_factor": _ROTARY["fraction"],
            },
            attn_implementation="sdpa",
        )
        self.module = modeling_qwen3_next.Qwen3NextAttention(config, 0)
        self.module.load_state_dict(
            {name: torch.tensor(array) for name, array in weights.items()}
        )
        self.rotary = modeling_qwen3_next.Qwen3NextRotaryEmbedding(config)

    def causal(self, length):
        table = self._table(length)
        return lambda layer, x: layer(x, table, None)[0]

    def step(self, x):
        from transformers.cache_utils import Cache
        from transformers.cache_utils import StaticLayer

        length = x.shape[1]
        table = self._table(length)

        def call(x, cache, index):
            cache.layers[0].cumulative_length.fill_(index)
            positions = [part[:, -x.shape[1] :] for part in table]
            return self.module(x, positions, None, cache=cache)[0], cache

        cache = Cache(layers=[StaticLayer(max_cache_len=length)])
        return _filled(call, (), x, cache)

    def _table(self, length):
        import torch

        positions = torch.arange(length)[None]
        return self.rotary(torch.zeros(1), positions)


def _lower_triangle(length):
    return keras.ops.convert_to_tensor(np.tri(length, dtype="bool")[None])


def _filled(call, weights, x, cache):
    """What `cached_step` takes: the last position, once more."""
    with _backend.no_gradients():
        _, cache = call(x, cache, 0)
    return call, weights, x[:, -1:], cache, x.shape[1] - 1
