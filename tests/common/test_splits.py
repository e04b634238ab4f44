"""Splits: no row is lost or in both parts, the sizes are right, and the seed decides."""

from pathlib import Path

from common.errors import InputError
from common.splits import assign_folds

import numpy as np
import pandas as pd
import pytest
from conftest import Write, fails, succeeds


def split_for_task(task: int, train: Path, folder: Path, seed: int = 0) -> list[Path]:
    """Run the split of a task; return the files that it says it has written."""
    places = ["--input_dir", train.parent, "--train_data", train.name, "--output_dir", folder]
    printed = succeeds([f"task_{task}/local_data_split.py", *places, "--seed", seed])
    return [Path(name) for name in printed.strip().removeprefix("written: ").split(", ")]


@pytest.fixture
def train(write: Write) -> Path:
    """Write a file of 250 answers: five of each of 50 students.

    A split of task 1 or 2 holds out a fifth of the answers. A split of task 4 holds out all answers
    of a fifth of the students. Both splits hold out 50 answers.
    """
    rng = np.random.default_rng(0)
    question = np.concatenate([rng.permutation(40)[:5] for _ in range(50)])
    correct, option = rng.integers(1, 5, (2, 250))
    answers = pd.DataFrame({"QuestionId": question, "UserId": np.repeat(range(50), 5)})
    answers = answers.assign(AnswerId=range(250), IsCorrect=1 * (correct == option))
    answers = answers.assign(CorrectAnswer=correct, AnswerValue=option)
    return write("train.csv", answers.to_csv(index=False))


def test_a_fifth_of_the_answers_is_held_out_in_the_order_of_the_file(
    train: Path, tmp_path: Path
) -> None:
    """Both parts, training answers and held-out answers, keep the header and the order of rows."""
    train_path, valid_path, _template = split_for_task(1, train, tmp_path / "out")

    header, *rows = train.read_text().splitlines()
    train_header, *train_rows = train_path.read_text().splitlines()
    valid_header, *valid_rows = valid_path.read_text().splitlines()
    assert train_header == header
    assert valid_header == header
    held_out = set(valid_rows)
    # A fifth of the 250 answers is held out.
    assert len(held_out) == 50
    assert train_rows == [row for row in rows if row not in held_out]
    assert valid_rows == [row for row in rows if row in held_out]


def test_the_template_reveals_only_ids(train: Path, tmp_path: Path) -> None:
    _, valid, template = split_for_task(1, train, tmp_path / "out")
    ids = [",".join(row.split(",")[:3]) for row in valid.read_text().splitlines()]
    assert template.read_text().splitlines() == ids


def test_tasks_1_and_2_have_the_same_split_and_another_seed_another(
    train: Path, tmp_path: Path
) -> None:
    of_task_1 = split_for_task(1, train, tmp_path / "1")
    of_task_2 = split_for_task(2, train, tmp_path / "2")
    of_other_seed = split_for_task(2, train, tmp_path / "other", seed=1)
    assert [path.read_bytes() for path in of_task_2] == [path.read_bytes() for path in of_task_1]
    assert of_other_seed[1].read_bytes() != of_task_1[1].read_bytes()


def test_a_fifth_of_the_students_is_held_out_in_the_order_of_the_file(
    train: Path, tmp_path: Path
) -> None:
    """All answers of a student are in the same part: training answers or held-out answers.

    Both parts keep the order of the rows.
    """
    train_path, valid_path = split_for_task(4, train, tmp_path / "out")

    training_students = set(pd.read_csv(train_path).UserId)
    held_out_students = set(pd.read_csv(valid_path).UserId)
    assert not training_students & held_out_students

    header, *rows = train.read_text().splitlines()
    _header, *train_rows = train_path.read_text().splitlines()
    # Remove the last column of the held-out answers, IsTarget, which the split has added.
    valid_lines = valid_path.read_text().splitlines()
    valid_header, *valid_rows = [line.rpartition(",")[0] for line in valid_lines]
    assert valid_header == header
    held_out = set(valid_rows)
    # A fifth of the 50 students is held out: 10 students with five answers each.
    assert len(held_out) == 50
    assert valid_rows == [row for row in rows if row in held_out]
    assert train_rows == [row for row in rows if row not in held_out]


@pytest.mark.parametrize("seed", [0, 1])
def test_a_fifth_of_a_student_s_answers_are_targets_drawn_independently_of_the_students(
    train: Path, tmp_path: Path, seed: int
) -> None:
    valid = pd.read_csv(split_for_task(4, train, tmp_path / "out", seed)[1])
    students = valid.UserId.unique()
    targets = np.flatnonzero(valid.IsTarget)
    assert [len(valid), len(students), len(targets)] == [50, 10, 10]
    # The split draws 10 of 50 students to hold out, and 10 of the 50 rows of these students as
    # targets. If both draws used the same random numbers, they would give the same ten numbers.
    assert len(np.intersect1d(students, targets)) < 6


def test_the_seed_decides_which_students_are_held_out(train: Path, tmp_path: Path) -> None:
    _, first = split_for_task(4, train, tmp_path / "first", seed=0)
    _, second = split_for_task(4, train, tmp_path / "second", seed=1)
    assert {*pd.read_csv(first).UserId} != {*pd.read_csv(second).UserId}


def test_a_split_never_overwrites_the_file_to_be_split(train: Path, tmp_path: Path) -> None:
    official = train.rename(tmp_path / "train_task_1_2.csv")
    before = official.read_bytes()
    places = ["--input_dir", tmp_path, "--output_dir", tmp_path]
    assert "is the file to be split" in fails(["task_1/local_data_split.py", *places])
    assert official.read_bytes() == before


@pytest.mark.parametrize("task", [1, 4])
def test_too_few_answers_or_students_are_refused(write: Write, tmp_path: Path, task: int) -> None:
    few = write("t.csv", "QuestionId,UserId,IsCorrect\n1,1,0\n1,2,0\n")
    places = ["--input_dir", tmp_path, "--train_data", few.name, "--output_dir", tmp_path / "out"]
    line = fails([f"task_{task}/local_data_split.py", *places])
    assert "t.csv: holds too few answers or students to hold some out" in line
    assert not (tmp_path / "out").exists()


def test_groups_stay_together_in_folds_of_equal_size() -> None:
    group = np.random.default_rng(0).integers(0, 31, 400)
    fold = assign_folds(group, 10, seed=3)
    # The table has a row for each pair of a group and a fold. If a group were in two folds, it
    # would have two rows.
    fold_of_group = pd.DataFrame({"group": group, "fold": fold}).drop_duplicates()
    assert len(fold_of_group) == 31
    assert sorted(fold_of_group.fold.value_counts()) == [3] * 9 + [4]


@pytest.mark.parametrize("n_folds", [1, 32])
def test_there_are_at_least_two_folds_and_at_most_as_many_as_groups(n_folds: int) -> None:
    with pytest.raises(InputError, match=f"--folds is {n_folds}, expected .*, which is 31"):
        assign_folds(np.arange(31), n_folds, seed=3)
