"""Clusters of questions: planted blocks and groups of blocks are found, and no others."""

from common.item_response.similarity import cluster_questions

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from planted_answers import has_level

RNG = np.random.default_rng
BLOCK_SIZE = 5


def plant(
    n_students: int = 400,
    n_blocks: int = 24,
    share_of_blocks: float = 0.3,
    share_in_block: float = 0.95,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return students and questions of answers, and the block of every question.

    Each student answers a share of the blocks, and in each of these a share of the questions.
    """
    rng = RNG(0)
    student, block = np.nonzero(rng.random((n_students, n_blocks)) < share_of_blocks)
    # Number of a question before shuffling: block b holds the questions 5 b to 5 b + 4.
    position = block[:, None] * BLOCK_SIZE + np.arange(BLOCK_SIZE)
    is_answered = rng.random(position.shape) < share_in_block
    # Ids are shuffled, so that they do not tell the block.
    question_at = rng.permutation(n_blocks * BLOCK_SIZE)
    block_of = np.empty_like(question_at)
    block_of[question_at] = np.arange(len(question_at)) // BLOCK_SIZE
    student = np.broadcast_to(student[:, None], position.shape)[is_answered]
    return student, question_at[position[is_answered]], block_of


def test_blocks_of_many_questions_are_found_among_many_students() -> None:
    """Vectors of so many students are projected at random to fewer dimensions.

    Similarities of so many questions are computed in parts.
    """
    student, question, block = plant(32_000, 500, 0.004, 1.0)
    _, cluster = cluster_questions(student, question, seed=4)
    assert has_level(cluster, block)
    # Blocks that the same students happen to answer make coarser levels as well.
    assert cluster.shape[1] > 1
    # The seed decides everything.
    _, again = cluster_questions(student, question, seed=4)
    assert_array_equal(cluster, again)


def test_groups_of_blocks_make_a_level_of_their_own() -> None:
    student, question, block = plant()
    # 300 further students answer whole groups of four blocks.
    group_of = block // 4
    extra, group = np.nonzero(RNG(1).random((300, 6)) < 0.3)
    members = np.stack([np.flatnonzero(group_of == g) for g in range(6)])[group]
    student = np.append(student, np.repeat(extra + 400, members.shape[1]))
    question = np.append(question, members.ravel())
    _, cluster = cluster_questions(student, question)
    assert has_level(cluster, block)
    assert has_level(cluster, group_of)
    # Mean number of answers in a context of each level, the coarsest first. The kit aims at 32 in
    # the coarsest level and at 4 in the finest, and takes the nearest that there is: here 17 and 5.
    # A context is a student and a cluster, as one number.
    contexts = [np.unique(student * 1_000 + level[question]) for level in cluster.T]
    sizes = [len(question) / len(of_level) for of_level in contexts]
    assert sizes == sorted({*sizes}, reverse=True)
    assert sizes[0] > 10
    assert 2 < sizes[-1] < 6


def all_answer(n_questions: int) -> np.ndarray:
    """Return the pairs of 200 students who all answer the same questions."""
    return np.indices((200, n_questions)).reshape(2, -1)


def almost_all_answer() -> np.ndarray:
    """Return pairs of 600 students who leave out few answers, most of them to the last question."""
    p_left_out = np.append(np.full(31, 0.002), 0.03)
    return np.argwhere(RNG(0).random((600, 32)) > p_left_out).T


def nobody_answers_the_same() -> np.ndarray:
    """Return pairs of 300 students who answer two of 2,000 questions each, all different."""
    return np.stack([np.repeat(np.arange(300), 2), RNG(0).permutation(2_000)[:600]])


WITHOUT_PARTS = {
    "one question": all_answer(1),
    "two questions": all_answer(2),
    "a test that all answer": all_answer(32),
    "a test that almost all answer": almost_all_answer(),
    "no question in common": nobody_answers_the_same(),
}


@pytest.mark.parametrize("case", WITHOUT_PARTS)
def test_without_shared_parts_of_tests_there_are_no_contexts(case: str) -> None:
    student, question = WITHOUT_PARTS[case]
    ids, cluster = cluster_questions(student, question)
    assert_array_equal(ids, np.unique(question))
    assert cluster.shape == (len(ids), 0)
