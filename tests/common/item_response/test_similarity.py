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
    n_questions = n_blocks * BLOCK_SIZE
    # The pairs of a student and a block that the student answers.
    student_of_pair, block_of_pair = np.nonzero(
        rng.random((n_students, n_blocks)) < share_of_blocks
    )
    # First number the questions block by block: block b holds the questions 5 b to 5 b + 4. The
    # arrays `numbers` (of questions) and `students` have a row for each pair of a student and a
    # block, and a column for each question of the block.
    numbers = block_of_pair[:, None] * BLOCK_SIZE + np.arange(BLOCK_SIZE)
    students = np.broadcast_to(student_of_pair[:, None], numbers.shape)
    is_answered = rng.random(numbers.shape) < share_in_block
    number = numbers[is_answered]
    student = students[is_answered]
    # Then replace the number of each question by a random id, which does not reveal the block.
    id_of_number = rng.permutation(n_questions)
    block_of_number = np.arange(n_questions) // BLOCK_SIZE
    block_of_question = np.empty_like(id_of_number)
    block_of_question[id_of_number] = block_of_number
    return student, id_of_number[number], block_of_question


def test_blocks_of_many_questions_are_found_among_many_students() -> None:
    """`cluster_questions` finds the blocks although it must save memory here.

    It represents a question by a vector with an element for each student. If there are as many
    students as here (32,000), it projects the vectors at random to fewer dimensions. If there are
    as many questions as here (2,500), it computes their similarities not all at once, but part by
    part.
    """
    # On average, a student answers two of the 500 blocks, and all questions of these two blocks.
    student, question, block = simulate_blocks(
        n_students=32_000, n_blocks=500, share_of_blocks=0.004, share_in_block=1.0
    )

    _, cluster = cluster_questions(student, question, seed=4)

    # Each column of `cluster` is a level of nested clusters. In one level, the clusters are the
    # blocks.
    assert has_level(cluster, block)
    # Another level has larger clusters: of blocks that, by chance, the same students answer.
    assert cluster.shape[1] > 1
    # The same seed gives the same clusters.
    _, again = cluster_questions(student, question, seed=4)
    assert_array_equal(cluster, again)


def add_students_of_groups(
    student: np.ndarray, question: np.ndarray, group_of_question: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Add the answers of 300 students who answer whole groups of blocks.

    Each of them answers about 30 % of the groups, and all questions of these groups. The result is
    the student and the question of each answer.
    """
    n_groups = group_of_question.max() + 1
    # The pairs of a new student and a group that the student answers.
    new_student, group = np.nonzero(RNG(1).random((300, n_groups)) < 0.3)
    first_new_id = student.max() + 1
    students = [student]
    questions = [question]
    for id_of_student, group_of_pair in zip(first_new_id + new_student, group, strict=True):
        questions_of_group = np.flatnonzero(group_of_question == group_of_pair)
        students.append(np.full(len(questions_of_group), id_of_student))
        questions.append(questions_of_group)
    return np.concatenate(students), np.concatenate(questions)


def find_mean_sizes(student: np.ndarray, question: np.ndarray, cluster: np.ndarray) -> list[float]:
    """Return, for each level of clusters, the mean number of answers in a context.

    A context holds a student's answers to the questions of a cluster.
    """
    mean_sizes = []
    for cluster_of_question in cluster.T:
        cluster_of_answer = cluster_of_question[question]
        contexts = {*zip(student.tolist(), cluster_of_answer.tolist(), strict=True)}
        mean_sizes.append(len(question) / len(contexts))
    return mean_sizes


def test_groups_of_blocks_make_a_level_of_their_own() -> None:
    """400 students choose each block by itself, and 300 more choose whole groups of four blocks.

    So `cluster_questions` must find the blocks as clusters of one level, and the groups as clusters
    of another level.
    """
    student, question, block = simulate_blocks(n_students=400, n_blocks=24)
    group_of_question = block // 4
    student, question = add_students_of_groups(student, question, group_of_question)

    _, cluster = cluster_questions(student, question)

    assert has_level(cluster, block)
    assert has_level(cluster, group_of_question)
    # Levels are chosen so that the mean number of answers in a context is near 32 in the first
    # (coarsest) level, and near 4 in the last one. The clusterings that come nearest to these
    # targets have mean numbers of 17 and 5.
    mean_sizes = find_mean_sizes(student, question, cluster)
    # From level to level, contexts have fewer answers.
    assert mean_sizes == sorted({*mean_sizes}, reverse=True)
    assert mean_sizes[0] > 10
    assert 2 < mean_sizes[-1] < 6


def all_answer(n_questions: int) -> np.ndarray:
    """Let 200 students answer all questions; return the student and the question of each answer."""
    return np.indices((200, n_questions)).reshape(2, -1)


def almost_all_answer() -> np.ndarray:
    """Let 600 students answer almost all of 32 questions, the last question less often than others.

    Returns the student and the question of each answer.
    """
    p_left_out = np.append(np.full(31, 0.002), 0.03)
    return np.argwhere(RNG(0).random((600, 32)) > p_left_out).T


def nobody_answers_the_same() -> np.ndarray:
    """Let 300 students answer two questions each, so that no two students answer the same question.

    Returns the student and the question of each answer.
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
