"""The arms of the overfitting experiment: encoders, dropout, weight decay."""

import dataclasses

import keras
import numpy as np

from keras_gating.diagnostics import gate_variables
from keras_gating.experiments import digits_model
from keras_gating.experiments.population import seeded
from keras_gating.experiments.selection import entries_by_name

# A little and a lot, not tuned.
RATES = (0.2, 0.5)
DECAYS = (0.1, 1.0)


@dataclasses.dataclass(frozen=True)
class Arm:
    """One encoder and how it is kept from overfitting.

    Args:
        name: key of the arm in the results.
        title: the arm in words.
        encoder: its `digits_model.Arm`.
        decay: weight decay of AdamW; a step shrinks weights by the learning
            rate times this.
        gates_only: whether only the weights of gates decay.
    """

    name: str
    title: str
    encoder: digits_model.Arm
    decay: float = 0.0
    gates_only: bool = False


def _arms():
    gated, wider, _ = digits_model.matched_arms()
    ungated = digits_model.Arm("ungated", "ungated")

    def dropped(encoder, **rates):
        return dataclasses.replace(encoder, **rates)

    return (
        Arm("ungated", "ungated", ungated),
        Arm("wider", "wider", wider),
        Arm("gated", "gated", gated),
        *(
            Arm(
                f"gate_dropout_{rate:g}",
                f"dropout in gate {rate:g}",
                dropped(gated, gate_dropout=rate),
            )
            for rate in RATES
        ),
        *(
            Arm(
                f"output_dropout_{rate:g}",
                f"dropout after {rate:g}",
                dropped(gated, output_dropout=rate),
            )
            for rate in RATES
        ),
        *(
            Arm(
                f"gate_decay_{decay:g}",
                f"decay of gates {decay:g}",
                gated,
                decay,
                gates_only=True,
            )
            for decay in DECAYS
        ),
        *(
            Arm(f"decay_{decay:g}", f"decay of all {decay:g}", gated, decay)
            for decay in DECAYS
        ),
        Arm(
            f"wider_dropout_{RATES[-1]:g}",
            f"wider, dropout {RATES[-1]:g}",
            dropped(wider, output_dropout=RATES[-1]),
        ),
        Arm(
            f"wider_decay_{DECAYS[-1]:g}",
            f"wider, decay {DECAYS[-1]:g}",
            wider,
            DECAYS[-1],
        ),
    )


ARMS = _arms()
# What each arm is compared with: the gate with none, a remedy with its lack.
PAIRS = (
    ("gated", "ungated"),
    ("gated", "wider"),
    *(
        (arm.name, "wider" if arm.name.startswith("wider") else "gated")
        for arm in ARMS[3:]
    ),
)


def compiled(arm, learning_rate, steps):
    """A model of `arm`, compiled with AdamW and a cosine to 0.

    Args:
        arm: an `Arm`.
        learning_rate: at the start.
        steps: number of steps of the cosine.
    """
    model = digits_model.build(arm.encoder)
    optimizer = keras.optimizers.AdamW(
        keras.optimizers.schedules.CosineDecay(learning_rate, steps),
        weight_decay=arm.decay,
    )
    if arm.gates_only:
        gates = {id(v) for v in gate_variables(model)}
        optimizer.exclude_from_weight_decay(
            [v for v in model.trainable_variables if id(v) not in gates]
        )
    model.compile(
        optimizer, keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    )
    return model


def start(arm, seed):
    """A model with the initial weights of a seed, the same for any dropout."""
    with seeded(seed):
        return digits_model.build(arm.encoder)


def seed_dropout(model, seed):
    """Lets the dropout of a model draw as a new one with this seed would."""
    for variable in model.non_trainable_variables:
        if variable.path.endswith("seed_generator_state"):
            variable.assign(np.array([seed, 0], variable.dtype))


def arms_by_name(names=None):
    """Returns the arms called `names`, all of them by default."""
    return entries_by_name(ARMS, names, "overfitting")
