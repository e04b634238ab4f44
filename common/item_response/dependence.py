"""Local dependence: pairs of questions whose answers agree more than the abilities explain.

The residuals z of a student's answers, each divided by its standard deviation, rest on the
student's other answers. Hence the residuals of two questions j and k are correlated even if the
model is true: a right answer to j raises the expected answer to k. To first order, with the
curvatures w and the slopes a of the answers, the covariance V of the student's abilities, and the
variances u₋ of `left_out`,

    E[z_j z_k] = −a_jᵀ V a_k c_j c_k, where c = √(w (1 + w u₋)).

These are the partial correlations of a factor model, whose inverse covariance matrix is
I − √w a V aᵀ √w. With several abilities, V is replaced by v I. Here v is the mean variance of the
logits of all questions, divided by the mean variance for a student without answers. Then

    E[z_j z_k] = −(a_j · a_k) l_j l_k, where l = c √v is the loading of an answer.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from common.arrays import BoolArray, FloatArray, IntArray
from common.item_response.left_out import AnswersOfStudents, Predictions
from common.item_response.significance import adjust_for_many
from common.threads import in_threads

import numpy as np
import pandas as pd
import scipy.sparse
from scipy.special import ndtr

# A student with n answers counts as n² pairs of answers. If all students together have more pairs
# than this, only a random sample of the students is used.
_MAX_PAIRS = 200_000_000
# Pairs of questions are correlated block by block, to save memory. A block consists of all pairs
# whose first question is in one range of questions. The range is so short that a dense array with a
# row for each question in it, and a column for each of all questions, holds about this many numbers
# at most.
_BLOCK = 1 << 21


def find_pairs(
    answers: AnswersOfStudents, predictions: Predictions, min_students: int
) -> pd.DataFrame:
    """Return how strongly the answers to two questions correlate beyond what abilities explain.

    The table has a row for each pair of questions that at least `min_students` students answered
    both, the most significant pair first. `QuestionStatistics.local_dependence` explains its
    columns.
    """
    # The last column of the items holds their intercepts.
    slopes = answers.items.mean[:, :-1]
    matrices = _make_matrices(answers, predictions)
    # Each block is a range of questions. `_correlate` returns the pairs whose first question is in
    # the range.
    blocks = _blocks(len(answers.question_ids))
    tables = in_threads(
        lambda questions: _correlate(questions, matrices, slopes, min_students), blocks
    )
    pairs = pd.concat(tables, ignore_index=True)
    # z is the correlation divided by its standard error, which is 1 / √(number of students). If the
    # answers to the two questions are independent given the abilities, z has a standard normal
    # distribution. `p` is the two-sided p-value of z.
    z = pairs["correlation"] * np.sqrt(pairs["n_students"])
    p = 2 * ndtr(-z.abs().astype(np.float64))
    table = pd.DataFrame(
        {
            "question": answers.question_ids[pairs["first"]],
            "other": answers.question_ids[pairs["second"]],
            "n_students": pairs["n_students"],
            "correlation": pairs["correlation"],
            "error": 1 / np.sqrt(pairs["n_students"]),
            "p": p,
            "p_adjusted": adjust_for_many(p.to_numpy()),
        }
    )
    most_significant_first = np.argsort(-z.abs().to_numpy(), kind="stable")
    return table.iloc[most_significant_first].reset_index(drop=True)


@dataclass(frozen=True)
class _Matrices:
    """Three values of each answer, as sparse matrices.

    They have a row for each question, a column for each student, and an entry for each answer.
    """

    # 1 for each answer. So the scalar product of the rows of two questions is the number of
    # students who answered both.
    is_answered: Any
    # The outcome (1 right, 0 wrong) minus the predicted P(right), divided by the standard deviation
    # of this difference.
    residual: Any
    # How strongly the residual depends on the other answers of the student: the loading l in the
    # formulas of the module's docstring.
    loading: Any


def _make_matrices(answers: AnswersOfStudents, predictions: Predictions) -> _Matrices:
    """Return the residuals and loadings of the answers as sparse matrices.

    If there are too many answers, the matrices hold only the answers of a sample of the students
    (see `_choose_students`).
    """
    is_chosen = _choose_students(answers)[answers.student]
    # The row (question) and the column (student) of each answer of the chosen students.
    cells = answers.question[is_chosen], answers.student[is_chosen]
    shape = len(answers.question_ids), len(answers.student_ids)

    def as_matrix(values: FloatArray) -> Any:
        """Put the values of the chosen students' answers into a sparse matrix."""
        return scipy.sparse.csr_matrix((values[is_chosen], cells), shape)

    # The loading of an answer says how strongly its residual depends on the student's other
    # answers. It is computed from the curvature of the answer's log likelihood, the variance of its
    # logit given the student's other answers, and the relative variance of the student's logits.
    # The module's docstring calls these three numbers w, u₋ and v.
    curvature = predictions.curvature
    squared_c = curvature * (1 + curvature * predictions.logit_variance)
    relative_variance = _relative_variances(answers)[answers.student]
    loading = np.sqrt(squared_c * relative_variance)
    return _Matrices(
        is_answered=as_matrix(np.ones(len(answers.student), np.float32)),
        residual=as_matrix(predictions.residual / np.sqrt(predictions.residual_variance)),
        loading=as_matrix(loading),
    )


def _correlate(
    questions: slice, matrices: _Matrices, slopes: FloatArray, min_students: int
) -> pd.DataFrame:
    """Correlate the residuals of pairs of questions, beyond what the abilities explain.

    The residuals have the standard deviation 1. So the correlation of two questions is the mean of
    the product of their residuals, over the students who answered both questions. Even if the model
    is true, the expectation of this product is not 0, since both residuals rest on estimates of the
    same student's abilities. The expectation is minus the scalar product of the questions' slopes,
    times the product of the two answers' loadings. It is subtracted from the product.

    Parameters
    ----------
    questions
        A range of positions: the pairs whose first question is in the range are returned. The first
        question of a pair comes before the second.
    matrices
        The values of the answers.
    slopes
        The slopes of each question, shape (questions, k).
    min_students
        Pairs of questions with fewer common students are left out.

    Returns
    -------
    DataFrame
        A row for each pair: first, second (positions of the questions), n_students, correlation.
    """
    first = np.arange(questions.start, questions.stop)
    # `_products` returns the scalar product of each row in `first` with each row of the matrix. A
    # row belongs to a question and has an entry of 1 for each student who answered it. So the
    # product of two rows is the number of students who answered both questions.
    n_common = _products(matrices.is_answered, first)
    row, second = np.nonzero(n_common >= min_students)
    is_pair = second > first[row]
    row = row[is_pair]
    second = second[is_pair]
    n_students = n_common[row, second]
    # Keep in `first` only questions that are the first of some pair: the two products below are
    # computed for these questions alone, which saves time. `row` becomes the index in the new
    # `first`.
    with_pairs, row = np.unique(row, return_inverse=True)
    first = first[with_pairs]

    sum_of_products = _products(matrices.residual, first)[row, second]
    # For one student, the expected product of the residuals of questions j and k is
    # −(a_j · a_k) l_j l_k, with the slopes a and the loadings l (see the module's docstring). Only
    # the loadings differ between students, so sum the products l_j l_k over the students.
    expected_sum = -(slopes[first][row] * slopes[second]).sum(axis=1)
    expected_sum *= _products(matrices.loading, first)[row, second]
    return pd.DataFrame(
        {
            "first": first[row],
            "second": second,
            "n_students": n_students.astype(np.int64),
            "correlation": (sum_of_products - expected_sum) / n_students,
        }
    )


def _choose_students(answers: AnswersOfStudents) -> BoolArray:
    """Return which students are used: all, or a random sample if they are too many.

    A student with n answers counts as n² pairs of answers. The students are too many if all of them
    together have more than `_MAX_PAIRS` pairs.
    """
    # The answers of student i begin at start[i] and end before start[i + 1].
    n_answers = np.diff(answers.start)
    n_pairs = n_answers.astype(np.float64) ** 2
    order = np.random.default_rng(0).permutation(len(n_pairs))
    is_chosen = np.zeros(len(n_pairs), bool)
    # Go through the students in random order, and stop once the chosen students have more pairs
    # than allowed. `n_before` is the number of pairs of all students who come before a student in
    # this order. The first student is chosen in any case, since `n_before` is 0.
    n_before = np.cumsum(n_pairs[order]) - n_pairs[order]
    is_chosen[order] = n_before <= _MAX_PAIRS
    return is_chosen


def _relative_variances(answers: AnswersOfStudents) -> FloatArray:
    """Return for each student how uncertain the logits still are, relative to no answers at all.

    The logit of a question with the slopes a has the variance aᵀ V a, where V is the covariance of
    the student's abilities. Before any answer, V is the identity matrix, so the variance is aᵀ a.
    The result is the sum of aᵀ V a over all questions, divided by the sum of aᵀ a: the v of the
    module's docstring.
    """
    slopes = answers.items.mean[:, :-1]
    # s = Σ a aᵀ. The sum of aᵀ V a over the questions is the sum of V[i, j] · s[i, j] over all i
    # and j. The sum of aᵀ a is the trace of s.
    s = slopes.T @ slopes
    k = len(s)
    covariance = answers.students.covariance.reshape(-1, k * k)
    variance: FloatArray = covariance @ s.ravel() / np.trace(s)
    return variance


def _products(matrix: Any, rows: IntArray) -> FloatArray:
    """Multiply each of the given rows of a matrix with every row: their scalar products.

    `rows` are increasing row numbers. Element [i, j] of the result is the scalar product of the
    rows rows[i] and j. If j is less than rows[0], the element is 0 instead: no caller needs these
    products.
    """
    products = np.zeros((len(rows), matrix.shape[0]), np.float32)
    if len(rows):
        lowest = rows[0]
        products[:, lowest:] = (matrix[rows] @ matrix[lowest:].T).toarray()
    return products


def _blocks(n_questions: int) -> Iterator[slice]:
    """Yield consecutive ranges that cover all questions; `_BLOCK` limits their length."""
    step = max(1, _BLOCK // n_questions)
    for begin in range(0, n_questions, step):
        yield slice(begin, min(begin + step, n_questions))
