"""Facts about pairs of a student and a question, from training answers and metadata."""

import re
from pathlib import Path
from typing import NamedTuple

from common.evaluation.breakdown import accuracy_by, break_down, most_lost
from common.evaluation.groupings import OF_STUDENTS
from common.evaluation.pair_facts import LeftOut, PairFacts, read_facts
from common.reading import file_source
from common.submission import read_pair_values
from common.tasks import TASKS

import pandas as pd
import pytest

QUIZ_FILE = "metadata/answer_metadata_task_1_2.csv"
# The facts that follow from these files:
#
# - Nine of the 13 training answers are right. Options 1 and 4 are chosen four times each.
# - Question 20: three of five training answers are right.
# - Question 30: two of four training answers are right. Option 4 was chosen as often as option 3.
# - Questions 50 to 53 occur only in the training answers, question 40 only in valid.csv.
# - Quiz 11: student 5 gave training answer 3 and answer 101.
# - Quiz 12: student 5 gave answer 100, but no training answer. Training answer 0 is student 7's.
FILES = {
    "data/valid.csv": """QuestionId,UserId,AnswerId,IsCorrect,CorrectAnswer,AnswerValue
20,5,100,1,2,2
30,5,101,0,3,1
20,6,102,0,2,4
40,7,103,1,1,1
""",
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


def write_files(folder: Path) -> Path:
    """Write `FILES` to a folder; return the folder."""
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_files(tmp_path)


def read(folder: Path, task: int) -> PairFacts:
    """Return the facts about each pair of a student and a question that valid.csv holds."""
    reference = folder / "data/valid.csv"
    return read_facts(
        read_pair_values(file_source(reference), TASKS[task].column),
        TASKS[task],
        reference=reference,
        train=folder / "data/train.csv",
        folder=folder / "metadata",
    )


@pytest.mark.parametrize("task", [1, 2])
def test_students_are_numbered_and_nothing_is_left_out(folder: Path, task: int) -> None:
    facts = read(folder, task)
    assert facts.left_out == []
    assert facts.pairs.student_code.tolist() == [0, 0, 1, 2]


# Task 1: if right and wrong answers to a question are equally frequent, or if it has no answers,
# the question gets the majority of all answers. Task 2: if several options are the most frequent,
# the question gets the smallest of them. If it has no answers, it gets the majority of all answers.
@pytest.mark.parametrize(("task", "expected"), [(1, [1, 1, 1, 1]), (2, [2, 3, 2, 1])])
def test_the_majority_of_a_question_is_counted(
    folder: Path, task: int, expected: list[int]
) -> None:
    assert read(folder, task).pairs.majority.tolist() == expected


KNOWN_QUIZ = "other answers in the quiz known"
NO_OTHER_ANSWER = "no other answer in the quiz known"
UNKNOWN_QUIZ = "quiz not known"
GROUPS = {
    "difficulty": ["60 to 70 %", "50 to 60 %", "60 to 70 %", "not known"],
    "answers_of_student": ["5 to 9", "5 to 9", "1 to 4", "1 to 4"],
    "answers_to_question": ["5 to 9", "1 to 4", "5 to 9", "none"],
    # If the quiz of a pair's question is known, the group tells whether the training answers hold
    # an answer of the pair's student in this quiz.
    "quiz": [NO_OTHER_ANSWER, KNOWN_QUIZ, UNKNOWN_QUIZ, UNKNOWN_QUIZ],
}
RIGHT_OPTION = ["option 2", "option 3", "option 2", "not known"]


@pytest.mark.parametrize("task", [1, 2])
def test_pairs_are_grouped_by_what_training_answers_tell(folder: Path, task: int) -> None:
    pairs = read(folder, task).pairs
    expected = dict(GROUPS)
    if task == 2:
        expected["right_option"] = RIGHT_OPTION
    # Leave out columns that hold no groups, and groups that follow from the students' metadata.
    other_columns = ["student_code", "majority", *(grouping.key for grouping in OF_STUDENTS)]
    groups = pairs.drop(columns=other_columns).to_dict("list")
    assert groups == expected


@pytest.mark.parametrize("task", [1, 2])
def test_without_quizzes_of_training_answers_no_other_answer_is_known(
    folder: Path, task: int
) -> None:
    (folder / QUIZ_FILE).write_text("AnswerId,QuizId\n100,12\n101,11\n")
    expected = [NO_OTHER_ANSWER, NO_OTHER_ANSWER, UNKNOWN_QUIZ, UNKNOWN_QUIZ]
    assert [*read(folder, task).pairs["quiz"]] == expected


@pytest.mark.parametrize(
    ("n_answers", "n_right", "group_by_number", "group_by_share"),
    [
        (1, 0, "1 to 4", "0 to 10 %"),
        (4, 3, "1 to 4", "70 to 80 %"),
        (5, 5, "5 to 9", "90 to 100 %"),
        (9, 8, "5 to 9", "80 to 90 %"),
        (10, 1, "10 to 19", "10 to 20 %"),
        # 9.99 % are right.
        (10_000, 999, "from 10,000", "0 to 10 %"),
    ],
)
def test_the_lower_bound_of_a_group_belongs_to_the_group(
    folder: Path, n_answers: int, n_right: int, group_by_number: str, group_by_share: str
) -> None:
    """A question with five answers is in the group "5 to 9", not in "1 to 4".

    If exactly 10 % of its answers are right, it is in the group "10 to 20 %". This share of right
    training answers is called the difficulty of the question. The test makes training answers to
    question 7 and looks at the groups of this question.
    """
    header = "QuestionId,UserId,IsCorrect\n"
    rows = [f"7,{student},{int(student < n_right)}\n" for student in range(n_answers)]
    (folder / "data/train.csv").write_text(header + "".join(rows))
    (folder / "data/valid.csv").write_text(f"{header}7,1,1\n")

    pairs = read(folder, task=1).pairs

    assert [*pairs["answers_to_question"]] == [group_by_number]
    assert [*pairs["difficulty"]] == [group_by_share]


# The fixture `predicted` repeats its pairs this often. Otherwise a group would have too few answers
# for its accuracy to be shown.
N_REPEATS = 20


@pytest.fixture(scope="module")
def predicted(tmp_path_factory: pytest.TempPathFactory) -> tuple[PairFacts, pd.DataFrame]:
    """Return the facts about the answers, and a table of predictions.

    The table has `N_REPEATS` copies of four pairs of a student and a question. The predictions of
    two of the four pairs are right (column `right`).
    """
    facts = read(write_files(tmp_path_factory.mktemp("facts")), task=1)
    pairs = facts.pairs.assign(QuestionId=[20, 30, 20, 40], right=[True, False, False, True])
    return facts, pd.concat([pairs] * N_REPEATS, ignore_index=True)


class Group(NamedTuple):
    """The numbers that the page must show for a group of predictions."""

    n_students: int
    # Number of different pairs. The predictions hold each of them `N_REPEATS` times.
    n_pairs: float
    accuracy: float


# The accuracies that the page must show. The first key is the heading of a grouping, the second
# key a group.
ACCURACY = {
    "By difficulty of the question": {
        "50 to 60 %": Group(n_students=1, n_pairs=1, accuracy=0),
        "60 to 70 %": Group(n_students=2, n_pairs=2, accuracy=0.5),
        "not known": Group(n_students=1, n_pairs=1, accuracy=1),
    },
    # Question 30 counts in both subjects. Question 40 counts in none: its subjects are not known.
    "By subject": {
        "Number": Group(n_students=2, n_pairs=3, accuracy=1 / 3),
        "Algebra": Group(n_students=1, n_pairs=1, accuracy=0),
    },
    "By subject, one level further down": {
        "Adding": Group(n_students=2, n_pairs=3, accuracy=1 / 3),
        "Solving": Group(n_students=1, n_pairs=1, accuracy=0),
    },
    "Gender": {
        "female": Group(n_students=1, n_pairs=2, accuracy=0.5),
        "male": Group(n_students=1, n_pairs=1, accuracy=0),
        "not listed": Group(n_students=1, n_pairs=1, accuracy=1),
    },
    "Pupil premium": {
        "entitled": Group(n_students=1, n_pairs=2, accuracy=0.5),
        "not known": Group(n_students=2, n_pairs=2, accuracy=0.5),
    },
    # Student 5, born in September 2001, is 18 on the day; student 6, born in October, is not.
    "Age in years on 2019-09-01": {
        "17": Group(n_students=1, n_pairs=1, accuracy=0),
        "from 18": Group(n_students=1, n_pairs=2, accuracy=0.5),
        "not known": Group(n_students=1, n_pairs=1, accuracy=1),
    },
}


@pytest.mark.parametrize("title", ACCURACY)
def test_accuracy_is_counted_by_subject_and_student(
    predicted: tuple[PairFacts, pd.DataFrame], title: str
) -> None:
    """The page of a score groups the predictions, for example by subject, and shows their accuracy.

    `title` is the heading of one such grouping. `break_down` groups predictions by facts about
    questions, and `accuracy_by` groups them by metadata of students. `ACCURACY` holds the expected
    groups of each heading.
    """
    facts, pairs = predicted
    groups_by_title = {}
    for part in break_down(pairs, facts.subjects):
        groups_by_title[part.grouping.title] = part.groups
    for grouping in OF_STUDENTS:
        groups_by_title[grouping.title] = accuracy_by(pairs, grouping.key)
    groups = groups_by_title[title]
    counted = {}
    for name, row in groups.iterrows():
        # `predicted` holds each pair N_REPEATS times.
        n_pairs = row["n_answers"] / N_REPEATS
        counted[name] = Group(row["n_students"], n_pairs, row["accuracy"])
    assert counted == ACCURACY[title]
    assert [*counted] == [*ACCURACY[title]]


def test_groups_are_shown_in_this_order(predicted: tuple[PairFacts, pd.DataFrame]) -> None:
    facts, pairs = predicted
    titles = [part.grouping.title for part in break_down(pairs, facts.subjects)]
    titles += [grouping.title for grouping in OF_STUDENTS]
    shown = [title for title in titles if " number " not in title and "quiz" not in title]
    assert shown == [*ACCURACY]


def test_most_is_lost_where_more_predictions_are_wrong_than_on_average(
    predicted: tuple[PairFacts, pd.DataFrame],
) -> None:
    """`most_lost` lists the questions and the subjects with more wrong predictions than expected.

    Half of all predictions are wrong here, so half of the predictions of each question are expected
    to be wrong. The column `lost` is the number of wrong predictions minus the expected number. For
    question 20, 20 of 40 predictions are wrong, as expected. For question 30, 20 of 20 are wrong,
    which is 10 more than expected. Both questions have the subject Adding: 40 of 60 predictions are
    wrong, which is 10 more than expected. A question counts only in its most specific subjects.

    The column `about` names the most specific subjects of a question, or the parent of a subject.
    """
    facts, pairs = predicted

    lost = most_lost(pairs, facts.subjects)

    assert lost.subjects is not None
    columns = ["name", "about", "n_answers", "n_wrong", "lost"]
    assert lost.questions[columns].to_numpy().tolist() == [[30, "Adding, Solving", 20, 20, 10]]
    assert lost.subjects[columns].to_numpy().tolist() == [
        ["Adding", "Number", 60, 40, 10],
        ["Solving", "Algebra", 20, 20, 10],
    ]


def find_left_out(folder: Path, name: str, old: str, new: str) -> LeftOut:
    """Damage a file that facts are read from; return which part of the page must be left out.

    The text `old` in the file is replaced by `new`.
    """
    path = folder / name
    path.write_text(path.read_text().replace(old, new))
    left_out = read(folder, task=1).left_out
    # If the training answers cannot be read, other parts that need them are left out as well. Take
    # the part that is left out because of the damage itself.
    (part,) = (part for part in left_out if part.why != "the training answers are not known")
    return part


@pytest.mark.parametrize(
    ("name", "old", "new", "expected"),
    [
        ("data/train.csv", "20,9,2,0", "20,9,2,7", "The maj.* column 'IsCorrect': row 4 is '7'"),
        (QUIZ_FILE, "5,13", "5,x", "by quiz: .* column 'QuizId': row 5 is 'x'"),
        ("metadata/subject_metadata.csv", "ng,3,2", "ng,9,2", "by subject: .* is 9, which is no"),
        ("metadata/student_metadata_task_1_2.csv", "5,1,", "5,9,", "by gender.* column 'Gender'"),
    ],
)
def test_a_fact_that_cannot_be_read_is_left_out_and_the_fault_is_told(
    folder: Path, name: str, old: str, new: str, expected: str
) -> None:
    part = find_left_out(folder, name, old, new)
    assert re.search(expected, f"{part.what}: {part.why}")
    assert part.is_fault
    assert part.why.startswith(f"{folder / name}: ")


@pytest.mark.parametrize("name", ["data/train.csv", "data/valid.csv"])
def test_answers_without_ids_have_no_quizzes_which_is_no_fault(folder: Path, name: str) -> None:
    part = find_left_out(folder, name, "AnswerId", "Other")
    expected = "Accuracy by quiz: training and true answers do not both have a column AnswerId"
    assert f"{part.what}: {part.why}" == expected
    assert not part.is_fault
