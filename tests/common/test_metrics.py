"""Metrics: agreement with experts, standard errors, intervals, accuracy, calibration."""

from collections.abc import Callable

from common import metrics
from common.metrics import Score

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score

# ---- Agreement with experts --------------------------------------------------------------------


@pytest.fixture
def judgements() -> pd.DataFrame:
    """Random judgements of five experts on which question of a pair is better, for 25 pairs.

    There is a row for each pair of questions, and a column for each expert.
    """
    rng = np.random.default_rng(3)
    pairs = pd.MultiIndex.from_arrays(rng.permutation(200)[:50].reshape(2, 25))
    # 1 stands for the first question of the pair, 2 for the second one.
    return pd.DataFrame(rng.integers(1, 3, (25, 5)), pairs).astype(float)


def test_random_rankings_agree_with_half_of_the_judgements_of_an_expert(
    judgements: pd.DataFrame,
) -> None:
    """The panel has two experts here, but the second one has judged no pair and does not count."""
    one_expert = metrics.random_best_agreement(judgements[[0]].assign(none=np.nan))
    # A random ranking orders each of 25 pairs of questions by chance, so its expected agreement is
    # 0.5. The mean over 10,000 rankings has a standard error of 0.5 / √(25 · 10,000) = 0.001. The
    # tolerance is five standard errors.
    assert one_expert.mean() == pytest.approx(0.5, abs=0.005)


def test_random_rankings_agree_with_more_than_half_of_the_best_of_five_experts(
    judgements: pd.DataFrame,
) -> None:
    best = metrics.random_best_agreement(judgements)
    # The share of 25 pairs on which a random ranking agrees with one expert has the mean 0.5 and
    # the standard deviation 0.5 / √25 = 0.1. The largest share among five experts is on average
    # 1.163 standard deviations above the mean, as the largest of five normal variables.
    assert best.mean() == pytest.approx(0.5 + 1.163 * 0.1, abs=0.01)


@pytest.mark.parametrize("draw", [metrics.random_best_agreement, metrics.bootstrap_agreement])
def test_draws_are_the_same_in_every_run(
    judgements: pd.DataFrame, draw: Callable[[pd.DataFrame], np.ndarray]
) -> None:
    assert np.array_equal(draw(judgements), draw(judgements))


def test_a_bootstrap_counts_only_pairs_that_an_expert_has_judged() -> None:
    agrees = pd.DataFrame({"judges five pairs": [1.0] * 5 + [np.nan] * 20})
    assert np.nanmin(metrics.bootstrap_agreement(agrees)) == 1


# ---- Errors and intervals ----------------------------------------------------------------------


def test_the_standard_error_treats_a_student_s_answers_as_one_cluster() -> None:
    """For n answers of G students, the error is √(G / (G − 1) · Σ d²) / n.

    The sum is over the students, and d is the sum of one student's deviations from the mean.
    """
    outcome = np.array([1, 0])
    student = np.array([0, 2])
    # With n = 2, G = 2 and d = ±0.5, the error is √(2 / 1 · (0.25 + 0.25)) / 2.
    assert metrics.clustered_standard_error(outcome, student) == 0.5


def test_the_standard_error_does_not_depend_on_the_size_of_ids() -> None:
    """Large UserIds give the same standard error as small ones.

    An array with an element for each possible id would fill the memory.
    """
    outcome = np.array([1, 0, 0, 1, 1, 0, 1])
    student = np.array([0, 2, 1, 1, 2, 3, 0])
    large_id = np.array([7, 2_000_000_000, 400, 9_000_000_000_000])[student]
    # The ranks of the four ids, by size: 7 has rank 0, and 2,000,000,000 has rank 2.
    rank = np.array([0, 2, 1, 3])[student]
    expected = metrics.clustered_standard_error(outcome, rank)
    assert metrics.clustered_standard_error(outcome, large_id) == expected
    score = metrics.accuracy(outcome, np.ones(7), large_id)
    assert (score.error, score.n_students) == (expected, 4)


@pytest.mark.parametrize(("successes", "n"), [(0, 7), (7, 7), (3, 25), (30, 40)])
def test_the_binomial_interval_is_that_of_scipy(successes: int, n: int) -> None:
    expected = binomtest(successes, n).proportion_ci(method="exact")
    interval = metrics.binomial_interval(successes, n)
    assert interval == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_the_binomial_interval_of_nothing_is_everything() -> None:
    assert metrics.binomial_interval(0, 0) == (0, 1)


# ---- Accuracy and calibration ------------------------------------------------------------------


# Two of three predictions are right.
TRUTH = np.array([1, 2, 3])
PREDICTION = np.array([1, 2, 4])


def test_without_students_accuracy_has_no_standard_error() -> None:
    assert metrics.accuracy(TRUTH, PREDICTION) == Score(2 / 3, None, 3)


def test_the_standard_error_of_accuracy_treats_a_student_s_answers_as_one_cluster() -> None:
    """For n answers of G students, the standard error is √(G / (G − 1) · Σ d²) / n.

    For each student, d is the sum of the deviations from the mean over the student's answers: a
    right prediction counts 1, a wrong one 0. Here n = 3, G = 2 and G / (G − 1) = 2.
    """
    # The first answer is by student 0, and its prediction is right. The other two answers are by
    # student 1; one prediction is right and one is wrong.
    student = np.array([0, 1, 1])
    score = metrics.accuracy(TRUTH, PREDICTION, student)
    assert score.value == 2 / 3
    assert score.n == 3
    # The mean is 2/3.
    deviation_of_0 = 1 - 2 / 3
    deviation_of_1 = (1 - 2 / 3) + (0 - 2 / 3)
    sum_of_squares = deviation_of_0**2 + deviation_of_1**2
    assert score.error == pytest.approx(np.sqrt(2 * sum_of_squares) / 3)


def test_accuracy_of_a_single_student_has_no_standard_error() -> None:
    assert metrics.accuracy(TRUTH, PREDICTION, np.zeros(3, int)).error is None


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
    """One bin is 0.25 too high and the other is 0.25 too low, so the error is 0.25 and not 0."""
    believed = np.repeat([0.25, 0.75], 10)
    happened = believed > 0.5
    bins = metrics.calibration_bins(believed, happened)
    assert bins.n_answers.tolist() == [0, 0, 10, 0, 0, 0, 0, 10, 0, 0]
    assert metrics.calibration_error(bins) == 0.25
    scores = metrics.score_probabilities(happened.astype(int), np.c_[1 - believed, believed])
    assert scores.calibration_error == 0.25


@pytest.mark.parametrize("n_categories", [2, 4])
def test_scores_of_probabilities_are_those_of_scikit_learn(n_categories: int) -> None:
    """`score_probabilities` gets probabilities or weights, which it divides by their sums.

    Here it gets weights. scikit-learn gets the probabilities that follow from these.
    """
    rng = np.random.default_rng(0)
    truth = rng.integers(n_categories, size=500)
    # Rounding to one decimal makes many weights 0 or equal. Such weights test the limits of the log
    # loss, and ties in the AUC.
    weight = rng.gamma(0.5, size=(500, n_categories)).round(1)
    # A row without any weight gets equal weights.
    weight[weight.sum(axis=1) == 0] = 1
    p = weight / weight.sum(axis=1, keepdims=True)
    labels = range(n_categories)

    scores = metrics.score_probabilities(truth, weight)

    assert scores.log_loss == pytest.approx(log_loss(truth, p, labels=labels), rel=1e-12)
    assert scores.brier == pytest.approx(brier_score_loss(truth, p, labels=labels), rel=1e-12)
    if n_categories == 2:
        assert scores.auc == pytest.approx(roc_auc_score(truth, p[:, 1]), rel=1e-12)
    else:
        assert scores.auc is None


def test_a_true_category_below_0_has_no_score() -> None:
    """The category −1 is refused: as an index of an array, it would mean the last category."""
    with pytest.raises(ValueError, match="truth holds -1"):
        metrics.score_probabilities(np.array([0, -1]), np.full((2, 2), 0.5))
