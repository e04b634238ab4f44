"""Accuracy in groups of answers, with intervals that count each student's answers as one cluster.

In this module, `pairs` is a DataFrame with a row for each answer scored. Its columns are
QuestionId, those of `PairFacts.pairs`, right (whether the prediction is right), and majority_right
(whether the prediction of the majority model is right; only if the training answers are known).
"""

from __future__ import annotations

from dataclasses import dataclass

from common import metrics
from common.arrays import Array, FloatArray
from common.evaluation.groupings import OF_ANSWERS, Grouping
from common.evaluation.student_quantile import student_quantile

import numpy as np
import pandas as pd

# Groups with fewer answers get no accuracy: if a participant knows which predictions are in a small
# group, its accuracy tells much about the hidden answers.
FEW = 20
# Number of subjects that have a group of their own; all other subjects share a group.
_N_SUBJECTS = 12
# The group of all other subjects has this number in place of a SubjectId.
_OTHERS = -1
# Each table in `Losses` has at most this many rows.
_N_LOSS_ROWS = 20


@dataclass(frozen=True)
class Breakdown:
    """Accuracies in the groups of one grouping."""

    grouping: Grouping
    # The table of `accuracy_by`, a row for each group.
    groups: pd.DataFrame


def break_down(pairs: pd.DataFrame, subjects: pd.DataFrame | None) -> list[Breakdown]:
    """Return the accuracies in groups of answers, for each way of grouping whose data are known.

    `OF_ANSWERS` lists the groupings: by the question's difficulty, for instance, or its subject.

    Parameters
    ----------
    pairs
        The scored answers. Each grouping that is not by subject has a column with the group of each
        answer. The name of the column is the `key` of the grouping.
    subjects
        A row for each subject of each question: QuestionId, SubjectId, Name and Level. None if the
        subjects are not known.
    """
    breakdowns = []
    for grouping in OF_ANSWERS:
        if grouping.subject_level is None:
            if grouping.key in pairs:
                breakdowns.append(Breakdown(grouping, accuracy_by(pairs, grouping.key)))
        elif subjects is not None:
            level_subjects = subjects[subjects["Level"] == grouping.subject_level]
            if len(level_subjects):
                groups = _accuracy_by_subject(pairs, level_subjects)
                breakdowns.append(Breakdown(grouping, groups))
    return breakdowns


def _accuracy_by_subject(pairs: pd.DataFrame, subjects: pd.DataFrame) -> pd.DataFrame:
    """Return the accuracies by subjects of one level, the subjects with most answers first.

    An answer counts in the group of each subject that its question has. The last group, "other
    subjects", holds the answers to questions that have none of the subjects shown. `subjects` has a
    row for each question and subject of the level.
    """
    # For each row of `subjects`, the number of answers to the question of the row.
    n_answers = subjects["QuestionId"].map(pairs["QuestionId"].value_counts())
    n_by_subject = n_answers.groupby(subjects["SubjectId"]).sum()
    largest = n_by_subject.sort_values(ascending=False, kind="stable").index[:_N_SUBJECTS]
    rows_of_largest = subjects[subjects["SubjectId"].isin(largest)]
    # Questions that have none of the largest subjects form the group "other subjects". Each of
    # these questions has one row in the group.
    has_only_others = ~subjects["QuestionId"].isin(rows_of_largest["QuestionId"])
    rows_of_others = subjects[has_only_others].drop_duplicates("QuestionId")
    rows_of_others = rows_of_others.assign(SubjectId=_OTHERS, Name="other subjects")
    # `grouped` has a row for each pair of a question and a group that the question belongs to.
    grouped = pd.concat([rows_of_largest, rows_of_others])
    group = grouped["SubjectId"].astype(pd.CategoricalDtype([*largest, _OTHERS]))
    question_groups = grouped[["QuestionId"]].assign(subject=group)
    # `answers` has a row for each pair of an answer and a group that its question belongs to.
    columns = pairs.columns.intersection(["QuestionId", "student_code", "right", "majority_right"])
    answers = pairs[columns].merge(question_groups, on="QuestionId")
    # The share of a group is its number of answers, divided by the number of all answers,
    # `len(pairs)`. `len(answers)` may be larger, since an answer in several groups has several
    # rows.
    table = accuracy_by(answers, "subject", n_all=len(pairs))
    # The index of the table holds SubjectIds: replace them by the names of the subjects.
    names = grouped.drop_duplicates("SubjectId").set_index("SubjectId")["Name"]
    return table.set_axis(names[table.index])


def accuracy_by(
    pairs: pd.DataFrame, key: str, *, n_all: int | None = None, few: int = FEW
) -> pd.DataFrame:
    """Compute the accuracy in each group of answers.

    Parameters
    ----------
    pairs
        The answers, see the module's docstring.
    key
        Name of a categorical column.
    n_all
        Number of all answers, for `share`; by default the number of rows of `pairs`.
    few
        Groups with fewer answers get no accuracy.

    Returns
    -------
    DataFrame
        A row for each group that has answers: n_answers, n_students, accuracy, low and high (ends
        of the accuracy's 95 % interval), majority (the accuracy of the majority, if it is known)
        and share (of all answers). For groups with few answers, accuracy, low, high and majority
        are NaN.
    """
    groups = pairs[key].cat
    group = groups.codes.to_numpy(np.int64)
    student = pairs["student_code"].to_numpy()
    is_right = pairs["right"].to_numpy()
    n_groups = len(groups.categories)
    n_students = int(student.max()) + 1
    # Count the answers `n` and the right answers `n_right` of each student in each group, shape
    # (groups, students). `cell` is the index of an answer's group and student in the flat counts.
    cell = group * n_students + student
    n = np.bincount(cell, minlength=n_groups * n_students).reshape(n_groups, n_students)
    n_right = np.bincount(cell[is_right], minlength=n.size).reshape(n.shape)

    table = pd.DataFrame(index=groups.categories.to_list())
    table["n_answers"] = n.sum(axis=1)
    table["n_students"] = (n > 0).sum(axis=1)
    table["accuracy"] = metrics.share_right(n_right.sum(axis=1), table["n_answers"])
    table["low"], table["high"] = clustered_intervals(n_right, n)
    if "majority_right" in pairs:
        group_if_right = group[pairs["majority_right"].to_numpy()]
        n_majority_right = np.bincount(group_if_right, minlength=n_groups)
        table["majority"] = metrics.share_right(n_majority_right, table["n_answers"])
    figures = table.columns.drop(["n_answers", "n_students"])
    table.loc[table["n_answers"] < few, figures] = np.nan
    table["share"] = table["n_answers"] / (n_all or len(pairs))
    return table[table["n_answers"] > 0]


def clustered_intervals(n_right: Array, n_answers: Array) -> tuple[FloatArray, FloatArray]:
    """Return 95 % intervals of shares of right answers, where each student is a cluster of answers.

    These are Wilson's intervals, with the effective number of answers in place of the number of
    answers, and with quantiles of Student's distribution in place of the normal distribution (Korn
    and Graubard 1998; Dean and Pagano 2015).

    Parameters
    ----------
    n_right, n_answers : array of int, shape (groups, students)
        Counts of right answers and of all answers.

    Returns
    -------
    low, high : array, shape (groups,)
        0 and 1 for a single student; NaN without students.
    """
    n = n_answers.sum(axis=1)
    n_students = (n_answers > 0).sum(axis=1)
    # Groups of one student, for instance, lead to a division by 0. Their results are replaced
    # below. Groups without students keep NaN.
    with np.errstate(divide="ignore", invalid="ignore"):
        share = n_right.sum(axis=1) / n
        # The variance of the share, estimated from how far each student's number of right answers
        # is from the number that the share would give.
        deviation = n_right - share[:, None] * n_answers
        variance = (deviation**2).sum(axis=1) * n_students / (n_students - 1) / n**2
        # The effective number of answers is the m for which m independent answers would have the
        # same variance, share (1 − share) / m. It is usually smaller than n, since the answers of a
        # student are alike; it is never taken to be larger.
        n_effective = np.minimum(share * (1 - share) / variance, n)
        # If all answers are right, or all are wrong, the variance is 0 and says nothing. Then use
        # the number of students in place of `n_effective`.
        n_effective = np.where((share > 0) & (share < 1), n_effective, n_students)
        degrees_of_freedom = np.maximum(n_students - 1, 1)
        t = student_quantile(degrees_of_freedom)
        low, high = _wilson_intervals(share, n_effective, t)
    # A single student does not show how much students differ: any share is possible.
    is_single = n_students == 1
    return np.where(is_single, 0.0, low), np.where(is_single, 1.0, high)


def _wilson_intervals(
    share: FloatArray, n: FloatArray, quantile: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return Wilson's intervals of shares of n independent answers, clipped to the range 0 to 1.

    `quantile` is the number of standard errors from the share to each end of its interval.
    """
    middle = (share + quantile**2 / (2 * n)) / (1 + quantile**2 / n)
    error = np.sqrt(share * (1 - share) / n + (quantile / (2 * n)) ** 2)
    half_width = quantile * error / (1 + quantile**2 / n)
    return np.clip(middle - half_width, 0, 1), np.clip(middle + half_width, 0, 1)


@dataclass(frozen=True)
class Losses:
    """The questions and the subjects with more wrong predictions than expected.

    The tables have the columns name, about, n_answers, n_wrong and lost. `lost` is the excess of
    wrong predictions: n_wrong − n_answers × (overall share of wrong predictions). Rows with the
    highest `lost` come first.
    """

    # A row for each question; `about` names the question's most specific subjects.
    questions: pd.DataFrame
    # A row for each subject that is among the most specific subjects of a question; `about` names
    # the wider subject that it belongs to. None if subjects are not known.
    subjects: pd.DataFrame | None


def most_lost(pairs: pd.DataFrame, subjects: pd.DataFrame | None) -> Losses:
    """Return the questions and the subjects with more wrong predictions than expected.

    The expected number of wrong predictions is the number of answers times the share of wrong
    predictions among all answers.

    Parameters
    ----------
    pairs
        The scored answers (see the module's docstring).
    subjects
        A row for each subject of each question, as in `PairFacts.subjects`. None if the subjects
        are not known.
    """
    is_wrong = ~pairs["right"]
    share_wrong = float(is_wrong.mean())
    # For each question, the number of answers and the number of wrong predictions.
    by_question = is_wrong.groupby(pairs["QuestionId"]).agg(n_answers="size", n_wrong="sum")
    questions = _rank_by_loss(by_question.assign(name=by_question.index, about=""), share_wrong)
    if subjects is None:
        return Losses(questions, None)

    # The most specific subjects of each question are those at its deepest level in the subject
    # tree.
    deepest_level = subjects.groupby("QuestionId")["Level"].transform("max")
    deepest = subjects[subjects["Level"] == deepest_level]
    # For each question of the table, join the names of its most specific subjects.
    deepest_of_listed = deepest[deepest["QuestionId"].isin(questions.index)]
    about = deepest_of_listed.groupby("QuestionId")["Name"].agg(", ".join)
    questions = questions.assign(about=about.reindex(questions.index, fill_value=""))

    # Give each row of `deepest` the counts of its question, then add the counts of each subject.
    by_subject = (
        deepest.join(by_question, on="QuestionId")
        .groupby("SubjectId")
        .agg(
            name=("Name", "first"),
            about=("Parent", "first"),
            n_answers=("n_answers", "sum"),
            n_wrong=("n_wrong", "sum"),
        )
    )
    return Losses(questions, _rank_by_loss(by_subject, share_wrong))


def _rank_by_loss(table: pd.DataFrame, share_wrong: float) -> pd.DataFrame:
    """Return the rows of a table with the largest excess of wrong predictions, the largest first.

    The column `lost` is added: the number of wrong predictions beyond the number expected with the
    overall share of wrong predictions, `share_wrong`. The result has at most `_N_LOSS_ROWS` rows;
    rows without an excess or with few answers are left out.
    """
    expected = table["n_answers"] * share_wrong
    lost = table["n_wrong"] - expected
    ranked = table.assign(lost=lost).sort_values("lost", ascending=False, kind="stable")
    first_rows = ranked[:_N_LOSS_ROWS]
    is_excess = first_rows["lost"] > 0
    has_enough_answers = first_rows["n_answers"] >= FEW
    return first_rows[is_excess & has_enough_answers]
