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
# A clustering becomes a level only if a context has at least this many answers on average.
_MIN_ANSWERS = 1.5
# A clustering becomes a level only if a student has at least this many contexts on average.
_MIN_CONTEXTS = 1.2
# Thresholds of similarity, from high to low. At first, each question is a cluster. At each
# threshold, clusters that are at least this similar are merged. All clusters that result at one
# threshold are together one clustering.
_CUTS = (0.998, 0.995, 0.99, 0.98, 0.97, *(0.95 - 0.05 * np.arange(19)).tolist())
# If all students take one test and skip only a few questions, all questions are at least this
# similar. So they form one cluster at this threshold, and clusters at higher thresholds only show
# which questions were skipped by chance. Therefore there are no levels if, at this threshold,
# students have fewer than `_MIN_CONTEXTS` contexts on average.
_NEARLY_SAME = 0.97
# Similarities of two questions below this count as 0.
_MIN_SIMILARITY = 0.03
# A question keeps its similarities to this many nearest questions; the others count as 0.
_MAX_NEIGHBOURS = 100
# Each question has a vector with an element for each student, which says whether the student has
# answered or is to answer it. If all vectors together have more elements than this, they are
# projected at random to vectors of `_N_PROJECTED` elements, to save memory.
_MAX_NUMBERS = 1 << 26
_N_PROJECTED = 256
# The number of contexts that students have decides which clusterings become levels. To save time,
# the contexts are counted only for some students, who together have about this many answers.
_MAX_COUNTED = 1_000_000
# Similarities are computed for some questions at a time, in arrays of about this many numbers.
_BLOCK = 1 << 22


def cluster_questions(
    student: IntArray, question: IntArray, seed: int = 0
) -> tuple[IntArray, IntArray]:
    """Cluster questions that the same students answer, on nested levels.

    Each question has a vector that says which students answer it. The similarity of two questions
    is the cosine of their vectors. The similarity of two clusters is the mean similarity of a
    question of one cluster and a question of the other cluster (average linkage). If the vectors
    are large, they are first projected at random to fewer dimensions (Johnson and Lindenstrauss
    1984).

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

    A context is a student's answers to the questions of one cluster. `_ANSWERS_IN_CONTEXT` lists
    wanted mean numbers of answers in a context. For each wanted number, the function chooses the
    clustering whose mean number is closest.

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
    # To save time, count the contexts of the first students only, who together have about
    # `_MAX_COUNTED` answers. Student numbers are arbitrary, so these students are a fair sample.
    # Element i of `n_answers_up_to` is the number of answers of the students 0 to i. The first
    # student at whom this number reaches `_MAX_COUNTED` is the last student in the sample.
    n_answers_up_to = np.cumsum(np.bincount(student))
    n_sampled_students = np.searchsorted(n_answers_up_to, _MAX_COUNTED) + 1
    is_sampled = student < n_sampled_students
    item = item[is_sampled]
    # A context is a pair of a student and a cluster. Clusters have numbers below `n_items`, so the
    # key student · n_items + cluster is different for each context. The number of distinct keys is
    # the number of contexts.
    n_items = len(clusterings[0])
    student_key = student[is_sampled].astype(np.int64) * n_items
    n_students = len(np.unique(student_key))
    n_contexts = np.array([len(np.unique(student_key + cluster[item])) for cluster in clusterings])
    answers_in_context = len(item) / n_contexts

    has_many_contexts = n_contexts >= _MIN_CONTEXTS * n_students
    may_be_level = (answers_in_context >= _MIN_ANSWERS) & has_many_contexts
    # If most students have a single context even at the high threshold `_NEARLY_SAME`, all students
    # answer nearly the same questions.
    answer_nearly_the_same = not has_many_contexts[_CUTS.index(_NEARLY_SAME)]
    if not may_be_level.any() or answer_nearly_the_same:
        return []
    # `distance` has a row for each wanted number and a column for each clustering. A clustering
    # that cannot be a level is infinitely far.
    wanted = np.array(_ANSWERS_IN_CONTEXT)[:, None]
    distance = np.where(may_be_level, np.abs(np.log(answers_in_context / wanted)), np.inf)
    # For each wanted number, choose the closest clustering. If one clustering is the closest to
    # several numbers, `unique` keeps it once.
    positions: list[int] = np.unique(distance.argmin(axis=1)).tolist()
    # The thresholds in `_CUTS` decrease, so the last clusterings have the largest clusters. These
    # are to come first.
    return positions[::-1]


def _find_vectors(
    question: IntArray, student: IntArray, shape: tuple[int, int], seed: int
) -> FloatArray:
    """Return a float32 vector for each question that says which students answer it.

    A vector has an element for each student. If such vectors would need too much memory, they are
    projected at random to `_N_PROJECTED` dimensions, which nearly keeps the angles between them. At
    the end, each vector is scaled to the Euclidean norm 1.

    Parameters
    ----------
    question, student
        The numbers of question and student of each pair, shape (pairs,). A pair is a student and a
        question that the student has answered or is to answer.
    shape
        Number of questions, number of students.
    seed
        Seed of the projection.
    """
    ones = np.ones(len(question), np.float32)
    answered = scipy.sparse.csr_matrix((ones, (question, student)), shape)
    n_questions, n_students = shape
    if n_questions * n_students <= _MAX_NUMBERS:
        vectors: FloatArray = answered.toarray()
    else:
        rng = np.random.default_rng(seed)
        vectors = answered @ rng.standard_normal((n_students, _N_PROJECTED), np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def _find_similarity(vectors: FloatArray) -> Any:
    """Return the scalar products of all pairs of vectors as a symmetric sparse matrix.

    The diagonal is 0. Products below `_MIN_SIMILARITY` are left out. Each vector keeps its
    `_MAX_NEIGHBOURS` largest products. A product that neither of its two vectors keeps is left out.
    """
    n = len(vectors)
    # To save memory, compute the products of `n_rows` vectors with all vectors at a time.
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
        # A vector is not its own neighbour, so set its product with itself to 0. Row i of `product`
        # and column `first_row` + i belong to the same vector. So these products are the diagonal
        # of the columns from `first_row` on.
        np.fill_diagonal(product[:, first_row:], 0)
        parts.append(scipy.sparse.csr_matrix(product.astype(np.float64)))
    matrix = scipy.sparse.vstack(parts).tocsr()
    # The product of the vectors i and j is at (i, j) and at (j, i). One copy may have been left
    # out, and the two copies may be rounded differently. So replace both copies by the larger one.
    return matrix.maximum(matrix.T)


def _merge(similarity: Any) -> Iterator[IntArray]:
    """Yield a clustering for each of `_CUTS`: an int32 array with the cluster of each question.

    Clusters are numbered from 0. A cut is a threshold of similarity, and the cuts decrease. For
    each cut, two clusters are merged if each is the most similar cluster to the other and if their
    similarity is at least the cut. Merging is repeated until there are no such clusters (Murtagh
    1983). `similarity` is a symmetric sparse matrix with a row for each question.
    """
    n_items = similarity.shape[0]
    cluster = np.arange(n_items, dtype=np.int32)
    size = np.ones(n_items)
    # `total` is a sparse matrix with a row and a column for each cluster. An element is the sum of
    # the similarities of each question of one cluster to each question of the other cluster. At
    # first, each question is a cluster.
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
            # The size of a new cluster is the sum of the sizes of the merged clusters.
            size = np.bincount(new_number, weights=size)
            total = _merge_rows_and_columns(total, new_number)
        yield cluster


def _merge_rows_and_columns(total: Any, new_number: IntArray) -> Any:
    """Return a matrix of similarities between clusters, after some clusters have been merged.

    `total` is the matrix before the merge. Both matrices are sparse, with a row and a column for
    each cluster. An element is the sum of the similarities of each question of one cluster to each
    question of the other cluster; the diagonal is 0. Cluster i becomes a part of cluster
    `new_number[i]`.
    """
    entries = total.tocoo()
    row = new_number[entries.row]
    column = new_number[entries.col]
    is_between = row != column
    n_clusters = int(new_number.max()) + 1
    cells = row[is_between], column[is_between]
    # `csr_matrix` adds up the values that have the same row and column.
    return scipy.sparse.csr_matrix((entries.data[is_between], cells), (n_clusters, n_clusters))


def _nearest_pairs(total: Any, size: FloatArray, cut: float) -> tuple[IntArray, IntArray]:
    """Return the pairs of clusters that are nearest to each other and at least `cut` similar.

    The nearest cluster of a cluster is the cluster that is most similar to it. If several clusters
    are equally similar, the cluster with the lowest number is the nearest. If any two clusters are
    at least `cut` similar, at least one pair is returned: the most similar pair, with the lowest
    numbers if several pairs are equally similar.

    Parameters
    ----------
    total
        A symmetric sparse matrix (CSR) with a row and a column for each cluster. An element is the
        sum of the similarities between the questions of the row's cluster and the questions of the
        column's cluster. The similarity of the two clusters is the mean of these similarities.
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
    # Row, column and similarity of each stored element of `total`.
    row = np.repeat(cluster, np.diff(total.indptr))
    column = total.indices
    similarity = total.data / (size[row] * size[column])
    # The highest similarity in each row.
    highest = np.zeros(len(size))
    np.maximum.at(highest, row, similarity)
    is_nearest = (similarity == highest[row]) & (similarity >= cut)
    # A row may have several nearest columns: take the lowest. `n_clusters`, which is above every
    # column, stands for no nearest column.
    n_clusters = len(size)
    lowest = np.full(n_clusters, n_clusters)
    np.minimum.at(lowest, row[is_nearest], column[is_nearest])
    # A cluster to which no other cluster is similar enough counts as its own nearest cluster.
    nearest = np.where(lowest < n_clusters, lowest, cluster)
    # Two clusters are a pair if each is the nearest of the other: the nearest of the nearest then
    # is the cluster itself. Keep each pair once, with its smaller number in `first`.
    is_mutual = nearest[nearest] == cluster
    first = np.flatnonzero(is_mutual & (nearest > cluster))
    return first, nearest[first]
