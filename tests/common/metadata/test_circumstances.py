"""Answer metadata: joined by AnswerId, tolerant of gaps in the official files."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from common import layout, schema
from common.answers import read_answers
from common.errors import InputError
from common.metadata import find, read_circumstances

Write = Callable[[str, str | bytes], Path]
HEADER = "AnswerId,DateAnswered,Confidence,GroupId,QuizId,SchemeOfWorkId\n"


def ids(*numbers: int) -> npt.NDArray[np.int32]:
    return np.array(numbers, np.int32)


def same_dates(found: npt.NDArray[np.datetime64], expected: list[str]) -> bool:
    return np.array_equal(found, np.array(expected, "datetime64[m]"), equal_nan=True)


def test_a_file_that_is_not_there_is_not_known(tmp_path: Path) -> None:
    name = layout.ANSWER_METADATA_TASK_1_2
    assert find(None, name) is None
    assert find(tmp_path, name) is None
    (tmp_path / name).write_text("")
    assert find(tmp_path, name) == tmp_path / name
    # A broken link is a fault, which the reader reports.
    (tmp_path / layout.SUBJECT_METADATA).symlink_to(tmp_path / "moved")
    assert find(tmp_path, layout.SUBJECT_METADATA) is not None


def test_answers_are_joined_by_id(write: Write) -> None:
    # Ids beyond float32's whole numbers, rows without an id, missing values, an answer not listed,
    # one asked for twice, one whose id is unknown.
    path = write(
        "metadata.csv",
        HEADER
        + "19834811.0,2020-02-29 14:05:00.000,75.0,3,8,\n"
        + ",2020-01-01 00:00:00.000,1.0,1,1,\n"
        + "19834812.0,,,4,,5.0\n"
        + ",2020-01-01 00:00:00.000,1.0,1,1,\n"
        + "7.0,2018-09-01 00:59:59.999,25.0,,9,\n",
    )
    found = read_circumstances(path, ids(7, 19834812, 8, 19834811, -1, 7, 2**31 - 1))
    dates = ["2018-09-01T00:59", "NaT", "NaT", "2020-02-29T14:05", "NaT", "2018-09-01T00:59", "NaT"]
    assert found.date_answered.dtype == "datetime64[m]"
    assert same_dates(found.date_answered, dates)
    expected = [25, np.nan, np.nan, 75, np.nan, 25, np.nan]
    assert np.array_equal(found.confidence, expected, equal_nan=True)
    assert found.confidence.dtype == np.float32
    assert found.group.tolist() == [-1, 4, -1, 3, -1, -1, -1]
    assert found.quiz.tolist() == [9, -1, -1, 8, -1, 9, -1]
    assert found.scheme.tolist() == [-1, 5, -1, -1, -1, -1, -1]
    assert found.group.dtype == found.quiz.dtype == found.scheme.dtype == np.int32
    assert found.take(np.array([3, 0])).quiz.tolist() == [8, 9]
    assert found.take(slice(1, 2)).scheme.tolist() == [5]


def test_dates_in_other_ways(write: Write) -> None:
    # The last two pyarrow alone does not read: more digits than its type holds, spaces.
    dates = ["2019-12-31 23:59", "2019-12-31T23:59:59", "2019-12-31 23:59:00.0000000"]
    dates += [" 2019-12-31 23:59:01 ", "", "2020-03-01"]
    rows = "".join(f"{place},{date}\n" for place, date in enumerate(dates))
    path = write("metadata.csv", f"AnswerId,DateAnswered\n{rows}")
    found = read_circumstances(path, ids(*range(6))).date_answered
    assert same_dates(found, ["2019-12-31T23:59"] * 4 + ["NaT", "2020-03-01T00:00"])


def test_columns_that_are_not_there_are_not_known(write: Write) -> None:
    path = write("metadata.csv", b"\xef\xbb\xbfQuizId,AnswerId\r\n8,5\r\n,6\r\n")
    found = read_circumstances(path, ids(6, 5))
    assert found.quiz.tolist() == [-1, 8]
    assert same_dates(found.date_answered, ["NaT", "NaT"])
    assert np.isnan(found.confidence).all()
    assert found.group.tolist() == found.scheme.tolist() == [-1, -1]


def test_columns_that_are_named_must_be_there_and_no_other_is_read(write: Write) -> None:
    path = write("metadata.csv", "AnswerId,QuizId,GroupId\n5,8,none\n")
    found = read_circumstances(path, ids(5), columns=[schema.QUIZ_ID])
    assert found.quiz.tolist() == [8]
    assert found.group.tolist() == [-1]
    with pytest.raises(InputError, match="column 'Confidence' is missing"):
        read_circumstances(path, ids(5), columns=[schema.QUIZ_ID, schema.CONFIDENCE])
    with pytest.raises(InputError, match="column 'GroupId': row 2 is 'none', expected a whole"):
        read_circumstances(path, ids(5))


DATE = "expected a date such as 2020-02-11 14:05:00.000 or nothing"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("5.0,,101,1,1,\n", "column 'Confidence': row 2 is '101', expected a number from 0 to 100"),
        ("5.5,,,1,1,\n", "column 'AnswerId': row 2 is '5.5', expected a whole number"),
        ("5,,,1,16777217,\n", "column 'QuizId': row 2 is '16777217', expected .* to 16777215"),
        ("5,,,1,1,-1\n", "column 'SchemeOfWorkId': row 2 is '-1', expected"),
        ("5,,,1,1,\n6,2020-02-30,,1,1,\n", f"'DateAnswered': row 3 is '2020-02-30', {DATE}"),
        ("5,2020-01-01 24:00,,1,1,\n", f"row 2 is '2020-01-01 24:00', {DATE}"),
        ("5,11/02/2020,,1,1,\n", f"row 2 is '11/02/2020', {DATE}"),
        ("5,1581430000,,1,1,\n", f"row 2 is '1581430000', {DATE}"),
        (
            "5,,,1,1,\n7,,,1,1,\n,,,2,2,\n\n7.0,,,2,2,\n,,,2,2,\n",
            "column 'AnswerId': row 6 repeats 7 of row 3 \\(1 such rows\\), expected each once",
        ),
        ("6.0,,,1,1,\n", "'AnswerId': holds none of the 1 asked for; the file belongs to other"),
        (",,,1,1,\n", "'AnswerId': holds none of the 1 asked for"),
        ("5.0,,25,1,1,\n6.0,2020-01-01,25.0,1,1,7", "row 3 has no line end; is the file cut off"),
        ("Answer,QuizId\n5,5\n", "column 'AnswerId' is missing, found: Answer, QuizId; is it"),
        ("AnswerId,Quiz\n5,5\n", "column 'DateAnswered' is missing, found: AnswerId, Quiz"),
    ],
)
def test_faulty_answer_metadata(write: Write, content: str, message: str) -> None:
    header = "" if content.startswith("Answer") else HEADER
    with pytest.raises(InputError, match=message):
        read_circumstances(write("metadata.csv", header + content), ids(5))


NUMBERS = st.integers(0, 40) | st.integers(2**31 - 40, 2**31 - 1)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    listed=st.lists(NUMBERS, unique=True, min_size=1),
    wanted=st.lists(NUMBERS | st.just(-1)),
)
def test_every_answer_gets_its_own_row(write: Write, listed: list[int], wanted: list[int]) -> None:
    """Ids that lie close together and ids far apart, which are found in different ways."""
    rows = "".join(f"{number},{place}\n" for place, number in enumerate(listed))
    path = write("metadata.csv", f"AnswerId,QuizId\n{rows}")
    wanted = [listed[0], *wanted]
    found = read_circumstances(path, ids(*wanted)).quiz
    expected = [listed.index(number) if number in listed else -1 for number in wanted]
    assert found.tolist() == expected


def test_real_answer_metadata(real_data: Path) -> None:
    """A part of the official file, beside pandas; it lacks DateAnswered and SchemeOfWorkId."""
    folder = real_data / "eedi_tasks_1_2_sample"
    answers = read_answers(folder / "train_data/train_task_1_2.csv", ids=True)
    assert answers.answer_id is not None
    path = folder / "metadata/answer_metadata_task_1_2_partial.csv"
    found = read_circumstances(path, answers.answer_id)
    frame = pd.read_csv(path).set_index("AnswerId").loc[answers.answer_id]
    assert np.array_equal(found.confidence, frame.Confidence, equal_nan=True)
    assert np.array_equal(found.quiz, frame.QuizId)
    assert np.array_equal(found.group, frame.GroupId)
    assert np.isnat(found.date_answered).all()
    assert (found.scheme == -1).all()
