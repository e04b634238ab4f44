"""Blends: weights that were planted are found, and log-odds are what is averaged."""

import numpy as np
import numpy.typing as npt
import pytest

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


@pytest.mark.parametrize(
    ("weights", "n_categories"), [([0.6, 0.4], 2), ([0.9, 0.0, 0.3], 4), ([1.5, 0.2], 2)]
)
def test_planted_weights_are_recovered(weights: list[float], n_categories: int) -> None:
    logs, truth = planted(weights, 40_000, n_categories, 0)
    assert learn_weights(logs, truth) == pytest.approx(weights, abs=0.03)


def test_what_is_worse_than_nothing_gets_no_weight() -> None:
    first, worse = learn_weights(*planted([1.0, -0.8], 20_000, 2, 1))
    assert worse == 0 and first > 0.7


def test_certainty_that_is_wrong_has_a_finite_cost() -> None:
    p = np.array([[[0.0, 1.0], [1.0, 0.0]] * 50, [[0.2, 0.8], [0.8, 0.2]] * 50])
    truth = np.array([1, 0] * 49 + [0, 1])
    weights = learn_weights(logarithms(p), truth)
    assert np.isfinite(weights).all()
    assert np.isfinite(np.log(blend(logarithms(p), weights))).all()
