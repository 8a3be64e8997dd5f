"""One layer and one checkpoint for every layout, of distinct sizes."""

import dataclasses

import numpy as np

from keras_gating import layers

_NORMALIZATION = ("weight", "bias", "running_mean", "running_var")


@dataclasses.dataclass
class Layout:
    """A layer, the shapes of its checkpoint, and names that may be there."""

    name: str
    layer: object
    inputs: tuple
    shapes: dict
    buffers: dict = dataclasses.field(default_factory=dict)

    def built(self):
        self.layer.build(*self.inputs)
        return self.layer

    def checkpoint(self, prefix="", seed=0):
        rng = np.random.default_rng(seed)
        arrays = {
            name: rng.normal(size=shape).astype("float32")
            for name, shape in self.shapes.items()
        }
        arrays |= self.buffers
        return {prefix + name: array for name, array in arrays.items()}


def _linear(name, outputs, inputs):
    return {f"{name}.weight": (outputs, inputs), f"{name}.bias": (outputs,)}


def _mlp(*names):
    *hidden, output = names
    width = 6 if len(hidden) == 2 else 12
    shapes = {}
    for name in hidden:
        shapes |= _linear(name, width, 4)
    return {**shapes, **_linear(output, 5, 6)}


def _unit(heads, count, output):
    return {
        "norm.weight": (4,),
        "norm.bias": (4,),
        **_linear("to_hidden.0", 16, 4),
        **_linear("to_qk.0", 6, 4),
        f"{heads}.gamma": (count, 6),
        f"{heads}.beta": (count, 6),
        **_linear(output, 4, 8),
        TABLE: (32, 1),
    }


def feed_forward(**arguments):
    return layers.GatedFeedForward(6, output_dim=5, use_bias=True, **arguments)


TABLE = "rel_pos_bias.relative_attention_bias.weight"
_FREQUENCIES = 1e4 ** (-np.arange(0, 6, 2, dtype="float32") / 6)
_UNIT = {"key_dim": 6, "norm_first": True}


def make():
    """The layouts by a short name, with layers of their own."""
    attention = layers.GatedAttention(2, 3, num_key_value_heads=1)
    qwen = layers.GatedAttention(
        4,
        3,
        num_key_value_heads=2,
        query_key_normalization="rms",
        value_dim=2,
    )
    found = [
        Layout(
            "keras",
            attention,
            ((None, None, 5), (None, None, 4)),
            {
                "query/kernel": (5, 2, 3),
                "query/bias": (2, 3),
                "key/kernel": (4, 1, 3),
                "key/bias": (1, 3),
                "gate/kernel": (5, 2, 3),
                "gate/bias": (2, 3),
                "value/kernel": (4, 1, 3),
                "value/bias": (1, 3),
                "attention_output/kernel": (2, 3, 5),
                "attention_output/bias": (5,),
            },
        ),
        Layout(
            "qwen3_next",
            qwen,
            ((None, None, 5), (None, None, 5)),
            {
                **_linear("q_proj", 4 * (3 + 2), 5),
                **_linear("k_proj", 2 * 3, 5),
                **_linear("v_proj", 2 * 2, 5),
                **_linear("o_proj", 5, 4 * 2),
                "q_norm.weight": (3,),
                "k_norm.weight": (3,),
            },
            {"rotary_emb.inv_freq": np.ones(1, "float32")},
        ),
    ]
    for name, parts in (
        ("llama_mlp", ("gate_proj", "up_proj", "down_proj")),
        ("t5_mlp", ("wi_0", "wi_1", "wo")),
        ("timm_swiglu", ("fc1_g", "fc1_x", "fc2")),
        ("timm_glu_mlp", ("fc1", "fc2")),
        ("timm_swiglu_packed", ("fc1", "fc2")),
    ):
        found.append(Layout(name, feed_forward(), ((None, 4),), _mlp(*parts)))
    images = (None, 8, 8, 6)
    maps = {"data_format": "channels_last"}
    found += [
        Layout(
            "timm_se",
            layers.SqueezeExcite(units=4, **maps),
            (images,),
            {
                "fc1.weight": (4, 6, 1, 1),
                "fc1.bias": (4,),
                "fc2.weight": (6, 4, 1, 1),
                "fc2.bias": (6,),
            },
        ),
        Layout(
            "timm_eca",
            layers.ECA(kernel_size=3, **maps),
            (images,),
            {"conv.weight": (1, 1, 3)},
        ),
        Layout(
            "timm_cbam",
            layers.CBAM(units=4, kernel_size=3, batch_norm=True, **maps),
            (images,),
            {
                "channel.fc1.weight": (4, 6, 1, 1),
                "channel.fc2.weight": (6, 4, 1, 1),
                "spatial.conv.conv.weight": (1, 2, 3, 3),
                **{f"spatial.conv.bn.{n}": (1,) for n in _NORMALIZATION},
            },
            {"spatial.conv.bn.num_batches_tracked": np.array(7)},
        ),
        Layout(
            "flash_pytorch",
            layers.GatedAttentionUnit(divisor=16, position="t5", **_UNIT),
            ((None, None, 4),),
            _unit("offsetscale", 2, "to_out.0"),
        ),
        Layout(
            "flash_pytorch",
            layers.GatedAttentionUnit(
                chunk_size=4, divisor=4, position=("rope", "t5"), **_UNIT
            ),
            ((None, None, 4),),
            _unit("qk_offset_scale", 4, "to_out"),
            {"rotary_pos_emb.freqs": _FREQUENCIES},
        ),
    ]
    names = [layout.name for layout in found]
    names[-1] = "flash_pytorch, chunked"
    return dict(zip(names, found, strict=True))
