"""Random bad calls end in a clear `ValueError` or `TypeError`."""

import inspect

import pytest

from keras_gating import functional
from keras_gating import geometry
from keras_gating import layers
from tests.fuzz import bad
from tests.fuzz.functions import FUNCTIONS
from tests.fuzz.profiles import on_torch_unless_long
from tests.fuzz.subjects import SUBJECTS

# Arguments of `keras.layers.Layer`, which it checks itself, and open ends.
OF_KERAS = {"self", "kwargs", "name", "dtype", "trainable", "autocast"}
OF_KERAS |= {"activity_regularizer", "gated_attention_arguments"}


def test_every_layer_and_argument_is_drawn():
    assert {x.layer.__name__ for x in SUBJECTS.values()} == {
        name for name, x in vars(layers).items() if inspect.isclass(x)
    }
    for subject in SUBJECTS.values():
        known = set(subject.arguments)
        for base in subject.layer.__mro__:
            if base.__module__.startswith("keras_gating."):
                own = set(inspect.signature(base.__init__).parameters)
                assert own - OF_KERAS <= known, base


def test_every_function_is_called():
    names = {name.rpartition(".")[2] for name in FUNCTIONS}
    # Contexts, classes and modules are tested by themselves.
    others = {"explicit_attention", "record_into", "AttentionLayout"}
    for module in (functional, geometry):
        public = {
            name
            for name, x in vars(module).items()
            if callable(x) and not name.startswith("_")
        }
        assert public - others <= names


@on_torch_unless_long
@pytest.mark.parametrize("start", [0, 300])
def test_bad_calls(start):
    problems = [bad.trial(seed) for seed in range(start, start + 300)]
    assert [problem for problem in problems if problem] == []
