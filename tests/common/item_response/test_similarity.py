"""Clusters of questions are the simulated blocks and groups of blocks, and nothing else.

A block holds five questions that the same students answer, as a quiz does.
"""

from common.item_response.similarity import cluster_questions

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from planted_answers import has_level

RNG = np.random.default_rng
BLOCK_SIZE = 5


def simulate_blocks(
    n_students: int = 400,
    n_blocks: int = 24,
    share_of_blocks: float = 0.3,
    share_in_block: float = 0.95,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Simulate who answers which question, if the questions form blocks.

    Each student answers a share of the blocks, and in each of these a share of the questions.

    Returns
    -------
    student, question : array, shape (answers,)
        The student and the question of each answer.
    block_of_question : array, shape (questions,)
        The block of each question.
    """
    rng = RNG(0)
    # The pairs of a student and a block that the student answers.
    student_of_pair, block_of_pair = np.nonzero(
        rng.random((n_students, n_blocks)) < share_of_blocks
    )
    # Number the questions in order at first: block b holds the questions 5 b to 5 b + 4. `ordered`
    # has a row for each pair, with the questions of the block.
    ordered = block_of_pair[:, None] * BLOCK_SIZE + np.arange(BLOCK_SIZE)
    is_answered = rng.random(ordered.shape) < share_in_block
    # Then give them shuffled ids, so that the id of a question does not reveal its block.
    id_of_ordered = rng.permutation(n_blocks * BLOCK_SIZE)
    block_of_question = np.empty_like(id_of_ordered)
    block_of_question[id_of_ordered] = np.arange(len(id_of_ordered)) // BLOCK_SIZE
    question = id_of_ordered[ordered[is_answered]]
    # Repeat the student of a pair for each question of the block.
    students = np.broadcast_to(student_of_pair[:, None], ordered.shape)
    return students[is_answered], question, block_of_question


def test_blocks_of_many_questions_are_found_among_many_students() -> None:
    """Many answers take two code paths that few answers do not take.

    `cluster_questions` represents a question by a vector with an element for each student. For
    32,000 students, it projects the vectors at random to fewer dimensions. For 2,500 questions, it
    computes the similarities not all at once, but part by part.
    """
    # On average, a student answers two of the 500 blocks, and all questions of these two blocks.
    student, question, block = simulate_blocks(
        n_students=32_000, n_blocks=500, share_of_blocks=0.004, share_in_block=1.0
    )

    _, cluster = cluster_questions(student, question, seed=4)

    assert has_level(cluster, block)
    # The clustering has coarser levels too: some blocks happen to be answered by the same students.
    assert cluster.shape[1] > 1
    # The same seed gives the same clusters.
    _, again = cluster_questions(student, question, seed=4)
    assert_array_equal(cluster, again)


def test_groups_of_blocks_make_a_level_of_their_own() -> None:
    """400 students answer single blocks, and 300 more answer whole groups of four blocks."""
    n_groups = 6
    student, question, block = simulate_blocks(n_students=400, n_blocks=4 * n_groups)
    group_of_question = block // 4
    other_student, group = np.nonzero(RNG(1).random((300, n_groups)) < 0.3)
    # A row for each group of blocks, with the questions of the group.
    questions_of_groups = np.stack(
        [np.flatnonzero(group_of_question == number) for number in range(n_groups)]
    )
    answered = questions_of_groups[group]
    student = np.append(student, np.repeat(400 + other_student, answered.shape[1]))
    question = np.append(question, answered.ravel())

    _, cluster = cluster_questions(student, question)

    assert has_level(cluster, block)
    assert has_level(cluster, group_of_question)
    # A context holds a student's answers to the questions of a cluster. Levels are chosen so that
    # the mean number of answers in a context is near 32 in the first (coarsest) level, and near 4
    # in the last one. The clusterings that come nearest to these targets have mean numbers of 17
    # and 5.
    mean_sizes = []
    for cluster_of_question in cluster.T:
        contexts = np.unique(np.stack([student, cluster_of_question[question]]), axis=1)
        mean_sizes.append(len(question) / contexts.shape[1])
    # From level to level, contexts have fewer answers.
    assert mean_sizes == sorted({*mean_sizes}, reverse=True)
    assert mean_sizes[0] > 10
    assert 2 < mean_sizes[-1] < 6


def all_answer(n_questions: int) -> np.ndarray:
    """Return the student and the question of each answer: 200 students answer all questions."""
    return np.indices((200, n_questions)).reshape(2, -1)


def almost_all_answer() -> np.ndarray:
    """Return the student and the question of each answer: 600 students skip few of the questions.

    There are 32 questions. The last one is left out more often than the others.
    """
    p_left_out = np.append(np.full(31, 0.002), 0.03)
    return np.argwhere(RNG(0).random((600, 32)) > p_left_out).T


def nobody_answers_the_same() -> np.ndarray:
    """Return the student and the question of each answer: no question has more than one answer.

    Each of 300 students answers two questions.
    """
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
