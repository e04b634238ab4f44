"""Metrics: worked examples, and the same figures from another implementation."""

import warnings

from common.metrics import (
    accuracy,
    binomial_interval,
    bootstrap_agreement,
    clustered_standard_error,
    confusion_matrix,
    expert_agreement,
    expert_concordance,
    normalise_rows,
    pair_agreement,
    random_best_agreement,
)

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.metrics import accuracy_score
from sklearn.metrics import confusion_matrix as sklearn_confusion_matrix


def test_accuracy_and_confusion_matrix_as_scikit_learn() -> None:
    """One option is never right."""
    options = (1, 2, 3, 4)
    truth, prediction = np.random.default_rng(0).integers([[1], [1]], [[4], [5]], (2, 60))
    assert accuracy(truth, prediction) == pytest.approx(accuracy_score(truth, prediction))
    counts = confusion_matrix(truth, prediction, options)
    assert np.array_equal(counts, sklearn_confusion_matrix(truth, prediction, labels=options))
    expected = sklearn_confusion_matrix(truth, prediction, labels=options, normalize="true")
    assert normalise_rows(counts) == pytest.approx(expected)
    with pytest.raises(ValueError, match="shape"):
        accuracy(truth, prediction[1:])
    with pytest.raises(ValueError, match="no predictions"):
        accuracy(truth[:0], prediction[:0])


def test_random_rankings_agree_with_half_and_their_best_expert_with_more() -> None:
    rng = np.random.default_rng(3)
    left, right = rng.permutation(200)[:50].reshape(2, 25)
    one_expert = rng.integers(1, 3, (1, 25)).astype(float)
    assert random_best_agreement(left, right, one_expert).mean() == pytest.approx(0.5, abs=0.005)
    five_experts = rng.integers(1, 3, (5, 25)).astype(float)
    best = random_best_agreement(left, right, five_experts)
    # Five independent coins of 25 throws: the mean of the best is 0.5 + 1.16 deviations of 0.1.
    assert best.mean() == pytest.approx(0.5 + 1.163 * 0.1, abs=0.01)
    assert np.array_equal(best, random_best_agreement(left, right, five_experts))


def test_the_standard_error_is_that_of_students() -> None:
    """Two, who are 0.5 off the mean: the root of 2 / 1 times 0.5 ** 2 + 0.5 ** 2, over 2."""
    right, student = np.array([1, 0]), np.array([0, 1])
    assert clustered_standard_error(right, student) == pytest.approx(0.5)


def test_binomial_interval_as_scipy() -> None:
    for successes, n in ((0, 7), (7, 7), (3, 25), (30, 40)):
        expected = binomtest(successes, n).proportion_ci(method="exact")
        found = binomial_interval(successes, n)
        assert found == pytest.approx((expected.low, expected.high), abs=1e-9)
    assert binomial_interval(0, 0) == (0, 1)


def test_an_empty_judgement_does_not_count() -> None:
    judgements = np.array([[1, np.nan, 2], [np.nan, np.nan, np.nan]])
    left, right = np.array([1, 1, 1]), np.array([2, 2, 2])
    agrees = pair_agreement(left, right, judgements)
    assert np.array_equal(agrees, [[1, np.nan, 0], [np.nan] * 3], equal_nan=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        agreement, n_judged = expert_agreement(left, right, judgements)
        best = random_best_agreement(np.arange(3), np.arange(3, 6), judgements)
    assert agreement == pytest.approx([0.5, np.nan], nan_ok=True)
    assert n_judged.tolist() == [2, 0]
    assert best.mean() == pytest.approx(0.5, abs=0.02)


def test_experts_among_themselves() -> None:
    judgements = np.array([[1, 1, 2, np.nan], [1, 2, 2, 1], [np.nan, np.nan, np.nan, 2]])
    concordance, n_judged = expert_concordance(judgements)
    nan = np.nan
    expected = [[nan, 2 / 3, nan], [2 / 3, nan, 0], [nan, 0, nan]]
    assert np.array_equal(concordance, expected, equal_nan=True)
    assert n_judged.tolist() == [[3, 3, 0], [3, 4, 1], [0, 1, 1]]


def test_bootstrap_spreads_as_the_binomial() -> None:
    agrees = np.stack([np.arange(25) < 15, np.arange(25) < 20]).astype(float)
    agrees[1, 20:] = np.nan
    drawn = bootstrap_agreement(agrees)
    assert drawn.shape == (10_000, 2)
    assert drawn[:, 0].mean() == pytest.approx(0.6, abs=0.005)
    assert drawn[:, 0].std() == pytest.approx(np.sqrt(0.6 * 0.4 / 25), rel=0.03)
    # The second expert agrees wherever there is a judgement at all.
    assert (drawn[:, 1] == 1).all()
    assert np.array_equal(drawn, bootstrap_agreement(agrees))
