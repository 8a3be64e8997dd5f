import random

import keras
import numpy as np
import pytest

from keras_gating.experiments.population import Population
from keras_gating.experiments.population import draw_weights
from keras_gating.experiments.population import seeded
from keras_gating.experiments.population import summed_squares
from keras_gating.experiments.training import Progress
from keras_gating.experiments.training import fit_in_one_epoch
from keras_gating.experiments.xor import INPUTS
from keras_gating.experiments.xor import TARGETS
from keras_gating.experiments.xor_arms import BitReader
from keras_gating.experiments.xor_arms import arms_by_name
from tests.utils import assert_close
from tests.utils import to_numpy


def build():
    network = BitReader(arms_by_name(["softmax_elementwise"])[0])
    network.build()
    return network


def single(weights):
    """The network on its own, with the weights of one member."""
    network = build()
    for variable, value in zip(network.trainable_variables, weights):
        variable.assign(value)
    return network


def trained(weights, steps):
    population = Population(build(), weights)
    population.compile(keras.optimizers.Adam(0.03), summed_squares)
    fit_in_one_epoch(
        population,
        np.tile(INPUTS, (steps, 1)),
        np.tile(TARGETS[:, None], (steps, 1)),
        batch_size=4,
    )
    return to_numpy(population(INPUTS))


def test_members_are_the_networks_with_their_weights():
    weights = draw_weights(build, [3, 4])
    outputs = to_numpy(Population(build(), weights)(INPUTS))
    assert outputs.shape == (4, 2)
    for column, member in zip(outputs.T, weights):
        assert_close(single(member)(INPUTS), column, 1e-5)
    assert np.abs(outputs[:, 0] - outputs[:, 1]).max() > 1e-2


def test_members_train_as_if_they_were_alone():
    weights = draw_weights(build, [0, 1])
    together = trained(weights, steps=12)
    alone = trained(weights[1:], steps=12)
    assert_close(together[:, 1:], alone, 1e-4)
    before = to_numpy(single(weights[1])(INPUTS))
    assert np.abs(alone[:, 0] - before).max() > 1e-2


def test_summed_squares_adds_one_term_a_member():
    outputs = np.array([[1.0, 2.0], [0.0, 0.0]], "float32")
    targets = np.array([[0.0], [1.0]], "float32")
    assert to_numpy(summed_squares(targets, outputs)).tolist() == [5.0, 2.0]


def test_seeds_fix_the_weights_and_leave_the_caller_alone():
    random.seed(7)
    state = random.getstate()
    first, second, again = draw_weights(build, [0, 1, 0])
    assert random.getstate() == state
    assert all(np.array_equal(a, b) for a, b in zip(first, again))
    # Biases and gates start at zero whatever the seed.
    moved = [not np.array_equal(a, b) for a, b in zip(first, second)]
    assert [a.any() for a in first] == moved and sum(moved) >= 6
    with pytest.raises(RuntimeError), seeded(1):
        raise RuntimeError
    assert random.getstate() == state


def test_a_population_has_members():
    with pytest.raises(ValueError, match=r"weights=\[\]"):
        Population(build(), [])


def test_progress_reaches_the_end_once_and_never_goes_back():
    seen = []
    progress = Progress(50, lambda description, share: seen.append(share))
    population = Population(build(), draw_weights(build, [0]))
    population.compile(keras.optimizers.Adam(0.03), summed_squares)
    progress.describe("training")
    seconds = fit_in_one_epoch(
        population,
        np.tile(INPUTS, (50, 1)),
        np.tile(TARGETS[:, None], (50, 1)),
        batch_size=4,
        progress=progress,
    )
    assert seen == sorted(seen)
    assert seen[0] == 0.0 and seen[-1] == 1.0 and len(seen) > 2
    assert seconds > 0.0
