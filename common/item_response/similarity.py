"""Contexts where no quiz is known: clusters of questions that the same students answer.

A class is set a quiz, and all in it answer the same questions. Only who answered, or is to answer,
is looked at, never how: that is known for the answers to be predicted as well.
"""

from collections.abc import Iterator
from typing import Any

from common.answers import number_ids
from common.arrays import FloatArray, IntArray

import numpy as np
import scipy.sparse

# Answers of a student in a context, on average: a level for each, of the clusters next to it.
_ANSWERS_IN_CONTEXT = (32, 16, 8, 4)
# A level tells nothing with fewer answers in a context, or hardly more contexts than students.
_MIN_ANSWERS, _MIN_CONTEXTS = 1.5, 1.2
_CUTS = (0.998, 0.995, 0.99, 0.98, 0.97, *(0.95 - 0.05 * np.arange(19)).tolist())
# In a test that all answer whole, but for an answer left out here and there, questions are as
# similar as this: clusters of more similar ones tell nothing if those of such ones do not.
_NEARLY_SAME = 0.97
# Smaller similarities count as none, and so do those beyond the nearest questions.
_MIN_SIMILARITY, _MAX_NEIGHBOURS = 0.03, 100
# Vectors of who answered are projected to so many dimensions if they hold more numbers than this.
_MAX_NUMBERS, _N_PROJECTED = 1 << 26, 256
# Contexts are counted with so many answers, and similarities are found in blocks of so many.
_MAX_COUNTED, _BLOCK = 1_000_000, 1 << 22


def cluster_questions(
    student: IntArray, question: IntArray, seed: int = 0
) -> tuple[IntArray, IntArray]:
    """Return the questions, increasing, and their clusters, int32, (questions, levels), largest
    first, by average linkage of cosines of who answers them, of many students after a random
    projection (Johnson and Lindenstrauss 1984); no levels where all answer the same or hardly two.
    """
    question_ids, item = number_ids(question)
    student_ids, number = number_ids(student)
    shape = len(question_ids), len(student_ids)
    similarity = _find_similarity(_find_vectors(item, number, shape, seed))
    # The first students are as good a sample as any.
    n_counted = np.searchsorted(np.cumsum(np.bincount(number)), _MAX_COUNTED) + 1
    counted = number < n_counted
    place, item = number[counted].astype(np.int64) * len(question_ids), item[counted]
    clusters = list(_merge(similarity))
    n_contexts = np.array([len(np.unique(place + cluster[item])) for cluster in clusters])
    size = len(item) / n_contexts
    are_many = n_contexts >= _MIN_CONTEXTS * len(np.unique(place))
    tells = (size >= _MIN_ANSWERS) & are_many & are_many[_CUTS.index(_NEARLY_SAME)]
    off = np.abs(np.log(size / np.array(_ANSWERS_IN_CONTEXT)[:, None]))
    levels = np.unique(np.where(tells, off, np.inf).argmin(axis=1))[::-1] if tells.any() else ()
    nested = [clusters[level] for level in levels]
    return question_ids, np.array(nested, np.int32).reshape(-1, len(question_ids)).T


def _find_vectors(
    item: IntArray, student: IntArray, shape: tuple[int, int], seed: int
) -> FloatArray:
    """Return for each item who answered it, as vectors of length 1, float32."""
    answered = scipy.sparse.csr_matrix((np.ones(len(item), np.float32), (item, student)), shape)
    if shape[0] * shape[1] <= _MAX_NUMBERS:
        vectors: FloatArray = answered.toarray()
    else:
        rng = np.random.default_rng(seed)
        vectors = answered @ rng.standard_normal((shape[1], _N_PROJECTED), np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def _find_similarity(vectors: FloatArray) -> Any:
    """Return the scalar products of different vectors as a symmetric sparse matrix."""
    n = len(vectors)
    step = max(1, _BLOCK // n)
    parts = []
    for begin in range(0, n, step):
        product = vectors[begin : begin + step] @ vectors.T
        if n > _MAX_NEIGHBOURS:
            least = np.partition(product, n - _MAX_NEIGHBOURS, axis=1)[:, n - _MAX_NEIGHBOURS]
            product[product < least[:, None]] = 0
        product[product < _MIN_SIMILARITY] = 0
        np.fill_diagonal(product[:, begin:], 0)
        parts.append(scipy.sparse.csr_matrix(product.astype(np.float64)))
    matrix = scipy.sparse.vstack(parts).tocsr()
    # What one of two finds near, the other may not: and rounding differs.
    return matrix.maximum(matrix.T)


def _merge(similarity: Any) -> Iterator[IntArray]:
    """Yield clusters at each cut, int32 from 0, merging all mutually nearest (Murtagh 1983)."""
    n = similarity.shape[0]
    cluster, size, total = np.arange(n, dtype=np.int32), np.ones(n), similarity
    for cut in _CUTS:
        while True:
            first, second = _nearest_pairs(total, size, cut)
            if not len(first):
                break
            new = np.arange(len(size))
            new[second] = first
            new = np.unique(new, return_inverse=True)[1].astype(np.int32)
            cluster, size = new[cluster], np.bincount(new, size)
            entries = total.tocoo()
            row, col = new[entries.row], new[entries.col]
            kept = row != col
            shape = len(size), len(size)
            total = scipy.sparse.csr_matrix((entries.data[kept], (row[kept], col[kept])), shape)
        yield cluster


def _nearest_pairs(total: Any, size: FloatArray, cut: float) -> tuple[IntArray, IntArray]:
    """Return pairs of each other's nearest clusters, by sums of their members' similarities."""
    cluster = np.arange(len(size))
    row, col = np.repeat(cluster, np.diff(total.indptr)), total.indices
    average = total.data / (size[row] * size[col])
    highest = np.zeros(len(size))
    np.maximum.at(highest, row, average)
    # Backwards, so that the first of equally near ones counts: then some pair always agrees.
    hits = np.flatnonzero((average == highest[row]) & (average >= cut))[::-1]
    nearest = cluster.copy()
    nearest[row[hits]] = col[hits]
    own = np.flatnonzero((nearest > cluster) & (nearest[nearest] == cluster))
    return own, nearest[own]
