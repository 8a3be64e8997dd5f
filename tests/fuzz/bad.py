"""Random bad calls: nothing but a clear error may come of them.

`python -m tests.fuzz.bad 10000` makes as many and prints what went wrong.
"""

import collections
import random
import sys
import warnings

import keras
import numpy as np

from tests.fuzz import kinds
from tests.fuzz.functions import FUNCTIONS
from tests.fuzz.kinds import NONSENSE
from tests.fuzz.kinds import SIZE
from tests.fuzz.subjects import SUBJECTS
from tests.fuzz.subjects import normal
from tests.utils import tensor
from tests.utils import to_numpy

FLAGS = ("use_causal_mask", "return_attention_scores")
# Words of clear messages, of Keras' own too.
CLEAR = ("Received", "incompatible", "Invalid dtype")
MASKS = (
    *("mask", "attention_mask", "query_mask"),
    *("value_mask", "key_mask", "inputs_mask"),
)


def trial(seed):
    """One bad call; returns what is wrong with how it went, or `None`."""
    rng = random.Random(seed)

    def pick(choices):
        return rng.choice(list(choices))

    kind = pick((construction, layer_call, function_call, decoding))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return kind(pick)


def construction(pick):
    """One argument of a right configuration is nonsense."""
    subject = SUBJECTS[pick(SUBJECTS)]
    config = subject.configuration(pick)
    name = pick(subject.arguments)
    bad = pick(subject.arguments[name].bad)
    return problem(subject.layer, {**config, name: bad}, name, must_raise=True)


def layer_call(pick):
    """One argument of a right call of a layer is wrong."""
    subject = SUBJECTS[pick(SUBJECTS)]
    config = subject.configuration(pick)
    call = subject.inputs(pick, config)
    layer = subject.layer(**config)
    if pick((True, False)):
        layer(**as_tensors(call))
    parameters = (*call, *set(FLAGS) & accepted(layer))
    name = pick(parameters)
    if name in FLAGS:
        bad, must_raise = pick(kinds.BOOLEAN.bad), True
    elif name in MASKS and pick((True, False)):
        bad, must_raise = longer(pick, call[name]), True
    elif pick((True, False)):
        bad, must_raise = misshapen(pick, call[name]), False
    else:
        bad = pick([v for v in NONSENSE if v is not None])
        must_raise = not isinstance(bad, np.ndarray)
    call[name] = bad
    return problem(layer, as_tensors(call), name, must_raise)


def function_call(pick):
    """One argument of a right call of a function is nonsense."""
    function, arguments, known = FUNCTIONS[pick(FUNCTIONS)]
    arguments = dict(arguments())
    name = pick({**arguments, **known})
    if name in known:
        bad, must_raise = pick(known[name].bad), True
    elif isinstance(arguments[name], np.ndarray) and pick((True, False)):
        bad, must_raise = misshapen(pick, arguments[name]), False
    else:
        bad, must_raise = pick(NONSENSE), False
    return problem(function, {**arguments, name: bad}, name, must_raise)


def decoding(pick):
    """The cache of a right step, or the place in it, is wrong."""
    subject = SUBJECTS[pick(("GatedAttention", "GatedAttentionUnit"))]
    is_unit = "chunk_size" in subject.arguments
    config = {"key_dim": 4}
    if is_unit:
        config["chunk_size"] = pick((None, 2))
    else:
        config["num_heads"] = 2
    layer = subject.layer(**config)
    x = normal(pick, 2, 3, 4)
    names = ("inputs",) if is_unit else ("query", "value")
    layer.build(*[x.shape] * len(names))
    if pick(range(4)) == 0:
        arguments = {"batch_size": 2, "max_length": 5}
        name = pick(arguments)
        bad = pick(SIZE.bad)
        if bad is None and config.get("chunk_size") is not None:
            return None
        return problem(layer.init_cache, {**arguments, name: bad}, name, True)
    call = {
        **{name: x for name in names},
        "cache": layer.init_cache(2, 5),
        "cache_update_index": 0,
        "use_causal_mask": True,
    }
    name = pick(("cache", "cache_update_index"))
    if name == "cache_update_index":
        bad = pick([v for v in NONSENSE if not kinds.among(0)(v)] + [3, 7])
    elif pick((True, False)):
        bad = pick([v for v in NONSENSE if v is not None])
    else:
        bad = dict(call["cache"])
        part = pick(bad)
        bad[part] = pick((*NONSENSE, misshapen(pick, to_numpy(bad[part]))))
        return problem(layer, as_tensors({**call, name: bad}), name, False)
    return problem(layer, as_tensors({**call, name: bad}), name, True)


def accepted(layer):
    return set(
        layer.call.__code__.co_varnames[: layer.call.__code__.co_argcount]
    )


def as_tensors(call):
    return {
        name: tensor(x)
        if isinstance(x, np.ndarray) and x.dtype.kind in "fib"
        else x
        for name, x in call.items()
    }


def longer(pick, x):
    axis = pick(range(x.ndim))
    sizes = [*x.shape]
    # A mask of one row, or for one head, would be right.
    sizes[axis] = sizes[axis] + 2
    return np.ones(sizes, x.dtype)


def misshapen(pick, x):
    """An array of another shape or dtype."""
    axis = pick(range(x.ndim)) if x.ndim else None
    changes = [
        lambda: x[None],
        lambda: x[..., None],
        lambda: x.astype("complex64"),
        lambda: x.astype(str),
        lambda: x.astype(object),
        lambda: x.astype("int64"),
        lambda: -1.0 - x.astype("float32"),
        lambda: x.astype("float32") * np.nan,
    ]
    if axis is not None:
        changes += [
            lambda: np.take(x, 0, axis),
            lambda: np.concatenate([x, x], axis),
            lambda: np.concatenate([x, x[:1]] if axis == 0 else [x, x], axis),
            lambda: np.take(x, [], axis),
        ]
    return pick(changes)()


def problem(function, arguments, name, must_raise):
    """What went wrong in a call of which one argument is bad."""
    bad = arguments[name]
    label = getattr(function, "__name__", type(function).__name__)
    where = f"{label}({name}={describe(bad)})"
    try:
        function(**arguments)
    except (ValueError, TypeError) as error:
        text = str(error)
        known = (name, repr(bad), str(bad), *CLEAR)
        if text and any(part in text for part in known):
            return None
        return f"{where}: unclear {type(error).__name__}: {first_line(text)}"
    except Exception as error:
        kind = type(error).__name__
        return f"{where}: {kind}: {first_line(str(error))}"
    return f"{where}: accepted" if must_raise else None


def describe(value):
    if isinstance(value, np.ndarray) or keras.ops.is_tensor(value):
        return f"<{value.dtype} {tuple(value.shape)}>"
    return repr(value)[:40]


def first_line(text):
    return (text.strip() or "no text").splitlines()[0][:150]


def main(count, seed=0):
    found = collections.Counter()
    for number in range(count):
        if (what := trial(seed + number)) is not None:
            found[what] += 1
    for what, times in sorted(found.items()):
        print(times, what)
    print(f"{count} bad calls, {sum(found.values())} went wrong.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
