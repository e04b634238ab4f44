"""Expectations over a normal logit, and the prior of the items.

Expectations are compared with quadrature, and the prior with sums by hand.
"""

from common.item_response import model
from common.item_response.model import Gaussians

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

# Normal logits for which the expectations must equal those of numerical quadrature.
MODERATE_MEANS = [-3, -0.5, 0, 2, 0, 1.5, -2, 0.8]
MODERATE_VARIANCES = [0, 0, 0, 0, 1, 0.5, 3, 0.6]
N_MODERATE = len(MODERATE_MEANS)
# Logits so large that probabilities round to 0 or 1, or that exponentials overflow. The results
# need only be finite; the variances of these logits are 0.
EXTREME_MEANS = [-60, 60, -1e4, 1e4]


@pytest.mark.parametrize("guessing", [0.0, 0.2])
@pytest.mark.parametrize("right", [True, False])
def test_expectations_are_means_over_the_logit(guessing: float, right: bool) -> None:
    """Functions of a logit x are averaged over x with the distribution N(mean, variance).

    The functions are the probability of knowing, and the slope and the curvature of the log
    likelihood. The averages are compared with those of Gauss-Hermite quadrature.
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
    # Evaluate the functions at 40 points of each logit, shape (logits, points).
    point, weight = np.polynomial.hermite_e.hermegauss(40)
    x = mean[:, None] + np.sqrt(variance[:, None]) * point
    knows = 1 / (1 + np.exp(-x))
    p_right = guessing + (1 - guessing) * knows
    # The derivative of p_right by x.
    derivative = (1 - guessing) * knows * (1 - knows)
    slopes = derivative / p_right if right else -derivative / (1 - p_right)
    # The curvature is Fisher's information, Σ P(outcome) (d log P(outcome) / dx)².
    information = derivative**2 / (p_right * (1 - p_right))
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


# A prior of two groups of items, with the means 7 and the variances 9.
OLD_PRIOR = Gaussians(np.full((2, 2), 7.0), np.tile(9.0 * np.eye(2), (2, 1, 1)))


def test_items_without_answers_do_not_count_for_the_prior() -> None:
    group = np.zeros(3, int)
    is_answered = np.array([True, False, True])
    # The second item has no answers. Its mean, 50, must not influence the new prior, which is the
    # same as without this item.
    prior = model.estimate_prior(make_items(1.0, 50.0, 2.0), group, is_answered, OLD_PRIOR)
    assert_allclose(prior.mean[0], [1.5, 1.5])
    alone = model.estimate_prior(make_items(1.0, 2.0), group[:2], is_answered[[0, 2]], OLD_PRIOR)
    assert_allclose(prior.covariance[0], alone.covariance[0])


def test_the_prior_s_covariance_is_a_mean_of_squares_and_a_weak_guess() -> None:
    is_answered = np.full(2, True)
    found = model.estimate_prior(make_items(1.0, 2.0), np.zeros(2, int), is_answered, OLD_PRIOR)
    # Two items have squared deviations of 0.25 from their mean, 1.5, and variances of 0.01. A
    # variance of 0.1 is guessed in advance and counts as much as three items.
    variance = (2 * 0.25 + 2 * 0.01 + 3 * 0.1) / (2 + 3)
    covariance = 2 * 0.25 / (2 + 3)
    assert_allclose(found.covariance[0], [[variance, covariance], [covariance, variance]])


def test_a_group_without_answers_keeps_its_prior() -> None:
    group = np.array([0, 0, 1])
    is_answered = np.array([True, True, False])
    found = model.estimate_prior(make_items(1.0, 2.0, 50.0), group, is_answered, OLD_PRIOR)
    assert_array_equal(found.mean[1], OLD_PRIOR.mean[1])
    assert_array_equal(found.covariance[1], OLD_PRIOR.covariance[1])
