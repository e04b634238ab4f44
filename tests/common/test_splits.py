"""Splits: complete, disjoint, seeded, of the right size."""

from pathlib import Path

from common.errors import InputError
from common.splits import assign_folds

import numpy as np
import pandas as pd
import pytest
from conftest import Write, fails, succeeds


def split(task: int, train: Path, folder: Path, seed: int = 0) -> list[Path]:
    """Run the split of a task; return the files written."""
    places = ["--input_dir", train.parent, "--train_data", train.name, "--output_dir", folder]
    told = succeeds([f"task_{task}/local_data_split.py", *places, "--seed", seed])
    return [Path(name) for name in told.strip().removeprefix("written: ").split(", ")]


@pytest.fixture
def train(write: Write) -> Path:
    """As many answers of a fifth of the students as there are students."""
    rng = np.random.default_rng(0)
    question = np.concatenate([rng.permutation(40)[:5] for _ in range(50)])
    correct, option = rng.integers(1, 5, (2, 250))
    answers = pd.DataFrame({"QuestionId": question, "UserId": np.repeat(range(50), 5)})
    answers = answers.assign(AnswerId=range(250), IsCorrect=1 * (correct == option))
    answers = answers.assign(CorrectAnswer=correct, AnswerValue=option)
    return write("train.csv", answers.to_csv(index=False))


def test_answers_file(train: Path, tmp_path: Path) -> None:
    paths = split(1, train, tmp_path / "out")
    header, *rows = train.read_text().splitlines()
    learned, examined, template = (path.read_text().splitlines() for path in paths)
    assert learned[0] == examined[0] == header
    # Both parts keep the order of the file, and no row is in both.
    held_out = set(examined[1:])
    assert learned[1:] == [row for row in rows if row not in held_out]
    assert examined[1:] == [row for row in rows if row in held_out]
    assert len(held_out) == 50
    # The template reveals nothing but the pairs.
    assert template == [",".join(row.split(",")[:3]) for row in examined]
    again, other = (split(2, train, tmp_path / str(seed), seed) for seed in (0, 1))
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in paths]
    assert other[1].read_bytes() != paths[1].read_bytes()


def test_students_file(train: Path, tmp_path: Path) -> None:
    train_path, valid_path = split(4, train, tmp_path / "out")
    learned, examined = pd.read_csv(train_path), pd.read_csv(valid_path)
    other = pd.read_csv(split(4, train, tmp_path / "other", seed=1)[1])
    assert {*other.UserId} != {*examined.UserId}
    assert not {*learned.UserId} & {*examined.UserId}
    for valid in (examined, other):
        students, targets = valid.UserId.unique(), np.flatnonzero(valid.IsTarget)
        assert [len(valid), len(students), len(targets)] == [50, 10, 10]
        # Drawn apart: one stream would choose the same places.
        assert len(np.intersect1d(students, targets)) < 6
    # Both parts keep the order of the file, and no row is lost.
    rows = train.read_text().splitlines()
    held_out = [row.rpartition(",")[0] for row in valid_path.read_text().splitlines()]
    assert held_out[1:] == [row for row in rows[1:] if row in set(held_out)]
    assert train_path.read_text().splitlines()[1:] == [row for row in rows if row not in held_out]


def test_what_cannot_be_split(train: Path, write: Write, tmp_path: Path) -> None:
    # A split never overwrites what it splits.
    official = train.rename(tmp_path / "train_task_1_2.csv")
    before = official.read_bytes()
    places = ["--input_dir", tmp_path, "--output_dir", tmp_path]
    assert "is the file to be split" in fails(["task_1/local_data_split.py", *places])
    assert official.read_bytes() == before
    few = write("t.csv", "QuestionId,UserId,IsCorrect\n1,1,0\n1,2,0\n")
    places = ["--input_dir", tmp_path, "--train_data", few.name, "--output_dir", tmp_path / "out"]
    for task in (1, 4):
        line = fails([f"task_{task}/local_data_split.py", *places])
        assert "t.csv: holds too few answers or students to hold some out" in line
    assert not (tmp_path / "out").exists()


def test_groups_stay_together_in_folds_of_equal_size() -> None:
    group = np.random.default_rng(0).integers(0, 31, 400)
    fold = assign_folds(group, 10, seed=3)
    pairs = {*zip(group.tolist(), fold.tolist(), strict=True)}
    assert len(pairs) == 31
    assert sorted(np.bincount([number for _, number in pairs])) == [3] * 9 + [4]
    for n_folds in (1, 32):
        with pytest.raises(InputError, match=f"--folds is {n_folds}, expected .*, which is 31"):
            assign_folds(group, n_folds, seed=3)
