"""What a trainer of task 4 reads and saves."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from common import layout
from common.adaptive.training import (
    TRAINED_STUDENTS,
    TrainingPaths,
    add_more_train_data_flag,
    count_questions,
    read_training,
    record_training,
    training_parser,
    training_paths,
)
from common.errors import InputError

Write = Callable[[str, str | bytes], Path]
HEADER = "QuestionId,UserId,IsCorrect\n"


def test_number_of_columns(write: Write, tmp_path: Path) -> None:
    train = write("train.csv", HEADER + "7,1,1\n3,1,0\n")
    assert count_questions(None, tmp_path) == 0
    assert count_questions(train, tmp_path) == 8
    write("question_metadata_task_3_4.csv", 'QuestionId,SubjectId\n11,"[3]"\n2,"[3]"\n')
    assert count_questions(train, tmp_path) == 12


@pytest.mark.parametrize(
    ("flags", "folder", "names"),
    [
        ([], layout.TRAIN_DIR, ["train_task_3_4.csv"]),
        (["--local"], layout.TEST_INPUT_DIR, ["train_task_4.csv"]),
        (["--more_train_data", "b.csv", "c.csv"], layout.TRAIN_DIR,
         ["train_task_3_4.csv", "b.csv", "c.csv"]),
        (["--local", "--train_data", "a.csv"], layout.TEST_INPUT_DIR, ["a.csv"]),
        (["--input_dir", "elsewhere/in"], Path("elsewhere/in"), ["train_task_3_4.csv"]),
    ],
)  # fmt: skip
def test_paths(flags: list[str], folder: Path, names: list[str]) -> None:
    parser = training_parser("A trainer.")
    add_more_train_data_flag(parser)
    paths = training_paths(parser.parse_args(flags))
    assert [paths.train, *paths.more_train] == [folder / name for name in names]
    assert paths.metadata_dir == folder.parent / "metadata"


def test_reading_what_training_needs(write: Write, tmp_path: Path) -> None:
    train = write("train.csv", HEADER + "7,1,1\n3,1,0\n")
    more = write("more.csv", HEADER + "5,2,1\n")
    answers, n_questions = read_training(TrainingPaths(train, tmp_path, (more,)))
    assert n_questions == 8
    assert answers.student.tolist() == [1, 1, 2]
    assert answers.question.tolist() == [7, 3, 5]
    assert answers.is_correct.tolist() == [1, 0, 1]
    write("question_metadata_task_3_4.csv", 'QuestionId,SubjectId\n11,"[3]"\n')
    assert read_training(TrainingPaths(train, tmp_path))[1] == 12
    with pytest.raises(InputError, match="UserId 1 appears in another training file"):
        read_training(TrainingPaths(train, tmp_path, (train,)))


def test_students_are_saved_once_each(tmp_path: Path) -> None:
    record_training(tmp_path, np.array([5, 2, 5, 9], np.int32))
    assert np.load(tmp_path / TRAINED_STUDENTS).tolist() == [2, 5, 9]


def test_weights_of_other_students_are_not_replaced_silently(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for students, said in (([1, 2], ""), ([2, 1, 1], ""), ([1, 2, 3], "trained on 2 other")):
        record_training(tmp_path, np.array(students, np.int32))
        printed = capsys.readouterr().out
        assert said in printed
        assert bool(said) == bool(printed)


def test_training_does_not_import_the_game() -> None:
    code = (
        "import sys, common.adaptive.training, common.adaptive.answered_mask\n"
        "rules = {'game', 'evaluation', 'report', 'entry_process', 'entry_runner'}\n"
        "assert not {f'common.adaptive.{name}' for name in rules} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
