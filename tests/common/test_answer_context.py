"""The contexts of answers: quizzes of classes where known, clusters of questions elsewhere."""

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
    taken = rng.permuted(np.tile(np.arange(20) < 6, (64, 1)), axis=1)
    student, question = rng.permutation(np.argwhere(np.repeat(taken, 5, axis=1))).T
    # A quiz holds questions of any blocks, so that it cannot be mistaken for what is clustered; all
    # classes, of ten or so students, have all quizzes.
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
    """Return the contexts of the training answers, and below them those asked for."""
    table = pairs.filter(["UserId", "QuestionId", "AnswerId"])
    found = find_contexts(table[:n_train].assign(IsCorrect=1), table[n_train:], folder)
    assert [len(part) for part in found] == [n_train, len(pairs) - n_train]
    assert all(part.dtype == np.int32 and (part >= 0).all() for part in found)
    return np.concatenate(found)


def write(folder: Path, knows: np.ndarray = ALL, knows_group: np.ndarray = ALL) -> None:
    """Write the metadata; the quiz of some is empty, or their row missing; the group of others."""
    told = PAIRS[["AnswerId", "GroupId", "QuizId"]]
    told = told.assign(GroupId=told.GroupId.where(knows_group), QuizId=told.QuizId.where(knows))
    told = told[knows | (np.arange(N) % 2 == 0)].sample(frac=1, random_state=0)
    told.to_csv(folder / layout.ANSWER_METADATA_TASK_1_2, index=False)


def test_quizzes_of_classes_are_used_where_they_are_known(tmp_path: Path) -> None:
    """Students of unknown groups are one class, which none of the known ones is, not even 0."""
    some, most = (np.random.default_rng(2).random(N) < share for share in (0.6, 0.7))
    for knows, knows_group in ((ALL, ALL), (ALL, ~ALL), (ALL, some), (most, ALL)):
        write(tmp_path, knows, knows_group)
        expected = PAIRS.groupby(["QuizId", PAIRS.GroupId.where(knows_group, -1)]).ngroup()
        found = find(tmp_path)
        # An unknown quiz is shared with nobody.
        assert has_level(found, expected.where(knows, -1 - PAIRS.index))
        assert found.shape[1] == 1


@pytest.mark.parametrize(("share_known", "uses_quizzes"), [(0.55, True), (0.45, False)])
def test_quizzes_must_be_known_of_most_pairs_to_be_predicted(
    tmp_path: Path, share_known: float, uses_quizzes: bool
) -> None:
    """How many quizzes of the training answers are known does not matter."""
    knows = np.full(N, not uses_quizzes)
    knows[N_TRAIN:] = np.arange(N_ASKED) < share_known * N_ASKED
    write(tmp_path, knows)
    assert has_level(find(tmp_path), PAIRS.block) != uses_quizzes


@pytest.mark.parametrize("lacks_ids", ["answers", "template", ""])
def test_clusters_are_used_where_no_quiz_is_known(tmp_path: Path, lacks_ids: str) -> None:
    """The metadata lack QuizId, or else who is to be looked up there lacks AnswerId."""
    write(tmp_path)
    path = tmp_path / layout.ANSWER_METADATA_TASK_1_2
    pd.read_csv(path).drop(columns=[] if lacks_ids else "QuizId").to_csv(path, index=False)
    parts = {"answers": PAIRS[:N_TRAIN].assign(IsCorrect=1), "template": PAIRS[N_TRAIN:]}
    if lacks_ids:
        parts[lacks_ids] = parts[lacks_ids].drop(columns="AnswerId")
    assert has_level(np.concatenate(find_contexts(*parts.values(), tmp_path)), PAIRS.block)


def test_clusters_know_the_pairs_to_be_predicted() -> None:
    """Questions that have no answers yet are clustered by who is to answer them."""
    is_asked = PAIRS.QuestionId // 3 % 5 < 2
    pairs = PAIRS.loc[is_asked.sort_values(kind="stable").index]
    n_train = int((~is_asked).sum())
    asked = find(None, pairs, n_train)[n_train:]
    assert has_level(asked, pairs.block[n_train:])
