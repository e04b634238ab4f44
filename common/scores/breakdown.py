"""Where predictions are right and where they are not: accuracy in groups of answers.

Arrays in, small dataclasses out. Answers of one student are not independent, so every interval
counts a student's answers as one cluster.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from common.answers import IntArray

import numpy as np
import numpy.typing as npt

BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]

_LEVEL = 0.95
_N_SHARES = 10
# Numbers of answers from which a group begins; the next one ends it.
_COUNTS = (0, 1, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)
NOT_KNOWN = "not known"


@dataclass(frozen=True)
class Scored:
    """Answers that were scored, as equally long columns.

    Attributes
    ----------
    student, question
        Numbers of student and question, from 0, int32.
    right
        Whether the answer was predicted correctly.
    majority_right
        Whether the majority predicts it correctly; None where the majority is not known.
    """

    student: IntArray
    question: IntArray
    right: BoolArray
    majority_right: BoolArray | None = None


@dataclass(frozen=True)
class Group:
    """The predictions of a group of answers.

    Attributes
    ----------
    name
        What the answers have in common.
    n_answers, n_students
        How many answers of how many students.
    share
        Of all answers scored, from 0 to 1.
    accuracy
        Share predicted correctly, from 0 to 1.
    interval
        Ends of the 95 % interval of the accuracy, from 0 to 1.
    majority
        Accuracy of the majority; None where it is not known.
    """

    name: str
    n_answers: int
    n_students: int
    share: float
    accuracy: float
    interval: tuple[float, float]
    majority: float | None = None


@dataclass(frozen=True)
class Loss:
    """How much is lost with the answers to one question or subject.

    Attributes
    ----------
    number
        Of the question or subject, from 0.
    n_answers, n_wrong
        How many answers, and how many of them are predicted wrongly.
    excess
        Wrong predictions beyond those that as many answers have on average.
    """

    number: int
    n_answers: int
    n_wrong: int
    excess: float


def group_answers(
    scored: Scored, group: IntArray, names: Sequence[str], rows: IntArray | None = None
) -> list[Group]:
    """Measure the accuracy in every group of answers.

    Parameters
    ----------
    scored
        The answers.
    group
        Number of each answer's group, or -1 for none; shape (answers,).
    names
        Of the groups.
    rows
        Where an answer may be in several groups: the row of the answer that each element of
        `group` is about, shape of `group`.

    Returns
    -------
    list of Group
        In the order of the names; without groups that have no answers.
    """
    rows = np.arange(len(scored.right)) if rows is None else rows
    rows, group = rows[group >= 0], group[group >= 0]
    n_groups, n_students = len(names), int(scored.student.max()) + 1
    right = scored.right[rows]
    cell = group.astype(np.int64) * n_students + scored.student[rows]
    shape = (n_groups, n_students)
    n_of_student = np.bincount(cell, minlength=n_groups * n_students).reshape(shape)
    right_of_student = np.bincount(cell[right], minlength=n_groups * n_students).reshape(shape)
    low, high = clustered_intervals(right_of_student, n_of_student)
    n_answers, n_right = n_of_student.sum(axis=1), right_of_student.sum(axis=1)
    n_majority = None
    if scored.majority_right is not None:
        n_majority = np.bincount(group[scored.majority_right[rows]], minlength=n_groups)
    return [
        Group(
            name=names[k],
            n_answers=int(n_answers[k]),
            n_students=int((n_of_student[k] > 0).sum()),
            share=float(n_answers[k] / len(scored.right)),
            accuracy=float(n_right[k] / n_answers[k]),
            interval=(float(low[k]), float(high[k])),
            majority=None if n_majority is None else float(n_majority[k] / n_answers[k]),
        )
        for k in np.flatnonzero(n_answers).tolist()
    ]


def clustered_intervals(
    n_right: npt.NDArray[Any], n_answers: npt.NDArray[Any]
) -> tuple[FloatArray, FloatArray]:
    """Return 95 % intervals of shares whose answers come in clusters, the students.

    Wilson's interval, with the number of independent answers that would give the clustered variance
    in the place of the number of answers, and Student's distribution for few clusters (Korn and
    Graubard 1998; Dean and Pagano 2015). It stays inside 0 to 1, and does not shrink to nothing
    where all answers are right.

    Parameters
    ----------
    n_right, n_answers
        Right answers and answers of every student in every group, shape (groups, students).

    Returns
    -------
    low, high : array of float64, shape (groups,)
        0 and 1 for a group of a single student, who says nothing about others; NaN for none.
    """
    # SciPy doubles the time that a script takes to start, and only this function needs it.
    from scipy.special import stdtrit

    n, n_students = n_answers.sum(axis=1), (n_answers > 0).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = n_right.sum(axis=1) / n
        deviation = n_right - share[:, None] * n_answers
        variance = (deviation**2).sum(axis=1) * n_students / (n_students - 1) / n**2
        effective = np.minimum(share * (1 - share) / variance, n)
        # If all answers are right or all wrong, only the students are known to be independent.
        effective = np.where((share > 0) & (share < 1), effective, n_students)
        t = stdtrit(np.maximum(n_students - 1, 1), (1 + _LEVEL) / 2)
        middle = (share + t**2 / (2 * effective)) / (1 + t**2 / effective)
        spread = np.sqrt(share * (1 - share) / effective + (t / (2 * effective)) ** 2)
        half = t * spread / (1 + t**2 / effective)
    alone = n_students == 1
    low = np.where(alone, 0.0, np.clip(middle - half, 0, 1))
    high = np.where(alone, 1.0, np.clip(middle + half, 0, 1))
    return low, high


def by_share(share: npt.NDArray[np.floating[Any]]) -> tuple[IntArray, list[str]]:
    """Group by tenths of a share.

    Parameters
    ----------
    share
        From 0 to 1; NaN where it is not known.

    Returns
    -------
    group : array of int64, shape of `share`
    names : list of str
        Of the tenths, then of what is not known.
    """
    unknown = np.isnan(share)
    place = np.minimum(np.where(unknown, 0, share) * _N_SHARES, _N_SHARES - 1).astype(np.int64)
    ends = [100 * k // _N_SHARES for k in range(_N_SHARES + 1)]
    names = [f"{low} to {high} %" for low, high in pairwise(ends)]
    return np.where(unknown, _N_SHARES, place), [*names, NOT_KNOWN]


def by_count(count: IntArray) -> tuple[IntArray, list[str]]:
    """Group by orders of a number of answers.

    Parameters
    ----------
    count
        Whole numbers from 0.

    Returns
    -------
    group : array of int64, shape of `count`
    names : list of str
    """
    names = [
        f"{low:,}" if high == low + 1 else f"{low:,} to {high - 1:,}"
        for low, high in pairwise(_COUNTS)
    ]
    group = np.searchsorted(_COUNTS, count, side="right") - 1
    return group, ["none" if name == "0" else name for name in names] + [f"from {_COUNTS[-1]:,}"]


def by_number(value: IntArray, low: int, high: int) -> tuple[IntArray, list[str]]:
    """Group by whole numbers, with the smallest together, and the largest.

    Parameters
    ----------
    value
        Whole numbers; negative ones are not known.
    low, high
        What is at most `low` is one group, what is at least `high` another.

    Returns
    -------
    group : array of int64, shape of `value`
    names : list of str
        Of the numbers, then of what is not known.
    """
    names = [f"up to {low}", *map(str, range(low + 1, high)), f"from {high}", NOT_KNOWN]
    group = np.clip(value, low, high).astype(np.int64) - low
    return np.where(value < 0, high - low + 1, group), names


def most_lost(
    n_answers: npt.NDArray[Any], n_wrong: npt.NDArray[Any], share_wrong: float, n_most: int = 20
) -> list[Loss]:
    """Find with which questions or subjects most is lost.

    Parameters
    ----------
    n_answers, n_wrong
        Answers, and those predicted wrongly, to each; shape (questions,).
    share_wrong
        Share of all answers that is predicted wrongly.
    n_most
        How many to return at most.

    Returns
    -------
    list of Loss
        By falling excess, which is above 0.
    """
    excess = n_wrong - n_answers * share_wrong
    order = np.argsort(-excess, kind="stable")[:n_most]
    return [
        Loss(int(k), int(n_answers[k]), int(n_wrong[k]), float(excess[k]))
        for k in order[excess[order] > 0].tolist()
    ]
