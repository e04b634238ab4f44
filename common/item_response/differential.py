"""Differential item functioning: questions easier for one group than for equally able others.

The posterior of each student is shrunk towards the average of all students. So a group of lower
mean ability would seem to answer all questions worse than expected. Therefore each group first gets
its own prior mean μ. With the prior N(μ, I) in place of N(0, I), a posterior N(m, V) becomes
N(m + V μ, V), and μ is the mean of the new means if

    μ = (I − mean V)⁻¹ mean m.

The effect d of a group on the logits of a question is then one step of Newton's method. With the
residual r = right − P and the derivatives of P by d, by the intercept and by the slope, all sums
over the answers of reference and group, divided by P (1 − P), the information on d is what
difficulty and discrimination leave over: a Schur complement.
"""

from dataclasses import replace

from common.answers import find_rows
from common.arrays import Array, BoolArray, IntArray
from common.errors import InputError
from common.item_response.left_out import AnswersOfStudents, Predictions, predict_left_out
from common.item_response.model import Gaussians
from common.item_response.significance import QUANTILE_90, adjust_for_many

import numpy as np
import pandas as pd
from scipy.special import ndtr

# Effects from which a difference counts as moderate and as large. The Educational Testing Service
# sets them to 1 and 1.5 on its delta scale: a logit is 2.35 units of this scale.
_MODERATE = 1 / 2.35
_LARGE = 1.5 / 2.35
# A difference is significant if chance alone makes a difference of at least this size in less than
# 5 % of cases.
_SIGNIFICANT = 0.05


def find_effects(answers: AnswersOfStudents, group: pd.Series, min_answers: int) -> pd.DataFrame:
    """Return how much easier each question is for a group than for equally able other students.

    `QuestionStatistics.differential_functioning` explains the columns of the table. `group` holds
    the name of each student's group, by the id of the student. A question is tested only if both
    groups have at least `min_answers` answers to it.
    """
    group_of_student, names = _number_groups(answers, group)
    students = _give_groups_prior_means(answers.students, group_of_student)
    answers = replace(answers, students=students)
    predictions = predict_left_out(answers)
    # Group 0, the largest group, is the reference: each other group is compared with it.
    group_of_answer = group_of_student[answers.student]
    reference = _sum_by_question(answers, predictions, group_of_answer == 0)
    tables = []
    for number in range(1, len(names)):
        focal = _sum_by_question(answers, predictions, group_of_answer == number)
        table = _estimate_effects(reference, focal, min_answers)
        table.insert(0, "question", answers.question_ids)
        table.insert(1, "group", names[number])
        table.insert(2, "reference", names[0])
        is_tested = (table["n_group"] >= min_answers) & (table["n_reference"] >= min_answers)
        tables.append(table[is_tested].assign(group_number=number))
    # Sort the rows of a question by the number of the group, so the larger groups come first.
    table = pd.concat(tables).sort_values(["question", "group_number"], ignore_index=True)
    table = table.drop(columns="group_number")
    # The ends of the 90 % interval of the effect.
    table["low"] = table["effect"] - QUANTILE_90 * table["error"]
    table["high"] = table["effect"] + QUANTILE_90 * table["error"]
    # The two-sided p-value: without a difference between the groups, z is standard normal.
    z = table["effect"] / table["error"]
    table["p"] = 2 * ndtr(-z.abs())
    table["p_adjusted"] = adjust_for_many(table["p"].to_numpy())
    table["size"] = _name_sizes(table)
    return table


def _number_groups(answers: AnswersOfStudents, group: pd.Series) -> tuple[IntArray, pd.Index]:
    """Number the groups from 0, the largest first.

    Returns the number of each student's group, -1 for a student without a group, and the names of
    the groups. `group` holds the name of each student's group, by the id of the student.
    """
    if not group.index.is_unique:
        twice = group.index[group.index.duplicated()][0]
        raise InputError(f"group names student {twice} twice, expected each student once")
    # For each student with answers, the row in `group`; −1 if `group` does not name the student.
    row = find_rows(group.index.to_numpy(), answers.student_ids)
    is_named = row >= 0
    group_of_named = group.iloc[row[is_named]]
    # Sort the groups by size, and groups of the same size by name. NaN is no group.
    sizes = group_of_named.dropna().value_counts().sort_index()
    sizes = sizes.sort_values(ascending=False, kind="stable")
    if len(sizes) < 2:
        raise InputError(
            f"group has {len(sizes)} groups among the students with answers, expected at least 2"
        )
    number = np.full(len(answers.student_ids), -1)
    # A group's number is its position in this order. `get_indexer` returns −1 for NaN.
    number[is_named] = sizes.index.get_indexer(pd.Index(group_of_named))
    return number, sizes.index


def _give_groups_prior_means(students: Gaussians, group_of_student: IntArray) -> Gaussians:
    """Return the posteriors of the abilities if each group has a prior mean of its own.

    The posteriors in `students` come from a fit in which all students have the prior mean 0. The
    prior mean of a group is estimated from the students of the group. A student without a group
    keeps the prior mean 0.

    `group_of_student` holds the number of each student's group, from 0; -1 stands for no group.
    """
    mean = students.mean.copy()
    identity = np.eye(mean.shape[1])
    for number in range(group_of_student.max() + 1):
        rows = np.flatnonzero(group_of_student == number)
        covariance = students.covariance[rows]
        # With the prior mean 0, a student of the group has the posterior N(m, V). With the prior
        # mean μ, the posterior mean is m + V μ. The prior mean of the group shall be the mean of
        # these new means. So μ = (I − mean V)⁻¹ mean m, as the module's docstring says.
        mean_v = covariance.mean(axis=0, dtype=np.float64)
        mean_m = students.mean[rows].mean(axis=0, dtype=np.float64)
        prior_mean = np.linalg.solve(identity - mean_v, mean_m)
        mean[rows] += covariance @ prior_mean.astype(np.float32)
    return Gaussians(mean, students.covariance)


def _sum_by_question(
    answers: AnswersOfStudents, predictions: Predictions, is_chosen: BoolArray
) -> pd.DataFrame:
    """Return sums over the chosen answers of each question.

    The column n is the number of answers. Each other column is a sum of products of two numbers,
    divided by the variance of the residual, P(right) P(wrong). The two letters of its name stand
    for the two numbers: r is the residual, i is the derivative of P(right) by the question's
    intercept, and s is the derivative of P(right) by the question's slope. For example, "ir" is the
    sum of i · r / variance.
    """
    rows = np.flatnonzero(is_chosen)
    question = answers.question[rows]
    residual_variance = predictions.residual_variance[rows]
    residual = predictions.residual[rows]
    by_intercept = predictions.by_intercept[rows]
    by_slope = predictions.by_slope[rows]
    # The values of each answer that `bincount` adds up for each question. Without values (None), it
    # counts the answers. The names of the other columns are products: i is the derivative by the
    # intercept, s the derivative by the slope, and r the residual.
    columns = {
        "n": None,
        "ir": by_intercept * residual / residual_variance,
        "sr": by_slope * residual / residual_variance,
        "ii": by_intercept**2 / residual_variance,
        "is": by_intercept * by_slope / residual_variance,
        "ss": by_slope**2 / residual_variance,
    }
    n_questions = len(answers.question_ids)
    return pd.DataFrame(
        {name: np.bincount(question, column, n_questions) for name, column in columns.items()}
    )


def _estimate_effects(
    reference: pd.DataFrame, focal: pd.DataFrame, min_answers: int
) -> pd.DataFrame:
    """Return the effect of the focal group on the logits of each question, and its standard error.

    `reference` and `focal` are the sums that `_sum_by_question` returns for the two groups. Its
    docstring explains the columns, such as "ir".

    The effect is NaN if one of the groups has fewer than `min_answers` answers to the question.

    Notes
    -----
    For each question, weighted least squares fit the residuals of both groups by three unknowns:
    the effect, and changes of the question's intercept and slope. The effect acts like a change of
    the intercept, but only on the focal group. So the three normal equations are, with the sums of
    both groups (`total`) and of the focal group,

        total ii · intercept + total is · slope + focal ii · effect = total ir,
        total is · intercept + total ss · slope + focal is · effect = total sr,
        focal ii · intercept + focal is · slope + focal ii · effect = focal ir.

    Multiples of the first two equations are subtracted from the third, so that intercept and slope
    vanish from it. It becomes information · effect = score. The variance of the effect is
    1 / information.
    """
    total = reference + focal
    # The coefficients of intercept and slope in the equations of the docstring: in the first two
    # equations, shape (questions, 2, 2), and in the third equation, shape (questions, 2).
    first_two = np.stack([total[["ii", "is"]].to_numpy(), total[["is", "ss"]].to_numpy()], axis=1)
    third = focal[["ii", "is"]].to_numpy()
    is_enough = (focal["n"] >= min_answers) & (reference["n"] >= min_answers)
    # For a question with few answers, the matrix `first_two` may be singular, and `solve` would
    # fail. Replace it by the identity, since the effect of such a question becomes NaN below
    # anyway.
    first_two[~is_enough] = np.eye(2)
    # How many times each of the first two equations is subtracted from the third, so that intercept
    # and slope vanish from the third, shape (questions, 2).
    multiples = np.linalg.solve(first_two, third[:, :, None])[:, :, 0]
    information = focal["ii"] - (multiples * third).sum(axis=1)
    score = focal["ir"] - (multiples * total[["ir", "sr"]].to_numpy()).sum(axis=1)
    information = information.where(is_enough)
    return pd.DataFrame(
        {
            "n_group": focal["n"].astype(np.int64),
            "n_reference": reference["n"].astype(np.int64),
            "effect": score / information,
            "error": 1 / np.sqrt(information),
        }
    )


def _name_sizes(table: pd.DataFrame) -> Array:
    """Return negligible, moderate or large for each effect."""
    size = table["effect"].abs()
    is_significant = table["p"] < _SIGNIFICANT
    # A one-sided test: is the effect larger than `_MODERATE`?
    is_above_moderate = ndtr((_MODERATE - size) / table["error"]) < _SIGNIFICANT
    is_large = is_significant & (size >= _LARGE) & is_above_moderate
    is_moderate = is_significant & (size >= _MODERATE)
    return np.select([is_large, is_moderate], ["large", "moderate"], "negligible")
