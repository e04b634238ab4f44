"""Clusters of questions: planted blocks, average linkage, data without any."""

import numpy as np
import pytest
import scipy.cluster.hierarchy
import scipy.sparse
import scipy.spatial.distance
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from common.item_response import cluster_questions, similarity

RNG = np.random.default_rng
N_BLOCKS, BLOCK_SIZE = 24, 5


def plant(n_students: int = 400) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Students answer whole blocks, most of each; return students, questions, block of each."""
    rng = RNG(0)
    taken = np.repeat(rng.random((n_students, N_BLOCKS)) < 0.3, BLOCK_SIZE, axis=1)
    student, place = np.nonzero(taken & (rng.random(taken.shape) < 0.95))
    shuffled = rng.permutation(N_BLOCKS * BLOCK_SIZE)
    block = np.empty_like(shuffled)
    block[shuffled] = np.arange(len(shuffled)) // BLOCK_SIZE
    return student, shuffled[place], block


def partition(labels: np.ndarray) -> np.ndarray:
    """Number clusters by their first members, so that equal partitions are equal arrays."""
    _, first, number = np.unique(labels, return_index=True, return_inverse=True)
    result: np.ndarray = first[number]
    return result


@pytest.fixture(params=["exact", "projected"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Similarities of the vectors themselves, or of their projections."""
    if request.param == "projected":
        monkeypatch.setattr(similarity, "_MAX_NUMBERS", 100)
    return str(request.param)


@pytest.mark.usefixtures("way")
def test_planted_blocks_are_found() -> None:
    student, question, block = plant()
    ids, cluster = cluster_questions(student, question)
    assert_array_equal(ids, np.arange(N_BLOCKS * BLOCK_SIZE))
    assert cluster.shape[0] == len(ids)
    assert cluster.dtype == np.int32
    assert any(np.array_equal(partition(level), partition(block)) for level in cluster.T), cluster.T


@pytest.mark.usefixtures("way")
def test_levels_are_nested_the_coarsest_first() -> None:
    student, question, _ = plant()
    # Groups of blocks too: some students answer the whole group.
    rng = RNG(1)
    extra, group = np.nonzero(rng.random((300, 6)) < 0.3)
    members = group[:, None] * (N_BLOCKS * BLOCK_SIZE // 6) + np.arange(N_BLOCKS * BLOCK_SIZE // 6)
    student = np.append(student, np.repeat(extra + 400, members.shape[1]))
    question = np.append(question, members.ravel())
    _, cluster = cluster_questions(student, question)
    counts = [len(np.unique(level)) for level in cluster.T]
    assert len(counts) >= 2
    assert counts == sorted(set(counts))
    for above, below in zip(cluster.T[:-1], cluster.T[1:], strict=True):
        assert len(np.unique(np.stack([above, below]), axis=1).T) == len(np.unique(below))


@given(st.integers(0, 2**32), st.integers(2, 40))
@settings(max_examples=60)
def test_merging_is_average_linkage(seed: int, n: int) -> None:
    """All similarities differ, so that there is but one result."""
    rng = RNG(seed)
    square = np.zeros((n, n))
    above = np.triu_indices(n, 1)
    square[above] = rng.random(len(above[0])) ** rng.uniform(0.3, 3)
    square += square.T
    tree = scipy.cluster.hierarchy.linkage(
        scipy.spatial.distance.squareform(1 - square, checks=False), "average"
    )
    found = list(similarity._merge(scipy.sparse.csr_matrix(square)))
    assert len(found) == len(similarity._CUTS)
    for cut, cluster in zip(similarity._CUTS, found, strict=True):
        expected = scipy.cluster.hierarchy.fcluster(tree, 1 - cut, "distance")
        assert_array_equal(partition(cluster), partition(expected))


@given(st.integers(0, 2**32), st.integers(2, 30))
@settings(max_examples=40)
def test_ties_end_in_clusters_that_could_not_be_merged_further(seed: int, n: int) -> None:
    """Few distinct similarities, many of them 0."""
    rng = RNG(seed)
    square = np.triu(rng.choice([0, 0, 0.5, 0.9, 1], (n, n)), 1)
    square += square.T
    for cut, cluster in zip(
        similarity._CUTS, similarity._merge(scipy.sparse.csr_matrix(square)), strict=True
    ):
        member = (cluster == np.arange(cluster.max() + 1)[:, None]).astype(float)
        size = member.sum(axis=1)
        assert size.min() >= 1
        average = member @ square @ member.T / np.outer(size, size)
        np.fill_diagonal(average, 0)
        assert average.max() < cut + 1e-9


@pytest.mark.parametrize("most", [100, 5])
def test_similarity_is_the_cosine_of_who_answered(
    monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(similarity, "_MAX_NEIGHBOURS", most)
    rng = RNG(3)
    answered = rng.random((500, 20)) < 0.3
    answered[0] = True
    student, item = np.nonzero(answered)
    vectors = similarity._find_vectors(item, student, (20, 500), 0)
    found = similarity._find_similarity(vectors).toarray()
    count = answered.astype(float).T @ answered
    expected = count / np.sqrt(np.outer(np.diag(count), np.diag(count)))
    # Each item's nearest ones, of which the first is itself; and those that it is near to.
    is_near = expected >= np.sort(expected, axis=1)[:, -min(most, 20), None]
    expected[~(is_near | is_near.T) | np.eye(20, dtype=bool)] = 0
    assert_array_equal(found > 0, expected > 0)
    assert_allclose(found, expected, atol=1e-6)


def test_projected_similarity_is_near_the_cosine(monkeypatch: pytest.MonkeyPatch) -> None:
    student, question, _ = plant()
    found = []
    for most in (similarity._MAX_NUMBERS, 100):
        monkeypatch.setattr(similarity, "_MAX_NUMBERS", most)
        vectors = similarity._find_vectors(question, student, (N_BLOCKS * BLOCK_SIZE, 400), 0)
        found.append(vectors @ vectors.T)
    # The deviation of a projection to 256 dimensions is (1 − cosine²) / 16.
    difference = (found[1] - found[0]) / (1 - found[0] ** 2 + 0.01) * 16
    assert 0.8 < difference[np.triu_indices(len(difference), 1)].std() < 1.2


@pytest.mark.parametrize("block", [1 << 22, 300])
@pytest.mark.parametrize("most", [100, 6])
def test_blocks_and_neighbours_change_no_planted_cluster(
    monkeypatch: pytest.MonkeyPatch, block: int, most: int
) -> None:
    monkeypatch.setattr(similarity, "_BLOCK", block)
    monkeypatch.setattr(similarity, "_MAX_NEIGHBOURS", most)
    student, question, planted = plant()
    _, cluster = cluster_questions(student, question)
    assert any(np.array_equal(partition(level), partition(planted)) for level in cluster.T)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("n_questions", [1, 2, 32])
def test_a_test_that_all_answer_whole_has_no_contexts(n_questions: int) -> None:
    student, question = np.indices((200, n_questions)).reshape(2, -1)
    ids, cluster = cluster_questions(student, question)
    assert len(ids) == n_questions
    assert cluster.shape == (n_questions, 0)


@pytest.mark.usefixtures("way")
def test_answers_left_out_here_and_there_make_no_contexts() -> None:
    answered = RNG(0).random((600, 32)) > np.append(np.full(31, 0.002), 0.03)
    _, cluster = cluster_questions(*np.nonzero(answered))
    assert cluster.shape == (32, 0)


@pytest.mark.usefixtures("way")
def test_questions_that_nobody_shares_have_no_contexts() -> None:
    # Every student answers two of 2,000 questions.
    rng = RNG(0)
    student, question = np.repeat(np.arange(300), 2), rng.permutation(2_000)[:600]
    ids, cluster = cluster_questions(student, question)
    assert cluster.shape == (600, 0)
    assert_array_equal(ids, np.sort(question))


@pytest.mark.parametrize("n", [1, 2])
def test_one_or_two_answers(n: int) -> None:
    ids, cluster = cluster_questions(np.arange(n), np.arange(n) * 9_999_999 + 5)
    assert_array_equal(ids, np.arange(n) * 9_999_999 + 5)
    assert cluster.shape == (n, 0)


def test_ids_are_only_names() -> None:
    student, question, _ = plant()
    ids, cluster = cluster_questions(student, question)
    far, same = cluster_questions(student * 5_000_000 + 3, question * 1_000_003 + 17)
    assert_array_equal(far, ids * 1_000_003 + 17)
    assert_array_equal(same, cluster)
    # In another order.
    rng = RNG(2)
    rows, name = rng.permutation(len(student)), rng.permutation(len(ids))
    _, other = cluster_questions(student[rows], name[question[rows]])
    for one, two in zip(cluster.T, other.T, strict=True):
        assert_array_equal(partition(one), partition(two[name]))


def test_same_seed_same_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(similarity, "_MAX_NUMBERS", 100)
    student, question, _ = plant()
    one, two = (cluster_questions(student, question, seed=4)[1] for _ in range(2))
    assert_array_equal(one, two)
