"""The contexts of answers: quizzes of classes where known, clusters of questions elsewhere."""

from collections.abc import Sequence
from pathlib import Path

from common import layout
from common.answer_context import find_contexts
from common.submission import read_template

import numpy as np
import pandas as pd
import pytest
from conftest import answers_frame
from numpy.testing import assert_array_equal

N_TRAIN, N_ASKED = 1_520, 400
N = N_TRAIN + N_ASKED
ALL = np.ones(N, bool)


class Planted:
    """Answers of students who take blocks of five questions, all at once, in quizzes of their own.

    A quiz holds questions of any blocks, so that it cannot be mistaken for what is clustered. All
    classes, of ten or so students, have all quizzes.
    """

    def __init__(self, folder: Path) -> None:
        rng = np.random.default_rng(0)
        taken = rng.permuted(np.tile(np.arange(20) < 6, (64, 1)), axis=1)
        student, question = np.nonzero(np.repeat(taken, 5, axis=1))
        rows = rng.permutation(N)
        student, question = student[rows] + 50, question[rows] * 3
        self.block = question // 15
        self.quiz = question % 10 + 10_000 * np.arange(10)[question % 10]
        self.group = student % 7 * 1_000
        self.answer_id = rng.permutation(9_000)[:N]
        ids = {"QuestionId": question, "UserId": student, "AnswerId": self.answer_id}
        table = pd.DataFrame(ids).astype(np.int32)
        table[N_TRAIN:].to_csv(folder / "template.csv", index=False)
        self.template = read_template(folder / "template.csv")
        learned = student[:N_TRAIN], question[:N_TRAIN], np.ones(N_TRAIN, np.int8)
        self.answers = answers_frame(*learned).assign(AnswerId=self.answer_id[:N_TRAIN])
        self.folder = folder / "metadata"
        self.folder.mkdir()

    def write(
        self,
        knows: np.ndarray = ALL,
        knows_group: np.ndarray = ALL,
        columns: Sequence[str] = ("GroupId", "QuizId"),
    ) -> None:
        """Write some columns of the metadata.

        The quiz of some answers is empty, or their row is missing; the group of others is empty.
        """
        listed = knows | (np.arange(N) % 2 == 0)
        values = {
            "AnswerId": self.answer_id,
            "GroupId": np.where(knows_group, self.group, np.nan),
            "QuizId": np.where(knows, self.quiz, np.nan),
        }
        table = pd.DataFrame(values)[["AnswerId", *columns]][listed]
        path = self.folder / layout.ANSWER_METADATA_TASK_1_2
        table.sample(frac=1, random_state=0).to_csv(path, index=False)

    def find(self) -> np.ndarray:
        """Return the contexts of the training answers, and below them those asked for."""
        found = find_contexts(self.answers, self.template, self.folder)
        assert [len(part) for part in found] == [N_TRAIN, N_ASKED]
        assert all(part.dtype == np.int32 and (part >= 0).all() for part in found)
        return np.concatenate(found)

    def is_clustered(self, context: np.ndarray) -> bool:
        """Return whether a level holds the planted blocks, for both parts alike."""
        return any(np.array_equal(share(level), share(self.block)) for level in context.T)


@pytest.fixture
def planted(tmp_path: Path) -> Planted:
    return Planted(tmp_path)


def share(labels: np.ndarray) -> np.ndarray:
    """Return for all pairs of rows whether they have the same label."""
    result: np.ndarray = labels[:, None] == labels[None]
    return result


def test_quizzes_of_classes_are_used_where_they_are_known(planted: Planted) -> None:
    """Students of unknown groups are one class, which none of the known ones is, not even 0."""
    planted.write(columns=["QuizId"])
    (level,) = planted.find().T
    assert_array_equal(share(level), share(planted.quiz))
    assert (planted.group == 0).any()
    for knows_group in (ALL, np.random.default_rng(2).random(N) < 0.6):
        planted.write(knows_group=knows_group)
        (level,) = planted.find().T
        expected = share(planted.quiz) & share(np.where(knows_group, planted.group, -1))
        assert_array_equal(share(level), expected)
    # An unknown quiz is shared with nobody.
    knows = np.random.default_rng(1).random(N) < 0.7
    planted.write(knows)
    (level,) = planted.find().T
    expected = share(planted.quiz) & share(planted.group) & knows[:, None] & knows[None]
    np.fill_diagonal(expected, True)
    assert_array_equal(share(level), expected)


@pytest.mark.parametrize(("share_known", "uses_quizzes"), [(0.55, True), (0.45, False)])
def test_quizzes_must_be_known_of_most_pairs_to_be_predicted(
    planted: Planted, share_known: float, uses_quizzes: bool
) -> None:
    """How many quizzes of the training answers are known does not matter."""
    knows = np.full(N, not uses_quizzes)
    knows[N_TRAIN:] = np.arange(N_ASKED) < share_known * N_ASKED
    planted.write(knows)
    context = planted.find()
    assert planted.is_clustered(context) != uses_quizzes
    asked = context[N_TRAIN:]
    assert (asked.shape[1] == 1 and len(np.unique(asked)) > 150) == uses_quizzes


NO_QUIZ = ["no file", "answers without ids", "template without ids", "no QuizId", "all empty"]


@pytest.mark.parametrize("what", NO_QUIZ)
def test_clusters_are_used_where_no_quiz_is_known(planted: Planted, what: str) -> None:
    if what != "no file":
        knows = np.full(N, what != "all empty")
        planted.write(knows, columns=["GroupId"] if what == "no QuizId" else ["GroupId", "QuizId"])
    if what == "answers without ids":
        planted.answers = planted.answers.drop(columns="AnswerId")
    elif what == "template without ids":
        planted.template = planted.template.drop(columns="AnswerId")
    assert planted.is_clustered(planted.find())


def test_clusters_know_the_pairs_to_be_predicted(planted: Planted) -> None:
    """Questions that have no answers yet are clustered by who is to answer them."""
    parts = [
        (part["UserId"].to_numpy(), part["QuestionId"].to_numpy())
        for part in (planted.answers, planted.template)
    ]
    student, question = np.concatenate(parts, axis=1)
    learned = question // 3 % 5 > 1
    answers = answers_frame(student[learned], question[learned], np.ones(learned.sum(), np.int8))
    template = pd.DataFrame({"UserId": student[~learned], "QuestionId": question[~learned]})
    asked = find_contexts(answers, template, None)[1]
    blocks = share(template["QuestionId"].to_numpy() // 15)
    assert any(np.array_equal(share(level), blocks) for level in asked.T)


def test_a_test_that_all_answer_has_no_contexts(planted: Planted) -> None:
    student, question = np.indices((50, 8)).reshape(2, -1)
    answers = answers_frame(student[:300], question[:300], np.ones(300, np.int8))
    template = pd.DataFrame({"UserId": student[300:], "QuestionId": question[300:]})
    found = find_contexts(answers, template, None)
    assert [part.shape for part in found] == [(300, 0), (100, 0)]
