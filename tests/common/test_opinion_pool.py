"""Blends: weights that were planted are found, and log-odds are what is averaged."""

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.opinion_pool import blend, learn_weights, logarithms


def planted(
    weights: list[float], n: int, n_categories: int, seed: int
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    """Return logarithms of random probabilities, and outcomes drawn from their blend."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(n_categories, 2.0), (len(weights), n))
    logs = logarithms(p)
    truth = (rng.random(n)[:, None] > blend(logs, np.array(weights)).cumsum(axis=1)).sum(axis=1)
    return logs, np.minimum(truth, n_categories - 1)


@pytest.mark.parametrize("n_categories", [2, 4])
@pytest.mark.parametrize("weights", [[0.6, 0.4], [0.9, 0.0, 0.3], [1.5, 0.2]])
def test_planted_weights_are_recovered(weights: list[float], n_categories: int) -> None:
    logs, truth = planted(weights, 40_000, n_categories, 0)
    assert learn_weights(logs, truth) == pytest.approx(weights, abs=0.03)


def test_what_is_worse_than_nothing_gets_no_weight() -> None:
    logs, truth = planted([1.0, -0.8], 20_000, 2, 1)
    weights = learn_weights(logs, truth)
    assert weights[1] == 0
    assert weights[0] > 0.7


def test_right_and_wrong_average_their_log_odds() -> None:
    """0.9 and 0.5 with weights of one half: the log-odds 2.197 and 0 make 1.099, that is 0.75."""
    logs = logarithms(np.array([[[0.1, 0.9]], [[0.5, 0.5]]]))
    assert blend(logs, np.array([0.5, 0.5]))[0] == pytest.approx([0.25, 0.75], abs=1e-6)


@given(st.integers(0, 1000), st.integers(2, 4))
def test_blends_are_probabilities_and_one_file_alone_is_itself(seed: int, n: int) -> None:
    logs, _ = planted([1.0, 0.0, 2.0], 20, n, seed)
    p = blend(logs, np.array([0.3, 0.2, 0.9]))
    assert np.allclose(p.sum(axis=1), 1)
    assert (p > 0).all()
    alone = blend(logs, np.array([0.0, 1.0, 0.0]))
    assert np.allclose(alone, np.exp(logs[1]), atol=1e-5)


def test_certainty_that_is_wrong_has_a_finite_cost() -> None:
    p = np.array([[[0.0, 1.0], [1.0, 0.0]] * 50, [[0.2, 0.8], [0.8, 0.2]] * 50])
    truth = np.array([1, 0] * 49 + [0, 1])
    weights = learn_weights(logarithms(p), truth)
    assert np.isfinite(weights).all()
    assert np.isfinite(np.log(blend(logarithms(p), weights))).all()


def test_learning_needs_few_of_the_answers_to_be_better_than_equal_weights() -> None:
    logs, truth = planted([1.0, 0.05], 5000, 2, 2)
    rest, rest_truth = planted([1.0, 0.05], 5000, 2, 3)

    def loss(weights: list[float] | npt.NDArray[np.float64]) -> float:
        chosen = np.take_along_axis(blend(rest, np.array(weights)), rest_truth[:, None], axis=1)
        return float(-np.log(chosen).mean())

    assert loss(learn_weights(logs, truth)) < loss([0.5, 0.5]) - 0.01
