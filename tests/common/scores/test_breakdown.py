"""Accuracy in groups of answers: intervals that hold, and nothing shown of single answers."""

from dataclasses import astuple

from common import metrics
from common.scores import breakdown, score_page
from common.scores.breakdown import (
    NOT_KNOWN,
    Group,
    Loss,
    Scored,
    clustered_intervals,
    group_answers,
)
from common.scores.pair_groups import Breakdown, NamedLoss

import numpy as np
import pytest


def scored(student: list[int], right: list[int], majority: list[int] | None = None) -> Scored:
    question = np.arange(len(student), dtype=np.int32)
    majority_right = None if majority is None else np.array(majority, bool)
    return Scored(np.array(student, np.int32), question, np.array(right, bool), majority_right)


def test_groups_hold_their_own_answers() -> None:
    answers = scored([0, 0, 1, 2, 2], [1, 0, 1, 1, 1], [1, 1, 0, 0, 1])
    group = np.array([1, 1, 1, 3, -1])
    first, second = group_answers(answers, group, ["empty", "a", "empty too", "b"])
    assert astuple(first)[:5] == ("a", 3, 2, 0.6, 2 / 3)
    # One student says nothing about others.
    assert astuple(second) == ("b", 1, 1, 0.2, 1, (0, 1), 0)
    assert first.majority == 2 / 3
    # An answer may be in several groups, and the majority unknown.
    answers = scored([0, 1], [1, 0])
    groups = group_answers(answers, np.array([0, 1, 1]), ["a", "b"], np.array([0, 0, 1]))
    found = [(g.name, g.n_answers, g.accuracy, g.majority) for g in groups]
    assert found == [("a", 1, 1, None), ("b", 2, 0.5, None)]


def test_intervals_grow_with_what_answers_of_a_student_have_in_common() -> None:
    n_right = (np.arange(2000) % 4 > 0)[None]
    low, high = clustered_intervals(n_right, np.ones((1, 2000)))
    # Independent ones have Wilson's: of 1,500 of 2,000, by the closed form with 1.96.
    assert (low[0], high[0]) == pytest.approx((0.7306, 0.7685), abs=2e-4)
    error = metrics.clustered_standard_error(n_right[0], np.arange(2000))
    assert high[0] - low[0] == pytest.approx(2 * 1.96 * error, rel=0.01)
    alike, unlike = np.where(np.arange(50) % 2, 20, 0), np.full(50, 10)
    low, high = clustered_intervals(np.stack([alike, unlike]), np.full((2, 50), 20))
    # 50 answers each given 20 times tell as much as 50 answers; never more than 1,000.
    expected = 2 * 1.96 * 0.5 / np.array([50, 1000]) ** 0.5
    assert high - low == pytest.approx(expected, rel=0.05)
    # All right is not certain.
    low, high = clustered_intervals(np.full((1, 5), 3), np.full((1, 5), 3))
    assert high[0] == 1
    assert 0.3 < low[0] < 0.8


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


def test_groups_by_numbers() -> None:
    for (group, names), expected in (
        (
            breakdown.by_share(np.array([0, 0.0999, 0.1, 0.5, 0.9, 1, np.nan])),
            f"0 to 10 %;0 to 10 %;10 to 20 %;50 to 60 %;90 to 100 %;90 to 100 %;{NOT_KNOWN}",
        ),
        (
            breakdown.by_count(np.array([0, 1, 4, 5, 9, 10, 999, 1000, 10_000, 10**9])),
            "none;1 to 4;1 to 4;5 to 9;5 to 9;10 to 19;500 to 999;1,000 to 1,999;from 10,000;"
            "from 10,000",
        ),
        (
            breakdown.by_number(np.array([-1, 0, 10, 11, 17, 18, 99]), 10, 18),
            f"{NOT_KNOWN};up to 10;up to 10;11;17;from 18;from 18",
        ),
    ):
        assert ";".join(names[k] for k in group) == expected


def test_most_is_lost_where_more_is_wrong_than_on_average() -> None:
    # A fourth of all answers is wrong; question 2 has as many, and no more of them.
    n_answers, n_wrong = np.array([10, 50, 200, 100, 0]), np.array([8, 10, 50, 35, 0])
    losses = breakdown.most_lost(n_answers, n_wrong, 0.25)
    found = [(loss.number, loss.n_answers, loss.n_wrong, loss.excess) for loss in losses]
    assert found == [(3, 100, 35, 10), (0, 10, 8, 5.5)]
    (most,) = breakdown.most_lost(n_answers, n_wrong, 0.25, n_most=1)
    assert most.number == 3


@pytest.mark.parametrize("n", [1, score_page.FEW - 1, score_page.FEW])
def test_of_few_answers_only_their_number_is_shown(n: int) -> None:
    group = Group("a group", n, 1, 0.1, 0.1234, (0.0567, 0.2346), 0.6789)
    parts = [Breakdown("By something", [group])]
    losses = [NamedLoss("4711", "", Loss(0, n, n, 0.5))]
    for page, figures in (
        (score_page.breakdowns(parts), ("0.123", "0.679")),
        (score_page.subgroups(parts), ("0.123", "0.057", "0.235", "0.679")),
        (score_page.losses(losses, []), ("4711",)),
        (score_page.losses([], losses), ("4711",)),
    ):
        assert [figure in page for figure in figures] == [n == score_page.FEW] * len(figures)
