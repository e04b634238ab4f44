"""Find similar questions: those that the same students answer."""

from common.arrays import BoolArray, FloatArray, IntArray
from common.threads import run_in_threads

import numpy as np
from scipy.sparse import csr_matrix

# Number of most similar questions that are kept for each question.
_N_NEIGHBOURS = 96
# To count the students who answered both of two questions, for all questions, two sparse matrices
# are multiplied. This takes most of the time: a student with n answers costs n² multiplications. To
# save time, random students are drawn until this number of multiplications is reached. Only they
# count.
_MAX_PRODUCTS = 1_000_000_000
# Number of questions whose similarities to all questions are held in memory at a time.
_BLOCK = 256


def similar_questions(
    student: IntArray, question: IntArray, n_students: int, n_questions: int
) -> tuple[IntArray, FloatArray]:
    """Find for each question the questions that are most similar to it.

    The similarity of two questions is the number of students who answered both, divided by the
    geometric mean of the number who answered the first question and the number who answered the
    second one. This similarity is the cosine of two vectors with an element for each student: 1 if
    the student answered the question, else 0. If there are many answers, only a random part of the
    students counts.

    Parameters
    ----------
    student, question
        Numbers from 0, shape (pairs,): who answered or is to answer which question.
    n_students, n_questions
        How many students and questions there are.

    Returns
    -------
    neighbours : array of int32, shape (questions, neighbours)
        The questions that are most similar to each question, the most similar first:
        `_N_NEIGHBOURS` of them, or all other questions if there are fewer.
    similarity : array of float32, shape (questions, neighbours)
        Their similarities, 0 to 1.
    """
    is_drawn = _draw_students(student, n_students)
    rows = is_drawn[student]
    ones = np.ones(int(rows.sum()), np.float32)
    answered = csr_matrix((ones, (student[rows], question[rows])), (n_students, n_questions))
    by_question = answered.T.tocsr()
    # Count at least 1 answer to avoid a division by 0. The similarities of a question without
    # answers are then 0.
    n_answers = np.maximum(np.diff(by_question.indptr), 1).astype(np.float32)
    k = min(_N_NEIGHBOURS, n_questions - 1)
    neighbours = np.zeros((n_questions, k), np.int32)
    similarity = np.zeros((n_questions, k), np.float32)

    def fill_block(first: int) -> None:
        block = np.arange(first, min(first + _BLOCK, n_questions))
        # At first, `cosine` holds the number of students who answered both questions. Its shape is
        # (block, questions). The next line divides the numbers.
        cosine = (by_question[block] @ answered).toarray()
        cosine /= np.sqrt(n_answers[block, None] * n_answers)
        # A question is not its own neighbour.
        cosine[np.arange(len(block)), block] = -1
        # The questions with the k largest similarities, shape (block, k).
        nearest = _largest_columns(cosine, k)
        neighbours[block] = nearest
        similarity[block] = np.take_along_axis(cosine, nearest, 1)

    if k > 0:
        run_in_threads(fill_block, range(0, n_questions, _BLOCK))
    return neighbours, similarity


def _draw_students(student: IntArray, n_students: int) -> BoolArray:
    """Draw as many random students as can be compared within `_MAX_PRODUCTS` multiplications.

    In the product of sparse matrices that compares all questions, a student with n answers costs n²
    multiplications. Returns whether each student is drawn, shape (students,).
    """
    order = np.random.default_rng(0).permutation(n_students)
    n_products = np.bincount(student, minlength=n_students).astype(np.float64) ** 2
    n_products_so_far = np.cumsum(n_products[order])
    drawn = order[n_products_so_far <= _MAX_PRODUCTS]
    is_drawn = np.zeros(n_students, bool)
    is_drawn[drawn] = True
    return is_drawn


def _largest_columns(values: FloatArray, k: int) -> IntArray:
    """Return the columns of the k largest values of each row, the largest first.

    Equal values come in the order of their columns.
    """
    # NumPy's `argpartition` would not do: if several columns hold the k-th largest value, it may
    # return any of these columns. So find the k-th largest value of each row, sort all values that
    # are at least as large, and take the first k.
    kth_largest = np.partition(values, -k, axis=1)[:, -k, None]
    # The row and the column of each value that is at least as large as the k-th largest of its row.
    row, column = np.nonzero(values >= kth_largest)
    # Sort the values by row, then from the largest to the smallest.
    order = np.lexsort((-values[row, column], row))
    # `nonzero` returns the rows in increasing order, so row[order] equals `row`. Thus a search in
    # `row` finds the position in `order` at which each row begins.
    first_of_row = np.searchsorted(row, np.arange(len(values)))
    # The positions in `order` of the k largest values of each row, shape (rows, k).
    first_k_of_row = first_of_row[:, None] + np.arange(k)
    largest: IntArray = column[order[first_k_of_row]]
    return largest
