"""What can be counted in the circumstances of answers: when, in which quiz and class, how sure."""

from dataclasses import dataclass

from common.io import IntArray

import numpy as np
import numpy.typing as npt
from exploration import Histogram, Tally, count_histogram, tally

Dates = npt.NDArray[np.datetime64]

# The official answers are of 2018 to 2020; a date outside these years is nonsense.
FIRST_ANSWER, AFTER_LAST_ANSWER = np.datetime64("2015-01-01"), np.datetime64("2025-01-01")
CONFIDENCES = (0, 25, 50, 75, 100)


@dataclass(frozen=True)
class Times:
    """When answers were given.

    Attributes
    ----------
    first, last
        Dates of the first and the last answer, nonsense apart.
    first_month
        Month of the first, datetime64[M].
    months
        Answers of each month from then on.
    hours
        Answers by weekday (Monday first) and hour, shape (7, 24).
    n_nonsense
        Dates outside the years in which answers can have been given; left out of the rest.
    """

    first: np.datetime64
    last: np.datetime64
    first_month: np.datetime64
    months: Tally
    hours: Tally
    n_nonsense: int


@dataclass(frozen=True)
class Quizzes:
    """Sizes of quizzes and groups, in the training answers; None where the column is missing.

    Attributes
    ----------
    questions_per_quiz, students_per_group, answers_per_sitting
        Histograms; a sitting is all answers of one student in one quiz.
    """

    questions_per_quiz: Histogram | None
    students_per_group: Histogram | None
    answers_per_sitting: Histogram | None


def count_times(date: Dates, is_correct: IntArray) -> Times | None:
    """Count answers by month, weekday and hour.

    Parameters
    ----------
    date
        DateAnswered of every answer, datetime64[m]; NaT where missing.
    is_correct
        1 or 0.

    Returns
    -------
    Times or None
        None if no answer has a date that makes sense.
    """
    # NaT fails both comparisons.
    plausible = (date >= FIRST_ANSWER) & (date < AFTER_LAST_ANSWER)
    n_nonsense = int((~np.isnat(date)).sum() - plausible.sum())
    date, is_correct = date[plausible], is_correct[plausible]
    if not len(date):
        return None
    hour = date.view(np.int64) // 60
    # 1 January 1970, day 0, was a Thursday.
    of_week = ((hour // 24 + 3) % 7) * 24 + hour % 24
    by_hour = tally(of_week, is_correct, 7 * 24)
    hours = Tally(by_hour.n.reshape(7, 24), by_hour.n_right.reshape(7, 24))
    first, last = date.min(), date.max()
    month = date.astype("datetime64[M]")
    first_month = first.astype("datetime64[M]")
    place = (month - first_month).astype(np.int64)
    months = tally(place, is_correct, int(place.max()) + 1)
    return Times(first, last, first_month, months, hours, n_nonsense)


def count_by_month(date: Dates, kind: IntArray, n_kinds: int, times: Times) -> IntArray:
    """Count the answers of each kind in each month.

    Parameters
    ----------
    date
        As for `count_times`.
    kind
        Kind of every answer, 0 to n_kinds - 1; negative where unknown.
    n_kinds
        How many kinds there are.
    times
        What `count_times` returned.

    Returns
    -------
    array of int, shape (n_kinds, months)
    """
    rows = (date >= FIRST_ANSWER) & (date < AFTER_LAST_ANSWER) & (kind >= 0)
    n_months = len(times.months.n)
    month = (date[rows].astype("datetime64[M]") - times.first_month).astype(np.int64)
    counts = np.bincount(kind[rows] * n_months + month, minlength=n_kinds * n_months)
    return counts.reshape(n_kinds, n_months)


def _distinct_pairs(first: IntArray, second: IntArray) -> tuple[IntArray, IntArray]:
    """Return the distinct pairs of two columns, as the first of each, and how often each occurs."""
    key = (first.astype(np.int64) << 32) | second
    key.sort()
    starts = np.flatnonzero(np.r_[True, key[1:] != key[:-1]])
    return key[starts] >> 32, np.diff(np.r_[starts, len(key)])


def count_quizzes(
    student: IntArray, question: IntArray, quiz: IntArray, group: IntArray
) -> Quizzes:
    """Count what makes up quizzes and groups; all columns of shape (answers,)."""
    questions_per_quiz = answers_per_sitting = students_per_group = None
    known = quiz >= 0
    if known.any():
        owner, _ = _distinct_pairs(quiz[known], question[known])
        questions_per_quiz = count_histogram(np.unique(owner, return_counts=True)[1])
        _, sizes = _distinct_pairs(student[known], quiz[known])
        answers_per_sitting = count_histogram(sizes)
    known = group >= 0
    if known.any():
        owner, _ = _distinct_pairs(group[known], student[known])
        students_per_group = count_histogram(np.unique(owner, return_counts=True)[1])
    return Quizzes(questions_per_quiz, students_per_group, answers_per_sitting)


def count_confidence(confidence: npt.NDArray[np.float32], is_correct: IntArray) -> Tally:
    """Count answers by the nearest of `CONFIDENCES`; confidence 0 to 100, NaN where missing."""
    known = ~np.isnan(confidence)
    level = np.round(confidence[known] / 25).astype(np.int64)
    return tally(level, is_correct[known], len(CONFIDENCES))
