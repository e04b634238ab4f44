"""Find contexts if no quizzes are known: clusters of questions that the same students answer.

A teacher sets a class a quiz, and all students of the class answer the same questions. The clusters
depend on who answered or is to answer a question, never on the answer itself. So the pairs to be
predicted are clustered too.
"""

from collections.abc import Iterator
from typing import Any

from common.answers import number_ids
from common.arrays import FloatArray, IntArray

import numpy as np
import scipy.sparse

# A clustering of the questions splits a student's answers into contexts. One level of contexts is
# sought for each of these numbers of answers in a context: the clustering whose mean is closest.
_ANSWERS_IN_CONTEXT = (32, 16, 8, 4)
# A clustering becomes no level if the mean number of answers in a context is below this.
_MIN_ANSWERS = 1.5
# A clustering becomes no level if the mean number of a student's contexts is below this.
_MIN_CONTEXTS = 1.2
# Thresholds of similarity. For each, clusters that are at least this similar are merged, which
# gives one clustering.
_CUTS = (0.998, 0.995, 0.99, 0.98, 0.97, *(0.95 - 0.05 * np.arange(19)).tolist())
# If all students take one test and leave few answers out, its questions are at least this similar.
# If students have too few contexts in the clustering at this threshold, there are no levels:
# smaller clusters would only show which answers happen to be left out.
_NEARLY_SAME = 0.97
# Smaller similarities count as 0.
_MIN_SIMILARITY = 0.03
# A question keeps its similarities to this many nearest questions.
_MAX_NEIGHBOURS = 100
# The vectors that say who answered each question are projected to `_N_PROJECTED` dimensions if they
# hold more numbers than this together.
_MAX_NUMBERS = 1 << 26
_N_PROJECTED = 256
# `_choose_levels` counts contexts in a sample of about this many answers.
_MAX_COUNTED = 1_000_000
# Similarities are computed in blocks of about this many.
_BLOCK = 1 << 22


def cluster_questions(
    student: IntArray, question: IntArray, seed: int = 0
) -> tuple[IntArray, IntArray]:
    """Cluster questions that the same students answer, on nested levels.

    A vector for each question says who answers it. The similarity of two questions is the cosine of
    their vectors, and of two clusters the mean over their questions (average linkage). If the
    vectors are large, they are first projected at random to fewer dimensions (Johnson and
    Lindenstrauss 1984).

    Parameters
    ----------
    student, question
        Ids of pairs that have been answered or are to be, shape (pairs,).
    seed
        Seed of the projection.

    Returns
    -------
    question_ids : array of int, shape (questions,)
        Increasing.
    cluster : array of int32, shape (questions, levels)
        Label of each question's cluster, the level with the largest clusters first. There are no
        levels if all students answer the same questions, or if hardly any two students answer a
        common question.
    """
    question_ids, item = number_ids(question)
    student_ids, number = number_ids(student)
    shape = len(question_ids), len(student_ids)
    similarity = _find_similarity(_find_vectors(item, number, shape, seed))
    clusterings = list(_merge(similarity))
    levels = [clusterings[cut] for cut in _choose_levels(clusterings, item, number)]
    return question_ids, np.array(levels, np.int32).reshape(-1, len(question_ids)).T


def _choose_levels(clusterings: list[IntArray], item: IntArray, student: IntArray) -> list[int]:
    """Return the positions of the clusterings that are levels, the largest clusters first."""
    # Student numbers are arbitrary, so the first students are as good a sample as any.
    n_counted = np.searchsorted(np.cumsum(np.bincount(student)), _MAX_COUNTED) + 1
    is_counted = student < n_counted
    item = item[is_counted]
    # student · (number of items) + cluster is different for each pair of student and cluster.
    student_key = student[is_counted].astype(np.int64) * len(clusterings[0])
    n_students = len(np.unique(student_key))
    n_contexts = np.array([len(np.unique(student_key + cluster[item])) for cluster in clusterings])
    answers_in_context = len(item) / n_contexts

    has_many_contexts = n_contexts >= _MIN_CONTEXTS * n_students
    may_be_level = (answers_in_context >= _MIN_ANSWERS) & has_many_contexts
    if not may_be_level.any() or not has_many_contexts[_CUTS.index(_NEARLY_SAME)]:
        return []
    wanted = np.array(_ANSWERS_IN_CONTEXT)[:, None]
    distance = np.where(may_be_level, np.abs(np.log(answers_in_context / wanted)), np.inf)
    positions: list[int] = np.unique(distance.argmin(axis=1)).tolist()
    # Later cuts merge more, so that their clusters are larger.
    return positions[::-1]


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
            kth = n - _MAX_NEIGHBOURS
            least = np.partition(product, kth, axis=1)[:, kth]
            product[product < least[:, None]] = 0
        product[product < _MIN_SIMILARITY] = 0
        # A question is not its own neighbour. The block's diagonal begins at column `begin`.
        np.fill_diagonal(product[:, begin:], 0)
        parts.append(scipy.sparse.csr_matrix(product.astype(np.float64)))
    matrix = scipy.sparse.vstack(parts).tocsr()
    # Nearest-neighbour lists are not symmetric, and products round differently: symmetrise them.
    return matrix.maximum(matrix.T)


def _merge(similarity: Any) -> Iterator[IntArray]:
    """Yield each item's cluster at each cut, int32 from 0.

    For each cut, merges all pairs of clusters that are each other's nearest and at least this
    similar, until no such pair is left (Murtagh 1983).
    """
    n_items = similarity.shape[0]
    cluster = np.arange(n_items, dtype=np.int32)
    size = np.ones(n_items)
    # Sums of the similarities between the members of two clusters.
    total = similarity
    for cut in _CUTS:
        while True:
            first, second = _nearest_pairs(total, size, cut)
            if not len(first):
                break
            merged = np.arange(len(size))
            merged[second] = first
            new_number = np.unique(merged, return_inverse=True)[1].astype(np.int32)
            cluster = new_number[cluster]
            size = np.bincount(new_number, size)
            total = _merge_rows_and_columns(total, new_number)
        yield cluster


def _merge_rows_and_columns(total: Any, new_number: IntArray) -> Any:
    """Return sums of similarities between merged clusters, 0 within a cluster."""
    entries = total.tocoo()
    row = new_number[entries.row]
    column = new_number[entries.col]
    is_between = row != column
    n_clusters = int(new_number.max()) + 1
    cells = row[is_between], column[is_between]
    return scipy.sparse.csr_matrix((entries.data[is_between], cells), (n_clusters, n_clusters))


def _nearest_pairs(total: Any, size: FloatArray, cut: float) -> tuple[IntArray, IntArray]:
    """Return the pairs of clusters that are each other's nearest and at least `cut` similar.

    The similarity of two clusters is the mean of their members' similarities.
    """
    cluster = np.arange(len(size))
    row = np.repeat(cluster, np.diff(total.indptr))
    column = total.indices
    average = total.data / (size[row] * size[column])
    highest = np.zeros(len(size))
    np.maximum.at(highest, row, average)
    # If several clusters are equally near, the first counts. Assign them in reverse order, so that
    # the first overwrites the others. With this rule for ties, at least one pair is mutual if any
    # clusters are similar enough.
    hits = np.flatnonzero((average == highest[row]) & (average >= cut))[::-1]
    nearest = cluster.copy()
    nearest[row[hits]] = column[hits]
    first = np.flatnonzero((nearest > cluster) & (nearest[nearest] == cluster))
    return first, nearest[first]
