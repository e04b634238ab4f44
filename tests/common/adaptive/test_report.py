"""The page of task 4: the curve is drawn to scale, questions go by the names of their subjects."""

from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import InputError
from common.metadata import name_subjects
from common.scores.charts import line_chart

Write = Callable[[str, str | bytes], Path]
shares = st.floats(0, 1)


def points_of(line: ElementTree.Element) -> np.ndarray:
    return np.array([point.split(",") for point in line.attrib["points"].split()], float)


@given(own=st.lists(shares, min_size=11, max_size=11), other=st.lists(shares, min_size=11))
def test_lines_are_drawn_to_scale(own: list[float], other: list[float]) -> None:
    chart = line_chart("<own>", own, "other", other[:11], label="Test", axis="steps")
    svg = ElementTree.fromstring(chart)
    lines = {line.attrib["class"]: points_of(line) for line in svg.iter("polyline")}
    assert set(lines) == {"line", "thin"}
    labels = [text for text in svg.iter("text") if "." in (text.text or "")]
    ticks = np.array([[float(text.attrib["y"]), float(text.text or "")] for text in labels])
    slope, offset = np.polyfit(ticks[:, 0], ticks[:, 1], 1)
    # A tenth of a unit is all that the drawing rounds away.
    tolerance = 0.11 * abs(slope)
    assert np.allclose(slope * lines["line"][:, 1] + offset, own, atol=tolerance)
    assert np.allclose(slope * lines["thin"][:, 1] + offset, other[:11], atol=tolerance)
    assert np.allclose(np.diff(lines["line"][:, 0]), np.diff(lines["line"][:, 0])[0], atol=0.11)
    assert lines["line"][:, 1].min() >= 0
    assert ticks[:, 1].min() <= min(own) + 1e-9
    names = {text.text: float(text.attrib["y"]) for text in svg.iter("text")}
    assert abs(names["<own>"] - names["other"]) >= 15.9


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
