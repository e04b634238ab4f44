"""Splits: complete, disjoint, seeded, of the right size."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.answers import pair_keys, read_answers
from common.errors import InputError
from common.io import read_columns
from common.schema import USER_ID, is_target
from common.splits import (
    hold_out_answers,
    hold_out_students,
    split_answers_file,
    split_students_file,
)

Write = Callable[[str, str], Path]


@given(st.integers(0, 500), st.sampled_from([0.1, 0.2, 0.5]), st.integers(0, 9))
def test_share_of_answers(n_answers: int, share: float, seed: int) -> None:
    held_out = hold_out_answers(n_answers, share, seed)
    assert held_out.sum() == round(n_answers * share)
    assert np.array_equal(held_out, hold_out_answers(n_answers, share, seed))


def test_another_seed_is_another_split() -> None:
    assert not np.array_equal(hold_out_answers(100, 0.2, 0), hold_out_answers(100, 0.2, 1))


@given(st.lists(st.integers(0, 30), min_size=1, max_size=200), st.integers(0, 9))
def test_students_are_held_out_whole(students: list[int], seed: int) -> None:
    student = np.array(students)
    held_out = hold_out_students(student, 0.2, seed)
    assert not np.intersect1d(student[held_out], student[~held_out]).size
    assert len(np.unique(student[held_out])) == round(len(np.unique(student)) * 0.2)


@pytest.fixture
def train(write: Write) -> Path:
    rng = np.random.default_rng(0)
    rows = []
    for student in range(50):
        for question in rng.permutation(40)[:25]:
            correct, option = rng.integers(1, 5, 2)
            rows.append(f"{question},{student},{len(rows)},{int(correct == option)},")
            rows[-1] += f"{correct},{option}"
    header = "QuestionId,UserId,AnswerId,IsCorrect,CorrectAnswer,AnswerValue"
    return write("train.csv", "\n".join([header, *rows]) + "\n")


def test_answers_file(train: Path, tmp_path: Path) -> None:
    train_path, valid_path, template_path = split_answers_file(train, tmp_path / "out", seed=0)
    rows = train.read_text().splitlines()
    train_rows, valid_rows = (p.read_text().splitlines() for p in (train_path, valid_path))
    assert train_rows[0] == valid_rows[0] == rows[0]
    # Both parts keep the order of the file.
    held_out = set(valid_rows[1:])
    assert train_rows[1:] == [row for row in rows[1:] if row not in held_out]
    assert valid_rows[1:] == [row for row in rows[1:] if row in held_out]
    assert len(valid_rows) - 1 == 250
    # The template reveals nothing but the pairs.
    template_rows = template_path.read_text().splitlines()
    assert template_rows == [",".join(row.split(",")[:3]) for row in valid_rows]
    before = [path.read_bytes() for path in (train_path, valid_path, template_path)]
    after = [path.read_bytes() for path in split_answers_file(train, tmp_path / "out", seed=0)]
    assert before == after


def test_students_file(train: Path, tmp_path: Path) -> None:
    train_path, valid_path = split_students_file(train, tmp_path / "out", seed=0)
    learned, examined = read_answers(train_path), read_answers(valid_path)
    assert not np.intersect1d(learned.student, examined.student).size
    assert len(learned) + len(examined) == 1250
    assert len(np.unique(examined.student)) == 10
    targets = read_columns(valid_path, [is_target()])["IsTarget"]
    assert targets.sum() == round(0.2 * len(examined))
    # Both parts keep the order of the file.
    rows = train.read_text().splitlines()
    examined_rows = [row.rpartition(",")[0] for row in valid_path.read_text().splitlines()]
    held_out = set(examined_rows)
    assert examined_rows[1:] == [row for row in rows[1:] if row in held_out]
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


def test_right_wrong_only_files_can_be_split(write: Write, tmp_path: Path) -> None:
    train = write(
        "t.csv", "QuestionId,UserId,IsCorrect\n" + "".join(f"{i},1,0\n" for i in range(9))
    )
    train_path, _, template_path = split_answers_file(train, tmp_path / "out", seed=0)
    assert train_path.read_text().startswith("QuestionId,UserId,IsCorrect\n")
    assert template_path.read_text().startswith("QuestionId,UserId\n")


def test_a_split_never_overwrites_what_it_splits(train: Path, tmp_path: Path) -> None:
    official = train.rename(tmp_path / "train_task_1_2.csv")
    before = official.read_bytes()
    with pytest.raises(InputError, match="is the file to be split"):
        split_answers_file(official, tmp_path, seed=0)
    assert official.read_bytes() == before


def test_pairs_of_the_split_do_not_overlap(train: Path, tmp_path: Path) -> None:
    train_path, valid_path, _ = split_answers_file(train, tmp_path / "out", seed=0)
    keys = [pair_keys(a.student, a.question) for a in map(read_answers, (train_path, valid_path))]
    assert not np.intersect1d(*keys).size


def test_too_few_to_split(write: Write, tmp_path: Path) -> None:
    train = write("t.csv", "QuestionId,UserId,IsCorrect\n1,1,0\n1,2,0\n")
    with pytest.raises(InputError, match="holds too few students to hold some out"):
        split_students_file(train, tmp_path / "out", seed=0)
    with pytest.raises(InputError, match="holds too few answers to hold some out"):
        split_answers_file(train, tmp_path / "out", seed=0)
    assert not (tmp_path / "out").exists()
