"""Training and validation of models that predict the next character."""

import keras
import numpy as np

from keras_gating.experiments import comparison
from keras_gating.experiments.characters import random_windows
from keras_gating.experiments.population import seeded
from keras_gating.experiments.training import fit_in_one_epoch
from keras_gating.experiments.training import restart

BATCH = 16
WARMUP_SHARE = 0.1
_VALIDATION_BATCH = 128


def compile_model(
    model,
    learning_rate,
    steps,
    epsilon=1e-7,
    optimizer=keras.optimizers.Adam,
):
    """Compiles a model of logits for `steps` steps of training.

    The learning rate of Adam warms up to `learning_rate` in a tenth of the
    steps and decays to 0 by a cosine, without which the noise of the last
    steps hides the differences between models. `epsilon` is Adam's, of which
    `optimizer` may be a subclass.
    """
    warmup = max(1, round(WARMUP_SHARE * steps))
    schedule = keras.optimizers.schedules.CosineDecay(
        0.0,
        max(1, steps - warmup),
        warmup_target=learning_rate,
        warmup_steps=warmup,
    )
    model.compile(
        optimizer(schedule, epsilon=epsilon),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )


def train(model, text, seed, steps, length, progress=None):
    """Trains a compiled model on random windows and returns seconds a step.

    The windows depend on the seed, the steps and the length alone.
    """
    rng = np.random.default_rng(seed)
    inputs, targets = random_windows(text.training, rng, steps * BATCH, length)
    return fit_in_one_epoch(
        model, inputs, targets, batch_size=BATCH, progress=progress
    )


def validation_loss(model, windows):
    """Mean loss in nats a character."""
    return model.evaluate(*windows, batch_size=_VALIDATION_BATCH, verbose=0)


def measure(
    title,
    model,
    make,
    text,
    validation,
    seeds,
    steps,
    progress,
    inspect=None,
):
    """Trains a compiled model from every seed.

    Args:
        title: what the progress bar calls the model.
        model: the compiled model.
        make: function that makes a new model of the same layers.
        text: the `Text`.
        validation: windows, inputs and targets; their length is that of the
            training windows.
        seeds: the seeds.
        steps: number of steps.
        progress: a `Progress`.
        inspect: function of the trained model, called for each seed in turn.

    Returns:
        What a JSON file keeps: parameters, losses, and seconds a step, `None`
        for a single step.
    """
    length = validation[0].shape[1]
    losses, seconds = [], []
    for seed in seeds:
        progress.describe(f"{title}, seed {seed}")
        with seeded(seed):
            restart(model, make())
        seconds.append(train(model, text, seed, steps, length, progress))
        losses.append(validation_loss(model, validation))
        if inspect is not None:
            inspect(model)
    return {
        "parameters": model.count_params(),
        "loss": comparison.mean(losses),
        "seconds_per_step": (
            None if seconds[0] is None else float(np.median(seconds))
        ),
    }
