"""What one of eight devices keeps of a model, over what a single one keeps.

    python benchmarks/distribution.py [--quick] [--out DIR]

Eight virtual devices of one processor, on JAX. What is measured are the bytes
of the parts that lie on the first device: of the weights, and of them with what
Adam keeps. They are the same on any machine.
"""

import os

import start

if __name__ == "__main__":
    arguments = start.begin(__doc__, "jax")
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"

import keras

from keras_gating import distribution
from keras_gating import layers

FULL = {"layers": 4, "dim": 512, "num_heads": 8, "key_value_heads": [8, 2]}
QUICK = {"layers": 1, "dim": 64, "num_heads": 8, "key_value_heads": [8, 2]}
# Parts of the batch, parts of the weights.
MESHES = {
    "data parallel": (8, 1),
    "tensor parallel": (1, 8),
    "both, two by four": (2, 4),
}
# Normalizations and biases behind output projections, which are copied, are to
# add no more than this to the part of a device.
SLACK = 1.02


def main():
    sizes = QUICK if arguments.quick else FULL
    rows = [
        row
        for num_groups in sizes["key_value_heads"]
        for row in memory_rows(sizes, num_groups)
    ]
    title = "Memory of one of eight devices"
    start.finish(arguments, "distribution", title, sizes, rows)


def memory_rows(sizes, num_groups):
    """Memory of one device over that of a single one, by shape of the mesh."""
    keras.distribution.set_distribution(None)
    whole, copied = device_bytes(*variables(sizes, num_groups))
    for way, shape in MESHES.items():
        mesh = keras.distribution.DeviceMesh(shape, ("batch", "model"))
        keras.distribution.set_distribution(
            keras.distribution.ModelParallel(
                layout_map=distribution.layout_map(mesh),
                batch_dim_name="batch",
            )
        )
        part, _ = device_bytes(*variables(sizes, num_groups))
        num_parts = shape[1]
        # Keys and values of fewer heads than parts are on every device.
        share = copied / whole["weights"] if num_groups < num_parts else 0.0
        goal = SLACK * ((1.0 - share) / num_parts + share)
        for what, size in part.items():
            yield {
                "what": f"{way}, {num_groups} key/value heads: {what}",
                "unit": "MiB",
                "ours": size / 2**20,
                "other": whole[what] / 2**20,
                "ratio": size / whole[what],
                "goal": goal,
            }


def variables(sizes, num_groups):
    """The weights of a transformer with gates, and what Adam keeps."""
    dim, num_heads = sizes["dim"], sizes["num_heads"]
    inputs = x = keras.Input((None, dim))
    for _ in range(sizes["layers"]):
        x = layers.GatedAttentionBlock(
            num_heads,
            dim // num_heads,
            num_key_value_heads=num_groups,
            gate_site=("output", "value"),
            norm_first=True,
        )(x)
        y = keras.layers.LayerNormalization()(x)
        x = x + layers.GatedFeedForward(3 * dim)(y)
    model = keras.Model(inputs, x)
    optimizer = keras.optimizers.Adam()
    optimizer.build(model.trainable_variables)
    return model.weights, optimizer.variables


def device_bytes(weights, state):
    """Bytes on the first device, and those of keys, values and their gates."""
    sizes = [part_bytes(weight) for weight in weights]
    grouped = [
        size
        for weight, size in zip(weights, sizes, strict=True)
        if {"key", "value", "value_gate"} & set(weight.path.split("/"))
    ]
    total = sum(sizes)
    with_state = total + sum(part_bytes(variable) for variable in state)
    return {"weights": total, "weights and Adam": with_state}, sum(grouped)


def part_bytes(variable):
    return variable.value.addressable_shards[0].data.nbytes


if __name__ == "__main__":
    main()
