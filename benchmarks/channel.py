"""Channel gates beside timm's, or beside a plain copy of the tensor.

    python benchmarks/channel.py [--backend NAME] [--quick] [--out DIR]

On torch: squeeze-and-excitation, ECA and CBAM with the weights of timm's, as
they are and under `torch.compile`, in both layouts. On JAX and TensorFlow:
the time of the compiled gates over that of a compiled copy. One thread, one
run; times are those of the processor, of calls that take turns.
"""

import shutil

import start

if __name__ == "__main__":
    arguments = start.begin(__doc__)

import numpy as np
from passes import passes
from passes import ratio_rows

from keras_gating.layers import ECA
from keras_gating.layers import SqueezeExcite

BATCH = 8
FULL = {"sizes": [[56, 64], [14, 256]], "rounds": 41}
QUICK = {"sizes": [[7, 16]], "rounds": 2}
# Largest ratio of our time to timm's, by the side of the image, as it is.
EAGER_GOALS = {56: 1.5, 14: 2.5, 7: 2.5}
CBAM_GOAL = 0.8
COMPILED_GOAL = 1.0
COPY_GOAL = 2.0


def main():
    sizes = QUICK if arguments.quick else FULL
    measure = timm_rows if arguments.backend == "torch" else copy_rows
    rows = list(measure(sizes))
    if rows:
        start.finish(arguments, "channel", "Channel gates", sizes, rows)


def copy_of(x):
    """A copy of the tensor, which a compiler does not leave out."""
    return x + 1.0


def timm_rows(sizes):
    """Time over that of timm, with the same weights."""
    import torch
    from timm_layers import LAYERS
    from timm_layers import pair

    if LAYERS is None:
        print(
            "timm is not installed, so nothing was compared with it: "
            "pip install -e '.[torch,experiments]' && "
            "pip install --no-deps timm"
        )
        return
    compilers = ["as it is"]
    if arguments.quick:
        pass
    elif shutil.which("g++") or shutil.which("clang++"):
        compilers.append("compiled")
    else:
        print("Without a C++ compiler nothing was compiled.")
    for name in LAYERS:
        for side, channels in sizes["sizes"]:
            for data_format in ("channels_first", "channels_last"):
                images = torch.randn(BATCH, channels, side, side)
                inputs = images
                if data_format == "channels_last":
                    inputs = images.permute(0, 2, 3, 1).contiguous()
                    images = inputs.permute(0, 3, 1, 2)
                layers = pair(name, inputs.shape, data_format)
                error = difference(layers, inputs, images)
                for compiler in compilers:
                    functions = layers
                    goal = CBAM_GOAL if name == "CBAM" else EAGER_GOALS[side]
                    if compiler == "compiled":
                        torch._dynamo.reset()
                        functions = [torch.compile(f) for f in layers]
                        goal = COMPILED_GOAL
                    what = f"{name}, {side}×{side}×{channels}, {data_format}"
                    yield from ratio_rows(
                        f"{what}, {compiler}",
                        passes(functions[0], inputs),
                        passes(functions[1], images),
                        sizes["rounds"],
                        goal,
                        relative_error=error,
                    )


def difference(layers, inputs, images):
    """Greatest difference of the outputs, over the greatest output."""
    import torch

    with torch.no_grad():
        ours, theirs = layers[0](inputs), layers[1](images)
    if inputs is not images:
        theirs = theirs.permute(0, 2, 3, 1)
    return float((ours - theirs).abs().max() / theirs.abs().max())


def copy_rows(sizes):
    """Time of compiled gates over that of a compiled copy."""
    for name, kind in (("SE", SqueezeExcite), ("ECA", ECA)):
        for side, channels in sizes["sizes"]:
            shape = (BATCH, side, side, channels)
            layer = kind(data_format="channels_last")
            layer.build(shape)
            images = np.random.default_rng(0).normal(size=shape)
            images = images.astype("float32")
            yield from ratio_rows(
                f"{name}, {side}×{side}×{channels}, over a copy",
                passes(layer, images, xla=True),
                passes(copy_of, images, xla=True),
                sizes["rounds"],
                COPY_GOAL,
            )


if __name__ == "__main__":
    main()
