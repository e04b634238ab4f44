"""Metrics: worked examples, and the same figures from another implementation."""

from common import metrics

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest
from sklearn.metrics import accuracy_score
from sklearn.metrics import confusion_matrix as sklearn_confusion_matrix


def test_accuracy_and_confusion_matrix_as_scikit_learn() -> None:
    """One option is never right."""
    options = (1, 2, 3, 4)
    truth, prediction = np.random.default_rng(0).integers([[1], [1]], [[4], [5]], (2, 60))
    assert metrics.accuracy(truth, prediction) == pytest.approx(accuracy_score(truth, prediction))
    counts = metrics.confusion_matrix(truth, prediction, options)
    assert np.array_equal(counts, sklearn_confusion_matrix(truth, prediction, labels=options))
    expected = sklearn_confusion_matrix(truth, prediction, labels=options, normalize="true")
    assert metrics.normalise_rows(counts) == pytest.approx(expected)
    with pytest.raises(ValueError, match="shape"):
        metrics.accuracy(truth, prediction[1:])
    with pytest.raises(ValueError, match="no predictions"):
        metrics.accuracy(truth[:0], prediction[:0])


def test_random_rankings_agree_with_half_and_their_best_expert_with_more() -> None:
    rng = np.random.default_rng(3)
    pairs = pd.MultiIndex.from_arrays(rng.permutation(200)[:50].reshape(2, 25))
    experts = pd.DataFrame(rng.integers(1, 3, (25, 5)), pairs).astype(float)
    # One without any judgement does not count.
    one = metrics.random_best_agreement(experts[[0]].assign(none=np.nan))
    assert one.mean() == pytest.approx(0.5, abs=0.005)
    best = metrics.random_best_agreement(experts)
    # Five independent coins of 25 throws: the mean of the best is 0.5 + 1.16 deviations of 0.1.
    assert best.mean() == pytest.approx(0.5 + 1.163 * 0.1, abs=0.01)
    assert np.array_equal(best, metrics.random_best_agreement(experts))


def test_the_standard_error_is_that_of_students() -> None:
    """Two, who are 0.5 off the mean: the root of 2 / 1 times 0.5 ** 2 + 0.5 ** 2, over 2."""
    right, student = np.array([1, 0]), np.array([0, 1])
    assert metrics.clustered_standard_error(right, student) == pytest.approx(0.5)


def test_binomial_interval_as_scipy() -> None:
    for successes, n in ((0, 7), (7, 7), (3, 25), (30, 40)):
        expected = binomtest(successes, n).proportion_ci(method="exact")
        found = metrics.binomial_interval(successes, n)
        assert found == pytest.approx((expected.low, expected.high), abs=1e-9)
    assert metrics.binomial_interval(0, 0) == (0, 1)


def test_experts_among_themselves() -> None:
    nan = np.nan
    judgements = pd.DataFrame([[1, 1, nan], [1, 2, nan], [2, 2, nan], [nan, 1, 2]])
    expected = [[nan, 2 / 3, nan], [2 / 3, nan, 0], [nan, 0, nan]]
    assert np.array_equal(metrics.expert_concordance(judgements), expected, equal_nan=True)


def test_bootstrap_spreads_as_the_binomial() -> None:
    agrees = pd.DataFrame([np.arange(25) < 15, np.arange(25) < 20]).T.astype(float)
    agrees.loc[20:, 1] = np.nan
    drawn = metrics.bootstrap_agreement(agrees)
    assert drawn.shape == (10_000, 2)
    assert drawn[:, 0].mean() == pytest.approx(0.6, abs=0.005)
    assert drawn[:, 0].std() == pytest.approx(np.sqrt(0.6 * 0.4 / 25), rel=0.03)
    # The second expert agrees wherever there is a judgement at all.
    assert (drawn[:, 1] == 1).all()
    assert np.array_equal(drawn, metrics.bootstrap_agreement(agrees))
