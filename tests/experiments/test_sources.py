import numpy as np
import pytest

from keras_gating.experiments import sources
from keras_gating.experiments.sources_model import ARMS
from keras_gating.experiments.sources_model import BUDGET
from keras_gating.experiments.sources_model import DIM
from keras_gating.experiments.sources_model import FIRST
from keras_gating.experiments.sources_model import SECOND
from keras_gating.experiments.sources_model import SETTINGS
from keras_gating.experiments.sources_model import SIGN
from keras_gating.experiments.sources_model import TASKS
from keras_gating.experiments.sources_model import TOKENS
from keras_gating.experiments.sources_model import Reader
from keras_gating.experiments.sources_model import arms_by_name
from keras_gating.experiments.sources_model import sequences
from tests.experiments.reporting import check_difference
from tests.experiments.reporting import check_mean
from tests.experiments.reporting import check_reports
from tests.utils import to_numpy

CROSS, _, SELF, _ = SETTINGS
BY_ARM = pytest.mark.parametrize("arm", ARMS, ids=lambda arm: arm.name)


def reader(arm, uniform=True):
    """A reader with random weights, frozen ones left at zero."""
    made = Reader(arm, uniform)
    made.build()
    rng = np.random.default_rng(3)
    for variable in made.trainable_variables:
        variable.assign(rng.normal(size=variable.shape))
    return made


def tokens(setting=CROSS, count=64):
    return sequences(np.random.default_rng(0), count, setting)


@BY_ARM
def test_arms_have_equal_parameters(arm):
    assert reader(arm).attention.count_params() == pytest.approx(
        BUDGET, rel=0.05
    )


@BY_ARM
def test_who_cannot_see_the_query_is_blind_to_it(arm):
    inputs = tokens()
    other = inputs.copy()
    other[:, 0] = inputs[::-1, 0]
    made = reader(arm)
    before, after = to_numpy(made(inputs)), to_numpy(made(other))
    moved = np.abs(before - after).max()
    if arm.reach["query"]:
        assert moved > 1e-2
    else:
        assert moved < 1e-5


@BY_ARM
def test_who_sees_means_only_is_blind_to_the_tokens(arm):
    inputs = tokens()
    other = inputs.copy()
    other[:, 1:] = inputs[:, 1:].mean(axis=1, keepdims=True)
    made = reader(arm)
    before, after = to_numpy(made(inputs)), to_numpy(made(other))
    moved = np.abs(before - after).max() / np.abs(before).max()
    if arm.reach["tokens"] == 1.0:
        assert moved > 1e-2
    else:
        assert moved < 1e-5


@BY_ARM
def test_who_cannot_multiply_means_is_affine_in_them(arm):
    ends = tokens(count=2)[:, 1:]
    query = tokens(count=1)[:, :1]
    if arm.reach["context"] == 1.0 / TOKENS:
        # Additive over tokens: exchanging tokens of two sequences.
        first, second = ends[0], ends[1]
        mixed = [
            np.concatenate([a[:2], b[2:]])
            for a, b in ((first, second), (second, first))
        ]
        left, right = np.stack([first, second]), np.stack(mixed)
    else:
        middle = ends.mean(axis=0, keepdims=True)
        left, right = ends, np.concatenate([middle, middle])
    made = reader(arm)
    sums = [
        to_numpy(made(np.concatenate([np.repeat(query, 2, 0), x], 1))).sum()
        for x in (left, right)
    ]
    affine = sums[0] == pytest.approx(sums[1], rel=1e-4, abs=1e-4)
    assert affine == (arm.reach["context"] != 1.0)


def test_the_quarter_is_what_the_products_share():
    inputs = tokens(count=200_000)
    _, means, products = sources.targets(inputs).T
    assert np.square(np.corrcoef(means, products)[0, 1]) == pytest.approx(
        1.0 / TOKENS, abs=0.01
    )


def test_targets_are_products_of_unit_variance():
    inputs = tokens(count=100_000)
    by_task = dict(zip(TASKS, sources.targets(inputs).T))
    for target in by_task.values():
        assert target.mean() == pytest.approx(0.0, abs=0.02)
        assert target.var() == pytest.approx(1.0, abs=0.05)
    query, context = inputs[7, 0], np.float64(inputs[7, 1:])
    assert abs(query[SIGN]) == 1.0
    x, y = context[:, FIRST], context[:, SECOND]
    expected = {
        "query": query[SIGN] * x.mean() * TOKENS**0.5,
        "context": x.mean() * y.mean() * TOKENS,
        "tokens": (x * y).mean() * TOKENS**0.5,
    }
    for task, value in expected.items():
        assert by_task[task][7] == pytest.approx(value, rel=1e-4)


def test_only_in_self_attention_the_query_is_a_token():
    own, apart = tokens(SELF), tokens(CROSS)
    assert own.shape == apart.shape == (64, 1 + TOKENS, DIM)
    assert np.array_equal(own[:, 0], own[:, 1])
    assert not np.isclose(apart[:, :1, FIRST], apart[:, 1:, FIRST]).any()


def test_explained_variance():
    target = np.array([0.0, 2.0, 4.0])
    outputs = np.stack([np.full(3, 2.0), target, target + 4.0], axis=-1)
    shares = sources.explained(outputs, target)
    np.testing.assert_allclose(shares, [0.0, 1.0, 1.0 - 16.0 / target.var()])


def test_results_keep_the_bounds(tmp_path):
    names = ["ungated", "context"]
    results = sources.run(seeds=2, quick=True, arms=names, steps=60)
    (setting,) = results.measurements["settings"].values()
    assert list(setting["arms"]) == names
    for name, arm in setting["arms"].items():
        for task, entry in arm["tasks"].items():
            check_mean(entry["explained"])
            check_mean(entry["accuracy"])
            assert entry["reach"] == arms_by_name([name])[0].reach[task]
            # A share of the test set's own variance, so chance adds a little.
            assert max(entry["explained"]["values"]) <= entry["reach"] + 0.05
            compared = name == "context" and task != "query"
            assert ("difference" in entry) == compared
            if compared:
                check_difference(
                    entry["difference"],
                    entry["explained"],
                    setting["arms"]["ungated"]["tasks"][task]["explained"],
                )
    text = check_reports(results, tmp_path)
    assert "output gate, context" in text


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"seeds": 0}, "seeds=0"),
        ({"steps": 0}, "steps=0"),
        ({"arms": ["query", "key"]}, "'key'"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        sources.run(**arguments)
