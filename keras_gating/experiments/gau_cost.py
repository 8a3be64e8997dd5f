"""Time and memory of the gated attention unit against the length.

Run as a program it measures and prints, so that a process of its own, without
the memory of others, can do so: `measure` starts it.
"""

import dataclasses
import functools
import json
import os
import subprocess
import sys
import tempfile

import keras
import numpy as np

from keras_gating.diagnostics.timing import time_in_turns
from keras_gating.experiments import gau_model
from keras_gating.experiments.memory import peak_memory

_PROGRAM = "keras_gating.experiments.gau_cost"
HEADS = 2
LENGTHS = (256, 512, 1024, 2048, 4096, 8192)
TASKS = ("inference", "training")
SIZES = {"dim": 128, "key_dim": 64, "block_size": 512, "chunk_size": 256}
QUICK = {"dim": 16, "key_dim": 8, "block_size": 16, "chunk_size": 16}
QUICK_LENGTHS = (64,)
# Rounds of all forms in turn, the fewer if they take long.
MIN_ROUNDS, MAX_ROUNDS = 3, 15


@dataclasses.dataclass(frozen=True)
class Form:
    """One way to compute a block.

    Args:
        name: key of the form in the results.
        title: the form in words.
        size: the argument of `GatedAttentionUnit` that makes the form, an
            entry of `SIZES`, or `None` for attention and feed-forward layer.
    """

    name: str
    title: str
    size: str | None = None


BASELINE = "attention"
FORMS = (
    Form(BASELINE, "attention, feed-forward"),
    Form("quadratic", "units, quadratic", "all"),
    Form("blockwise", "units, blockwise", "block_size"),
    Form("chunked", "units, chunked", "chunk_size"),
)


def build(form, length, sizes):
    """A compiled model of one block in a form: `(1, length, dim)` to same."""
    dim, key_dim = sizes["dim"], sizes["key_dim"]
    inputs = keras.Input((length, dim))
    if form.size is None:
        hidden = gau_model.matched_feed_forward(dim, 2 * dim, key_dim)
        outputs = gau_model.attention_and_feed_forward(
            inputs, HEADS, hidden, "block"
        )
    else:
        argument = {"block_size": None}
        if form.size != "all":
            argument = {form.size: sizes[form.size]}
        make = functools.partial(gau_model.whole_unit, key_dim, **argument)
        outputs = gau_model.two_units(inputs, make)
    model = keras.Model(inputs, outputs)
    model.compile(keras.optimizers.SGD(1e-3), "mse")
    return model


def measure(lengths=None, quick=False, on_row=None):
    """Measures all forms at every length, in a process of its own.

    Args:
        lengths: numbers of positions. Defaults to `LENGTHS`.
        quick: small sizes and lengths, to try the program out.
        on_row: function `(row)` that is called as soon as there is one.

    Returns:
        Rows: dictionaries with `length`, `task`, `form`, `parameters`,
        `seconds`, the median of several calls; `ratio`, the median of what
        the same round took over attention and feed-forward layer, and its
        quartiles `low` and `high`; and `peak_bytes`, which may be `None`.
    """
    request = {
        "lengths": list(lengths or (QUICK_LENGTHS if quick else LENGTHS)),
        "forms": [form.name for form in FORMS],
        "sizes": QUICK if quick else SIZES,
        "rounds": [2, 2] if quick else [MIN_ROUNDS, MAX_ROUNDS],
    }
    command = [sys.executable, "-m", _PROGRAM, json.dumps(request)]
    environment = {
        **os.environ,
        "KERAS_BACKEND": keras.config.backend(),
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "TF_CPP_MIN_LOG_LEVEL": "2",
    }
    rows = []
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8") as errors,
        subprocess.Popen(
            command,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=errors,
            encoding="utf-8",
        ) as process,
    ):
        for line in process.stdout:
            if line.startswith("{"):
                rows.append(json.loads(line))
                if on_row is not None:
                    on_row(rows[-1])
        code = process.wait()
        if code:
            errors.seek(0)
            raise RuntimeError(
                "The process that measures time and memory ended with the "
                f"code {code} after {len(rows)} measurements. Its last words:\n"
                f"{errors.read()[-2000:]}"
            )
    return rows


def measure_length(length, forms, sizes, rounds):
    """Yields the rows of one length and of the forms of these names."""
    models = {
        form.name: build(form, length, sizes)
        for form in FORMS
        if form.name in forms
    }
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(1, length, sizes["dim"])).astype("float32")
    for task in TASKS:
        calls = {
            name: functools.partial(_TASKS[task], model, inputs)
            for name, model in models.items()
        }
        peaks = {}
        for name, call in calls.items():
            call()  # compiles
            peaks[name] = peak_memory(call)
        seconds = time_in_turns(calls, *rounds)
        baseline = np.array(seconds[BASELINE])
        for name, values in seconds.items():
            ratios = np.array(values) / baseline
            low, middle, high = np.quantile(ratios, [0.25, 0.5, 0.75])
            yield {
                "length": length,
                "task": task,
                "form": name,
                "parameters": models[name].count_params(),
                "seconds": float(np.median(values)),
                "ratio": float(middle),
                "low": float(low),
                "high": float(high),
                "peak_bytes": peaks[name],
            }


def faster_from(rows, form, task):
    """The length from which on a form is faster than the baseline.

    Faster means that the upper quartile of the ratio is below 1.

    Returns:
        The smallest measured length at which, and at all greater ones, the
        form is faster; `None` if there is none.
    """
    smallest = None
    for row in reversed(of(rows, form, task)):
        if row["high"] >= 1.0:
            break
        smallest = row["length"]
    return smallest


def growth(rows, form, task, key="seconds"):
    """Exponent with which time or memory grows at the last three lengths."""
    last = of(rows, form, task)[-3:]
    values = [row[key] for row in last]
    if len(last) < 2 or not all(values):
        return None
    lengths = [row["length"] for row in last]
    return float(np.polyfit(np.log(lengths), np.log(values), 1)[0])


def forms_in(rows):
    """The measured forms, the baseline first."""
    names = {row["form"] for row in rows}
    return [form for form in FORMS if form.name in names]


def of(rows, form, task):
    """The rows of a form and a task, by length."""
    chosen = (r for r in rows if (r["form"], r["task"]) == (form, task))
    return sorted(chosen, key=lambda row: row["length"])


def _infer(model, inputs):
    model.predict_on_batch(inputs)


def _train(model, inputs):
    model.train_on_batch(inputs, inputs)


_TASKS = {"inference": _infer, "training": _train}


def main(request):
    """Prints the rows that a request of `measure` asks for."""
    for length in request.pop("lengths"):
        for row in measure_length(length, **request):
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
