"""Layouts of channel and spatial gates."""

from keras_gating.surgery import weights_rules as rules

# torch's count of batches has no counterpart: Keras keeps no such count.
_NORMALIZATION = {
    "weight": "gamma",
    "bias": "beta",
    "running_mean": "moving_mean",
    "running_var": "moving_variance",
}


def bottleneck(layer):
    """`fc1` and `fc2`, linear or convolutions of size 1."""

    def kernel(variable, name):
        return rules.linear(variable, name, is_pointwise=True)

    return rules.Plan(
        [
            *rules.projection(layer.reduction, "fc1", kernel),
            *rules.projection(layer.expansion, "fc2", kernel),
        ]
    )


def timm_eca(layer):
    """One convolution along the channels."""
    kernel = layer.convolution.kernel
    return rules.Plan([rules.convolution(kernel, "conv.weight")])


def timm_spatial(layer):
    """A convolution of mean and maximum, and its batch normalization."""
    planned = [
        rules.convolution(
            layer.convolution.kernel,
            "conv.conv.weight",
            is_flipped=layer.map_order == "max_mean",
        )
    ]
    if layer.normalization is None:
        return rules.Plan(planned)
    for theirs, ours in _NORMALIZATION.items():
        variable = getattr(layer.normalization, ours)
        planned.append(rules.same(variable, f"conv.bn.{theirs}"))
    return rules.Plan(planned, {"conv.bn.num_batches_tracked": None})


def timm_cbam(layer):
    """The channel gate below `channel`, the spatial gate below `spatial`."""
    channel = bottleneck(layer.channel_gate).below("channel.")
    spatial = timm_spatial(layer.spatial_gate).below("spatial.")
    return rules.Plan(channel.rules + spatial.rules, spatial.buffers)
