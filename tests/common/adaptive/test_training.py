"""What a trainer of task 4 reads and saves."""

import contextlib
import itertools
import os
from pathlib import Path
from unittest import mock

from common.adaptive import training, weights

import numpy as np
import pytest
from conftest import Write
from platforms import on_unix

HEADER = "QuestionId,UserId,IsCorrect\n"


def test_reading_what_training_needs(write: Write, tmp_path: Path) -> None:
    """There are as many questions as the training files or the metadata know of."""
    train = write("train.csv", HEADER + "7,1,1\n3,1,0\n")
    more = write("more.csv", HEADER + "5,2,1\n")
    answers, n_questions = training.read_training([train, more], tmp_path)
    assert n_questions == training.count_questions(train, tmp_path) == 8
    assert training.count_questions(None, tmp_path) == 0
    columns = answers[["UserId", "QuestionId", "IsCorrect"]]
    assert columns.to_numpy().tolist() == [[1, 7, 1], [1, 3, 0], [2, 5, 1]]
    write("question_metadata_task_3_4.csv", 'QuestionId,SubjectId\n11,"[3]"\n2,"[3]"\n')
    assert training.read_training([train], tmp_path)[1] == 12
    assert training.count_questions(train, tmp_path) == 12


def train(folder: Path, students: list[int], weights: str) -> None:
    with training.replace_weights(folder, np.array(students, np.int32)) as partial:
        (partial / "weights").write_text(weights)


def test_weights_that_are_not_saved_whole_replace_nothing(tmp_path: Path) -> None:
    train(tmp_path, [1, 2], "a")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with (
        pytest.raises(OSError, match="full"),
        training.replace_weights(tmp_path, np.array([3])) as partial,
    ):
        (partial / "weights").write_text("half")
        raise OSError("the disk is full")
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def be_killed(folder: Path, n_before: int) -> None:
    """Save weights in a process that is killed before its n-th rename."""
    process = os.fork()
    if not process:
        rename, numbers = Path.replace, itertools.count()
        end = {"replace": lambda *p: rename(*p) if next(numbers) < n_before else os._exit(9)}
        with mock.patch.multiple(Path, **end), contextlib.suppress(BaseException):
            train(folder, [3], "b")
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == 9


@on_unix("fork, which makes the process that is killed")
@pytest.mark.parametrize("n_before", range(4))
def test_a_killed_run_leaves_no_student_out_that_the_weights_may_know(
    tmp_path: Path, n_before: int
) -> None:
    """It renames the record, the weights, and the record again."""
    train(tmp_path, [1, 2], "a")
    be_killed(tmp_path, n_before)
    known = {"a": {1, 2}, "b": {3}}[(tmp_path / "weights").read_text()]
    assert known <= set(np.load(tmp_path / weights.TRAINED_STUDENTS).tolist())
    # The next run takes away what this one has left.
    train(tmp_path, [4], "c")
    assert np.load(tmp_path / weights.TRAINED_STUDENTS).tolist() == [4]
    assert not list(tmp_path.glob(".weights*"))
