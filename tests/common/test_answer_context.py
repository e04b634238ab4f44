"""The contexts of answers: quizzes of classes where known, clusters of questions elsewhere."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from common import layout
from common.answer_context import find_contexts
from common.answers import Answers
from common.errors import InputError
from common.submission import Template, read_template

N_TRAIN, N_ASKED = 1_520, 400


class Planted:
    """Answers of students who take blocks of five questions, all at once, in quizzes of their own.

    A quiz holds questions of any blocks, so that it cannot be mistaken for what is clustered. All
    classes, of ten or so students, have all quizzes.
    """

    def __init__(self, folder: Path) -> None:
        rng = np.random.default_rng(0)
        taken = rng.permuted(np.tile(np.arange(20) < 6, (64, 1)), axis=1)
        student, question = np.nonzero(np.repeat(taken, 5, axis=1))
        rows = rng.permutation(N_TRAIN + N_ASKED)
        student, question = student[rows] + 50, question[rows] * 3
        self.block = question // 15
        self.quiz = question % 10 + 10_000 * np.arange(10)[question % 10]
        self.group = student % 7 * 1_000
        self.answer_id = rng.permutation(9_000)[: len(rows)]
        table = pd.DataFrame(
            {"QuestionId": question, "UserId": student, "AnswerId": self.answer_id}
        )
        table[N_TRAIN:].to_csv(folder / "template.csv", index=False)
        self.template = read_template(folder / "template.csv")
        columns = table[:N_TRAIN].astype(np.int32)
        self.answers = Answers(
            columns.UserId.to_numpy(),
            columns.QuestionId.to_numpy(),
            np.ones(N_TRAIN, np.int8),
            answer_id=columns.AnswerId.to_numpy(),
        )
        self.folder = folder / "metadata"
        self.folder.mkdir()

    def write(
        self,
        knows: np.ndarray | None = None,
        knows_group: np.ndarray | None = None,
        columns: Sequence[str] = ("GroupId", "QuizId"),
    ) -> None:
        """Write some columns of the metadata.

        The quiz of some answers is empty, or their row is missing; the group of others is empty.
        """
        everything = np.ones(N_TRAIN + N_ASKED, bool)
        knows = everything if knows is None else knows
        knows_group = everything if knows_group is None else knows_group
        listed = knows | (np.arange(len(knows)) % 2 == 0)
        table = pd.DataFrame(
            {
                "AnswerId": self.answer_id,
                "GroupId": np.where(knows_group, self.group, np.nan),
                "QuizId": np.where(knows, self.quiz, np.nan),
            }
        )[["AnswerId", *columns]][listed]
        table.sample(frac=1, random_state=0).to_csv(
            self.folder / layout.ANSWER_METADATA_TASK_1_2, index=False
        )


@pytest.fixture
def planted(tmp_path: Path) -> Planted:
    return Planted(tmp_path)


def share_class(planted: Planted) -> np.ndarray:
    """Return for all pairs of rows whether they have the same quiz of the same class."""
    return share(planted.quiz) & share(planted.group)


def share(labels: np.ndarray) -> np.ndarray:
    """Return for all pairs of rows whether they have the same label."""
    result: np.ndarray = labels[:, None] == labels[None]
    return result


def is_clustered(planted: Planted, found: tuple[np.ndarray, np.ndarray]) -> bool:
    """Return whether a level holds the planted blocks, for both parts alike."""
    assert [len(part) for part in found] == [N_TRAIN, N_ASKED]
    context = np.concatenate(found)
    blocks = share(planted.block)
    return any(np.array_equal(share(level), blocks) for level in context.T)


def test_quizzes_are_used_where_they_are_known(planted: Planted) -> None:
    planted.write()
    found = find_contexts(planted.answers, planted.template, planted.folder)
    assert [part.shape for part in found] == [(N_TRAIN, 1), (N_ASKED, 1)]
    assert all(part.dtype == np.int32 for part in found)
    assert all((part >= 0).all() for part in found)
    assert_array_equal(share(np.concatenate(found)[:, 0]), share_class(planted))
    assert not is_clustered(planted, found)


def test_without_groups_all_students_share_a_quiz(planted: Planted) -> None:
    planted.write(columns=["QuizId"])
    found = find_contexts(planted.answers, planted.template, planted.folder)
    assert [part.shape for part in found] == [(N_TRAIN, 1), (N_ASKED, 1)]
    assert all(part.dtype == np.int32 for part in found)
    assert_array_equal(share(np.concatenate(found)[:, 0]), share(planted.quiz))


def test_students_of_unknown_groups_are_one_class(planted: Planted) -> None:
    """Which none of the known classes is, not even that of GroupId 0."""
    assert (planted.group == 0).any()
    knows_group = np.random.default_rng(2).random(N_TRAIN + N_ASKED) < 0.6
    planted.write(knows_group=knows_group)
    found = find_contexts(planted.answers, planted.template, planted.folder)
    expected = share(planted.quiz) & share(np.where(knows_group, planted.group, -1))
    assert_array_equal(share(np.concatenate(found)[:, 0]), expected)


def test_an_unknown_quiz_is_shared_with_nobody(planted: Planted) -> None:
    knows = np.random.default_rng(1).random(N_TRAIN + N_ASKED) < 0.7
    planted.write(knows)
    found = find_contexts(planted.answers, planted.template, planted.folder)
    context = np.concatenate(found)[:, 0]
    assert (context >= 0).all()
    expected = share_class(planted) & knows[:, None] & knows[None]
    np.fill_diagonal(expected, True)
    assert_array_equal(share(context), expected)


@pytest.mark.parametrize(("share_known", "uses_quizzes"), [(0.55, True), (0.45, False)])
def test_quizzes_must_be_known_of_most_pairs_to_be_predicted(
    planted: Planted, share_known: float, uses_quizzes: bool
) -> None:
    """How many quizzes of the training answers are known does not matter."""
    knows = np.full(N_TRAIN + N_ASKED, not uses_quizzes)
    knows[N_TRAIN:] = np.arange(N_ASKED) < share_known * N_ASKED
    planted.write(knows)
    found = find_contexts(planted.answers, planted.template, planted.folder)
    assert is_clustered(planted, found) != uses_quizzes
    assert (found[1].shape[1] == 1 and len(np.unique(found[1])) > 150) == uses_quizzes


@pytest.mark.parametrize(
    "what",
    [
        "no folder",
        "no file",
        "answers without ids",
        "template without ids",
        "no column QuizId",
        "neither column",
        "all quizzes empty",
    ],
)
def test_clusters_are_used_where_no_quiz_is_known(planted: Planted, what: str) -> None:
    answers: Answers = planted.answers
    template: Template = planted.template
    folder: Path | None = planted.folder
    if what == "no column QuizId":
        planted.write(columns=["GroupId"])
    elif what == "neither column":
        planted.write(columns=[])
    elif what == "all quizzes empty":
        planted.write(np.zeros(N_TRAIN + N_ASKED, bool))
    elif what != "no file":
        planted.write()
    if what == "no folder":
        folder = None
    elif what == "answers without ids":
        answers = replace(answers, answer_id=None)
    elif what == "template without ids":
        template = replace(template, answer_id=None)
    found = find_contexts(answers, template, folder)
    assert is_clustered(planted, found)
    assert all(part.dtype == np.int32 for part in found)


def test_clusters_know_the_pairs_to_be_predicted(planted: Planted) -> None:
    """Questions that have no answers yet are clustered by who is to answer them."""
    student, question = np.concatenate(
        [(part.student, part.question) for part in (planted.answers, planted.template)], axis=1
    )
    has_answers = question // 3 % 5 > 1
    n = has_answers.sum()
    answers = Answers(student[has_answers], question[has_answers], np.ones(n, np.int8))
    template = replace(
        planted.template, student=student[~has_answers], question=question[~has_answers]
    )
    found = find_contexts(answers, template, None)
    blocks = share(template.question // 15)
    assert any(np.array_equal(share(level), blocks) for level in found[1].T)


def test_a_test_that_all_answer_has_no_contexts(planted: Planted) -> None:
    student, question = np.indices((50, 8)).reshape(2, -1)
    answers = Answers(student[:300], question[:300], np.ones(300, np.int8))
    template = replace(planted.template, student=student[300:], question=question[300:])
    found = find_contexts(answers, template, None)
    assert [part.shape for part in found] == [(300, 0), (100, 0)]


def test_metadata_of_other_answers_are_reported(planted: Planted) -> None:
    planted.answer_id += 1_000_000
    planted.write()
    with pytest.raises(InputError, match="column 'AnswerId': holds none of the 1,920 asked for"):
        find_contexts(planted.answers, planted.template, planted.folder)
