"""Training loops of the experiments, on every backend through `fit`."""

import time

import keras
import numpy as np


class Progress:
    """Counts steps and reports the share of them that is done.

    Args:
        total: number of steps of the whole experiment.
        on_progress: function `(description, share)` or `None`.
    """

    def __init__(self, total, on_progress=None):
        self._total = total
        self._on_progress = on_progress
        self._done = 0
        self._description = ""

    def describe(self, description):
        """Names what is running now."""
        self._description = description
        self.advance(0)

    def advance(self, steps):
        """Counts `steps` more."""
        self._done += steps
        if self._on_progress is not None:
            self._on_progress(self._description, self._done / self._total)


class _StepClock(keras.callbacks.Callback):
    """Reports progress and takes the time of steps, compilation left out."""

    report_every = 20

    def __init__(self, progress, steps):
        super().__init__()
        self._progress = progress
        self._first = max(1, steps // 10)
        self._last_report = 0
        self._start = None
        self.seconds_per_step = None
        self._steps = steps

    def on_train_batch_end(self, batch, logs=None):
        done = batch + 1
        if done == self._first:
            self._start = time.perf_counter()
        if done % self.report_every == 0:
            self._report(done)

    def on_epoch_end(self, epoch, logs=None):
        self._report(self._steps)
        if self._steps > self._first:
            seconds = time.perf_counter() - self._start
            self.seconds_per_step = seconds / (self._steps - self._first)

    def _report(self, done):
        if self._progress is not None:
            self._progress.advance(done - self._last_report)
        self._last_report = done


def fit_in_one_epoch(model, inputs, targets, batch_size, progress=None):
    """Fits a compiled model to batches in the order given.

    One long epoch costs a fraction of many short ones: `fit` pays a fixed
    price for each.

    Args:
        model: a compiled `keras.Model`.
        inputs: examples in the order of training, epochs included.
        targets: their targets.
        batch_size: examples a step.
        progress: a `Progress`, or `None`.

    Returns:
        The seconds a step took; `None` for a single step. The first tenth of
        the steps is left out, compilation with it.
    """
    steps = -(-len(inputs) // batch_size)
    clock = _StepClock(progress, steps)
    model.fit(
        inputs,
        targets,
        batch_size=batch_size,
        shuffle=False,
        verbose=0,
        callbacks=[clock],
    )
    return clock.seconds_per_step


def restart(model, other):
    """Gives a compiled model the weights of another and forgets its steps.

    A new model would compile anew.

    Args:
        model: a compiled `keras.Model` whose optimizer has been built or not.
        other: a model of the same layers.
    """
    model.set_weights(other.get_weights())
    for variable in model.optimizer.variables:
        variable.assign(np.zeros(variable.shape))
