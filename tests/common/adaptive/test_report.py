"""The page of task 4: questions are shown with the names of their subjects."""

from collections.abc import Callable
from pathlib import Path

import pytest

from common.errors import InputError
from common.metadata import name_subjects

Write = Callable[[str, str | bytes], Path]

SUBJECTS = (
    "\ufeffSubjectId,Name,ParentId,Level\n3,Maths,NULL,0\n9,Shape,3,1\n7,Area,9,2\n8,Angles,9,2\n"
)


def test_the_most_specific_subjects(write: Write) -> None:
    subjects = write("subject_metadata.csv", SUBJECTS)
    questions = write("q.csv", 'QuestionId,SubjectId\n5,"[3, 9, 7]"\n2,"[3, 8, 9, 7]"\n4,[3]\n')
    assert name_subjects(questions, subjects) == {5: "Area", 2: "Angles, Area", 4: "Maths"}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('5,"[3, 10]"', r"QuestionId 5 has the subject 10, expected one of subject_metadata.csv"),
        ("5,Maths", r"column 'SubjectId': row 2 is 'Maths', expected a list"),
    ],
)
def test_faulty_subjects(write: Write, text: str, fault: str) -> None:
    subjects = write("subject_metadata.csv", SUBJECTS)
    questions = write("q.csv", f"QuestionId,SubjectId\n{text}\n")
    with pytest.raises(InputError, match=fault):
        name_subjects(questions, subjects)
