"""Which questions belong together, and a student's answers to those nearest to a question."""

from collections.abc import Callable

from common.arrays import FloatArray, IntArray
from common.item_response.observations import sort_answers
from common.threads import N_THREADS, in_threads

import numpy as np
from scipy.sparse import csr_matrix

_N_NEIGHBOURS = 96
# Students are drawn until the squares of their numbers of answers add up to this.
_MAX_PRODUCTS = 1_000_000_000
# Questions whose similarities are held in memory at a time, about; cells of students × questions.
_BLOCK, _MAX_CELLS = 256, 16_000_000


def similar_questions(
    student: IntArray, question: IntArray, n_students: int, n_questions: int
) -> tuple[IntArray, FloatArray]:
    """Return for each question its nearest, `_N_NEIGHBOURS` or all others, most similar first,
    int32, and their cosines, together / sqrt(one · other), by a random part of many students.
    """
    order = np.random.default_rng(0).permutation(n_students)
    squares = np.bincount(student, minlength=n_students).astype(np.float64) ** 2
    is_drawn = np.zeros(n_students, bool)
    is_drawn[order[np.cumsum(squares[order]) <= _MAX_PRODUCTS]] = True
    rows = is_drawn[student]
    ones = np.ones(int(rows.sum()), np.float32)
    answered = csr_matrix((ones, (student[rows], question[rows])), (n_students, n_questions))
    by_question = answered.T.tocsr()
    count = np.maximum(np.diff(by_question.indptr), 1).astype(np.float32)
    k = min(_N_NEIGHBOURS, n_questions - 1)
    neighbours = np.zeros((n_questions, k), np.int32)
    similarity = np.zeros((n_questions, k), np.float32)

    def work(first: int) -> None:
        own = np.arange(first, min(first + _BLOCK, n_questions))
        cosine = (by_question[own] @ answered).toarray()
        cosine /= np.sqrt(count[own, None] * count)
        cosine[np.arange(len(own)), own] = -1
        # All that are no less similar than the k-th; of equal ones the lower numbers come first.
        least = np.partition(cosine, -k, axis=1)[:, -k, None]
        row, found = np.nonzero(cosine >= least)
        value = cosine[row, found]
        order = np.lexsort((-value, row))
        chosen = order[np.searchsorted(row, np.arange(len(own)))[:, None] + np.arange(k)]
        neighbours[own], similarity[own] = found[chosen], value[chosen]

    list(in_threads(work, range(0, n_questions if k else 0, _BLOCK)))
    return neighbours, similarity


def visit_nearest(
    known: tuple[IntArray, IntArray],
    asked: tuple[IntArray, IntArray],
    n_students: int,
    neighbours: IntArray,
    similarity: FloatArray,
    n_nearest: int,
    visit: Callable[[IntArray, IntArray, FloatArray], None],
) -> None:
    """Call, in threads, `visit` with places in `asked`, and for each at most `n_nearest` places in
    `known` of the student's answers to other, the most similar questions first, int32, -1 where
    there are no more, with similarities, 0 there; both hold students and questions.
    """
    n_questions, k = neighbours.shape
    in_order, start, _ = sort_answers(known[0], [], n_students)
    rows_in_order = np.argsort(asked[0], kind="stable")
    asked_student = asked[0][rows_in_order]
    step = max(1, min(_MAX_CELLS // n_questions, -(-n_students // N_THREADS)))
    n_rows = max(1, _MAX_CELLS // (8 * max(k, 1)))

    def work(firsts: IntArray) -> None:
        place = np.full((step, n_questions), -1, np.int32)
        for first in firsts.tolist():
            end = min(first + step, n_students)
            answers = in_order[start[first] : start[end]]
            cells = known[0][answers] - first, known[1][answers]
            place[cells] = answers
            rows = rows_in_order[slice(*np.searchsorted(asked_student, [first, end]))]
            for begin in range(0, len(rows), n_rows):
                part = rows[begin : begin + n_rows]
                question = asked[1][part]
                candidates = place[(asked[0][part] - first)[:, None], neighbours[question]]
                # Those that are there, in their order.
                order = np.argsort(candidates < 0, axis=1, kind="stable")[:, :n_nearest]
                nearest = np.take_along_axis(candidates, order, 1)
                near = np.take_along_axis(similarity[question], order, 1)
                visit(part, nearest, np.where(nearest >= 0, near, np.float32(0)))
            place[cells] = -1

    list(in_threads(work, np.array_split(np.arange(0, n_students, step), N_THREADS)))
