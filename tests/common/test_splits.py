"""Splits: complete, disjoint, seeded, of the right size."""

from collections.abc import Callable
from pathlib import Path

from common.answers import read_answers
from common.errors import InputError
from common.io import read_columns
from common.schema import USER_ID, is_target
from common.splits import split_answers_file, split_students_file

import numpy as np
import pytest

Write = Callable[[str, str], Path]


@pytest.fixture
def train(write: Write) -> Path:
    rng = np.random.default_rng(0)
    rows: list[str] = []
    for student in range(50):
        for question in rng.permutation(40)[:25]:
            correct, option = rng.integers(1, 5, 2)
            right = int(correct == option)
            rows.append(f"{question},{student},{len(rows)},{right},{correct},{option}")
    header = "QuestionId,UserId,AnswerId,IsCorrect,CorrectAnswer,AnswerValue"
    return write("train.csv", "\n".join([header, *rows]) + "\n")


def test_answers_file(train: Path, tmp_path: Path) -> None:
    paths = split_answers_file(train, tmp_path / "out", seed=0)
    header, *rows = train.read_text().splitlines()
    learned, examined, template = (path.read_text().splitlines() for path in paths)
    assert learned[0] == examined[0] == header
    # Both parts keep the order of the file, and no row is in both.
    held_out = set(examined[1:])
    assert learned[1:] == [row for row in rows if row not in held_out]
    assert examined[1:] == [row for row in rows if row in held_out]
    assert len(held_out) == 250
    # The template reveals nothing but the pairs.
    assert template == [",".join(row.split(",")[:3]) for row in examined]
    again, other = (split_answers_file(train, tmp_path / str(seed), seed) for seed in (0, 1))
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in paths]
    assert other[1].read_bytes() != paths[1].read_bytes()


def test_students_file(train: Path, tmp_path: Path) -> None:
    train_path, valid_path = split_students_file(train, tmp_path / "out", seed=0)
    learned, examined = read_answers(train_path), read_answers(valid_path)
    other = read_answers(split_students_file(train, tmp_path / "other", seed=1)[1])
    assert set(other["UserId"]) != set(examined["UserId"])
    assert not np.intersect1d(learned["UserId"], examined["UserId"]).size
    assert len(np.unique(examined["UserId"])) == 10
    targets = read_columns(valid_path, [is_target()])["IsTarget"]
    assert targets.sum() == round(0.2 * len(examined))
    # Both parts keep the order of the file, and no row is lost.
    rows = train.read_text().splitlines()
    held_out = [row.rpartition(",")[0] for row in valid_path.read_text().splitlines()]
    assert held_out[1:] == [row for row in rows[1:] if row in set(held_out)]
    assert train_path.read_text().splitlines()[1:] == [row for row in rows if row not in held_out]


@pytest.mark.parametrize("seed", [0, 1, 7])
def test_targets_are_drawn_apart_from_the_students(write: Write, tmp_path: Path, seed: int) -> None:
    """As many answers held out as there are students: one stream would choose the same places."""
    rows = [f"{question},{student},0\n" for student in range(50) for question in range(5)]
    train = write("t.csv", "QuestionId,UserId,IsCorrect\n" + "".join(rows))
    _, valid_path = split_students_file(train, tmp_path / "out", seed)
    columns = read_columns(valid_path, [USER_ID, is_target()])
    students = np.unique(columns["UserId"])
    targets = np.flatnonzero(columns["IsTarget"])
    assert len(columns["IsTarget"]) == 50
    assert len(students) == len(targets) == 10
    assert len(np.intersect1d(students, targets)) < 6


def test_what_cannot_be_split(train: Path, write: Write, tmp_path: Path) -> None:
    # A split never overwrites what it splits.
    official = train.rename(tmp_path / "train_task_1_2.csv")
    before = official.read_bytes()
    with pytest.raises(InputError, match="is the file to be split"):
        split_answers_file(official, tmp_path, seed=0)
    assert official.read_bytes() == before
    few = write("t.csv", "QuestionId,UserId,IsCorrect\n1,1,0\n1,2,0\n")
    with pytest.raises(InputError, match="holds too few students to hold some out"):
        split_students_file(few, tmp_path / "out", seed=0)
    with pytest.raises(InputError, match="holds too few answers to hold some out"):
        split_answers_file(few, tmp_path / "out", seed=0)
    assert not (tmp_path / "out").exists()
