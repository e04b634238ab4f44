"""Metrics that no evaluation shows against plain counts: what is drawn, and exact intervals."""

from common import metrics
from common.metrics import Score

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest


def test_random_rankings_agree_with_half_and_their_best_expert_with_more() -> None:
    rng = np.random.default_rng(3)
    pairs = pd.MultiIndex.from_arrays(rng.permutation(200)[:50].reshape(2, 25))
    experts = pd.DataFrame(rng.integers(1, 3, (25, 5)), pairs).astype(float)
    # One without any judgement does not count.
    one = metrics.random_best_agreement(experts[[0]].assign(none=np.nan))
    # 10,000 rankings of 25 pairs: a standard error of 0.5 / √(25 · 10,000) = 0.001.
    assert one.mean() == pytest.approx(0.5, abs=0.005)
    best = metrics.random_best_agreement(experts)
    # Five independent coins of 25 throws: the mean of the best is 0.5 + 1.16 deviations of 0.1.
    assert best.mean() == pytest.approx(0.5 + 1.163 * 0.1, abs=0.01)
    for draw in (metrics.random_best_agreement, metrics.bootstrap_agreement):
        assert np.array_equal(draw(experts), draw(experts))


def test_the_standard_error_is_that_of_students() -> None:
    """Two, who are 0.5 off the mean: the root of 2 / 1 times 0.5 ** 2 + 0.5 ** 2, over 2."""
    assert metrics.clustered_standard_error(np.array([1, 0]), np.array([0, 2])) == 0.5


def test_binomial_interval_as_scipy() -> None:
    for successes, n in ((0, 7), (7, 7), (3, 25), (30, 40)):
        expected = binomtest(successes, n).proportion_ci(method="exact")
        found = metrics.binomial_interval(successes, n)
        assert found == pytest.approx((expected.low, expected.high), abs=1e-9)
    assert metrics.binomial_interval(0, 0) == (0, 1)


def test_a_draw_of_pairs_counts_those_that_an_expert_has_judged() -> None:
    agrees = pd.DataFrame({"of five": [1.0] * 5 + [np.nan] * 20})
    assert np.nanmin(metrics.bootstrap_agreement(agrees)) == 1


def test_accuracy_counts_the_answers_of_a_student_as_one_cluster() -> None:
    """Two of three are right. Students 0 and 1 are off by 1/3 and -1/3, in all."""
    truth, prediction = np.array([1, 2, 3]), np.array([1, 2, 4])
    assert metrics.accuracy(truth, prediction) == Score(2 / 3, None, 3)
    score = metrics.accuracy(truth, prediction, np.array([0, 1, 1]))
    assert (score.value, score.n) == (2 / 3, 3)
    assert score.error == pytest.approx(np.sqrt(2 * (1 / 9 + 1 / 9)) / 3)
    # One student tells nothing about others.
    assert metrics.accuracy(truth, prediction, np.zeros(3, int)).error is None


@pytest.mark.parametrize("prediction", [np.array([1]), np.array([[1], [0]])])
def test_accuracy_needs_a_prediction_for_each_answer(prediction: np.ndarray) -> None:
    with pytest.raises(ValueError, match="truth has shape"):
        metrics.accuracy(np.array([1, 0]), prediction)


@pytest.mark.parametrize(("takes_best", "expected"), [(False, 0.4), (True, 0.6)])
def test_a_part_without_answers_does_not_count(takes_best: bool, expected: float) -> None:
    shares = metrics.share_right([1, 0, 3], [5, 0, 5])
    assert np.isnan(shares[1])
    assert metrics.combine_parts(shares, takes_best=takes_best) == pytest.approx(expected)


def test_calibration_bins_that_are_wrong_in_opposite_ways_do_not_cancel() -> None:
    """Of ten events with 0.25 none happens, of ten with 0.75 all: each is 0.25 off."""
    believed = np.repeat([0.25, 0.75], 10)
    happened = believed > 0.5
    bins = metrics.calibration_bins(believed, happened)
    assert bins.n_answers.tolist() == [0, 0, 10, 0, 0, 0, 0, 10, 0, 0]
    assert metrics.calibration_error(bins) == 0.25
    scores = metrics.score_probabilities(happened.astype(int), np.c_[1 - believed, believed])
    assert scores.calibration_error == 0.25
