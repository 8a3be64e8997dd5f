import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from keras_gating.experiments.intervals import Interval
from keras_gating.experiments.intervals import mean_interval
from keras_gating.experiments.intervals import paired_difference
from keras_gating.experiments.intervals import verdict
from keras_gating.experiments.intervals import wilson_interval

TRIALS = st.integers(1, 500).flatmap(
    lambda trials: st.tuples(st.integers(0, trials), st.just(trials))
)


@pytest.mark.parametrize("successes", [0, 1, 9, 20])
@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99])
def test_wilson_is_that_of_scipy(successes, confidence):
    expected = stats.binomtest(successes, 20).proportion_ci(
        confidence, method="wilson"
    )
    interval = wilson_interval(successes, 20, confidence)
    np.testing.assert_allclose(
        [interval.low, interval.high], [expected.low, expected.high], atol=1e-12
    )


def test_wilson_of_no_success_has_its_closed_form():
    z = stats.norm.ppf(0.975)
    interval = wilson_interval(0, 200)
    assert interval.low == 0.0
    assert interval.high == pytest.approx(z**2 / (200 + z**2), rel=1e-12)


@given(TRIALS)
def test_wilson_stays_within_its_bounds_and_is_symmetric(counts):
    successes, trials = counts
    interval = wilson_interval(successes, trials)
    assert 0.0 <= interval.low <= interval.estimate <= interval.high <= 1.0
    assert interval.high - interval.low > 0.0
    mirrored = wilson_interval(trials - successes, trials)
    assert mirrored.low == pytest.approx(1.0 - interval.high, abs=1e-12)


@pytest.mark.parametrize("successes, trials", [(0, 0), (-1, 3), (4, 3)])
def test_wilson_refuses_impossible_counts(successes, trials):
    with pytest.raises(ValueError, match=f"successes={successes}"):
        wilson_interval(successes, trials)


@pytest.mark.parametrize("confidence", [0.0, 1.0, 95])
def test_confidence_is_between_0_and_1(confidence):
    with pytest.raises(ValueError, match=f"confidence={confidence}"):
        wilson_interval(1, 2, confidence)
    with pytest.raises(ValueError, match=f"confidence={confidence}"):
        mean_interval([1.0, 2.0], confidence)


@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_intervals_of_means_are_those_of_scipy(confidence):
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(2, 7))
    for interval, test in (
        (mean_interval(first, confidence), stats.ttest_1samp(first, 0.0)),
        (
            paired_difference(first, second, confidence),
            stats.ttest_rel(first, second),
        ),
    ):
        expected = test.confidence_interval(confidence)
        np.testing.assert_allclose(
            [interval.low, interval.high],
            [expected.low, expected.high],
            rtol=1e-10,
        )
        assert interval.estimate == pytest.approx(
            (expected.low + expected.high) / 2.0
        )


def test_one_observation_has_no_interval():
    assert mean_interval([3.0])[:3] == (3.0, None, None)


def test_pairs_take_away_what_they_share():
    shared = np.array([0.0, 10.0, 20.0, 30.0])
    interval = paired_difference(shared + 1.0, shared)
    assert interval.low == pytest.approx(1.0) == interval.high
    unpaired = mean_interval(shared)
    assert unpaired.high - unpaired.low > 10.0


def test_empty_and_unequal_samples_are_refused():
    with pytest.raises(ValueError, match="must not be empty"):
        mean_interval([])
    with pytest.raises(ValueError, match="lengths 2 and 3"):
        paired_difference([1, 2], [1, 2, 3])


@pytest.mark.parametrize(
    "low, high, expected",
    [
        (-0.1, 0.2, "inside its interval: no difference shown"),
        (0.0, 0.2, "inside its interval: no difference shown"),
        (-0.2, 0.0, "inside its interval: no difference shown"),
        (0.001, 0.2, "higher"),
        (-0.2, -0.001, "lower"),
        (None, None, "one seed: no interval, nothing shown"),
    ],
)
def test_verdict_follows_from_the_interval(low, high, expected):
    estimate = 0.1 if low is None else math.fsum([low, high]) / 2.0
    assert verdict(Interval(estimate, low, high, 0.95, 5)) == expected
