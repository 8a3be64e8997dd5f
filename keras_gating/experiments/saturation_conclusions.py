"""Differences between gate activations, and what they say of the claims."""

from keras_gating.experiments import comparison
from keras_gating.experiments.corrections import holm
from keras_gating.experiments.corrections import paired_p_value
from keras_gating.experiments.verdicts import verdict

REFERENCE = "sigmoid"
# A gate that cannot saturate.
BILINEAR = "linear"
SMOOTH = ("gelu", "silu")
MEASURES = ("vanished_start", "log10_gradient", "gradient_share", "accuracy")
# Claims on GELU and SiLU against the sigmoid: measure and expected sign.
_AGAINST_SIGMOID = (
    ("GELU-like gates saturate less", "vanished_start", -1),
    ("GELU-like gates get larger gradients", "log10_gradient", 1),
    ("… also relative to the value's gradient", "gradient_share", 1),
    ("GELU-like gates end more accurate", "accuracy", 1),
)
# Claims on the sigmoid alone, largest scale against Glorot's.
_WITH_SCALE = (
    ("a wide start saturates sigmoid gates", "vanished_start", 1),
    ("… takes gradient from them", "log10_gradient", -1),
    ("… also relative to the value's", "gradient_share", -1),
    ("… costs accuracy", "accuracy", -1),
)


def compare(measured):
    """Adds the differences from the sigmoid at the same scale.

    Holm's correction is for all activations and scales of one measure.

    Args:
        measured: `measurements["activations"]`.
    """
    if REFERENCE not in measured:
        return
    for measure in MEASURES:
        entries, p_values = [], []
        for name, activation in measured.items():
            if name == REFERENCE:
                continue
            for scale, entry in activation["scales"].items():
                pair = [
                    e[measure]["values"]
                    for e in (entry, measured[REFERENCE]["scales"][scale])
                ]
                difference = comparison.difference(*pair)
                entry.setdefault("differences", {})[measure] = difference
                entries.append(difference)
                p_values.append(paired_p_value(*pair))
        for entry, p in zip(entries, holm(p_values)):
            entry["adjusted_p"] = p


def conclude(measured):
    """What the run says of each claim.

    Args:
        measured: what `compare` completed.

    Returns:
        One dictionary a claim: `claim`, `verdict`, and the cases that support
        it, that show the opposite, and that show nothing.
    """
    sigmoid = measured.get(REFERENCE)
    if sigmoid is None:
        return []
    conclusions = []
    scales = [scale for scale in sigmoid["scales"] if float(scale) > 0.0]
    if len(scales) > 1:
        pairs = [
            [
                sigmoid["scales"][scale][measure]["values"]
                for scale in (scales[-1], scales[0])
            ]
            for _, measure, _ in _WITH_SCALE
        ]
        adjusted = holm([paired_p_value(*pair) for pair in pairs])
        case = f"{scales[-1]}× against {scales[0]}×"
        for (claim, _, sign), pair, p in zip(_WITH_SCALE, pairs, adjusted):
            estimate = comparison.difference(*pair)["estimate"]
            conclusions.append(verdict(claim, {case: (estimate, p)}, sign))
        if BILINEAR in measured:
            conclusions.append(_beside_bilinear(measured, scales, case))
    others = [name for name in SMOOTH if name in measured]
    for claim, measure, sign in _AGAINST_SIGMOID if others else ():
        cases = {}
        for name in others:
            for scale in sigmoid["scales"]:
                entry = measured[name]["scales"][scale]
                difference = entry["differences"][measure]
                cases[f"{measured[name]['title']} {scale}×"] = (
                    difference["estimate"],
                    difference["adjusted_p"],
                )
        conclusions.append(verdict(claim, cases, sign))
    return conclusions


def _beside_bilinear(measured, scales, case):
    """Whether the sigmoid loses more than what cannot saturate."""
    changes = []
    for name in (REFERENCE, BILINEAR):
        wide, narrow = (
            measured[name]["scales"][scale]["accuracy"]["values"]
            for scale in (scales[-1], scales[0])
        )
        changes.append([a - b for a, b in zip(wide, narrow)])
    estimate = comparison.difference(*changes)["estimate"]
    return verdict(
        "… costs more than a gate that cannot saturate loses",
        {case: (estimate, paired_p_value(*changes))},
        -1,
    )
