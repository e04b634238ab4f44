"""Contexts where no quiz is known: questions that the same students answer.

Who answered a question is no accident: a class is set a quiz, and all in it answer the same ones.
So questions are similar if they are answered by the same students, and clusters of similar ones
stand for quizzes and for groups of quizzes. Only who answered, or is to answer, is looked at, never
how: this is known for the answers to be predicted as well.
"""

import numpy as np
import scipy.sparse

from common.answers import find_ids, number_ids
from common.item_response.model import FloatArray, IntArray

# Mean number of answers that a student gives in a context, on each level: the clusters are cut
# where it is next to these.
_ANSWERS_IN_CONTEXT = (32, 16, 8, 4)
# A level tells nothing if its contexts hold fewer answers than this on average, or are hardly more
# than the students.
_MIN_ANSWERS, _MIN_CONTEXTS = 1.5, 1.2
# Similarities at which clusters may be cut, in falling order.
_CUTS = np.concatenate([1 - np.array([2, 5, 10, 20, 30]) / 1000, np.arange(0.95, 0.04, -0.05)])
# Students are drawn until they have so many pairs of answers.
_MAX_PAIRS = 200_000_000


def find_contexts(
    student: IntArray, question: IntArray, asked: IntArray, seed: int = 0
) -> tuple[IntArray, IntArray]:
    """Find contexts for answers by clusters of similar questions.

    The similarity of two questions is the cosine of who answered them. Clusters are merged by
    average linkage (Sokal and Michener 1958), nearest neighbours of each other first, which gives
    the same clusters as the closest pair first (Bruynooghe 1977), from few large sparse products.

    Parameters
    ----------
    student, question
        Ids of all pairs that were answered or are to be answered, shape (pairs,).
    """
    raise NotImplementedError


def cluster_questions(student: IntArray, question: IntArray, seed: int = 0) -> tuple[IntArray, IntArray]:
    question_ids, item = number_ids(question)
    _, number = number_ids(student)
    n_students = int(number.max()) + 1
    counts = np.bincount(number, minlength=n_students)
    order = np.random.default_rng(seed).permutation(n_students)
    n_drawn = int(np.searchsorted(np.cumsum(counts[order].astype(np.int64) ** 2), _MAX_PAIRS)) + 1
    is_drawn = np.zeros(n_students, bool)
    is_drawn[order[:n_drawn]] = True
    rows = is_drawn[number]
    number, item = number[rows], item[rows]
    ones = np.ones(len(item))
    answered = scipy.sparse.csr_matrix((ones, (number, item)), (n_students, len(question_ids)))
    similarity = (answered.T @ answered).tocsr()
    n_answers = np.maximum(similarity.diagonal(), 1)
    similarity = _scale(similarity, 1 / np.sqrt(n_answers))
    cuts, kept = [], []
    for label in _merge(similarity):
        per = len(item) / len(np.unique(number.astype(np.int64) * len(question_ids) + label[item]))
        cuts.append(label)
        kept.append(per)
    per = np.array(kept)
    n_nodes = len(item) / per
    possible = np.flatnonzero((per >= _MIN_ANSWERS) & (n_nodes >= _MIN_CONTEXTS * min(n_drawn, n_students)))
    if not len(possible):
        return question_ids, np.zeros((len(question_ids), 0), np.int32)
    chosen = {int(possible[np.abs(np.log(per[possible] / n)).argmin()]) for n in _ANSWERS_IN_CONTEXT}
    return question_ids, np.stack([cuts[i] for i in sorted(chosen, reverse=True)], axis=1)


def _scale(matrix, factor):
    """Return a symmetric sparse matrix with rows and columns scaled, and without its diagonal."""
    matrix = matrix.tocoo()
    data = matrix.data * (factor[matrix.row] * factor[matrix.col])
    keep = (matrix.row != matrix.col) & (data >= _CUTS[-1] / 2)
    return scipy.sparse.csr_matrix((data[keep], (matrix.row[keep], matrix.col[keep])), matrix.shape)


def _merge(similarity):
    """Yield the cluster of every question, shape (questions,), int32, at each of the cuts."""
    n = similarity.shape[0]
    label, size, total = np.arange(n, dtype=np.int32), np.ones(n), similarity
    for cut in _CUTS:
        while True:
            pairs = _nearest_pairs(total, size, cut)
            if not len(pairs):
                break
            new = np.arange(len(size), dtype=np.int32)
            new[pairs[:, 1]] = pairs[:, 0]
            _, new = np.unique(new, return_inverse=True)
            new = new.astype(np.int32)
            label = new[label]
            m = int(new.max()) + 1
            size = np.bincount(new, size, m)
            coo = total.tocoo()
            row, col = new[coo.row], new[coo.col]
            keep = row != col
            total = scipy.sparse.csr_matrix((coo.data[keep], (row[keep], col[keep])), (m, m))
        yield label


def _nearest_pairs(total, size, cut):
    """Return clusters that are each other's nearest, and at least so similar, shape (pairs, 2)."""
    if not total.nnz:
        return np.empty((0, 2), np.int32)
    counts = np.diff(total.indptr)
    row = np.repeat(np.arange(len(size), dtype=np.int32), counts)
    average = total.data / (size[row] * size[total.indices])
    has = np.flatnonzero(counts)
    best = np.maximum.reduceat(average, total.indptr[has])
    top = np.full(len(size), -1.0)
    top[has] = best
    hits = np.flatnonzero((average == top[row]) & (average >= cut))
    # The first of equally near ones, so that some pair agrees.
    nearest = np.full(len(size), -1, np.int32)
    nearest[row[hits[::-1]]] = total.indices[hits[::-1]]
    own = np.arange(len(size), dtype=np.int32)
    mutual = (nearest > own) & (nearest[nearest] == own)
    return np.stack([own[mutual], nearest[mutual]], axis=1)
