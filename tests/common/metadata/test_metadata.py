"""Metadata of answers, students and subjects: joined by id, tolerant of gaps."""

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

READERS = pytest.mark.usefixtures("each_reader")
ANSWERS = "AnswerId,DateAnswered,Confidence,GroupId,QuizId,SchemeOfWorkId\n"
STUDENTS = "UserId,Gender,DateOfBirth,PremiumPupil\n"
TREE = "SubjectId,Name,ParentId,Level\n"
QUESTIONS = "QuestionId,SubjectId\n"
SUBJECTS = (
    f'\ufeff{TREE}9,Shape,3,1\n3,Maths,NULL,0\n8,"Angles, right",9.0,2\n7,Area,9,2\n1,Science,,0\n'
)


def ids(*numbers: int) -> npt.NDArray[np.int32]:
    return np.array(numbers, np.int32)


def same_dates(found: pd.Series, expected: list[str]) -> bool:
    return found.equals(pd.Series(np.array(expected, "datetime64[s]"), name=found.name))


@READERS
def test_answers_are_joined_by_id(write: Write) -> None:
    # Ids beyond float32's whole numbers, rows without an id, missing values, an answer not listed,
    # one asked for twice, one whose id is unknown.
    path = write(
        "metadata.csv",
        ANSWERS
        + "19834811.0,2020-02-29 14:05:00.000,75.0,3,8,\n"
        + ",2020-01-01 00:00:00.000,1.0,1,1,\n"
        + "19834812.0,,,4,,5.0\n"
        + ",2020-01-01 00:00:00.000,1.0,1,1,\n"
        + "7.0,2018-09-01 00:59:59.999,25.0,,9,\n",
    )
    found = metadata.read_circumstances(path, ids(7, 19834812, 8, 19834811, -1, 7, 2**31 - 1))
    dates = ["2018-09-01T00:59", "NaT", "NaT", "2020-02-29T14:05", "NaT", "2018-09-01T00:59", "NaT"]
    assert same_dates(found["DateAnswered"], dates)
    expected = [25, np.nan, np.nan, 75, np.nan, 25, np.nan]
    assert np.array_equal(found["Confidence"], expected, equal_nan=True)
    assert found["GroupId"].tolist() == [-1, 4, -1, 3, -1, -1, -1]
    assert found["QuizId"].tolist() == [9, -1, -1, 8, -1, 9, -1]
    assert found["SchemeOfWorkId"].tolist() == [-1, 5, -1, -1, -1, -1, -1]


@READERS
def test_columns_that_are_not_there_are_not_known_but_those_named_must_be(write: Write) -> None:
    path = write("metadata.csv", b"\xef\xbb\xbfQuizId,AnswerId\r\n8,5\r\n,6\r\n")
    found = metadata.read_circumstances(path, ids(6, 5))
    assert found["QuizId"].tolist() == [-1, 8]
    assert found[["DateAnswered", "Confidence"]].isna().all(axis=None)
    assert found["GroupId"].tolist() == found["SchemeOfWorkId"].tolist() == [-1, -1]
    with pytest.raises(InputError, match="column 'Confidence' is missing"):
        metadata.read_circumstances(path, ids(5), columns=[schema.QUIZ_ID, schema.CONFIDENCE])
    # What is not asked for may hold anything.
    path = write("metadata.csv", "AnswerId,QuizId,GroupId\n5,8,none\n")
    found = metadata.read_circumstances(path, ids(5), columns=[schema.QUIZ_ID])
    assert (found["QuizId"].tolist(), found["GroupId"].tolist()) == ([8], [-1])


@with_links
def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    """It is a fault, which the reader reports."""
    path = tmp_path / "metadata.csv"
    path.with_name("link.csv").symlink_to("nowhere")
    assert metadata.find(path.parent, "link.csv") and not metadata.find(path.parent, "no.csv")


NUMBERS = st.integers(0, 40) | st.integers(2**31 - 40, 2**31 - 1)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(listed=st.lists(NUMBERS, unique=True, min_size=1), wanted=st.lists(NUMBERS | st.just(-1)))
def test_every_answer_gets_its_own_row(write: Write, listed: list[int], wanted: list[int]) -> None:
    """Ids that lie close together and ids far apart, which are found in different ways."""
    rows = "".join(f"{number},{place}\n" for place, number in enumerate(listed))
    path = write("metadata.csv", f"AnswerId,QuizId\n{rows}")
    wanted = [listed[0], *wanted]
    found = metadata.read_circumstances(path, ids(*wanted))["QuizId"]
    expected = [listed.index(number) if number in listed else -1 for number in wanted]
    assert found.tolist() == expected


@READERS
def test_dates_of_birth_in_any_way_and_nonsense(write: Write) -> None:
    # The last two pyarrow alone does not read: more digits than its type holds, spaces.
    dates = ["1998-01-01", "2014-12-31 23:59", "2010-03-01T23:59:59"]
    dates += ["2000-02-29 23:59:00.0000000", " 2010-03-01 23:59:01 "]
    nonsense = ["", "1756-03-01", "1997-12-31", "2015-01-01", "9999-12-01"]
    rows = "".join(f"{n},{n % 4},{date},1.0\n" for n, date in enumerate([*dates, *nonsense]))
    found = metadata.read_student_metadata(write("students.csv", STUDENTS + rows), np.arange(11))
    assert same_dates(found["DateOfBirth"], [*(date.strip()[:10] for date in dates), *["NaT"] * 6])
    assert found["Gender"].tolist() == [0, 1, 2, 3, 0, 1, 2, 3, 0, 1, -1]


def test_subjects_of_questions(write: Write) -> None:
    subjects = write("subject_metadata.csv", SUBJECTS)
    tree = metadata.read_subject_tree(subjects)
    assert tree["SubjectId"].tolist() == [1, 3, 7, 8, 9]
    assert tree["Name"].tolist() == ["Science", "Maths", "Area", "Angles, right", "Shape"]
    assert tree["parent"].tolist() == [-1, -1, 4, 4, 1]
    assert tree["Level"].tolist() == [0, 0, 2, 2, 1]
    path = write(
        "question_metadata_task_3_4.csv", QUESTIONS + '4,"[3, 9, 7]"\n2,"[3,8, 9,7]"\n9,[3]\n'
    )
    wanted = ids(2, 5, 9, 4, 9)
    found = metadata.read_question_subjects(path, wanted)
    assert found["subject"].tolist() == [3, 8, 9, 7, 3, 3, 9, 7, 3]
    assert found["row"].tolist() == [0, 0, 0, 0, 2, 3, 3, 3, 4]
    placed = metadata.read_question_subjects(path, wanted, tree)
    assert tree["SubjectId"][placed["subject"]].tolist() == found["subject"].tolist()
    assert placed["row"].equals(found["row"])
    # The most specific ones.
    names = metadata.name_subjects(path.parent, wanted)
    assert names == ["Angles, right, Area", "", "Maths", "Area", "Maths"]
    subjects.unlink()
    assert metadata.name_subjects(path.parent, wanted) == [""] * 5


DATE = "expected a date such as 2020-02-11 14:05:00.000 or nothing"
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
    "": [
        ("Answer,QuizId\n5,5\n", "column 'AnswerId' is missing, found: Answer, QuizId; is it"),
        ("AnswerId,Quiz\n5,5\n", "column 'DateAnswered' is missing, found: AnswerId, Quiz"),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("header", "rows", "message"),
    [(header, *fault) for header, faults in FAULTS.items() for fault in faults],
)
@READERS
def test_faults_are_named(write: Write, header: str, rows: str, message: str) -> None:
    path = write("faulty.csv", header + rows)
    with pytest.raises(InputError, match=f"faulty.csv: .*{message}"):
        if header == TREE:
            metadata.read_subject_tree(path)
        elif header == QUESTIONS:
            tree = metadata.read_subject_tree(write("subject_metadata.csv", SUBJECTS))
            metadata.read_question_subjects(path, ids(4), tree)
        elif header == STUDENTS:
            metadata.read_student_metadata(path, ids(4, 5))
        else:
            metadata.read_circumstances(path, ids(4, 5))


@pytest.mark.parametrize("tasks", ["1_2_sample", "3_4"])
def test_real_students_and_subjects(real_data: Path, tasks: str) -> None:
    """Official files beside pandas; the lists hold every subject on the way to the root."""
    folder = real_data / f"eedi_tasks_{tasks}" / "metadata"
    path = folder / f"student_metadata_task_{tasks[:3]}.csv"
    frame = pd.read_csv(path, dtype={"DateOfBirth": str}).sort_values("UserId")
    students = metadata.read_student_metadata(path, frame.UserId.to_numpy())
    assert np.array_equal(students["Gender"], frame.Gender)
    assert np.array_equal(students["PremiumPupil"], frame.PremiumPupil.fillna(-1))
    date = frame.DateOfBirth.str[:10]
    is_known = date.str[:4].fillna("0").astype(int).between(1998, 2014)
    assert same_dates(students["DateOfBirth"], [*date.where(is_known, "NaT")])

    tree = metadata.read_subject_tree(folder / "subject_metadata.csv")
    assert len(tree) == 388
    path = folder / f"question_metadata_task_{tasks[:3]}.csv"
    frame = pd.read_csv(path)
    found = metadata.read_question_subjects(path, frame.QuestionId.to_numpy(), tree)
    assert found["row"].value_counts(sort=False).tolist() == [
        len(text.split(",")) for text in frame.SubjectId
    ]
    pairs = {*found[["row", "subject"]].itertuples(index=False, name=None)}
    found["parent"] = found["subject"].map(tree["parent"])
    above = found[["row", "parent"]].itertuples(index=False, name=None)
    assert {(row, parent) for row, parent in above if parent >= 0} <= pairs
