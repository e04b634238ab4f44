"""Contexts of answers: quizzes of classes if they are known, otherwise clusters of questions."""

from pathlib import Path

from common import layout
from common.answer_context import find_contexts

import numpy as np
import pandas as pd
import pytest
from planted_answers import has_level

N_TRAIN, N_ASKED = 1_520, 400
N = N_TRAIN + N_ASKED
ALL = np.ones(N, bool)


def plant() -> pd.DataFrame:
    """Return pairs of students who take whole blocks of five questions, and their quizzes."""
    rng = np.random.default_rng(0)
    # Each of 64 students takes 6 of 20 blocks.
    taken = rng.permuted(np.tile(np.arange(20) < 6, (64, 1)), axis=1)
    student, question = rng.permutation(np.argwhere(np.repeat(taken, 5, axis=1))).T
    # A quiz holds questions of different blocks, so that quizzes and clusters of questions differ.
    # There are seven classes of some ten students, and all of them take all quizzes. Ids have gaps
    # and do not increase with the numbers of blocks.
    columns = {
        "UserId": student * 30_000_000 + 50,
        "QuestionId": question * 3,
        "AnswerId": rng.permutation(9_000)[:N],
        "QuizId": question * 3 % 10 * 10_003,
        "GroupId": (student + 50) % 7 * 1_000,
        "block": question // 5,
    }
    return pd.DataFrame(columns).astype(np.int32)


PAIRS = plant()


def find(folder: Path | None, pairs: pd.DataFrame = PAIRS, n_train: int = N_TRAIN) -> np.ndarray:
    """Return the contexts of the training answers, followed by those of the pairs to predict."""
    table = pairs.filter(["UserId", "QuestionId", "AnswerId"])
    found = find_contexts(table[:n_train].assign(IsCorrect=1), table[n_train:], folder)
    assert [len(part) for part in found] == [n_train, len(pairs) - n_train]
    assert all(part.dtype == np.int32 and (part >= 0).all() for part in found)
    return np.concatenate(found)


def write_metadata(
    folder: Path, knows_quiz: np.ndarray = ALL, knows_group: np.ndarray = ALL
) -> None:
    """Write metadata in which some quizzes and groups are unknown.

    For every second answer with an unknown quiz, the whole row is missing.
    """
    metadata = PAIRS[["AnswerId", "GroupId", "QuizId"]].assign(
        GroupId=PAIRS.GroupId.where(knows_group), QuizId=PAIRS.QuizId.where(knows_quiz)
    )
    is_listed = knows_quiz | (np.arange(N) % 2 == 0)
    metadata = metadata[is_listed].sample(frac=1, random_state=0)
    metadata.to_csv(folder / layout.ANSWER_METADATA_TASK_1_2, index=False)


def draw(share: float) -> np.ndarray:
    """Draw a share of the pairs."""
    return np.random.default_rng(2).random(N) < share


@pytest.mark.parametrize(
    ("knows_quiz", "knows_group"),
    [
        pytest.param(ALL, ALL, id="all known"),
        pytest.param(ALL, ~ALL, id="no group known"),
        pytest.param(ALL, draw(0.6), id="some groups known"),
        pytest.param(draw(0.7), ALL, id="most quizzes known"),
    ],
)
def test_quizzes_of_classes_are_used_if_they_are_known(
    tmp_path: Path, knows_quiz: np.ndarray, knows_group: np.ndarray
) -> None:
    """All students of unknown groups make one class, which differs from all known classes."""
    write_metadata(tmp_path, knows_quiz, knows_group)
    expected = PAIRS.groupby(["QuizId", PAIRS.GroupId.where(knows_group, -1)]).ngroup()
    found = find(tmp_path)
    # Each answer with an unknown quiz has a context of its own.
    assert has_level(found, expected.where(knows_quiz, -1 - PAIRS.index))
    assert found.shape[1] == 1


@pytest.mark.parametrize(("share_known", "uses_quizzes"), [(0.55, True), (0.45, False)])
def test_quizzes_are_used_if_they_are_known_for_most_pairs_to_predict(
    tmp_path: Path, share_known: float, uses_quizzes: bool
) -> None:
    # Only the pairs to predict decide. Their quizzes are used although those of all training
    # answers are unknown, and are not used although those of all training answers are known.
    knows_quiz = np.full(N, not uses_quizzes)
    knows_quiz[N_TRAIN:] = np.arange(N_ASKED) < share_known * N_ASKED
    write_metadata(tmp_path, knows_quiz)
    assert has_level(find(tmp_path), PAIRS.block) != uses_quizzes


@pytest.mark.parametrize("lacking", ["answers", "template", "metadata"])
def test_clusters_are_used_if_quizzes_cannot_be_looked_up(tmp_path: Path, lacking: str) -> None:
    """The answers or the template lack AnswerId, or the metadata lack QuizId."""
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
    is_asked = PAIRS.QuestionId // 3 % 5 < 2
    pairs = PAIRS.loc[is_asked.sort_values(kind="stable").index]
    n_train = int((~is_asked).sum())
    asked = find(None, pairs, n_train)[n_train:]
    assert has_level(asked, pairs.block[n_train:])
