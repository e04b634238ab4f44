"""Find contexts if no quizzes are known: clusters of questions that the same students answer.

A teacher sets a class a quiz, and all students of the class answer the same questions. The clusters
depend on who answered or is to answer a question, never on the answer itself. So the pairs to be
predicted are clustered too.

A clustering puts each question into one cluster, and so splits a student's answers into contexts: a
context is a student's answers to the questions of one cluster. Up to four clusterings, from coarse
to fine, become levels of contexts.
"""

from collections.abc import Iterator
from typing import Any

from common.answers import number_ids
from common.arrays import FloatArray, IntArray

import numpy as np
import scipy.sparse

# Questions are clustered several times, from many small clusters to few large ones (`_CUTS`). Some
# of these clusterings are returned and called levels. In a level, a student's answers to the
# questions of one cluster are a context. For each number below, one clustering becomes a level: the
# one whose mean number of answers in a context is closest to it.
_ANSWERS_IN_CONTEXT = (32, 16, 8, 4)
# A clustering becomes a level only if its contexts have at least this many answers on average.
_MIN_ANSWERS = 1.5
# A clustering becomes a level only if students have at least this many contexts on average.
_MIN_CONTEXTS = 1.2
# Thresholds of similarity. For each, clusters that are at least this similar are merged, which
# gives one clustering.
_CUTS = (0.998, 0.995, 0.99, 0.98, 0.97, *(0.95 - 0.05 * np.arange(19)).tolist())
# If all students take one test and leave few questions out, all questions are at least this
# similar, and form one cluster at this threshold. Clusters of a higher threshold then only show
# which questions happen to be left out. So there are no levels if, at this threshold, students have
# fewer than `_MIN_CONTEXTS` contexts on average.
_NEARLY_SAME = 0.97
# Smaller similarities count as 0.
_MIN_SIMILARITY = 0.03
# A question keeps its similarities to this many nearest questions; the others count as 0.
_MAX_NEIGHBOURS = 100
# Each question has a vector with an element for each student. If all vectors together have more
# elements than this, they are projected to `_N_PROJECTED` dimensions.
_MAX_NUMBERS = 1 << 26
_N_PROJECTED = 256
# To choose the levels, contexts are counted for some students, who together have about this many
# answers.
_MAX_COUNTED = 1_000_000
# Similarities are computed for some questions at a time, in arrays of about this many numbers.
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
        Ids of the pairs that have been answered and of the pairs to be predicted, shape (pairs,).
    seed
        Seed of the projection.

    Returns
    -------
    question_ids : array of int, shape (questions,)
        Increasing.
    cluster : array of int32, shape (questions, levels)
        Number of each question's cluster, the level with the largest clusters first. There are no
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
    """Choose the clusterings that become levels of contexts, the largest clusters first.

    A context is a student's answers to the questions of one cluster. For each of the wanted numbers
    of answers in a context, `_ANSWERS_IN_CONTEXT`, the clustering with the closest mean is chosen.

    Parameters
    ----------
    clusterings
        For each of `_CUTS`, the cluster of every question.
    item, student
        The numbers of question and student of each pair, shape (pairs,).

    Returns
    -------
    list of int
        Positions in `clusterings`. The list is empty if no clustering has enough contexts with
        enough answers, or if the students answer nearly the same questions.
    """
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
    answer_nearly_the_same = not has_many_contexts[_CUTS.index(_NEARLY_SAME)]
    if not may_be_level.any() or answer_nearly_the_same:
        return []
    # A row for each wanted number, a column for each clustering.
    wanted = np.array(_ANSWERS_IN_CONTEXT)[:, None]
    distance = np.where(may_be_level, np.abs(np.log(answers_in_context / wanted)), np.inf)
    positions: list[int] = np.unique(distance.argmin(axis=1)).tolist()
    # `_CUTS` decrease, so the last clusterings have the largest clusters.
    return positions[::-1]


def _find_vectors(
    item: IntArray, student: IntArray, shape: tuple[int, int], seed: int
) -> FloatArray:
    """Return a vector for each question, float32: which students answered the question.

    A vector has an element for each student, and the Euclidean norm 1. If the vectors are large,
    random projections to `_N_PROJECTED` dimensions take their place.

    Parameters
    ----------
    item, student
        The numbers of question and student of each pair, shape (pairs,).
    shape
        Number of questions, number of students.
    seed
        Seed of the projection.
    """
    answered = scipy.sparse.csr_matrix((np.ones(len(item), np.float32), (item, student)), shape)
    if shape[0] * shape[1] <= _MAX_NUMBERS:
        vectors: FloatArray = answered.toarray()
    else:
        rng = np.random.default_rng(seed)
        vectors = answered @ rng.standard_normal((shape[1], _N_PROJECTED), np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def _find_similarity(vectors: FloatArray) -> Any:
    """Return the scalar product of each two vectors as a symmetric sparse matrix.

    The diagonal is 0. Products below `_MIN_SIMILARITY` are left out. A product also stays only if
    it is among the `_MAX_NEIGHBOURS` largest products of one of its two vectors.
    """
    n = len(vectors)
    # Compute the products of some vectors with all vectors at a time.
    n_rows = max(1, _BLOCK // n)
    parts = []
    for first_row in range(0, n, n_rows):
        product = vectors[first_row : first_row + n_rows] @ vectors.T
        if n > _MAX_NEIGHBOURS:
            # In each row, keep only the `_MAX_NEIGHBOURS` largest products.
            index = n - _MAX_NEIGHBOURS
            smallest_kept = np.partition(product, index, axis=1)[:, index]
            product[product < smallest_kept[:, None]] = 0
        product[product < _MIN_SIMILARITY] = 0
        # A vector is not its own neighbour, so its product with itself becomes 0. Row i of
        # `product` belongs to vector `first_row` + i, and so does column `first_row` + i. From
        # column `first_row` on, these products are a diagonal.
        np.fill_diagonal(product[:, first_row:], 0)
        parts.append(scipy.sparse.csr_matrix(product.astype(np.float64)))
    matrix = scipy.sparse.vstack(parts).tocsr()
    # A product may have been kept in the row of one of its two vectors only, and the two copies may
    # round differently. The larger of (i, j) and (j, i) becomes both.
    return matrix.maximum(matrix.T)


def _merge(similarity: Any) -> Iterator[IntArray]:
    """Yield the cluster of each question, int32 from 0, for each of `_CUTS`.

    A cut is a threshold of similarity. For each cut, pairs of clusters are merged that are each
    other's nearest and whose similarity is at least the cut, until no such pair is left (Murtagh
    1983). `similarity` is a symmetric sparse matrix with a row for each question.
    """
    n_items = similarity.shape[0]
    cluster = np.arange(n_items, dtype=np.int32)
    size = np.ones(n_items)
    # A sparse matrix with a row and a column for each cluster. An element is the sum of the
    # similarities of each question of one cluster to each question of the other cluster. At first,
    # each question is a cluster.
    total = similarity
    for cut in _CUTS:
        while True:
            first, second = _nearest_pairs(total, size, cut)
            if not len(first):
                break
            # The second cluster of each pair becomes a part of the first.
            merged_into = np.arange(len(size))
            merged_into[second] = first
            # Number the remaining clusters without gaps.
            new_number = np.unique(merged_into, return_inverse=True)[1].astype(np.int32)
            cluster = new_number[cluster]
            size = np.bincount(new_number, size)
            total = _merge_rows_and_columns(total, new_number)
        yield cluster


def _merge_rows_and_columns(total: Any, new_number: IntArray) -> Any:
    """Return the sums of similarities between clusters after merging them, 0 within a cluster.

    `total` are the sums before, a sparse matrix. Cluster i becomes a part of cluster
    `new_number[i]`.
    """
    entries = total.tocoo()
    row = new_number[entries.row]
    column = new_number[entries.col]
    is_between = row != column
    n_clusters = int(new_number.max()) + 1
    cells = row[is_between], column[is_between]
    return scipy.sparse.csr_matrix((entries.data[is_between], cells), (n_clusters, n_clusters))


def _nearest_pairs(total: Any, size: FloatArray, cut: float) -> tuple[IntArray, IntArray]:
    """Return the pairs of clusters that are each other's nearest and at least `cut` similar.

    The nearest of a cluster is the most similar one; if several are equally similar, the first of
    these. If any two clusters are at least `cut` similar, at least one pair is returned: among the
    most similar pairs, the one with the lowest numbers.

    Parameters
    ----------
    total
        For each two clusters, the sum of the similarities between the questions of the first and
        those of the second cluster: a symmetric sparse matrix (CSR). The similarity of two clusters
        is the mean of these similarities.
    size
        Number of questions in each cluster.
    cut
        Smallest similarity of a pair.

    Returns
    -------
    first, second : array of int, shape (pairs,)
        The clusters of each pair, first < second.
    """
    cluster = np.arange(len(size))
    # Row, column and similarity of each element of `total`.
    row = np.repeat(cluster, np.diff(total.indptr))
    column = total.indices
    similarity = total.data / (size[row] * size[column])
    highest = np.zeros(len(size))
    np.maximum.at(highest, row, similarity)
    is_nearest = (similarity == highest[row]) & (similarity >= cut)
    # The elements are sorted by row and column. Assign in reverse order: if several columns of a
    # row are equally near, the first of them is assigned last, and stays.
    elements = np.flatnonzero(is_nearest)[::-1]
    # A cluster without a nearest one keeps its own number.
    nearest = cluster.copy()
    nearest[row[elements]] = column[elements]
    # Each pair is found once, at its first cluster.
    is_mutual = nearest[nearest] == cluster
    first = np.flatnonzero(is_mutual & (nearest > cluster))
    return first, nearest[first]
