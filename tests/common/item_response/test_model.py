"""Expectations over a normal logit, and the prior of the items.

Expectations are compared with quadrature, and the prior with sums by hand.
"""

from common.item_response import model
from common.item_response.model import Gaussians

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

# Means and variances of logits that are compared with quadrature.
MODERATE_MEANS = [-3, -0.5, 0, 2, 0, 1.5, -2, 0.8]
MODERATE_VARIANCES = [0, 0, 0, 0, 1, 0.5, 3, 0.6]
N_MODERATE = len(MODERATE_MEANS)
# Logits of variance 0 that are so large that only finite values are required.
EXTREME_MEANS = [-60, 60, -1e4, 1e4]


@pytest.mark.parametrize("guessing", [0.0, 0.2])
@pytest.mark.parametrize("right", [True, False])
def test_expectations_are_means_over_the_logit(guessing: float, right: bool) -> None:
    """Probability of knowing, slope and curvature are averaged over logits N(mean, variance).

    Slope and curvature are those of the log likelihood. The means are compared with Gauss-Hermite
    quadrature.
    """
    mean = np.array(MODERATE_MEANS + EXTREME_MEANS, np.float32)
    variance = np.array(MODERATE_VARIANCES + [0] * len(EXTREME_MEANS), np.float32)
    n = len(mean)
    p_knows = model.expected_probability(mean, variance)
    slope, curvature = model.expected_slope_and_curvature(
        mean, variance, np.full(n, right), np.full(n, guessing, np.float32)
    )
    # The last two logits are -10,000 and 10,000.
    assert_array_equal(p_knows[-2:], [0, 1])
    assert np.isfinite(slope).all()
    assert (curvature > 0).all()
    mean = mean[:N_MODERATE]
    variance = variance[:N_MODERATE]
    x, weight = np.polynomial.hermite_e.hermegauss(40)
    knows = 1 / (1 + np.exp(-mean[:, None] - np.sqrt(variance[:, None]) * x))
    p = guessing + (1 - guessing) * knows
    change = (1 - guessing) * knows * (1 - knows)
    slopes = change / p if right else -change / (1 - p)
    # Fisher's information, Σ P(outcome) (d log P(outcome) / dx)².
    information = change**2 / (p * (1 - p))
    values = np.stack([knows, slopes, information])
    mean_knows, mean_slope, mean_information = values @ weight / weight.sum()
    assert_allclose(p_knows[:N_MODERATE], mean_knows, atol=0.005)
    # The approximations are less exact for larger variances.
    tolerance = 1e-4 + 0.01 * variance
    assert (np.abs(slope[:N_MODERATE] - mean_slope) < tolerance).all()
    # The fit uses a curvature of at least 0.01.
    expected_curvature = np.maximum(mean_information, 0.01)
    assert (np.abs(curvature[:N_MODERATE] - expected_curvature) < tolerance).all()


# ---- The prior of the items --------------------------------------------------------------------


def make_items(*means: float) -> Gaussians:
    """Return items whose slope and intercept are equal, with a variance of 0.01."""
    mean = np.repeat(np.array(means)[:, None], 2, axis=1)
    return Gaussians(mean, np.tile(0.01 * np.eye(2), (len(means), 1, 1)))


OLD_PRIOR = Gaussians(np.full((2, 2), 7.0), np.tile(9.0 * np.eye(2), (2, 1, 1)))


def test_items_without_answers_do_not_count_for_the_prior() -> None:
    group = np.zeros(3, int)
    is_answered = np.array([True, False, True])
    # The second item has no answers. Its mean, 50, comes from the old prior only, and must not
    # count for the new one.
    prior = model.estimate_prior(make_items(1.0, 50.0, 2.0), group, is_answered, OLD_PRIOR)
    assert_allclose(prior.mean[0], [1.5, 1.5])
    alone = model.estimate_prior(make_items(1.0, 2.0), group[:2], is_answered[[0, 2]], OLD_PRIOR)
    assert_allclose(prior.covariance[0], alone.covariance[0])


def test_the_prior_s_covariance_is_a_mean_of_squares_and_a_weak_guess() -> None:
    is_answered = np.full(2, True)
    found = model.estimate_prior(make_items(1.0, 2.0), np.zeros(2, int), is_answered, OLD_PRIOR)
    # Two items have squared deviations of 0.25 and variances of 0.01. A guessed variance of 0.1
    # counts as three items.
    variance = (2 * 0.25 + 2 * 0.01 + 3 * 0.1) / (2 + 3)
    covariance = 2 * 0.25 / (2 + 3)
    assert_allclose(found.covariance[0], [[variance, covariance], [covariance, variance]])


def test_a_group_without_answers_keeps_its_prior() -> None:
    group = np.array([0, 0, 1])
    is_answered = np.array([True, True, False])
    found = model.estimate_prior(make_items(1.0, 2.0, 50.0), group, is_answered, OLD_PRIOR)
    assert_array_equal(found.mean[1], OLD_PRIOR.mean[1])
    assert_array_equal(found.covariance[1], OLD_PRIOR.covariance[1])
