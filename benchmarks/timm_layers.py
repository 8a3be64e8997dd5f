"""Channel gates of timm, without torchvision, with the weights of ours."""

import sys
import types
from importlib.util import find_spec

from keras_gating.layers import CBAM
from keras_gating.layers import ECA
from keras_gating.layers import SqueezeExcite
from keras_gating.surgery import copy_weights


def _import_layers():
    """Imports `timm.layers` alone; `None` where timm is not installed.

    timm itself imports all of its models, and torchvision with them. Its
    layers need one class of torchvision, for a purpose that is not ours.
    """
    spec = find_spec("timm")
    if spec is None:
        return None
    if find_spec("torchvision") is None:
        stand_in = types.ModuleType("torchvision.ops.misc")
        stand_in.FrozenBatchNorm2d = type("FrozenBatchNorm2d", (), {})
        for name in ("torchvision", "torchvision.ops"):
            sys.modules[name] = types.ModuleType(name)
        sys.modules[stand_in.__name__] = stand_in
    package = types.ModuleType("timm")
    package.__path__ = list(spec.submodule_search_locations)
    sys.modules["timm"] = package
    from timm.layers import EcaModule
    from timm.layers import SEModule
    from timm.layers.cbam import CbamModule

    return {"SE": SEModule, "ECA": EcaModule, "CBAM": CbamModule}


LAYERS = _import_layers()
_OURS = {
    "SE": (SqueezeExcite, {"divisor": 8}),
    "ECA": (ECA, {}),
    "CBAM": (CBAM, {"batch_norm": True}),
}


def pair(name, shape, data_format):
    """Our layer, built for inputs of the shape, and timm's with its weights."""
    kind, arguments = _OURS[name]
    ours = kind(data_format=data_format, **arguments)
    ours.build(shape)
    channels = shape[1 if data_format == "channels_first" else -1]
    theirs = LAYERS[name](channels).eval()
    copy_weights(ours, theirs.state_dict(), f"timm_{name.lower()}")
    return ours, theirs
