"""What is known about pairs: counted from the training answers, joined with the metadata."""

import re
from collections.abc import Callable
from pathlib import Path

from common import schema
from common.io import file_source
from common.scores import pair_groups
from common.scores.breakdown import Scored
from common.scores.pair_facts import QUIZ_GROUPS, PairFacts, Place, read_facts
from common.submission import read_pair_values

import numpy as np
import pytest

QUIZZES = "metadata/answer_metadata_task_1_2.csv"
FILES = {
    "data/valid.csv": """QuestionId,UserId,AnswerId,IsCorrect,CorrectAnswer,AnswerValue
20,5,100,1,2,2
30,5,101,0,3,1
20,6,102,0,2,4
40,7,103,1,1,1
""",
    # Question 20: two of three right. Question 30: one of two, and option 4 as often as 3. Question
    # 50 is not asked for. Of all six answers four are right.
    "data/train.csv": """QuestionId,UserId,AnswerId,IsCorrect,CorrectAnswer,AnswerValue
20,7,0,1,2,2
20,8,1,1,2,2
20,9,2,0,2,4
30,5,3,0,3,4
30,6,4,1,3,3
50,5,5,1,1,1
""",
    # Student 5 answered 3 (training) and 101 in quiz 11; quiz 12 is known from others alone.
    QUIZZES: """AnswerId,QuizId
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
5,1,2006-09-01 00:00:00.000,1.0
6,2,2006-10-01 00:00:00.000,
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
def folder(write: Callable[[str, str], Path], tmp_path: Path) -> Path:
    for name, text in FILES.items():
        write(name, text)
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
    known = "other answers in the quiz known"
    expected = ["no other answer in the quiz known", known, *["quiz not known"] * 2]
    assert [QUIZ_GROUPS[k] for k in np.asarray(facts.quiz)] == expected
    # Nothing is known of the quizzes of training answers.
    (folder / QUIZZES).write_text("AnswerId,QuizId\n100,12\n101,11\n")
    quiz = np.asarray(read(folder, task).quiz)
    assert [QUIZ_GROUPS[k] for k in quiz] == [expected[0], expected[0], *expected[2:]]


def scored(facts: PairFacts, right: list[bool]) -> Scored:
    return Scored(facts.student, facts.question, np.array(right))


def test_subjects_and_students_are_joined(folder: Path) -> None:
    facts = read(folder, 1)
    answers = scored(facts, [True, False, False, True])
    assert [
        (part.title, {g.name: (g.n_students, g.n_answers, g.accuracy) for g in part.groups})
        for part in [
            *pair_groups.break_down(answers, facts),
            *pair_groups.subgroups(answers, facts),
        ]
        if " number " not in part.title and "quiz" not in part.title
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
        # Born in September 2006: thirteen on the day; in October: not yet.
        (
            "Age in years on 2019-09-01",
            {"12": (1, 1, 0), "13": (1, 2, 0.5), "not known": (1, 1, 1)},
        ),
    ]
    # Of the subjects that are lost with only the most specific of each question count.
    answers = scored(facts, [False, True, False, True])
    lost = [*pair_groups.lost_questions(answers, facts), *pair_groups.lost_subjects(answers, facts)]
    assert [(n.name, n.about, n.loss.n_answers, n.loss.n_wrong, n.loss.excess) for n in lost] == [
        ("20", "Adding", 2, 2, 1.0),
        ("Adding", "Number", 3, 2, 0.5),
    ]


def test_rare_subjects_go_together(folder: Path) -> None:
    """Twelve of 14 are named, most answers first; a question counts in those that are named."""
    pairs = [f"{100 + k},{student},0,1,1,1\n" for k in range(14) for student in range(20 - k)]
    header = FILES["data/valid.csv"].splitlines(keepends=True)[0]
    (folder / "data/valid.csv").write_text(header + "".join(pairs))
    for name, lines in (
        ("subject_metadata", [f"{200 + k},Subject {k},1,1\n" for k in range(14)]),
        (
            "question_metadata_task_1_2",
            [f'{100 + k},"[1, {200 + k}{", 200" * (k == 13)}]"\n' for k in range(14)],
        ),
    ):
        path = folder / f"metadata/{name}.csv"
        path.write_text(path.read_text() + "".join(lines))
    facts = read(folder, 1)
    parts = pair_groups.break_down(scored(facts, [True] * len(pairs)), facts)
    (part,) = (part for part in parts if part.title == "By subject")
    named = [(f"Subject {k}", 27 if k == 0 else 20 - k) for k in range(12)]
    found = [(group.name, group.n_answers) for group in part.groups]
    assert found == [*named, ("other subjects", 8)]


def test_what_is_not_there_is_left_out(folder: Path) -> None:
    for name in FILES.keys() - {"data/valid.csv"}:
        (folder / name).unlink()
    facts = read(folder, 2)
    assert (facts.training, facts.quiz, facts.subjects, facts.students) == (None,) * 4
    assert [part.is_fault for part in facts.left_out] == [False] * 4
    assert all(part.why.endswith("is not there") for part in facts.left_out)


NO_IDS = "by quiz: training and true answers do not both have a column AnswerId"


@pytest.mark.parametrize(
    ("name", "old", "new", "expected"),
    [
        ("data/train.csv", "20,9,2,0", "20,9,2,7", "The maj.* column 'IsCorrect': row 4 is '7'"),
        (QUIZZES, "5,13", "5,x", "by quiz: .* column 'QuizId': row 5 is 'x'"),
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
