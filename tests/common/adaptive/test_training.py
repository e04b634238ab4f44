"""A trainer of task 4 reads the given answers, and saves its weights whole or not at all."""

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
# Exit code with which the forked process ends itself, as if it had been killed.
KILLED = 9


@pytest.fixture
def train_files(write: Write) -> list[Path]:
    """Write two training files, in which the largest QuestionId is 7."""
    return [
        write("train.csv", HEADER + "7,1,1\n3,1,0\n"),
        write("more.csv", HEADER + "5,2,1\n"),
    ]


def test_answers_of_all_training_files_are_read(train_files: list[Path], tmp_path: Path) -> None:
    answers, _ = training.read_training(train_files, tmp_path)
    columns = answers[["UserId", "QuestionId", "IsCorrect"]]
    assert columns.to_numpy().tolist() == [[1, 7, 1], [1, 3, 0], [2, 5, 1]]


def test_questions_are_counted_up_to_the_largest_id_in_training_files(
    train_files: list[Path], tmp_path: Path
) -> None:
    assert training.read_training(train_files, tmp_path)[1] == 8
    assert training.count_questions(train_files[0], tmp_path) == 8


def test_questions_are_counted_up_to_the_largest_id_in_the_metadata(
    train_files: list[Path], write: Write, tmp_path: Path
) -> None:
    write("question_metadata_task_3_4.csv", 'QuestionId,SubjectId\n11,"[3]"\n2,"[3]"\n')
    assert training.read_training(train_files[:1], tmp_path)[1] == 12
    assert training.count_questions(train_files[0], tmp_path) == 12


def test_without_training_files_and_metadata_no_question_is_known(tmp_path: Path) -> None:
    assert training.count_questions(None, tmp_path) == 0


# ---- Saving weights ----------------------------------------------------------------------------


def save_weights(folder: Path, students: list[int], weights: str) -> None:
    """Save the text `weights` in place of real weights; `students` are their training students."""
    with training.replace_weights(folder, np.array(students, np.int32)) as partial:
        (partial / "weights").write_text(weights)


def test_weights_that_cannot_be_saved_whole_replace_nothing(tmp_path: Path) -> None:
    save_weights(tmp_path, [1, 2], "old")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with (
        pytest.raises(OSError, match="full"),
        training.replace_weights(tmp_path, np.array([3])) as partial,
    ):
        (partial / "weights").write_text("half")
        raise OSError("the disk is full")
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


# To save weights, a process renames this many files (see `save_and_be_killed`).
N_RENAMES = 5


def save_and_be_killed(folder: Path, students: list[int], weights: str, n_renames: int) -> None:
    """Save weights in a forked process that is killed after `n_renames` renames of files.

    Tests then look at the state of the folder. To save the weights, the process renames new
    files to the names of old ones, in this order:

    1. the list of students; the new list holds the old and the new students
    2. the record of the command
    3. the weights
    4. the list of students; the new list holds only the new students
    5. the record of the command, again
    """
    process = os.fork()
    if process == 0:
        replace = Path.replace
        renames_before = itertools.count()

        def replace_or_end(path: Path, target: Path) -> Path:
            if next(renames_before) == n_renames:
                os._exit(KILLED)
            return replace(path, target)

        patch = mock.patch.object(Path, "replace", replace_or_end)
        # Whatever happens, the forked process must end here, and not go on with the tests.
        with patch, contextlib.suppress(BaseException):
            save_weights(folder, students, weights)
        os._exit(0)
    # Check that the process ended at the chosen rename: after a complete save, it ends with 0.
    assert os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == KILLED


@on_unix("fork, which makes the process that is killed")
@pytest.mark.parametrize("n_renames", range(N_RENAMES))
def test_after_a_kill_the_record_names_every_student_that_the_weights_may_know(
    tmp_path: Path, n_renames: int
) -> None:
    students_by_weights = {"old": {1, 2}, "new": {3}}
    save_weights(tmp_path, [1, 2], "old")

    save_and_be_killed(tmp_path, [3], "new", n_renames)

    known_students = students_by_weights[(tmp_path / "weights").read_text()]
    assert known_students <= recorded_students(tmp_path)


@on_unix("fork, which makes the process that is killed")
@pytest.mark.parametrize("n_renames", range(N_RENAMES))
def test_the_run_after_a_kill_removes_what_the_killed_one_has_left(
    tmp_path: Path, n_renames: int
) -> None:
    save_weights(tmp_path, [1, 2], "old")
    save_and_be_killed(tmp_path, [3], "new", n_renames)

    save_weights(tmp_path, [4], "newest")

    assert recorded_students(tmp_path) == {4}
    assert not list(tmp_path.glob(".weights*"))


def recorded_students(folder: Path) -> set[int]:
    """Return the UserIds of the training students, which are saved beside the weights."""
    return set(np.load(folder / weights.TRAINED_STUDENTS).tolist())
