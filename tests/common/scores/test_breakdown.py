"""Accuracy in groups of answers: known answers, intervals that hold, nothing left out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common import metrics
from common.scores.breakdown import (
    NOT_KNOWN,
    Scored,
    by_count,
    by_number,
    by_share,
    clustered_intervals,
    group_answers,
    most_lost,
)


def scored(student: list[int], right: list[int], majority: list[int] | None = None) -> Scored:
    n = len(student)
    return Scored(
        np.array(student, np.int32),
        np.arange(n, dtype=np.int32),
        np.array(right, bool),
        None if majority is None else np.array(majority, bool),
    )


def test_groups_hold_their_own_answers() -> None:
    answers = scored([0, 0, 1, 2, 2], [1, 0, 1, 1, 1], [1, 1, 0, 0, 1])
    group = np.array([1, 1, 1, 3, -1])
    first, second = group_answers(answers, group, ["empty", "a", "empty too", "b"])
    assert (first.name, first.n_answers, first.n_students) == ("a", 3, 2)
    assert (first.share, first.accuracy, first.majority) == (0.6, 2 / 3, 2 / 3)
    assert (second.name, second.n_answers, second.n_students) == ("b", 1, 1)
    assert (second.share, second.accuracy, second.majority) == (0.2, 1, 0)
    # One student says nothing about others.
    assert second.interval == (0, 1)
    assert group_answers(scored([0], [1]), np.array([0]), ["a"])[0].majority is None


def test_an_answer_may_be_in_several_groups() -> None:
    answers = scored([0, 1], [1, 0])
    groups = group_answers(answers, np.array([0, 1, 1]), ["a", "b"], np.array([0, 0, 1]))
    assert [(g.name, g.n_answers, g.accuracy) for g in groups] == [("a", 1, 1), ("b", 2, 0.5)]


rows = st.lists(
    st.tuples(st.integers(0, 5), st.integers(-1, 3), st.booleans()), min_size=1, max_size=60
)


@given(rows)
def test_groups_are_consistent(values: list[tuple[int, int, bool]]) -> None:
    student, group, right = (list(column) for column in zip(*values, strict=True))
    answers = scored(student, right)
    groups = group_answers(answers, np.array(group), list("abcd"))
    assert sum(g.n_answers for g in groups) == sum(g >= 0 for g in group)
    for g in groups:
        assert 0 <= g.interval[0] <= g.accuracy <= g.interval[1] <= 1
        assert g.interval[1] - g.interval[0] > 0
        assert g.n_students <= g.n_answers
        assert g.share == g.n_answers / len(values)


def test_intervals_of_independent_answers_are_wilsons() -> None:
    n_answers = np.ones((1, 2000))
    n_right = (np.arange(2000) % 4 > 0)[None]
    low, high = clustered_intervals(n_right, n_answers)
    # Of 1,500 of 2,000, by the closed form with 1.96.
    assert (low[0], high[0]) == pytest.approx((0.7306, 0.7685), abs=2e-4)
    error = metrics.clustered_standard_error(n_right[0], np.arange(2000))
    assert high[0] - low[0] == pytest.approx(2 * 1.96 * error, rel=0.01)


def test_intervals_grow_with_what_answers_of_a_student_have_in_common() -> None:
    n_answers = np.full((2, 50), 20)
    alike = np.where(np.arange(50) % 2, 20, 0)
    unlike = np.full(50, 10)
    low, high = clustered_intervals(np.stack([alike, unlike]), n_answers)
    # 50 answers each given 20 times tell as much as 50 answers; never more than 1,000.
    assert high[0] - low[0] == pytest.approx(2 * 1.96 * 0.5 / 50**0.5, rel=0.05)
    assert high[1] - low[1] == pytest.approx(2 * 1.96 * 0.5 / 1000**0.5, rel=0.05)


@pytest.mark.parametrize("n_students", [6, 40])
@pytest.mark.parametrize("mean", [0.5, 0.75])
def test_intervals_cover_as_often_as_they_say(n_students: int, mean: float) -> None:
    """Students of different abilities with different numbers of answers, drawn 2,000 times."""
    rng = np.random.default_rng(0)
    shape = (2000, n_students)
    ability = rng.beta(6 * mean, 6 * (1 - mean), shape)
    n_answers = rng.integers(5, 60, shape)
    low, high = clustered_intervals(rng.binomial(n_answers, ability), n_answers)
    assert 0.92 < np.mean((low <= mean) & (mean <= high)) < 0.98
    # The usual formula, which takes the answers for independent, covers far less often.
    share = rng.binomial(n_answers, ability).sum(axis=1) / n_answers.sum(axis=1)
    half = 1.96 * np.sqrt(share * (1 - share) / n_answers.sum(axis=1))
    assert np.mean(abs(share - mean) <= half) < 0.75


def test_all_right_is_not_certain() -> None:
    low, high = clustered_intervals(np.full((1, 5), 3), np.full((1, 5), 3))
    assert high[0] == 1
    assert 0.3 < low[0] < 0.8


def test_tenths_of_a_share() -> None:
    group, names = by_share(np.array([0, 0.0999, 0.1, 0.5, 0.9, 1, np.nan]))
    assert [names[k] for k in group] == [
        "0 to 10 %", "0 to 10 %", "10 to 20 %", "50 to 60 %", "90 to 100 %", "90 to 100 %",
        NOT_KNOWN,
    ]  # fmt: skip
    assert len(names) == 11


def test_orders_of_a_number_of_answers() -> None:
    group, names = by_count(np.array([0, 1, 4, 5, 9, 10, 999, 1000, 10_000, 10**9]))
    assert [names[k] for k in group] == [
        "none", "1 to 4", "1 to 4", "5 to 9", "5 to 9", "10 to 19", "500 to 999",
        "1,000 to 1,999", "from 10,000", "from 10,000",
    ]  # fmt: skip


def test_whole_numbers() -> None:
    group, names = by_number(np.array([-1, 0, 10, 11, 17, 18, 99]), 10, 18)
    assert [names[k] for k in group] == [
        NOT_KNOWN, "up to 10", "up to 10", "11", "17", "from 18", "from 18",
    ]  # fmt: skip


def test_most_is_lost_where_more_is_wrong_than_on_average() -> None:
    # A fourth of all answers is wrong; question 2 has as many, and no more of them.
    n_answers, n_wrong = np.array([100, 50, 200, 10, 0]), np.array([35, 10, 50, 8, 0])
    losses = most_lost(n_answers, n_wrong, 0.25)
    assert [(loss.number, loss.n_answers, loss.n_wrong) for loss in losses] == [
        (0, 100, 35), (3, 10, 8),
    ]  # fmt: skip
    assert [loss.excess for loss in losses] == [10, 5.5]
    assert [loss.number for loss in most_lost(n_answers, n_wrong, 0.25, n_most=1)] == [0]
