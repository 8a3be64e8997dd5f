import keras
import numpy as np
import pytest

from keras_gating.experiments import characters
from keras_gating.experiments import feedforward
from keras_gating.experiments import feedforward_model
from keras_gating.experiments.characters import ALPHABET
from keras_gating.experiments.characters import VOCABULARY
from keras_gating.experiments.feedforward_model import ARMS
from keras_gating.experiments.feedforward_model import DIM
from keras_gating.experiments.feedforward_model import PAIRS
from keras_gating.experiments.feedforward_model import arms_by_name
from keras_gating.layers import FeedForward
from tests.experiments.reporting import check_difference
from tests.experiments.reporting import check_mean
from tests.experiments.reporting import check_reports
from tests.marks import once
from tests.utils import to_numpy

SMALL = {"training": ["calendar"], "validation": ["textwrap"]}


@pytest.fixture
def small(monkeypatch):
    """A smaller model and shorter text."""
    text = characters.Text(**SMALL)
    monkeypatch.setattr(feedforward, "Text", lambda: text)
    monkeypatch.setattr(feedforward_model, "LENGTH", 16)
    monkeypatch.setattr(feedforward, "LENGTH", 16)
    monkeypatch.setattr(feedforward, "VALIDATION_WINDOWS", 64)


def test_arms_have_exactly_equal_parameters():
    counts = set()
    for arm in ARMS:
        layer = arm.layer()
        layer.build((None, 4, DIM))
        assert isinstance(layer, FeedForward) == (arm.variant is None)
        counts.add(layer.count_params())
    assert len(counts) == 1


def test_every_arm_is_compared_with_relu_and_gates_with_their_activation():
    names = [arm.name for arm in ARMS]
    assert sorted(n for n, second in PAIRS if second == "relu") == sorted(
        names[1:]
    )
    assert {("geglu", "gelu"), ("swiglu", "swish")} < set(PAIRS)


def test_characters_are_numbered_and_others_share_the_last_number():
    text = "a\nb? é∑\t"
    codes = characters.encode(text)
    for code, character in zip(codes, text):
        inside = character in ALPHABET
        assert code == (ALPHABET.index(character) if inside else VOCABULARY - 1)


def test_windows_are_the_text_and_its_next_characters():
    codes = characters.encode(ALPHABET * 3)
    for inputs, targets in (
        characters.windows(codes, [0, 5], 7),
        characters.random_windows(codes, np.random.default_rng(0), 50, 7),
        characters.even_windows(codes, 9, 7),
    ):
        assert inputs.shape == targets.shape and inputs.shape[1] == 7
        assert np.array_equal(inputs[:, 1:], targets[:, :-1])
        assert np.array_equal((inputs[:, 0] + 1) % 96, targets[:, 0])
    inputs, targets = characters.even_windows(codes, 9, 7)
    assert inputs[0, 0] == codes[0] and targets[-1, -1] == codes[-1]


def test_text_is_there_and_its_parts_are_apart():
    assert not set(characters.TRAINING) & set(characters.VALIDATION)
    text = characters.Text()
    assert len(text.training) > 2_000_000 and len(text.validation) > 200_000
    # Nearly all characters have a number of their own.
    assert np.mean(text.training == VOCABULARY - 1) < 1e-3
    again = characters.Text()
    assert again.digest == text.digest != characters.Text(**SMALL).digest
    with pytest.raises(FileNotFoundError, match="no_such_module.py"):
        characters.Text(training=["no_such_module"])


def test_models_see_no_later_character(small):
    model = feedforward_model.build(arms_by_name(["swiglu"])[0])
    first, _ = characters.even_windows(characters.Text(**SMALL).training, 3, 16)
    second = first.copy()
    second[:, 9:] = 5
    before, after = (to_numpy(model(x)) for x in (first, second))
    np.testing.assert_allclose(before[:, :9], after[:, :9], atol=1e-5)
    assert np.abs(before[:, 9:] - after[:, 9:]).max() > 1e-3


@once
def test_results_are_consistent(small, tmp_path):
    names = ["relu", "swiglu"]
    results = feedforward.run(seeds=2, quick=True, arms=names, steps=15)
    arms = results.measurements["arms"]
    assert list(arms) == names
    assert arms["relu"]["parameters"] == arms["swiglu"]["parameters"]
    for arm in arms.values():
        check_mean(arm["loss"])
        # Better than knowing nothing, and seeds differ.
        assert max(arm["loss"]["values"]) < np.log(VOCABULARY)
        assert len(set(arm["loss"]["values"])) == 2
    (difference,) = results.measurements["differences"]
    check_difference(difference, arms["swiglu"]["loss"], arms["relu"]["loss"])
    assert difference["published"] == [-0.053, -0.041]
    text = check_reports(results, tmp_path)
    assert "SwiGLU − ReLU" in text and "1.944" in text


def test_learning_rate_warms_up_and_decays_to_zero(small):
    model = feedforward._compiled(ARMS[0], 1e-2, steps=50)
    schedule = model.optimizer._learning_rate
    assert isinstance(schedule, keras.optimizers.schedules.CosineDecay)
    rates = [float(to_numpy(schedule(step))) for step in range(51)]
    assert rates[0] == 0.0 and rates[50] == pytest.approx(0.0, abs=1e-6)
    assert np.argmax(rates) == 5 and max(rates) == pytest.approx(1e-2)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"seeds": 0}, "seeds=0"),
        ({"steps": 0}, "steps=0"),
        ({"arms": ["relu", "selu"]}, "selu"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        feedforward.run(**arguments)
