"""Layouts of gated feed-forward layers.

A `GLU` takes the first half of each, without the projection back. Which slice
of our kernel is the gate is the layer's choice (`gate_first`); the halves are
put where it reads them.
"""

from keras_gating.layers import GatedFeedForward
from keras_gating.surgery import weights_rules as rules


def packed(gate_first):
    """`fc1`, value and gate (`gate_first`: gate and value), and `fc2`."""

    def layout(layer):
        def kernel(variable, name):
            is_swapped = bool(_glu(layer).gate_first) != gate_first
            return rules.halves(variable, name, is_swapped)

        hidden = rules.projection(_glu(layer).projection, "fc1", kernel, kernel)
        return rules.Plan([*hidden, *_output(layer, "fc2")])

    return layout


def separate(value, gate, output):
    """Three linear maps under these names."""

    def layout(layer):
        first, second = value, gate
        if _glu(layer).gate_first:
            first, second = gate, value
        dense = _glu(layer).projection
        hidden = [
            rules.stacked(dense.kernel, f"{first}.weight", f"{second}.weight")
        ]
        if dense.bias is not None:
            hidden.append(
                rules.stacked(dense.bias, f"{first}.bias", f"{second}.bias")
            )
        return rules.Plan([*hidden, *_output(layer, output)])

    return layout


def _glu(layer):
    return layer.hidden if isinstance(layer, GatedFeedForward) else layer


def _output(layer, name):
    if not isinstance(layer, GatedFeedForward):
        return []

    def kernel(variable, name):
        return rules.linear(variable, name, is_pointwise=True)

    return rules.projection(layer.projection, name, kernel)
