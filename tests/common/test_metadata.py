"""Metadata of answers and questions: joined by id, tolerant of gaps in the official files."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from common.errors import InputError
from common.metadata import count_subjects, read_circumstances

Write = Callable[[str, str], Path]
HEADER = "AnswerId,DateAnswered,Confidence,GroupId,QuizId,SchemeOfWorkId\n"


def answers(*ids: int) -> pa.Table:
    return pa.table({"AnswerId": np.array(ids, np.int32)})


def test_answers_are_joined_by_id(write: Write) -> None:
    # Ids beyond float32's whole numbers, a row without id, missing values, an answer not listed,
    # one listed twice.
    path = write(
        "metadata.csv",
        HEADER
        + "19834811.0,2020-01-01 00:00:00.000,75.0,3,8,\n"
        + ",2020-01-01 00:00:00.000,1.0,1,1,\n"
        + "19834812.0,,,4,,5.0\n"
        + "7.0,,25.0,,9,\n"
        + "7.0,,100.0,1,1,\n",
    )
    found = read_circumstances(path, answers(7, 19834812, 8, 19834811))
    assert np.array_equal(found.confidence, [25, np.nan, np.nan, 75], equal_nan=True)
    assert found.group.tolist() == [-1, 4, -1, 3]
    assert found.quiz.tolist() == [9, -1, -1, 8]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("5.0,,101,1,1,\n", "column 'Confidence': row 2 is '101', expected a number from 0 to 100"),
        ("5.0,,sure,1,1,\n", "column 'Confidence': row 2 is 'sure'"),
        ("5.5,,,1,1,\n", "column 'AnswerId': row 2 is '5.5', expected a whole number"),
        ("6.0,,,1,1,\n", "holds none of the 1 training answers"),
        (",,,1,1,\n", "holds none of the 1 training answers"),
        ("5.0,,25,1,1,\n5.0,2020-01-01,2", "row 3 has 3 columns, expected 6"),
        ("5.0,,25,1,1,\n5.0,2020-01-01,25.0,1,1,7", "row 3 has no line end; is the file cut off"),
    ],
)
def test_faulty_answer_metadata(write: Write, rows: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_circumstances(write("metadata.csv", HEADER + rows), answers(5))


def test_answers_without_ids_cannot_be_joined(write: Write) -> None:
    path = write("metadata.csv", HEADER + "5.0,,,1,1,\n")
    with pytest.raises(InputError, match="needs the column 'AnswerId'"):
        read_circumstances(path, pa.table({"UserId": [1]}))


def test_subjects_are_counted(write: Write) -> None:
    path = write(
        "questions.csv",
        'QuestionId,SubjectId\n4,"[3, 71, 98, 209]"\n2,"[3, 32,33,42,144]"\n9,[3]\n',
    )
    counts = count_subjects(path, np.array([2, 3, 4, 9]))
    assert np.array_equal(counts, [5, np.nan, 4, 1], equal_nan=True)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ('4,"[]"\n', r"row 2 is '\[\]', expected a list"),
        ('4,"[3]"\n5,"3, 71"\n', "column 'SubjectId': row 3 is '3, 71', expected a list"),
        ('4,"[3]"\n4,"[3]"\n', "column 'QuestionId': row 3 repeats 4"),
        ('4,"[3]"\n\n\n5,"[3, ]"\n', r"column 'SubjectId': row 5 is '\[3, \]', expected a list"),
        (f'4,"[{"9" * 5000}]"\n', rf"row 2 is '\[{'9' * 78}…', expected a list"),
        ('4,"[\u0663]"\n', "row 2 is '\\[\u0663\\]', expected a list"),
        ('4,"[3]"\n5,"[3]"', "row 3 has no line end; is the file cut off"),
    ],
)
def test_faulty_subjects(write: Write, rows: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        count_subjects(write("questions.csv", "QuestionId,SubjectId\n" + rows), np.array([4]))
