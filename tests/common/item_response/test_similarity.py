"""Clusters of questions: planted blocks, groups of these, data without any."""

from common.item_response.similarity import cluster_questions

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from planted_answers import has_level

RNG = np.random.default_rng
BLOCK_SIZE = 5


def plant(
    n_students: int = 400, n_blocks: int = 24, share_of_blocks: float = 0.3, share: float = 0.95
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Students answer a share of each of some blocks; return both, and the block of questions."""
    rng = RNG(0)
    student, block = np.nonzero(rng.random((n_students, n_blocks)) < share_of_blocks)
    place = block[:, None] * BLOCK_SIZE + np.arange(BLOCK_SIZE)
    answered = rng.random(place.shape) < share
    shuffled = rng.permutation(n_blocks * BLOCK_SIZE)
    block_of = np.empty_like(shuffled)
    block_of[shuffled] = np.arange(len(shuffled)) // BLOCK_SIZE
    student = np.broadcast_to(student[:, None], place.shape)[answered]
    return student, shuffled[place[answered]], block_of


def test_blocks_of_many_questions_are_found_among_many_students() -> None:
    """More than fit at once: a projection with a seed stands for who answered, in parts."""
    student, question, block = plant(32_000, 500, 0.004, 1.0)
    one, same = (cluster_questions(student, question, seed=4)[1] for _ in range(2))
    assert has_level(one, block)
    # The coarser levels are those of chance.
    assert one.shape[1] > 1
    assert_array_equal(one, same)


def test_groups_of_blocks_are_levels_of_their_own() -> None:
    student, question, block = plant()
    # Some students answer the whole of four blocks.
    group_of = block // 4
    extra, group = np.nonzero(RNG(1).random((300, 6)) < 0.3)
    members = np.stack([np.flatnonzero(group_of == g) for g in range(6)])[group]
    student = np.append(student, np.repeat(extra + 400, members.shape[1]))
    question = np.append(question, members.ravel())
    _, cluster = cluster_questions(student, question)
    assert has_level(cluster, block)
    assert has_level(cluster, group_of)
    # The coarsest: contexts of about 32 answers, or the nearest to it; the finest, of 4.
    contexts = [np.unique(student * 1_000 + level[question]) for level in cluster.T]
    sizes = [len(question) / len(found) for found in contexts]
    assert sizes == sorted({*sizes}, reverse=True)
    assert sizes[0] > 10
    assert 2 < sizes[-1] < 6


LEFT_OUT = RNG(0).random((600, 32)) > np.append(np.full(31, 0.002), 0.03)


@pytest.mark.parametrize(
    "pairs",
    [
        *(np.indices((200, n_questions)).reshape(2, -1) for n_questions in (1, 2, 32)),
        np.argwhere(LEFT_OUT).T,
        np.stack([np.repeat(np.arange(300), 2), RNG(0).permutation(2_000)[:600]]),
    ],
    ids=["one question", "two", "a test that all answer", "almost all", "two of 2,000 questions"],
)
def test_without_shared_parts_of_tests_there_are_no_contexts(pairs: np.ndarray) -> None:
    ids, cluster = cluster_questions(*pairs)
    assert_array_equal(ids, np.unique(pairs[1]))
    assert cluster.shape == (len(ids), 0)
