"""Weights of other libraries, in their own layouts."""

from collections.abc import Callable

import numpy as np

from keras_gating import _keras
from keras_gating.functional import checks
from keras_gating.layers import CBAM
from keras_gating.layers import ECA
from keras_gating.layers import GEGLU
from keras_gating.layers import GLU
from keras_gating.layers import BilinearGLU
from keras_gating.layers import ChannelGate
from keras_gating.layers import GatedAttention
from keras_gating.layers import GatedAttentionUnit
from keras_gating.layers import GatedFeedForward
from keras_gating.layers import ReGLU
from keras_gating.layers import SpatialGate
from keras_gating.layers import SqueezeExcite
from keras_gating.layers import SwiGLU
from keras_gating.surgery import weights_attention
from keras_gating.surgery import weights_channel
from keras_gating.surgery import weights_feedforward
from keras_gating.surgery import weights_sources
from keras_gating.surgery import weights_unit

_SHOWN = 8
_FEED_FORWARD = (GatedFeedForward, GLU, BilinearGLU, ReGLU, GEGLU, SwiGLU)
_CBAM = {
    CBAM: weights_channel.timm_cbam,
    ChannelGate: weights_channel.bottleneck,
    SpatialGate: weights_channel.timm_spatial,
}
# What plans the weights of a layer, by layout and kind of layer.
_LAYOUTS: dict[str, dict[type, Callable]] = {
    "keras": {GatedAttention: weights_attention.keras_attention},
    "qwen3_next": {GatedAttention: weights_attention.qwen3_next},
    "llama_mlp": dict.fromkeys(
        _FEED_FORWARD,
        weights_feedforward.separate("up_proj", "gate_proj", "down_proj"),
    ),
    "t5_mlp": dict.fromkeys(
        _FEED_FORWARD, weights_feedforward.separate("wi_1", "wi_0", "wo")
    ),
    "timm_glu_mlp": dict.fromkeys(
        _FEED_FORWARD, weights_feedforward.packed(gate_first=False)
    ),
    "timm_swiglu_packed": dict.fromkeys(
        _FEED_FORWARD, weights_feedforward.packed(gate_first=True)
    ),
    "timm_swiglu": dict.fromkeys(
        _FEED_FORWARD, weights_feedforward.separate("fc1_x", "fc1_g", "fc2")
    ),
    "timm_se": {SqueezeExcite: weights_channel.bottleneck},
    "timm_eca": {ECA: weights_channel.timm_eca},
    "timm_cbam": _CBAM,
    "flash_pytorch": {GatedAttentionUnit: weights_unit.flash_pytorch},
}


def copy_weights(layer, weights, layout, prefix=""):
    """Loads the weights of another library into a layer.

    `layer.weight = convert(weights[prefix + name])`

    Linear weights `(out, in)` are transposed, packed projections taken apart,
    heads given axes of their own, and what a peer scales differently is
    rescaled. All is checked before anything is assigned: every weight of the
    layer must be there, no other name may stand below the prefix, and shapes
    must fit. A square matrix that is transposed, or one weight under the name
    of another of its shape, cannot be seen; compare outputs.

    Layouts, with the layers that take them:

    * `"keras"`: `keras.layers.MultiHeadAttention` and `GroupQueryAttention`,
      with `use_gate` or without; `GatedAttention`.
    * `"qwen3_next"`: the attention of Qwen3-Next in transformers, and that of
      Qwen3.5 on text; `GatedAttention`.
    * `"llama_mlp"`: `gate_proj`, `up_proj`, `down_proj` of Llama, Gemma and
      others; `"t5_mlp"`: `wi_0`, `wi_1`, `wo`; timm's `"timm_glu_mlp"`,
      `"timm_swiglu_packed"` (the same names, gate first) and `"timm_swiglu"`;
      `GatedFeedForward`, or a `GLU` without the projection back.
    * `"timm_se"`, `"timm_eca"`, `"timm_cbam"`: timm's modules;
      `SqueezeExcite`, `ECA`, `CBAM` (or its `ChannelGate`, `SpatialGate`).
    * `"flash_pytorch"`: `GAU` and `FLASH` of FLASH-pytorch;
      `GatedAttentionUnit`, with `chunk_size` the latter.

    The arguments under which a layer computes what the peer does are in the
    guide.

    Args:
        layer: a built layer, without LoRA weights and not quantized.
        weights: a mapping of names to arrays (of NumPy, or tensors of any
            library), or the path of a `.safetensors` file, of which only what
            the layer needs is read. With `layout="keras"` also the Keras
            layer, or a list in the order of its `weights`.
        layout: name of the layout.
        prefix: where in `weights` the layer stands, such as
            `"model.layers.3.self_attn"`. Defaults to `""`: all names are the
            layer's.

    Returns:
        The names below the prefix that hold no weight of the layer and were
        passed over: buffers such as the frequencies of rotary embedding
        (`rotary_emb.inv_freq`, `rotary_pos_emb.freqs`), the position bias of a
        `GAU` whose layer has none, which must be zero, and torch's
        `num_batches_tracked`.

    Raises:
        ValueError: for missing and superfluous names, shapes and dtypes that
            do not fit, layers that do not take the layout, are not built,
            quantized, or have LoRA weights. Nothing is assigned then.
        ImportError: for a file, if safetensors is not installed.

    Example:

    >>> import numpy as np
    >>> from keras_gating.layers import GatedFeedForward
    >>> from keras_gating.surgery import copy_weights
    >>> layer = GatedFeedForward(6, "swiglu")
    >>> layer.build((None, 4))
    >>> checkpoint = {
    ...     "layers.0.mlp.gate_proj.weight": np.ones((6, 4)),
    ...     "layers.0.mlp.up_proj.weight": np.ones((6, 4)),
    ...     "layers.0.mlp.down_proj.weight": np.ones((4, 6)),
    ... }
    >>> copy_weights(layer, checkpoint, "llama_mlp", prefix="layers.0.mlp")
    ()

    References:
        Qiu et al. 2025, arXiv 2505.06708 (the gate of Qwen3-Next); Hua et al.
        2022, arXiv 2202.10447 (FLASH).
    """
    values, passed = converted(layer, weights, layout, prefix)
    for variable, array in values:
        variable.assign(array)
    return passed


def converted(layer, weights, layout, prefix=""):
    """The values of the weights and the names passed over, not assigned.

    Args:
        layer: see `copy_weights`.
        weights: see `copy_weights`.
        layout: see `copy_weights`.
        prefix: see `copy_weights`.

    Returns:
        Pairs of a variable of the layer and its array, and a tuple of names.
    """
    plan = _planned(layer, layout)
    order = plan.names() if layout == "keras" else None
    with weights_sources.opened(weights, order) as given:
        start = _start(prefix, "/" if layout == "keras" else ".")
        _check_names(layer, layout, plan, given, start)
        passed = [
            start + name for name in plan.buffers if start + name in given
        ]
        for name in passed:
            check = plan.buffers[name.removeprefix(start)]
            if check is not None:
                check(name, weights_sources.as_array(name, given[name]))
        values = [
            (rule.variable, _value(layer, layout, rule, given, start))
            for rule in plan.rules
        ]
    return values, tuple(passed)


def _planned(layer, layout):
    checks.one_of("layout", layout, tuple(_LAYOUTS))
    kinds = _LAYOUTS[layout]
    kind = next((kind for kind in kinds if isinstance(layer, kind)), None)
    if kind is None:
        names = " or ".join(kind.__name__ for kind in kinds)
        raise ValueError(
            f"layout={layout!r} is for {names}. Received: "
            f"layer={type(layer).__name__}"
        )
    _check_state(layer)
    plan = kinds[kind](layer)
    covered = {rule.variable.path for rule in plan.rules}
    rest = [w.path for w in layer.weights if w.path not in covered]
    if rest:
        raise ValueError(
            f"layout={layout!r} has nothing for these weights of layer "
            f"{layer.name!r}: {_listed(rest)}. Build it with arguments that "
            "the layout has weights for"
        )
    return plan


def _check_state(layer):
    if not layer.built:
        raise ValueError(
            "The layer has no weights: build or call it first. Received: "
            f"{layer.name}.built=False"
        )
    for part in _keras.sublayers(layer):
        if part.quantization_mode is not None:
            raise ValueError(
                "Weights are copied in floating point. Received: the "
                f"quantized layer {part.name!r}"
            )
        if getattr(part, "lora_enabled", False):
            raise ValueError(
                "A layer with LoRA weights computes with kernels of its own: "
                "copy first and enable LoRA after. Received: layer "
                f"{part.name!r}"
            )


def _start(prefix, separator):
    if not isinstance(prefix, str):
        raise ValueError(
            f"`prefix` must be a string. Received: prefix={prefix!r}"
        )
    is_open = prefix and not prefix.endswith(separator)
    return prefix + separator if is_open else prefix


def _check_names(layer, layout, plan, given, start):
    expected = [start + name for name in plan.names()]
    known = {*expected, *(start + name for name in plan.buffers)}
    missing = [name for name in expected if name not in given]
    unknown = [
        name for name in given if name.startswith(start) and name not in known
    ]
    if missing or unknown:
        raise ValueError(
            f"The names {f'below {start!r} ' if start else ''}must be those "
            f"that layout={layout!r} has for layer {layer.name!r}. Missing: "
            f"{_listed(missing)}; superfluous: {_listed(unknown)}. Options "
            "of the layer such as `use_bias` decide what it needs. Received: "
            f"{len(given)} names, {_listed(given)}"
        )


def _value(layer, layout, rule, given, start):
    arrays = []
    for name, shape in rule.sources.items():
        array = weights_sources.as_array(start + name, given[start + name])
        if rule.is_pointwise and array.shape == (*shape, 1, 1):
            array = np.reshape(array, shape)
        if array.shape != shape:
            raise ValueError(
                f"layout={layout!r} needs {start + name!r} of shape {shape} "
                f"for {rule.variable.path!r}, of shape "
                f"{tuple(rule.variable.shape)} in layer {layer.name!r}. "
                f"Received: shape {array.shape}"
            )
        arrays.append(array)
    return rule.convert(*arrays)


def _listed(names):
    names = list(names)
    text = ", ".join(map(repr, names[:_SHOWN])) or "none"
    rest = len(names) - _SHOWN
    return f"{text} and {rest} more" if rest > 0 else text
