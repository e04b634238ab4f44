"""The tree of subjects, and the subjects of questions."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from common.errors import InputError
from common.metadata import name_subjects, read_question_subjects, read_subject_tree

Write = Callable[[str, str | bytes], Path]
HEADER = "SubjectId,Name,ParentId,Level\n"
SUBJECTS = (
    f"\ufeff{HEADER}9,Shape,3,1\n3,Maths,NULL,0\n"
    '8,"Angles, right",9.0,2\n7,Area,9,2\n1,Science,,0\n'
)


def test_the_tree_is_in_order_of_its_ids(write: Write) -> None:
    tree = read_subject_tree(write("subject_metadata.csv", SUBJECTS))
    assert tree.ids.tolist() == [1, 3, 7, 8, 9]
    assert tree.names == ["Science", "Maths", "Area", "Angles, right", "Shape"]
    assert tree.parent.tolist() == [-1, -1, 4, 4, 1]
    assert tree.level.tolist() == [0, 0, 2, 2, 1]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("3,Maths,NULL,0\n9,Shape,4,1\n", "'ParentId': row 3 is 4, which is no SubjectId of this"),
        ("3,Maths,none,0\n", "'ParentId': row 2 is 'none', expected a SubjectId or NULL"),
        ("3,Maths,NULL,0\n9,Shape,3,2\n", "'Level': row 3 is 2, expected 1 for one below"),
        ("3,Maths,NULL,1\n", "'Level': row 2 is 1, expected 0 for a root"),
        ("3,Maths,9,1\n9,Shape,3,1\n", "'Level': row 2 is 1, expected 2 for one below SubjectId 9"),
        ("3,Maths,3,0\n", "'Level': row 2 is 0, expected 1 for one below SubjectId 3"),
        ("3,Maths,NULL,0\n3,Shape,3,1\n", "'SubjectId': row 3 repeats 3 of row 2"),
        ("3,Maths,NULL,0\n9,Shape,3,1", "row 3 has no line end"),
        ("3,,NULL,0\n", "'Name': row 2 is empty"),
    ],
)  # fmt: skip
def test_faulty_trees(write: Write, rows: str, message: str) -> None:
    with pytest.raises(InputError, match=f"subject_metadata.csv: .*{message}"):
        read_subject_tree(write("subject_metadata.csv", HEADER + rows))


def test_subjects_of_questions(write: Write) -> None:
    path = write(
        "questions.csv",
        'QuestionId,SubjectId\n4,"[3, 9, 7]"\n2,"[3,8, 9,7]"\n9,[3]\n',
    )
    found = read_question_subjects(path, np.array([2, 5, 9, 4, 9]))
    assert found.start.tolist() == [0, 4, 4, 5, 8, 9]
    assert found.subject.tolist() == [3, 8, 9, 7, 3, 3, 9, 7, 3]
    assert found.count.tolist() == [4, 0, 1, 3, 1]
    assert found.row.tolist() == [0, 0, 0, 0, 2, 3, 3, 3, 4]
    tree = read_subject_tree(write("subject_metadata.csv", SUBJECTS))
    placed = read_question_subjects(path, np.array([2, 5, 9, 4, 9]), tree)
    assert np.array_equal(tree.ids[placed.subject], found.subject)
    assert np.array_equal(placed.start, found.start)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ('4,"[]"\n', r"row 2 is '\[\]', expected a list"),
        ('4,"[3]"\n5,"3, 71"\n', "column 'SubjectId': row 3 is '3, 71', expected a list"),
        ('4,"[3]"\n4,"[3]"\n', "column 'QuestionId': row 3 repeats 4 of row 2"),
        ('4,"[3]"\n\n\n5,"[3, ]"\n', r"column 'SubjectId': row 5 is '\[3, \]', expected a list"),
        (f'4,"[{"9" * 5000}]"\n', rf"row 2 is '\[{'9' * 78}…', expected a list"),
        ('4,"[\u0663]"\n', "row 2 is '\\[\u0663\\]', expected a list"),
        ('4,"[3]"\n5,"[3]"', "row 3 has no line end; is the file cut off"),
        ('4,"[3]"\n\n6,"[3, 9, 71]"\n7,"[72]"\n', "row 4 holds 71, which is not in the tree"),
        ('5,"[3]"\n', "column 'QuestionId': holds none of the 1 asked for"),
    ],
)
def test_faulty_subjects(write: Write, rows: str, message: str) -> None:
    tree = read_subject_tree(write("subject_metadata.csv", SUBJECTS))
    path = write("questions.csv", "QuestionId,SubjectId\n" + rows)
    with pytest.raises(InputError, match=message):
        read_question_subjects(path, np.array([4]), tree)


def test_the_most_specific_subjects(write: Write) -> None:
    subjects = write("subject_metadata.csv", SUBJECTS)
    questions = write("q.csv", 'QuestionId,SubjectId\n5,"[3, 9, 7]"\n2,"[3, 8, 9, 7]"\n4,[3]\n')
    names = name_subjects(questions, subjects, np.array([4, 5, 3, 2]))
    assert names == ["Maths", "Area", "", "Angles, right, Area"]


@pytest.mark.parametrize("tasks", ["1_2_sample", "3_4"])
def test_real_subjects(real_data: Path, tasks: str) -> None:
    """The official lists hold every subject on the way to the root."""
    folder = real_data / f"eedi_tasks_{tasks}" / "metadata"
    tree = read_subject_tree(folder / "subject_metadata.csv")
    assert len(tree.ids) == 388
    path = folder / f"question_metadata_task_{tasks[:3]}.csv"
    frame = pd.read_csv(path)
    found = read_question_subjects(path, frame.QuestionId.to_numpy(), tree)
    assert found.count.tolist() == [len(text.split(",")) for text in frame.SubjectId]
    pairs = set(zip(found.row.tolist(), found.subject.tolist(), strict=True))
    above = tree.parent[found.subject]
    assert {
        (row, parent)
        for row, parent in zip(found.row.tolist(), above.tolist(), strict=True)
        if parent >= 0
    } <= pairs
