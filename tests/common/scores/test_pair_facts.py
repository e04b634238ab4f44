"""What is known about pairs: counted from the training answers, joined with the metadata."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from common import schema
from common.io import file_source
from common.scores import pair_groups
from common.scores.breakdown import Scored
from common.scores.pair_facts import QUIZ_GROUPS, PairFacts, Place, are_among, read_facts
from common.submission import read_pair_values

Write = Callable[[str, str], Path]

REFERENCE = """QuestionId,UserId,AnswerId,IsCorrect,CorrectAnswer,AnswerValue
20,5,100,1,2,2
30,5,101,0,3,1
20,6,102,0,2,4
40,7,103,1,1,1
"""
# Question 20: two of three right. Question 30: one of two, and option 4 as often as 3. Question 50
# is not asked for. Of all six answers four are right.
TRAIN = """QuestionId,UserId,AnswerId,IsCorrect,CorrectAnswer,AnswerValue
20,7,0,1,2,2
20,8,1,1,2,2
20,9,2,0,2,4
30,5,3,0,3,4
30,6,4,1,3,3
50,5,5,1,1,1
"""
# Student 5 answered 3 (training) and 101 in quiz 11; quiz 12 is known from others alone.
QUIZZES = """AnswerId,QuizId
0,12.0
3.0,11
4,
5,13
100,12
101,11
102,
,11
"""
QUESTIONS = """QuestionId,SubjectId
20,"[1, 2, 4]"
30,"[1, 2, 3, 4, 5]"
50,"[1, 3]"
"""
SUBJECTS = """SubjectId,Name,ParentId,Level
1,Maths,NULL,0
2,Number,1,1
3,Algebra,1,1
4,Adding,2,2
5,Solving,3,2
"""
STUDENTS = """UserId,Gender,DateOfBirth,PremiumPupil
5,1,2006-09-01 00:00:00.000,1.0
6,2,2006-10-01 00:00:00.000,
8,0,,0.0
"""
METADATA = {
    "answer_metadata_task_1_2.csv": QUIZZES,
    "question_metadata_task_1_2.csv": QUESTIONS,
    "student_metadata_task_1_2.csv": STUDENTS,
    "subject_metadata.csv": SUBJECTS,
}


@pytest.fixture
def folder(write: Write, tmp_path: Path) -> Path:
    write("data/valid.csv", REFERENCE)
    write("data/train.csv", TRAIN)
    for name, text in METADATA.items():
        write(f"metadata/{name}", text)
    return tmp_path


def read(folder: Path, task: int) -> PairFacts:
    place = Place(folder / "data/valid.csv", folder / "data/train.csv", folder / "metadata")
    column = schema.PREDICTED_COLUMN[task]
    return read_facts(place, read_pair_values(file_source(place.reference), column), task)


@pytest.mark.parametrize("task", [1, 2])
def test_training_answers_are_counted(folder: Path, task: int) -> None:
    facts = read(folder, task)
    assert facts.left_out == []
    assert facts.student_ids[facts.student].tolist() == [5, 5, 6, 7]
    assert facts.question_ids[facts.question].tolist() == [20, 30, 20, 40]
    training = facts.training
    assert training is not None
    assert training.n_of_student.tolist() == [2, 2, 1, 1]
    assert training.n_of_question.tolist() == [3, 2, 3, 0]
    assert training.share_right.tolist() == pytest.approx([2 / 3, 0.5, 2 / 3, np.nan], nan_ok=True)
    # A tie, and a question that nobody answered, go by all answers; of options the smaller wins.
    assert training.majority.tolist() == ([1, 1, 1, 1] if task == 1 else [2, 3, 2, 2])
    correct = training.correct_option
    assert correct is None if task == 1 else correct.tolist() == [2, 3, 2, 0]
    # A quiz is known by other answers of the same student.
    assert [QUIZ_GROUPS[k] for k in np.asarray(facts.quiz)] == [
        "no other answer in the quiz known",
        "other answers in the quiz known",
        *["quiz not known"] * 2,
    ]


def scored(facts: PairFacts, right: list[bool]) -> Scored:
    return Scored(facts.student, facts.question, np.array(right))


def test_subjects_and_students_are_joined(folder: Path) -> None:
    facts = read(folder, 1)
    answers = scored(facts, [True, False, False, True])
    parts = pair_groups.break_down(answers, facts)
    by_title = {part.title: {g.name: (g.n_answers, g.accuracy) for g in part.groups}
                for part in parts}  # fmt: skip
    # Question 30 is about both, and question 40 about nothing that is known.
    assert by_title["By subject"] == {"Number": (3, 1 / 3), "Algebra": (1, 0)}
    assert by_title["By subject, one level further down"] == {
        "Adding": (3, 1 / 3), "Solving": (1, 0),
    }  # fmt: skip
    assert by_title["By difficulty of the question"] == {
        "50 to 60 %": (1, 0), "60 to 70 %": (2, 0.5), "not known": (1, 1),
    }  # fmt: skip
    assert [{g.name: (g.n_students, g.n_answers, g.accuracy) for g in part.groups}
            for part in pair_groups.subgroups(answers, facts)] == [
        {"female": (1, 2, 0.5), "male": (1, 1, 0), "not listed": (1, 1, 1)},
        {"entitled": (1, 2, 0.5), "not known": (2, 2, 0.5)},
        # Born in September 2006: thirteen on the day; in October: not yet.
        {"12": (1, 1, 0), "13": (1, 2, 0.5), "not known": (1, 1, 1)},
    ]  # fmt: skip


def test_rare_subjects_go_together(folder: Path, write: Write) -> None:
    """Twelve of 14 are named, most answers first; a question counts in those that are named."""
    pairs = [f"{100 + k},{student},0,1,1,1\n" for k in range(14) for student in range(20 - k)]
    write("data/valid.csv", REFERENCE.splitlines(keepends=True)[0] + "".join(pairs))
    subjects = [f"{200 + k},Subject {k},1,1\n" for k in range(14)]
    write("metadata/subject_metadata.csv", SUBJECTS + "".join(subjects))
    questions = [f'{100 + k},"[1, {200 + k}{", 200" * (k == 13)}]"\n' for k in range(14)]
    write("metadata/question_metadata_task_1_2.csv", QUESTIONS + "".join(questions))
    facts = read(folder, 1)
    parts = pair_groups.break_down(scored(facts, [True] * len(pairs)), facts)
    (part,) = (part for part in parts if part.title == "By subject")
    assert [(group.name, group.n_answers) for group in part.groups] == [
        ("Subject 0", 27),
        *((f"Subject {k}", 20 - k) for k in range(1, 12)),
        ("other subjects", 8),
    ]


def test_what_is_lost_is_named(folder: Path) -> None:
    facts = read(folder, 1)
    answers = scored(facts, [False, True, False, True])
    # Of the subjects only the most specific of each question count.
    for lost, expected in (
        (pair_groups.lost_questions, ("20", "Adding", 2, 2, 1.0)),
        (pair_groups.lost_subjects, ("Adding", "Number", 3, 2, 0.5)),
    ):
        (found,) = lost(answers, facts)
        loss = found.loss
        shown = (found.name, found.about, loss.n_answers, loss.n_wrong, loss.excess)
        assert shown == expected


def test_what_is_not_there_is_left_out(folder: Path) -> None:
    for name in (*(f"metadata/{name}" for name in METADATA), "data/train.csv"):
        (folder / name).unlink()
    facts = read(folder, 2)
    assert (facts.training, facts.quiz, facts.subjects, facts.students) == (None,) * 4
    assert [part.is_fault for part in facts.left_out] == [False] * 4
    assert all(part.why.endswith("is not there") for part in facts.left_out)


@pytest.mark.parametrize(
    ("name", "old", "new", "expected"),
    [
        ("data/train.csv", "20,9,2,0", "20,9,2,7", "column 'IsCorrect': row 4 is '7'"),
        ("metadata/answer_metadata_task_1_2.csv", "5,13", "5,x", "column 'QuizId': row 5 is 'x'"),
        ("metadata/subject_metadata.csv", "5,Solving,3,2", "5,Solving,9,2", "is 9, which is no"),
        ("metadata/student_metadata_task_1_2.csv", "5,1,", "5,9,", "column 'Gender'"),
    ],
)
def test_what_cannot_be_read_is_left_out_with_the_fault(
    folder: Path, name: str, old: str, new: str, expected: str
) -> None:
    path = folder / name
    path.write_text(path.read_text().replace(old, new))
    (fault,) = (part for part in read(folder, 1).left_out if part.is_fault)
    assert f"{path}: " in fault.why
    assert expected in fault.why


@pytest.mark.parametrize("name", ["train", "valid"])
def test_answers_without_ids_have_no_quizzes(folder: Path, name: str) -> None:
    path = folder / f"data/{name}.csv"
    path.write_text(path.read_text().replace("AnswerId", "Other"))
    facts = read(folder, 1)
    assert facts.training is not None and facts.quiz is None
    assert [part.what for part in facts.left_out] == ["Accuracy by quiz"]


keys = st.lists(st.integers(-(2**62), 2**62) | st.integers(0, 9), max_size=30)


@given(keys, keys)
def test_membership_is_that_of_numpy(some: list[int], known: list[int]) -> None:
    one, other = np.array(some, np.int64), np.array(known, np.int64)
    assert np.array_equal(are_among(one, other), np.isin(one, other))
