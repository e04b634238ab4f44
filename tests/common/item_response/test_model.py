"""Expectations over a normal logit, and the prior of the items.

Expectations are compared with quadrature, and the prior with sums by hand.
"""

from collections.abc import Callable

from common.item_response import model
from common.item_response.model import Gaussians

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

# The means and variances of eight logits that are normally distributed. `model` approximates the
# expectation of a function of such a logit. The tests compute it exactly, by quadrature.
MEAN = np.array([-3, -0.5, 0, 2, 0, 1.5, -2, 0.8], np.float32)
VARIANCE = np.array([0, 0, 0, 0, 1, 0.5, 3, 0.6], np.float32)
# How much the expected slope and curvature may deviate from quadrature: more for larger variances,
# for which the approximation is less exact.
TOLERANCE = 1e-4 + 0.01 * VARIANCE
# Logits so large that probabilities round to 0 or 1, or that exponentials overflow.
EXTREME_MEAN = np.array([-60, 60, -1e4, 1e4], np.float32)


def expected_slope_and_curvature(
    mean: np.ndarray, variance: np.ndarray, guessing: float, right: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Call the function of this name in `model`; all logits get the same guessing and outcome.

    `guessing` is the probability of guessing right, and `right` says whether the answers are right.
    """
    n = len(mean)
    return model.expected_slope_and_curvature(
        mean, variance, np.full(n, right), np.full(n, guessing, np.float32)
    )


def average(function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Return the expectation of a function of a logit that is N(m, v), for each m and v.

    m and v are the elements of `MEAN` and `VARIANCE`. Gauss-Hermite quadrature is practically exact
    here.
    """
    # A row of `x` holds the 40 points of the quadrature for one normal distribution.
    point, weight = np.polynomial.hermite_e.hermegauss(40)
    x = MEAN[:, None] + np.sqrt(VARIANCE[:, None]) * point
    averages: np.ndarray = function(x) @ weight / weight.sum()
    return averages


def sigmoid(x: np.ndarray) -> np.ndarray:
    result: np.ndarray = 1 / (1 + np.exp(-x))
    return result


def test_the_expected_probability_is_the_mean_over_the_logit() -> None:
    assert_allclose(model.expected_probability(MEAN, VARIANCE), average(sigmoid), atol=0.005)


@pytest.mark.parametrize("guessing", [0.0, 0.2])
@pytest.mark.parametrize("right", [True, False])
def test_the_expected_slope_is_the_mean_over_the_logit(guessing: float, right: bool) -> None:
    """The slope is the derivative of log P(right), or of log P(wrong), by the logit."""

    def slope_at(x: np.ndarray) -> np.ndarray:
        p_right = guessing + (1 - guessing) * sigmoid(x)
        derivative = (1 - guessing) * sigmoid(x) * sigmoid(-x)
        return derivative / p_right if right else -derivative / (1 - p_right)

    slope, _ = expected_slope_and_curvature(MEAN, VARIANCE, guessing, right)
    assert (np.abs(slope - average(slope_at)) < TOLERANCE).all()


@pytest.mark.parametrize("guessing", [0.0, 0.2])
@pytest.mark.parametrize("right", [True, False])
def test_the_expected_curvature_is_the_mean_information_over_the_logit(
    guessing: float, right: bool
) -> None:
    """The curvature is Fisher's information, averaged over the normal distribution of the logit.

    Fisher's information of an answer at a given logit is Σ P(outcome) (d log P(outcome) / d logit)²
    over both outcomes, right and wrong. With p = P(right) and its derivative p' by the logit, this
    sum is p'² / (p (1 − p)). So the curvature is the same for a right and for a wrong answer.
    """

    def information_at(x: np.ndarray) -> np.ndarray:
        p_right = guessing + (1 - guessing) * sigmoid(x)
        derivative = (1 - guessing) * sigmoid(x) * sigmoid(-x)
        information: np.ndarray = derivative**2 / (p_right * (1 - p_right))
        return information

    _, curvature = expected_slope_and_curvature(MEAN, VARIANCE, guessing, right)
    # The function raises a smaller curvature to 0.01. Otherwise a step of a fit could overshoot.
    expected = np.maximum(average(information_at), 0.01)
    assert (np.abs(curvature - expected) < TOLERANCE).all()


@pytest.mark.parametrize("guessing", [0.0, 0.2])
@pytest.mark.parametrize("right", [True, False])
def test_extreme_logits_have_finite_expectations(guessing: float, right: bool) -> None:
    zeros = np.zeros_like(EXTREME_MEAN)
    slope, curvature = expected_slope_and_curvature(EXTREME_MEAN, zeros, guessing, right)
    assert np.isfinite(slope).all()
    assert np.isfinite(curvature).all()
    assert (curvature > 0).all()


def test_extreme_logits_have_probabilities_of_0_and_1() -> None:
    p_knows = model.expected_probability(EXTREME_MEAN, np.zeros_like(EXTREME_MEAN))
    assert_array_equal(p_knows, [0, 1, 0, 1])


# ---- The prior of the items --------------------------------------------------------------------


def make_items(*means: float) -> Gaussians:
    """Return items whose slope and intercept are equal, with a variance of 0.01."""
    mean = np.repeat(np.array(means)[:, None], 2, axis=1)
    return Gaussians(mean, np.tile(0.01 * np.eye(2), (len(means), 1, 1)))


# An item is the slope and the intercept of a question. The prior says how they are distributed in
# each group of items: here in two groups, with the means 7 and the variances 9. A fit estimates the
# prior anew from the items.
OLD_PRIOR = Gaussians(np.full((2, 2), 7.0), np.tile(9.0 * np.eye(2), (2, 1, 1)))


def test_items_without_answers_do_not_count_for_the_prior() -> None:
    group = np.zeros(3, int)
    is_answered = np.array([True, False, True])
    # The second item belongs to a question without answers. Its slope and intercept, 50, must not
    # influence the new prior.
    prior = model.estimate_prior(make_items(1.0, 50.0, 2.0), group, is_answered, OLD_PRIOR)
    assert_allclose(prior.mean[0], [1.5, 1.5])
    alone = model.estimate_prior(make_items(1.0, 2.0), group[:2], is_answered[[0, 2]], OLD_PRIOR)
    assert_allclose(prior.covariance[0], alone.covariance[0])


def test_the_prior_s_covariance_is_a_mean_of_squares_and_a_weak_guess() -> None:
    is_answered = np.full(2, True)
    found = model.estimate_prior(make_items(1.0, 2.0), np.zeros(2, int), is_answered, OLD_PRIOR)
    # The slopes of the two items, 1 and 2, have squared deviations of 0.25 from their mean, and
    # variances of 0.01; so have the intercepts. The estimate also has a guess made in advance: a
    # variance of 0.1, which counts as much as three items.
    variance = (2 * 0.25 + 2 * 0.01 + 3 * 0.1) / (2 + 3)
    covariance = 2 * 0.25 / (2 + 3)
    assert_allclose(found.covariance[0], [[variance, covariance], [covariance, variance]])


def test_a_group_without_answers_keeps_its_prior() -> None:
    group = np.array([0, 0, 1])
    is_answered = np.array([True, True, False])
    found = model.estimate_prior(make_items(1.0, 2.0, 50.0), group, is_answered, OLD_PRIOR)
    assert_array_equal(found.mean[1], OLD_PRIOR.mean[1])
    assert_array_equal(found.covariance[1], OLD_PRIOR.covariance[1])
