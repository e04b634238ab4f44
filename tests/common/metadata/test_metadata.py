"""Metadata of answers, students and questions are joined by id; their faults are named."""

from pathlib import Path

from common import metadata, schema
from common.errors import InputError

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from conftest import Write
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from platforms import with_links

# A test with this mark runs twice: pandas reads the CSV files in one run, and pyarrow in the other.
READERS = pytest.mark.usefixtures("each_reader")
# Header lines of the four kinds of files.
ANSWERS = "AnswerId,DateAnswered,Confidence,GroupId,QuizId,SchemeOfWorkId\n"
STUDENTS = "UserId,Gender,DateOfBirth,PremiumPupil\n"
TREE = "SubjectId,Name,ParentId,Level\n"
QUESTIONS = "QuestionId,SubjectId\n"
SUBJECTS = (
    f'\ufeff{TREE}9,Shape,3,1\n3,Maths,NULL,0\n8,"Angles, right",9.0,2\n7,Area,9,2\n1,Science,,0\n'
)


def ids(*numbers: int) -> npt.NDArray[np.int32]:
    return np.array(numbers, np.int32)


def is_dates(values: pd.Series, expected: list[str]) -> bool:
    """Return whether a column holds these dates; "NaT" stands for a missing date."""
    return values.equals(pd.Series(np.array(expected, "datetime64[s]"), name=values.name))


@READERS
def test_circumstances_of_answers_are_joined_by_id(write: Write) -> None:
    """Circumstances are metadata of an answer, such as its date, quiz and class.

    The result has a row for each AnswerId in `wanted`, in this order. Without a value, an id is
    read as -1, a date as NaT, and a confidence as NaN.
    """
    # The file holds ids that float32 cannot represent, rows without an id, and missing values.
    path = write(
        "metadata.csv",
        ANSWERS
        + "19834811.0,2020-02-29 14:05:00.000,75.0,3,8,\n"
        + ",2020-01-01 00:00:00.000,1.0,1,1,\n"
        + "19834812.0,,,4,,5.0\n"
        + ",2020-01-01 00:00:00.000,1.0,1,1,\n"
        + "7.0,2018-09-01 00:59:59.999,25.0,,9,\n",
    )
    # The file does not list these two ids, a small one and a large one.
    small = 8
    large = 2**31 - 1
    no_id = -1
    wanted = ids(small, 7, 19834812, no_id, 19834811, large, 7)
    found = metadata.read_circumstances(path, wanted)

    nan = np.nan
    dates = ["NaT", "2018-09-01T00:59", "NaT", "NaT", "2020-02-29T14:05", "NaT", "2018-09-01T00:59"]
    assert is_dates(found["DateAnswered"], dates)
    confidence = [nan, 25, nan, nan, 75, nan, 25]
    assert np.array_equal(found["Confidence"], confidence, equal_nan=True)
    assert found["GroupId"].tolist() == [-1, -1, 4, -1, 3, -1, -1]
    assert found["QuizId"].tolist() == [-1, 9, -1, -1, 8, -1, 9]
    assert found["SchemeOfWorkId"].tolist() == [-1, -1, 5, -1, -1, -1, -1]


# A spreadsheet writes such a file: a byte order mark at the beginning, and line ends of Windows.
QUIZZES = b"\xef\xbb\xbfQuizId,AnswerId\r\n8,5\r\n,6\r\n"


@READERS
def test_values_of_missing_columns_are_unknown(write: Write) -> None:
    path = write("metadata.csv", QUIZZES)
    found = metadata.read_circumstances(path, ids(6, 5))
    assert found["QuizId"].tolist() == [-1, 8]
    assert found[["DateAnswered", "Confidence"]].isna().all(axis=None)
    assert found["GroupId"].tolist() == [-1, -1]
    assert found["SchemeOfWorkId"].tolist() == [-1, -1]


@READERS
def test_columns_that_are_asked_for_must_be_there(write: Write) -> None:
    path = write("metadata.csv", QUIZZES)
    with pytest.raises(InputError, match="column 'Confidence' is missing"):
        metadata.read_circumstances(path, ids(5), columns=[schema.QUIZ_ID, schema.CONFIDENCE])


@READERS
def test_columns_that_are_not_asked_for_may_hold_anything(write: Write) -> None:
    path = write("metadata.csv", "AnswerId,QuizId,GroupId\n5,8,none\n")
    found = metadata.read_circumstances(path, ids(5), columns=[schema.QUIZ_ID])
    assert found["QuizId"].tolist() == [8]
    assert found["GroupId"].tolist() == [-1]


@with_links
def test_a_link_that_leads_nowhere_is_found_so_that_its_reader_reports_it(tmp_path: Path) -> None:
    (tmp_path / "link.csv").symlink_to("nowhere")
    assert metadata.find(tmp_path, "link.csv")
    assert not metadata.find(tmp_path, "no.csv")


# Small and large ids. `answers.find_rows` looks ids up in a table if all of them are small, and by
# binary search otherwise.
NUMBERS = st.integers(0, 40) | st.integers(2**31 - 40, 2**31 - 1)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(listed=st.lists(NUMBERS, unique=True, min_size=1), wanted=st.lists(NUMBERS | st.just(-1)))
def test_every_answer_gets_its_own_row(write: Write, listed: list[int], wanted: list[int]) -> None:
    # The QuizId of an answer is the number of its row in the file, from 0.
    rows = "".join(f"{answer_id},{row}\n" for row, answer_id in enumerate(listed))
    path = write("metadata.csv", f"AnswerId,QuizId\n{rows}")
    # At least one of the ids must be listed, otherwise the file is refused.
    wanted = [listed[0], *wanted]

    found = metadata.read_circumstances(path, ids(*wanted))["QuizId"]

    expected = [listed.index(answer_id) if answer_id in listed else -1 for answer_id in wanted]
    assert found.tolist() == expected


# Dates of birth as a file has them, and as they are read.
DATES = [
    ("1998-01-01", "1998-01-01"),
    ("2014-12-31 23:59", "2014-12-31"),
    ("2010-03-01T23:59:59", "2010-03-01"),
    # pyarrow's own reader refuses a date with seven decimal places of a second.
    ("2000-02-29 23:59:00.0000000", "2000-02-29"),
    # pyarrow's own reader refuses spaces around a date.
    (" 2010-03-01 23:59:01 ", "2010-03-01"),
    ("", "NaT"),
    # Nobody born in these years is at school in 2020.
    ("1756-03-01", "NaT"),
    ("1997-12-31", "NaT"),
    ("2015-01-01", "NaT"),
    ("9999-12-01", "NaT"),
]


@READERS
@pytest.mark.parametrize(("date", "expected"), DATES)
def test_dates_of_birth_are_read_and_impossible_ones_are_unknown(
    write: Write, date: str, expected: str
) -> None:
    # The second row holds an ordinary date, because every real column of dates holds some.
    path = write("students.csv", f"{STUDENTS}0,1,{date},1.0\n1,1,2005-05-05,1.0\n")
    found = metadata.read_student_metadata(path, np.arange(2))
    assert is_dates(found["DateOfBirth"], [expected, "2005-05-05"])


@READERS
def test_dates_of_birth_in_different_forms_are_read_from_one_column(write: Write) -> None:
    rows = ""
    for student, (date, _) in enumerate(DATES):
        gender = student % 4
        rows += f"{student},{gender},{date},1.0\n"
    path = write("students.csv", STUDENTS + rows)
    unlisted_student = len(DATES)
    found = metadata.read_student_metadata(path, np.arange(unlisted_student + 1))
    expected_dates = [expected for _, expected in DATES]
    assert is_dates(found["DateOfBirth"], [*expected_dates, "NaT"])
    assert found["Gender"].tolist() == [0, 1, 2, 3, 0, 1, 2, 3, 0, 1, -1]


def test_the_tree_of_subjects_is_sorted_by_id_with_the_rows_of_parents(write: Write) -> None:
    tree = metadata.read_subject_tree(write("subject_metadata.csv", SUBJECTS))
    assert tree["SubjectId"].tolist() == [1, 3, 7, 8, 9]
    assert tree["Name"].tolist() == ["Science", "Maths", "Area", "Angles, right", "Shape"]
    assert tree["parent"].tolist() == [-1, -1, 4, 4, 1]
    assert tree["Level"].tolist() == [0, 0, 2, 2, 1]


@pytest.fixture
def question_file(write: Write) -> Path:
    """Write the tree of subjects, and a file of the subjects of questions 4, 2 and 9."""
    write("subject_metadata.csv", SUBJECTS)
    rows = '4,"[3, 9, 7]"\n2,"[3,8, 9,7]"\n9,[3]\n'
    return write("question_metadata_task_3_4.csv", QUESTIONS + rows)


# Question 5 is not listed, and question 9 is asked for twice.
ASKED_QUESTIONS = ids(2, 5, 9, 4, 9)


def test_each_question_that_is_asked_for_gets_a_row_for_each_subject(question_file: Path) -> None:
    found = metadata.read_question_subjects(question_file, ASKED_QUESTIONS)
    assert found["subject"].tolist() == [3, 8, 9, 7, 3, 3, 9, 7, 3]
    assert found["row"].tolist() == [0, 0, 0, 0, 2, 3, 3, 3, 4]


def test_with_a_tree_subjects_are_given_as_its_rows(question_file: Path) -> None:
    by_id = metadata.read_question_subjects(question_file, ASKED_QUESTIONS)
    tree = metadata.read_subject_tree(question_file.with_name("subject_metadata.csv"))
    by_row = metadata.read_question_subjects(question_file, ASKED_QUESTIONS, tree)
    assert tree["SubjectId"][by_row["subject"]].tolist() == by_id["subject"].tolist()
    assert by_row["row"].equals(by_id["row"])


def test_questions_are_named_by_their_most_specific_subjects(question_file: Path) -> None:
    names = metadata.name_subjects(question_file.parent, ASKED_QUESTIONS)
    assert names == ["Angles, right, Area", "", "Maths", "Area", "Maths"]


def test_without_a_tree_questions_have_no_names(question_file: Path) -> None:
    question_file.with_name("subject_metadata.csv").unlink()
    assert metadata.name_subjects(question_file.parent, ASKED_QUESTIONS) == [""] * 5


# ---- Faults ------------------------------------------------------------------------------------

DATE = "expected a date such as 2020-02-11 14:05:00.000 or nothing"
# The key is the header of a kind of file. Each case holds the rows below the header, and the error
# message.
FAULTS = {
    ANSWERS: [
        ("5.0,,101,1,1,\n", "column 'Confidence': row 2 is '101', expected a number from 0 to 100"),
        ("5,,,1,16777217,\n", "column 'QuizId': row 2 is '16777217', expected .* to 16777215"),
        ("5,,,1,1,\n6,29/02/2020,,1,1,\n", f"'DateAnswered': row 3 is '29/02/2020', {DATE}"),
        ("5,2020-01-01 24:00,,1,1,\n", f"row 2 is '2020-01-01 24:00', {DATE}"),
        ("7,,,1,1,\n,,,2,2,\n\n7.0,,,2,2,\n,,,2,2,\n", "'AnswerId': row 5 repeats 7 of row 2, exp"),
        ("6.0,,,1,1,\n", "'AnswerId': holds none of the 2 asked for; the file belongs to other"),
        ("5.0,,25,1,1,\n6.0,2020-01-01,25.0,1,1,7", "row 3 has no line end; is the file cut off"),
    ],
    STUDENTS: [
        ("4,4,,\n", "column 'Gender': row 2 is '4', expected a whole number from 0 to 3"),
    ],
    TREE: [
        ("3,Maths,NULL,0\n9,Shape,4,1\n", "'ParentId': row 3 is 4, which is no SubjectId of this"),
        ("3,Maths,none,0\n", "'ParentId': row 2 is 'none', expected a SubjectId or NULL"),
        ("3,Maths,NULL,0\n9,Shape,3,2\n", "'Level': row 3 is 2, expected 1 for one below"),
        ("3,Maths,3,0\n", "'Level': row 2 is 0, expected 1 for one below SubjectId 3"),
    ],
    QUESTIONS: [
        ('4,"[3]"\n5,"3, 71"\n', "column 'SubjectId': row 3 is '3, 71', expected a list"),
        ('4,"[3]"\n\n\n5,"[3, ]"\n', r"column 'SubjectId': row 5 is '\[3, \]', expected a list"),
        (f'4,"[{"9" * 5000}]"\n', rf"row 2 is '\[{'9' * 78}…', expected a list"),
        ('4,"[3]"\n\n6,"[3, 9, 71]"\n7,"[72]"\n', "row 4 holds 71, which is not in the tree"),
    ],
    # Here the header itself is faulty, so the key is empty and each case is a whole file.
    "": [
        ("Answer,QuizId\n5,5\n", "column 'AnswerId' is missing, found: Answer, QuizId; is it"),
        ("AnswerId,Quiz\n5,5\n", "column 'DateAnswered' is missing, found: AnswerId, Quiz"),
    ],
}  # fmt: skip


FAULT_CASES = []
for file_header, faults in FAULTS.items():
    FAULT_CASES += [(file_header, rows, message) for rows, message in faults]


@pytest.mark.parametrize(("header", "rows", "message"), FAULT_CASES)
@READERS
def test_a_fault_is_told_with_its_row_and_value(
    write: Write, header: str, rows: str, message: str
) -> None:
    """A file with a header and some rows has one fault, which the message names.

    The header shows the kind of file, and so which function must read it. In the cases without a
    header, the file holds metadata of answers, and `rows` begins with its header.
    """
    path = write("faulty.csv", header + rows)
    tree = metadata.read_subject_tree(write("subject_metadata.csv", SUBJECTS))
    with pytest.raises(InputError, match=f"faulty.csv: .*{message}"):
        if header == STUDENTS:
            metadata.read_student_metadata(path, ids(4, 5))
        elif header == QUESTIONS:
            # Only question 4 is asked for, but faults in the rows of other questions are reported,
            # too.
            metadata.read_question_subjects(path, ids(4), tree)
        elif header == TREE:
            metadata.read_subject_tree(path)
        else:
            metadata.read_circumstances(path, ids(4, 5))


@pytest.mark.parametrize("tasks", ["1_2_sample", "3_4"])
def test_official_student_metadata_are_read_as_by_pandas(real_data: Path, tasks: str) -> None:
    folder = real_data / f"eedi_tasks_{tasks}" / "metadata"
    path = folder / f"student_metadata_task_{tasks[:3]}.csv"
    frame = pd.read_csv(path, dtype={"DateOfBirth": str}).sort_values("UserId")
    students = metadata.read_student_metadata(path, frame.UserId.to_numpy())
    assert np.array_equal(students["Gender"], frame.Gender)
    assert np.array_equal(students["PremiumPupil"], frame.PremiumPupil.fillna(-1))
    date = frame.DateOfBirth.str[:10]
    is_known = date.str[:4].fillna("0").astype(int).between(1998, 2014)
    assert is_dates(students["DateOfBirth"], [*date.where(is_known, "NaT")])


@pytest.mark.parametrize("tasks", ["1_2_sample", "3_4"])
def test_official_questions_have_the_parents_of_their_subjects_too(
    real_data: Path, tasks: str
) -> None:
    """The kit reads the subjects of the official questions, and all parents of these subjects."""
    folder = real_data / f"eedi_tasks_{tasks}" / "metadata"
    tree = metadata.read_subject_tree(folder / "subject_metadata.csv")
    assert len(tree) == 388
    # `tasks` is for instance "1_2_sample" or "3_4". The pair of tasks is "1_2" or "3_4".
    pair_of_tasks = tasks[:3]
    path = folder / f"question_metadata_task_{pair_of_tasks}.csv"
    frame = pd.read_csv(path)

    found = metadata.read_question_subjects(path, frame.QuestionId.to_numpy(), tree)

    # Every listed subject is found. `found` has a row for each subject of a question. Its column
    # "row" is the position of the question in the file, and its column "subject" is the position of
    # the subject in the tree.
    assert found["row"].is_monotonic_increasing
    n_subjects_found = found.groupby("row").size().tolist()
    n_subjects_listed = [len(text.split(",")) for text in frame.SubjectId]
    assert n_subjects_found == n_subjects_listed
    # If a question has a subject, it also has the subject's parent. The root has no parent (-1).
    pairs = {*zip(found["row"], found["subject"], strict=True)}
    parent_of_subject = tree["parent"].to_numpy()
    for question, subject in pairs:
        parent = parent_of_subject[subject]
        assert parent == -1 or (question, parent) in pairs
