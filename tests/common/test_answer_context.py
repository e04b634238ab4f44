"""Contexts of answers: quizzes of classes if they are known, otherwise clusters of questions."""

from pathlib import Path

from common import layout
from common.answer_context import find_contexts

import numpy as np
import pandas as pd
import pytest
from planted_answers import has_level

# Numbers of training answers and of pairs to predict.
N_TRAIN = 1_520
N_TO_PREDICT = 400
N_PAIRS = N_TRAIN + N_TO_PREDICT
# Tells the tests that the quiz of every pair is known, or the group of every pair.
ALL_KNOWN = np.ones(N_PAIRS, bool)


def simulate_pairs() -> pd.DataFrame:
    """Simulate which students answer which questions, in which quizzes and classes.

    There are 64 students in seven classes, and 100 questions. Five questions in a row make a block:
    a student answers all of them or none. Each student answers 6 of the 20 blocks. The kit finds
    clusters of questions, which are the blocks here. Each of the ten quizzes takes questions from
    many blocks, so that quizzes differ from clusters. Every class takes every quiz.
    """
    rng = np.random.default_rng(0)
    n_students, n_blocks, block_size = 64, 20, 5
    # Each row belongs to a student. First each student takes the first 6 blocks. Then the columns
    # of each row are shuffled, so that each student takes 6 blocks at random.
    takes_first_6 = np.tile(np.arange(n_blocks) < 6, (n_students, 1))
    takes_block = rng.permuted(takes_first_6, axis=1)
    takes_question = np.repeat(takes_block, block_size, axis=1)
    # The pairs of student and question, in random order.
    pairs = np.argwhere(takes_question)
    student, question = rng.permutation(pairs).T
    block = question // block_size
    # Questions that are ten apart are in the same quiz. The five questions of a block are in five
    # different quizzes.
    quiz = question * 3 % 10
    school_class = student % 7
    columns = {
        # The factors give the ids gaps, as the ids of real files have.
        "UserId": student * 30_000_000 + 50,
        "QuestionId": question * 3,
        "AnswerId": rng.permutation(9_000)[:N_PAIRS],
        "QuizId": quiz * 10_003,
        "GroupId": school_class * 1_000,
        "block": block,
    }
    return pd.DataFrame(columns).astype(np.int32)


PAIRS = simulate_pairs()


def find(folder: Path | None, pairs: pd.DataFrame = PAIRS, n_train: int = N_TRAIN) -> np.ndarray:
    """Find the context of each pair of a student and a question, such as the quiz of a class.

    The first `n_train` pairs are the training answers, and the others are to be predicted. The
    result has a row for each pair, and a column for each level of contexts.
    """
    table = pairs.filter(["UserId", "QuestionId", "AnswerId"])
    found = find_contexts(table[:n_train].assign(IsCorrect=1), table[n_train:], folder)
    assert [len(part) for part in found] == [n_train, len(pairs) - n_train]
    assert all(part.dtype == np.int32 and (part >= 0).all() for part in found)
    return np.concatenate(found)


def write_metadata(
    folder: Path, knows_quiz: np.ndarray = ALL_KNOWN, knows_group: np.ndarray = ALL_KNOWN
) -> None:
    """Write answer metadata in which the quizzes and groups of some pairs are unknown.

    A pair whose group is unknown has an empty cell. A pair whose quiz is unknown has an empty cell
    if the pair is at an even position, and no row if the pair is at an odd position.
    """
    metadata = PAIRS[["AnswerId", "GroupId", "QuizId"]].assign(
        GroupId=PAIRS.GroupId.where(knows_group), QuizId=PAIRS.QuizId.where(knows_quiz)
    )
    is_at_even_position = np.arange(N_PAIRS) % 2 == 0
    is_listed = knows_quiz | is_at_even_position
    metadata = metadata[is_listed].sample(frac=1, random_state=0)
    metadata.to_csv(folder / layout.ANSWER_METADATA_TASK_1_2, index=False)


def random_pairs(share: float) -> np.ndarray:
    """Return a boolean for each pair: True for a random share of the pairs, otherwise False."""
    return np.random.default_rng(2).random(N_PAIRS) < share


@pytest.mark.parametrize(
    ("knows_quiz", "knows_group"),
    [
        pytest.param(ALL_KNOWN, ALL_KNOWN, id="all known"),
        pytest.param(ALL_KNOWN, ~ALL_KNOWN, id="no group known"),
        pytest.param(ALL_KNOWN, random_pairs(0.6), id="some groups known"),
        pytest.param(random_pairs(0.7), ALL_KNOWN, id="most quizzes known"),
    ],
)
def test_quizzes_of_classes_are_used_if_they_are_known(
    tmp_path: Path, knows_quiz: np.ndarray, knows_group: np.ndarray
) -> None:
    """If quizzes are known, the answers of a class in a quiz form a context.

    The class of a student is the GroupId. Students whose class is unknown count as one more class.
    Each answer whose quiz is unknown is a context of its own.
    """
    write_metadata(tmp_path, knows_quiz, knows_group)
    known_group = PAIRS.GroupId.where(knows_group, -1)
    # Two contexts are equal if class and quiz are equal. An answer without a quiz is a context of
    # its own: it gets a negative label, which no other answer has.
    quiz_of_class = PAIRS.groupby(["QuizId", known_group]).ngroup()
    own_context = -1 - PAIRS.index
    expected = quiz_of_class.where(knows_quiz, own_context)

    found = find(tmp_path)

    # `found` has one level of contexts, and it groups the pairs in the same way as `expected`.
    assert has_level(found, expected)
    assert found.shape[1] == 1


@pytest.mark.parametrize(("share_known", "uses_quizzes"), [(0.55, True), (0.45, False)])
def test_quizzes_are_used_if_they_are_known_for_most_pairs_to_predict(
    tmp_path: Path, share_known: float, uses_quizzes: bool
) -> None:
    """Quizzes are the contexts if they are known for at least half of the pairs to predict.

    It does not matter whether the quizzes of the training answers are known. To show this, these
    are all unknown where quizzes must be the contexts, and all known where they must not.
    """
    knows_quizzes_of_training = not uses_quizzes
    knows_quiz_to_predict = np.arange(N_TO_PREDICT) < share_known * N_TO_PREDICT
    # One element for each pair: first the training answers, then the pairs to predict.
    knows_quiz = np.append(np.full(N_TRAIN, knows_quizzes_of_training), knows_quiz_to_predict)
    write_metadata(tmp_path, knows_quiz)
    # If quizzes are not used, the contexts are clusters of questions. Here the clusters are the
    # blocks.
    uses_clusters = has_level(find(tmp_path), PAIRS.block)
    assert uses_clusters == (not uses_quizzes)


@pytest.mark.parametrize("lacking", ["answers", "template", "metadata"])
def test_clusters_are_used_if_quizzes_cannot_be_looked_up(tmp_path: Path, lacking: str) -> None:
    """Quizzes cannot be looked up without the column AnswerId of the answers or of the template.

    They cannot be looked up without the column QuizId of the metadata, either. `lacking` names the
    file that lacks its column. Then the contexts are clusters of questions that the same students
    answer. Here these clusters are the blocks.
    """
    write_metadata(tmp_path)
    answers = PAIRS[:N_TRAIN].assign(IsCorrect=1)
    template = PAIRS[N_TRAIN:]
    if lacking == "answers":
        answers = answers.drop(columns="AnswerId")
    elif lacking == "template":
        template = template.drop(columns="AnswerId")
    else:
        path = tmp_path / layout.ANSWER_METADATA_TASK_1_2
        pd.read_csv(path).drop(columns="QuizId").to_csv(path, index=False)
    contexts = np.concatenate(find_contexts(answers, template, tmp_path))
    assert has_level(contexts, PAIRS.block)


def test_questions_without_answers_are_clustered_by_the_pairs_to_predict() -> None:
    # The first two of the five questions of each block have no training answers.
    position_in_block = PAIRS.QuestionId // 3 % 5
    is_to_predict = position_in_block < 2
    pairs = PAIRS.loc[is_to_predict.sort_values(kind="stable").index]
    n_train = int((~is_to_predict).sum())

    contexts_to_predict = find(None, pairs, n_train)[n_train:]

    assert has_level(contexts_to_predict, pairs.block[n_train:])
