"""What is known about pairs: counted from the training answers, joined with the metadata."""

import re
from pathlib import Path

from common.evaluation.breakdown import accuracy_by, break_down, most_lost
from common.evaluation.groupings import OF_STUDENTS
from common.evaluation.pair_facts import PairFacts, read_facts
from common.reading import file_source
from common.submission import read_pair_values
from common.tasks import TASKS

import pandas as pd
import pytest
from conftest import Write

QUIZ_FILE = "metadata/answer_metadata_task_1_2.csv"
FILES = {
    "data/valid.csv": """QuestionId,UserId,AnswerId,IsCorrect,CorrectAnswer,AnswerValue
20,5,100,1,2,2
30,5,101,0,3,1
20,6,102,0,2,4
40,7,103,1,1,1
""",
    # Question 20: three of five right. Question 30: two of four, and option 4 as often as 3. The
    # others are not asked for. Of all 13 answers nine are right; four are option 1, four option 4.
    "data/train.csv": """QuestionId,UserId,AnswerId,IsCorrect,CorrectAnswer,AnswerValue
20,7,0,1,2,2
20,8,1,1,2,2
20,9,2,0,2,4
30,5,3,0,3,4
30,6,4,1,3,3
50,5,5,1,1,1
20,12,6,1,2,2
20,13,7,0,2,4
30,14,8,0,3,4
30,15,9,1,3,3
51,5,10,1,1,1
52,5,11,1,1,1
53,5,12,1,1,1
""",
    # Student 5 answered 3 (training) and 101 in quiz 11; quiz 12 is known from others alone.
    QUIZ_FILE: """AnswerId,QuizId
0,12.0
3.0,11
4,
5,13
100,12
101,11
102,
,11
""",
    "metadata/question_metadata_task_1_2.csv": """QuestionId,SubjectId
20,"[1, 2, 4]"
30,"[1, 2, 3, 4, 5]"
50,"[1, 3]"
""",
    "metadata/student_metadata_task_1_2.csv": """UserId,Gender,DateOfBirth,PremiumPupil
5,1,2001-09-01 00:00:00.000,1.0
6,2,2001-10-01 00:00:00.000,
8,0,,0.0
""",
    "metadata/subject_metadata.csv": """SubjectId,Name,ParentId,Level
1,Maths,NULL,0
2,Number,1,1
3,Algebra,1,1
4,Adding,2,2
5,Solving,3,2
""",
}


@pytest.fixture
def folder(write: Write, tmp_path: Path) -> Path:
    for name, text in FILES.items():
        write(name, text)
    return tmp_path


def read(folder: Path, task: int) -> PairFacts:
    reference, train = folder / "data/valid.csv", folder / "data/train.csv"
    pairs = read_pair_values(file_source(reference), TASKS[task].column)
    return read_facts(
        pairs, TASKS[task], reference=reference, train=train, folder=folder / "metadata"
    )


@pytest.mark.parametrize("task", [1, 2])
def test_training_answers_are_counted(folder: Path, task: int) -> None:
    facts = read(folder, task)
    assert facts.left_out == []
    pairs = facts.pairs
    assert pairs.student_code.tolist() == [0, 0, 1, 2]
    # A tie, and a question that nobody answered, go by all answers; of options the smaller wins.
    assert pairs.majority.tolist() == ([1, 1, 1, 1] if task == 1 else [2, 3, 2, 1])
    # A quiz is known by other answers of the same student.
    is_known = "other answers in the quiz known"
    quizzes = ["no other answer in the quiz known", is_known, *["quiz not known"] * 2]
    by_option = ["option 2", "option 3", "option 2", "not known"]
    of_students = {grouping.key for grouping in OF_STUDENTS}
    others = {"student_code", "majority"} | of_students
    assert {key: [*pairs[key]] for key in pairs if key not in others} == {
        "difficulty": ["60 to 70 %", "50 to 60 %", "60 to 70 %", "not known"],
        "answers_of_student": ["5 to 9", "5 to 9", "1 to 4", "1 to 4"],
        "answers_to_question": ["5 to 9", "1 to 4", "5 to 9", "none"],
        **({"right_option": by_option} if task == 2 else {}),
        "quiz": quizzes,
    }
    # Nothing is known of the quizzes of training answers.
    (folder / QUIZ_FILE).write_text("AnswerId,QuizId\n100,12\n101,11\n")
    assert [*read(folder, task).pairs["quiz"]] == [*quizzes[:1] * 2, *quizzes[2:]]


def test_numbers_belong_to_the_group_that_begins_there(folder: Path) -> None:
    """Each question is answered by so many students, and as many are right."""
    counts = [(1, 0), (4, 3), (5, 5), (9, 8), (10, 1), (10_000, 999)]
    rows = [
        f"{question},{student},{int(student < n_right)}\n"
        for question, (n, n_right) in enumerate(counts)
        for student in range(n)
    ]
    (folder / "data/train.csv").write_text("QuestionId,UserId,IsCorrect\n" + "".join(rows))
    asked = "".join(f"{question},{question},1\n" for question in range(len(counts)))
    (folder / "data/valid.csv").write_text("QuestionId,UserId,IsCorrect\n" + asked)
    pairs = read(folder, 1).pairs
    expected = ["1 to 4", "1 to 4", "5 to 9", "5 to 9", "10 to 19", "from 10,000"]
    assert [*pairs["answers_to_question"]] == expected
    expected = ["0 to 10 %", "70 to 80 %", "90 to 100 %", "80 to 90 %", "10 to 20 %", "0 to 10 %"]
    assert [*pairs["difficulty"]] == expected


def test_subjects_and_students_are_joined(folder: Path) -> None:
    facts = read(folder, 1)
    pairs = facts.pairs.assign(QuestionId=[20, 30, 20, 40], right=[True, False, False, True])
    # Each several times, so that they are enough to be shown.
    pairs = pd.concat([pairs] * 20, ignore_index=True)
    parts = {part.grouping.title: part.groups for part in break_down(pairs, facts.subjects)}
    parts |= {grouping.title: accuracy_by(pairs, grouping.key) for grouping in OF_STUDENTS}
    assert [
        (title, {
            name: (n_students, n_answers / 20, accuracy)
            for name, n_answers, n_students, accuracy in groups.iloc[:, :3].itertuples()
        })
        for title, groups in parts.items()
        if " number " not in title and "quiz" not in title
    ] == [
        (
            "By difficulty of the question",
            {"50 to 60 %": (1, 1, 0), "60 to 70 %": (2, 2, 0.5), "not known": (1, 1, 1)},
        ),
        # Question 30 is about both, and question 40 about nothing that is known.
        ("By subject", {"Number": (2, 3, 1 / 3), "Algebra": (1, 1, 0)}),
        ("By subject, one level further down", {"Adding": (2, 3, 1 / 3), "Solving": (1, 1, 0)}),
        ("Gender", {"female": (1, 2, 0.5), "male": (1, 1, 0), "not listed": (1, 1, 1)}),
        ("Pupil premium", {"entitled": (1, 2, 0.5), "not known": (2, 2, 0.5)}),
        # Born in September 2001: eighteen on the day; in October: not yet.
        (
            "Age in years on 2019-09-01",
            {"17": (1, 1, 0), "from 18": (1, 2, 0.5), "not known": (1, 1, 1)},
        ),
    ]  # fmt: skip
    # Half of all answers are wrong, and of those to question 20, with which nothing is lost; of the
    # subjects only the most specific of each question count.
    columns = ["name", "about", "n_answers", "n_wrong", "lost"]
    lost = most_lost(pairs, facts.subjects)
    assert lost.subjects is not None
    tables = (lost.questions, lost.subjects)
    assert [[*row] for table in tables for row in table[columns].to_numpy()] == [
        [30, "Adding, Solving", 20, 20, 10],
        ["Adding", "Number", 60, 40, 10],
        ["Solving", "Algebra", 20, 20, 10],
    ]


NO_IDS = "by quiz: training and true answers do not both have a column AnswerId"


@pytest.mark.parametrize(
    ("name", "old", "new", "expected"),
    [
        ("data/train.csv", "20,9,2,0", "20,9,2,7", "The maj.* column 'IsCorrect': row 4 is '7'"),
        (QUIZ_FILE, "5,13", "5,x", "by quiz: .* column 'QuizId': row 5 is 'x'"),
        ("metadata/subject_metadata.csv", "ng,3,2", "ng,9,2", "by subject: .* is 9, which is no"),
        ("metadata/student_metadata_task_1_2.csv", "5,1,", "5,9,", "by gender.* column 'Gender'"),
        # Answers without ids have no quizzes, which is no fault.
        *((f"data/{name}.csv", "AnswerId", "Other", NO_IDS) for name in ("train", "valid")),
    ],
)
def test_what_cannot_be_read_is_left_out_with_the_fault(
    folder: Path, name: str, old: str, new: str, expected: str
) -> None:
    path = folder / name
    path.write_text(path.read_text().replace(old, new))
    left_out = read(folder, 1).left_out
    (part,) = (part for part in left_out if part.why != "the training answers are not known")
    assert re.search(expected, f"{part.what}: {part.why}")
    assert part.is_fault == part.why.startswith(f"{path}: ") == (expected != NO_IDS)
