import warnings

import keras

from keras_gating.diagnostics import learning_rate
from keras_gating.diagnostics.batches import input_batches
from keras_gating.diagnostics.event_file import EventFile
from keras_gating.diagnostics.statistics import check_thresholds
from keras_gating.diagnostics.statistics import gate_statistics
from keras_gating.diagnostics.watching import may_have_gates
from keras_gating.diagnostics.watching import no_gates
from keras_gating.functional import checks

_STATISTICS = ("mean", "spread", "share_low", "share_high", "share_negative")


class GateMonitor(keras.callbacks.Callback):
    """Watches the gates of a model while it is trained.

    At the end of each epoch it calls the model on data of its own, eagerly and
    with `training=False`, and adds statistics of each gate to the logs, under
    `gate/<path of the layer>/<statistic>`: `History`, `CSVLogger` and the
    progress bar see them like any metric, and so does `EarlyStopping`, told its
    `mode`, if it comes later in the list of callbacks. The step of training
    stays compiled.

    A gate in [0, 1] saturates when nearly all of its values are next to 0 or
    1, where its slope, and so the gradient of its network, vanishes. Each
    layer with such a gate, or with values that are not finite, causes one
    `RuntimeWarning` in a call of `fit`, which says what to change; `action`
    does more.

    Args:
        data: inputs to watch the gates on, as in `gate_statistics`; a small
            batch is enough. The batches of a generator are read once and kept.
        log_dir: local folder for event files, which TensorBoard shows:
            statistics and histograms of the values. Needs the package
            `tensorboard`, but not TensorFlow. Defaults to `None`, none.
        update_freq: `"epoch"`, or a number of batches after which to look,
            besides the end of each epoch. Defaults to `"epoch"`.
        batch_size: size of the batches that arrays are cut into. Defaults to
            32.
        steps: number of batches. Defaults to all; generators need it.
        statistics: names of those to log, among `"mean"`, `"spread"`, for
            gates in [0, 1] `"share_low"` and `"share_high"`, for others
            `"share_negative"`. Defaults to all.
        low: a value below is next to 0. Defaults to 0.01, where the slope of a
            sigmoid is 4 % of its largest.
        high: a value above is next to 1. Defaults to 0.99.
        saturation: share of values below `low` or above `high` from which on
            a gate is saturated. Defaults to 0.9.
        action: what to do besides warning: `None`, `"stop"` the training, or
            `"reduce_lr"`, which multiplies the learning rate by `factor`.
        patience: number of looks in a row that find a saturated gate before
            the action is taken (again). Defaults to 1.
        factor: factor on the learning rate, below 1. Defaults to 0.1.
        min_lr: lower bound of the learning rate. Defaults to 0.0.

    Attributes:
        looks: for each look, the number of batches that the monitor had seen
            the model trained on.
        history: lists of what was found, a number for each look, by the keys
            of the logs.

    Raises:
        ValueError: for bad arguments and data, for a model without gates, and
            for `"reduce_lr"` with a learning rate that is a schedule.

    Example:

    >>> import keras
    >>> import numpy as np
    >>> from keras_gating import diagnostics, layers
    >>> x = np.random.default_rng(0).normal(size=(64, 6)).astype("float32")
    >>> model = keras.Sequential([layers.Gate(name="gate")], name="model")
    >>> model.compile("sgd", "mse")
    >>> monitor = diagnostics.GateMonitor(x, statistics=["mean"])
    >>> history = model.fit(x, x, epochs=2, verbose=0, callbacks=[monitor])
    >>> sorted(history.history)
    ['gate/model/gate/mean', 'loss']
    """

    def __init__(
        self,
        data,
        log_dir=None,
        update_freq="epoch",
        batch_size=32,
        steps=None,
        statistics=_STATISTICS,
        low=0.01,
        high=0.99,
        saturation=0.9,
        action=None,
        patience=1,
        factor=0.1,
        min_lr=0.0,
    ):
        super().__init__()
        self.update_freq = update_freq
        self.statistics = statistics
        self.low, self.high = low, high
        self.saturation = saturation
        self.action = action
        self.patience = patience
        self.factor = factor
        self.min_lr = min_lr
        self._check_arguments()
        batches, _ = input_batches(data, batch_size, steps)
        # A generator gives its batches once.
        self._kept = list(batches) if hasattr(data, "__next__") else None
        self._data = {"data": data, "batch_size": batch_size, "steps": steps}
        self._events = None if log_dir is None else EventFile(log_dir)
        # Keras may go on while another thread calls what follows a batch. To
        # look at the model then, it has to wait.
        self.async_safe = update_freq == "epoch"
        self.looks = []
        self.history = {}
        self._scalars = {}
        self._step = self._epoch_start = 0
        self._warned = set()
        self._waited = 0

    def on_train_begin(self, logs=None):
        self._warned = set()
        self._waited = 0
        model = self.model
        if model.built and not may_have_gates(model):
            raise no_gates(model)
        if self.action == "reduce_lr":
            learning_rate.check_settable(model.optimizer)

    def on_epoch_begin(self, epoch, logs=None):
        self._epoch_start = self._step

    def on_train_batch_end(self, batch, logs=None):
        before = self._step
        # The largest, should threads overtake each other.
        self._step = max(before, self._epoch_start + batch + 1)
        every = self.update_freq
        if every != "epoch" and self._step // every > before // every:
            self._look()

    def on_epoch_end(self, epoch, logs=None):
        logs = {} if logs is None else logs
        if self.action == "reduce_lr":
            # As Keras logs it: the one that the epoch had.
            logs.update(learning_rate.learning_rates(self.model.optimizer))
        if not self.looks or self.looks[-1] != self._step:
            self._look()
        logs.update(self._scalars)

    def on_train_end(self, logs=None):
        if self._events is not None:
            self._events.close()

    def _look(self):
        data = dict(self._data)
        if self._kept is not None:
            data["data"] = iter([(inputs,) for inputs in self._kept])
            data["steps"] = len(self._kept)
        found = gate_statistics(
            self.model, low=self.low, high=self.high, **data
        )
        scalars = {
            f"gate/{path}/{name}": summary[name]
            for path, summary in found.items()
            for name in self.statistics
            if name in summary
        }
        self._scalars = scalars
        self.looks.append(self._step)
        for key, value in scalars.items():
            self.history.setdefault(key, []).append(value)
        if self._events is not None:
            self._events.write(self._step, scalars, found)
        advice = {path: self._advice(path, own) for path, own in found.items()}
        self._respond({path: text for path, text in advice.items() if text})

    def _respond(self, advice):
        for path, text in advice.items():
            if path not in self._warned:
                self._warned.add(path)
                warnings.warn(text, RuntimeWarning, stacklevel=1)
        self._waited = self._waited + 1 if advice else 0
        if self.action is None or self._waited < self.patience:
            return
        self._waited = 0
        if self.action == "stop":
            self.model.stop_training = True
        else:
            learning_rate.lower(self.model.optimizer, self.factor, self.min_lr)

    def _advice(self, path, summary):
        """What is wrong with a gate and what to do, or `None`."""
        if summary["share_nonfinite"]:
            return (
                f"The gate {path!r} is broken after {self._step} batches: "
                f"{summary['share_nonfinite']:.1%} of its values are infinite "
                "or NaN. Lower the learning rate or clip the gradients, and "
                "start from weights that are finite."
            )
        share = summary.get("share_low", 0.0) + summary.get("share_high", 0.0)
        if share < self.saturation:
            return None
        return (
            f"The gate {path!r} is saturated after {self._step} batches: "
            f"{summary['share_low']:.1%} of its values are below {self.low} "
            f"and {summary['share_high']:.1%} above {self.high}, where it "
            "hardly learns. Lower the learning rate, normalize what the gate "
            "reads, start its kernel at zero (`gate_initializer`, or "
            "`kernel_initializer` of a `Gate`), or take an activation that "
            'does not saturate on both sides, such as "silu".'
        )

    def _check_arguments(self):
        check_thresholds(self.low, self.high)
        if self.update_freq != "epoch" and (
            not checks.is_integer(self.update_freq) or self.update_freq < 1
        ):
            raise ValueError(
                '`update_freq` must be "epoch" or a positive number of '
                f"batches. Received: update_freq={self.update_freq!r}"
            )
        if not isinstance(self.statistics, (list, tuple)):
            raise ValueError(
                "`statistics` must be a list of names. Received: "
                f"statistics={self.statistics!r}"
            )
        for name in self.statistics:
            checks.one_of("statistics", name, _STATISTICS)
        if self.action is not None:
            checks.one_of("action", self.action, ("stop", "reduce_lr"))
        checks.positive_integer("patience", self.patience)
        checks.positive_number("saturation", self.saturation)
        checks.positive_number("factor", self.factor)
        if self.saturation > 1.0 or self.factor >= 1.0:
            raise ValueError(
                "`saturation` is a share, at most 1, and `factor` below 1. "
                f"Received: saturation={self.saturation!r}, "
                f"factor={self.factor!r}"
            )
        if not checks.is_number(self.min_lr) or self.min_lr < 0.0:
            raise ValueError(
                "`min_lr` must be a number of 0 or more. Received: "
                f"min_lr={self.min_lr!r}"
            )
        self._check_effect()

    def _check_effect(self):
        """Raises for arguments that concern an action that is not taken."""
        needed = {
            "patience": (1, ("stop", "reduce_lr")),
            "factor": (0.1, ("reduce_lr",)),
            "min_lr": (0.0, ("reduce_lr",)),
        }
        for name, (default, actions) in needed.items():
            value = getattr(self, name)
            if value != default and self.action not in actions:
                raise ValueError(
                    f"`{name}` has no effect with action={self.action!r}. "
                    f"Received: {name}={value!r}"
                )
