"""Accuracy in groups of answers: intervals that hold, and nothing shown of single answers."""

from common.evaluation.breakdown import (
    FEW,
    break_down,
    clustered_intervals,
    most_lost,
    student_quantile,
)

import numpy as np
import pandas as pd
import pytest
from scipy.special import stdtrit


def test_quantiles_of_student_are_those_of_scipy() -> None:
    freedom = np.r_[np.arange(1, 500), 1000, 20_000, 120_000]
    assert student_quantile(freedom) == pytest.approx(stdtrit(freedom, 0.975), rel=1e-10)


def test_intervals_grow_with_what_answers_of_a_student_have_in_common() -> None:
    n_right = (np.arange(2000) % 4 > 0)[None]
    low, high = clustered_intervals(n_right, np.ones((1, 2000)))
    # Independent ones have Wilson's: of 1,500 of 2,000, by the closed form with 1.96.
    assert (low[0], high[0]) == pytest.approx((0.7306, 0.7685), abs=2e-4)
    alike, unlike = np.where(np.arange(50) % 2, 20, 0), np.full(50, 10)
    low, high = clustered_intervals(np.stack([alike, unlike]), np.full((2, 50), 20))
    # 50 answers each given 20 times tell as much as 50 answers; never more than 1,000.
    expected = 2 * 1.96 * 0.5 / np.array([50, 1000]) ** 0.5
    assert high - low == pytest.approx(expected, rel=0.05)
    # All right is not certain.
    low, high = clustered_intervals(np.full((1, 5), 3), np.full((1, 5), 3))
    assert high[0] == 1
    assert 0.3 < low[0] < 0.8
    # One student says nothing about others.
    assert clustered_intervals(np.array([[1]]), np.array([[2]])) == (0, 1)


@pytest.mark.parametrize(("n_students", "mean"), [(6, 0.75), (40, 0.5)])
def test_intervals_cover_as_often_as_they_say(n_students: int, mean: float) -> None:
    """Students of different abilities with different numbers of answers, drawn 2,000 times."""
    rng = np.random.default_rng(0)
    shape = (2000, n_students)
    ability = rng.beta(6 * mean, 6 * (1 - mean), shape)
    n_answers = rng.integers(5, 60, shape)
    n_right = rng.binomial(n_answers, ability)
    low, high = clustered_intervals(n_right, n_answers)
    assert 0.92 < np.mean((low <= mean) & (mean <= high)) < 0.98
    accuracy = n_right.sum(axis=1) / n_answers.sum(axis=1)
    assert ((low >= 0) & (low < accuracy) & (accuracy < high) & (high <= 1)).all()


@pytest.mark.parametrize("n", [1, FEW - 1, FEW])
def test_of_few_answers_only_their_number_is_shown(n: int) -> None:
    """Of a group, of a question, and of the subjects of questions."""
    right = np.arange(n + 1000) >= n
    pairs = pd.DataFrame({"right": right, "majority_right": ~right})
    pairs["student_code"] = np.arange(len(pairs))
    pairs["QuestionId"] = np.where(right, 1, 4711)
    pairs["By place"] = pd.Categorical(np.where(right, "many", "few"))
    ((_, _, groups),) = break_down(pairs, None)
    many, few = groups.loc["many"], groups.loc["few"]
    assert (few["n_answers"], many["n_answers"]) == (n, 1000)
    assert (many["accuracy"], many["majority"]) == (1, 0)
    assert few["share"] == n / (n + 1000)
    for figure in ("accuracy", "low", "high", "majority"):
        assert np.isnan(few[figure]) == (n < FEW)
    columns = {"QuestionId": [4711], "SubjectId": [3], "Name": ["Hard"], "Level": [1]}
    lost = most_lost(pairs, pd.DataFrame(columns).assign(Parent=""))
    assert [table.name.tolist() for table in lost if table is not None] == (
        [[4711], ["Hard"]] if n == FEW else [[], []]
    )
