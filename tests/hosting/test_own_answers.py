"""An organiser's own answers: none is lost, hidden ones stay hidden, faults are named."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, product
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from common import layout
from common.adaptive.game import GameState, Reference, Rules, read_reference
from common.answers import read_answers
from common.errors import InputError
from common.tasks import TASKS
from tools.templates import build_templates

import mixed_options
import numpy as np
import own_answers
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score


class Row(NamedTuple):
    """An answer in the file of an organiser. The file has these columns, in this order."""

    QuestionId: str
    UserId: str
    AnswerValue: int
    CorrectAnswer: int

    @property
    def is_right(self) -> bool:
        """Whether the student has chosen the correct option."""
        return self.AnswerValue == self.CorrectAnswer


COLUMNS = list(Row._fields)
# The tests split answers for each of these sets of tasks. If task 4 is among them, some students
# are set aside first, and tasks 1 and 2 get none of their answers.
WITHOUT_TASK_4 = [(1,), (2,), (1, 2)]
WITH_TASK_4 = [(4,), (2, 4), (1, 2, 4)]


def draw_rows(seed: int = 0, n_students: int = 30, n_questions: int = 25) -> list[Row]:
    """Draw answers of a school class to questions with four options.

    The last fifth of the students answer only six questions each, and all others answer 14 or more.
    A student chooses the correct option in 60 % of cases, and otherwise any option at random.
    """
    rng = np.random.default_rng(seed)
    correct_option = rng.integers(1, 5, n_questions)
    rows = []
    for student in range(n_students):
        is_in_last_fifth = student >= n_students * 4 // 5
        n_answers = 6 if is_in_last_fifth else rng.integers(14, n_questions + 1)
        for question in rng.permutation(n_questions)[:n_answers]:
            correct = int(correct_option[question])
            chosen = correct if rng.random() < 0.6 else int(rng.integers(1, 5))
            # A spreadsheet would take these ids for formulas.
            rows.append(Row(f"=q{question}", f"@{student} x", chosen, correct))
    return rows


def to_csv(rows: Sequence[Row]) -> str:
    """Return the text of a CSV file with a header and a row for each answer."""
    lines = [",".join(map(str, row)) for row in rows]
    return "\n".join([",".join(COLUMNS), *lines])


@dataclass(frozen=True)
class Made:
    """The result of `make_data_folder` for a file of answers."""

    # The folder of the files made from the answers.
    data: Path
    # The notes that `make_data_folder` prints for the organiser.
    notes: list[str]


def make(
    folder: Path, text: str, tasks: Sequence[int], seed: int = 0, min_answers: int = 0
) -> Made:
    """Write a file of answers with this text, and make the data folder of a competition from it."""
    folder.mkdir(exist_ok=True)
    path = folder / "own.csv"
    path.write_text(text, encoding="utf-8", newline="")
    data = folder / "made"
    rng = np.random.default_rng(seed)
    notes = own_answers.make_data_folder(path, data, tasks, rng, min_answers)
    return Made(data, notes)


def read_own_ids(data: Path, name: str) -> list[str]:
    """Return the organiser's own ids, in the order of the new ids 0, 1 and so on.

    `name` is the file of the own ids: students.csv or questions.csv.
    """
    own_ids = pd.read_csv(data / "organiser" / name, dtype=str, index_col=0).iloc[:, 0]
    assert own_ids.index.tolist() == [str(number) for number in range(len(own_ids))]
    # A spreadsheet would take a text that begins with = or @ for a formula.
    assert not own_ids.str.match("[=@]").any()
    return own_ids.str.removeprefix("'").to_list()


def read_parts(data: Path) -> dict[str, pd.DataFrame]:
    """Return the files in train_data and test_data, by name."""
    return {path.name: pd.read_csv(path) for path in data.glob("t*_data/*")}


# ---- The parts ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class SplitClass:
    """A school class whose answers are split for some tasks."""

    # The tasks for which the answers are split.
    tasks: tuple[int, ...]
    # The answers that count: the first answer of each student to each question.
    rows: list[Row]
    # Number of rows in the file of answers in which a student answers a question again.
    n_later_attempts: int
    # The folder of the files made from the answers.
    data: Path
    # The notes that `make_data_folder` prints for the organiser.
    notes: list[str]
    # The training and test files by name.
    parts: dict[str, pd.DataFrame]

    @property
    def answer_sets(self) -> set[frozenset[int]]:
        """The AnswerIds of each training or test file. Files with the same answers count once."""
        return {frozenset(part["AnswerId"]) for part in self.parts.values()}


@pytest.fixture(scope="module", params=WITHOUT_TASK_4 + WITH_TASK_4, ids=str)
def split_class(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> SplitClass:
    """Split the answers of a school class for one set of tasks.

    A test runs once for each set of tasks, each time with another class. At the end of the file of
    answers, every twentieth answer is repeated with another option, as a later attempt.
    """
    tasks: tuple[int, ...] = request.param
    rows = draw_rows(seed=sum(tasks), n_students=45, n_questions=18)
    # A later attempt chooses the next option, or option 1 after option 4.
    later_attempts = [row._replace(AnswerValue=row.AnswerValue % 4 + 1) for row in rows[::20]]
    folder = tmp_path_factory.mktemp("class")
    made = make(folder, to_csv(rows + later_attempts), tasks)
    parts = read_parts(made.data)
    return SplitClass(tasks, rows, len(later_attempts), made.data, made.notes, parts)


def test_later_attempts_are_left_out_and_counted(split_class: SplitClass) -> None:
    count = f"left out as later attempts: {split_class.n_later_attempts} rows"
    assert count in split_class.notes[0]


def test_each_task_has_a_training_file_and_a_file_of_each_phase(split_class: SplitClass) -> None:
    expected = set()
    for task in split_class.tasks:
        expected.add(layout.TRAIN_TASK_3_4 if task == 4 else layout.TRAIN_TASK_1_2)
        expected |= {TASKS[task].answers_name(phase) for phase in layout.PHASES}
    assert set(split_class.parts) == expected


def test_each_answer_is_in_one_part(split_class: SplitClass) -> None:
    """The training answers and the sets of hidden answers have no answer in common."""
    # All tasks have the same training answers. Tasks 1 and 2 together have two hidden sets, public
    # and private, and task 4 has two more.
    n_hidden_sets = 0
    if {1, 2} & {*split_class.tasks}:
        n_hidden_sets += 2
    if 4 in split_class.tasks:
        n_hidden_sets += 2
    assert len(split_class.answer_sets) == 1 + n_hidden_sets
    assert sorted(chain(*split_class.answer_sets)) == list(range(len(split_class.rows)))


def test_questions_are_numbered_in_the_order_of_their_own_ids(split_class: SplitClass) -> None:
    own_ids = {row.QuestionId for row in split_class.rows}
    # Shorter ids come first, so that q2 comes before q10.
    expected = sorted(own_ids, key=lambda own_id: (len(own_id), own_id))
    assert read_own_ids(split_class.data, "questions.csv") == expected


def test_answers_are_written_as_they_were_given(split_class: SplitClass) -> None:
    """The made files have the same options and outcomes as the organiser's file.

    The AnswerIds count all answers from 0.
    """
    question_ids = np.array(read_own_ids(split_class.data, "questions.csv"))
    student_ids = np.array(read_own_ids(split_class.data, "students.csv"))
    written = pd.concat(split_class.parts.values())
    # The files number questions and students from 0. Replace the numbers by the organiser's ids.
    written["QuestionId"] = question_ids[written["QuestionId"]]
    written["UserId"] = student_ids[written["UserId"]]

    given = pd.DataFrame(split_class.rows, columns=COLUMNS)
    given["IsCorrect"] = given["AnswerValue"] == given["CorrectAnswer"]
    joined = written.merge(
        given,
        on=["QuestionId", "UserId"],
        suffixes=("", "_given"),
        validate="many_to_one",
    )

    assert len(joined) == len(written)
    assert set(joined["AnswerId"]) == set(range(len(split_class.rows)))
    for name in ("IsCorrect", "AnswerValue", "CorrectAnswer"):
        # Some files lack this column, so their rows have NaN in it.
        values = joined[name].dropna()
        given_values = joined[f"{name}_given"][values.index]
        assert (values == given_values).all(), name


@pytest.mark.parametrize("split_class", WITHOUT_TASK_4, indirect=True, ids=str)
def test_tasks_1_and_2_learn_from_four_fifths_and_phases_hide_equally_many(
    split_class: SplitClass,
) -> None:
    (train, *_) = read_training_files(split_class.data)
    assert len(train) == len(split_class.rows) * 4 // 5
    task = TASKS[split_class.tasks[0]]
    n_public = len(split_class.parts[task.answers_name("public")])
    n_private = len(split_class.parts[task.answers_name("private")])
    assert 0 <= n_private - n_public <= 1


def read_examined(data: Path, phase: str) -> Reference:
    """Read the students who are examined in a phase of task 4."""
    return read_reference(data / "test_data" / TASKS[4].answers_name(phase))


def read_training_files(data: Path) -> list[pd.DataFrame]:
    """Read the training files as the kit does, which checks them."""
    return [read_answers(path, options=True, ids=True) for path in data.glob("train_data/*")]


with_task_4 = pytest.mark.parametrize("split_class", WITH_TASK_4, indirect=True, ids=str)


@with_task_4
def test_students_examined_in_task_4_are_in_no_other_part(split_class: SplitClass) -> None:
    """A student is examined in the public phase, in the private phase, or not at all."""
    (train, *_) = read_training_files(split_class.data)
    public = read_examined(split_class.data, "public").student
    private = read_examined(split_class.data, "private").student
    # Each phase examines a tenth of the 45 students, rounded down.
    assert len(public) == 4
    assert len(private) == 4
    assert not set(public) & set(private)
    assert not set(train["UserId"]) & {*public, *private}


@with_task_4
@pytest.mark.parametrize("phase", layout.PHASES)
def test_students_examined_in_task_4_can_be_asked_ten_questions(
    split_class: SplitClass, phase: str
) -> None:
    reference = read_examined(split_class.data, phase)
    # A mask chooses the answers to predict; questions with these answers may not be asked.
    for mask in reference.targets:
        state = GameState(reference, mask, Rules(targets_queryable=False))
        # The next line raises an error if some student can be asked fewer than ten questions.
        state.require_askable(10)


@with_task_4
@pytest.mark.parametrize("phase", layout.PHASES)
def test_each_of_ten_masks_hides_a_fifth_of_a_student_s_answers(
    split_class: SplitClass, phase: str
) -> None:
    reference = read_examined(split_class.data, phase)
    n_answers = (reference.is_correct >= 0).sum(axis=1)
    for targets in reference.targets.values():
        assert (targets.sum(axis=1) == np.rint(0.2 * n_answers)).all()
    different_masks = {targets.tobytes() for targets in reference.targets.values()}
    assert len(different_masks) == 10


def test_at_most_a_quarter_of_the_able_students_is_examined_in_a_phase(tmp_path: Path) -> None:
    """Task 4 examines only students with at least 12 answers, here called "able".

    Here 13 of 100 students are able. A phase examines a tenth of all students, but at most a
    quarter of the able students. So a phase examines 3 students here, not 10.
    """
    n_able = 13
    n_answers_needed = 12
    able = answer_all(n_students=n_able, n_questions=n_answers_needed, prefix="able ")
    # All other students have one answer too few.
    others = answer_all(n_students=87, n_questions=n_answers_needed - 1)
    data = make(tmp_path, to_csv(able + others), [4]).data
    student_ids = read_own_ids(data, "students.csv")
    for phase in layout.PHASES:
        part = pd.read_csv(data / "test_data" / TASKS[4].answers_name(phase))
        examined = {student_ids[student] for student in part["UserId"]}
        assert all(student.startswith("able") for student in examined)
        assert len(examined) == n_able // 4


def answer_all(n_students: int, n_questions: int, prefix: str = "u") -> list[Row]:
    """Return an answer of every student to every question.

    The UserIds are `prefix` and a number, such as u0.
    """
    rows = []
    for student, question in product(range(n_students), range(n_questions)):
        # Option 1 is correct. Students with even numbers always choose it, the others never.
        rows.append(Row(f"q{question}", f"{prefix}{student}", 1 + student % 2, 1))
    return rows


# ---- Ids and the order of rows reveal nothing --------------------------------------------------


@pytest.fixture(scope="module")
def sorted_rows() -> list[Row]:
    """Return answers of a school class: the right ones first, then the wrong ones.

    The right answers are sorted by student, and so are the wrong ones.
    """
    rows = draw_rows(n_students=200, n_questions=40)
    right = [row for row in rows if row.is_right]
    wrong = [row for row in rows if not row.is_right]
    by_student = attrgetter("UserId")
    return sorted(right, key=by_student) + sorted(wrong, key=by_student)


@pytest.fixture(scope="module")
def sorted_class(sorted_rows: list[Row], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the data folder made from the sorted answers, with templates.

    Tests share the folder and must not change it.
    """
    data = make(tmp_path_factory.mktemp("sorted"), to_csv(sorted_rows), [1, 2, 4]).data
    build_templates(data, data / "templates")
    return data


@pytest.fixture(scope="module")
def hidden_in_template(sorted_class: Path) -> pd.DataFrame:
    """Return the hidden answers of task 1 in the order of the template."""
    template = pd.read_csv(sorted_class / "templates" / layout.TEMPLATE_TASK_1_2)
    assert list(template) == ["Unnamed: 0", "QuestionId", "UserId", "AnswerId"]
    parts = read_parts(sorted_class)
    hidden = pd.concat(parts[TASKS[1].answers_name(phase)] for phase in layout.PHASES)
    joined = template.merge(hidden[["AnswerId", "IsCorrect"]], validate="one_to_one")
    assert len(joined) == len(template)
    return joined


@pytest.mark.parametrize("part", ["template", "training", "examined"])
@pytest.mark.parametrize("hint", ["position", "AnswerId"])
def test_no_number_tells_the_outcome_of_an_answer(
    sorted_class: Path, hidden_in_template: pd.DataFrame, part: str, hint: str
) -> None:
    """Neither the position of a row nor the AnswerId tells whether the answer is right.

    In the organiser's file, all right answers come first. The folder `sorted_class` is made from
    this file and must not show this order. Three files are tested (`part`): the template, whose
    answers are hidden, the training answers, and the answers of the students whom task 4 examines.
    """
    parts = read_parts(sorted_class)
    answers_by_part = {
        "template": hidden_in_template,
        "training": parts[layout.TRAIN_TASK_1_2],
        "examined": parts[TASKS[4].answers_name("public")],
    }
    answers = answers_by_part[part]
    number = np.arange(len(answers)) if hint == "position" else answers["AnswerId"]
    auc = roc_auc_score(answers["IsCorrect"], number)
    # For random numbers, the AUC has the mean 0.5. Its standard error is 1 / √(3 n) if half of n
    # answers are right: 0.016 for the 1,300 hidden answers. The order depends on the seed alone, so
    # the result is the same on every machine.
    assert abs(auc - 0.5) < 0.05


def test_the_number_of_a_student_does_not_follow_the_file(
    sorted_class: Path, sorted_rows: list[Row]
) -> None:
    """Students are numbered at random, not in the order of the organiser's file.

    Otherwise, a person who knows the order of the students in that file, such as the alphabetical
    order, could tell which number is which student.
    """
    # The position of each student's first row in the organiser's file.
    first_row: dict[str, int] = {}
    for position, row in enumerate(sorted_rows):
        first_row.setdefault(row.UserId, position)
    # Students have new ids, 0, 1 and so on. `students` lists their ids in the organiser's file, in
    # the order of the new ids.
    students = read_own_ids(sorted_class, "students.csv")
    first_rows = [first_row[student] for student in students]
    correlation = np.corrcoef(first_rows, np.arange(len(students)))[0, 1]
    # The correlation of 200 random pairs of numbers has a standard error of 0.07.
    assert abs(correlation) < 0.2


@pytest.mark.parametrize(
    ("seed", "n_changed"),
    [
        pytest.param(0, 0, id="the same seed"),
        # The data folder has ten CSV files. All change except questions.csv.
        pytest.param(1, 9, id="another seed"),
    ],
)
def test_the_seed_alone_decides_what_is_drawn(
    sorted_class: Path, sorted_rows: list[Row], seed: int, n_changed: int, tmp_path: Path
) -> None:
    """The same seed makes the same files, and another seed changes all files but questions.csv.

    The folder `sorted_class` was made with seed 0. Questions are not numbered at random, but in the
    order of the organiser's ids. So questions.csv, which lists the ids, is always the same.
    """
    again = make(tmp_path, to_csv(sorted_rows), tasks=[1, 2, 4], seed=seed).data
    changed = []
    for path in again.rglob("*.csv"):
        original = sorted_class / path.relative_to(again)
        if path.read_bytes() != original.read_bytes():
            changed.append(path.name)
    assert len(changed) == n_changed
    assert "questions.csv" not in changed


# ---- Which answers count -----------------------------------------------------------------------


def write_spreadsheet() -> str:
    """Return a file as a spreadsheet writes it, with several attempts of each student.

    The file has more columns than needed. Some ids have spaces around them, others decimal places.

    - Students 0 to 20 answer questions 0 to 19.
    - Students 0 to 18 also answer question 20.
    - Student 21 answers questions 0 to 7 and 20, which are only 9.

    If 20 answers are required of each student and to each question, student 21 is left out.
    Question 20 then has only the 19 answers of students 0 to 18, and is left out, too.

    Every student answers each of these questions four times. The latest answer counts, that of day
    5. Only the dates show this, since the rows are in another order:

    - day 3: students with even numbers choose option 1, students with odd numbers option 2
    - day 5: students with even numbers choose option 3, students with odd numbers option 2
    - day 4: all choose option 4
    - an unknown time: all choose option 1
    """
    # Pairs of a student and a question.
    pairs = list(product(range(21), range(20)))
    pairs += [(student, 20) for student in range(19)]
    pairs += [(21, question) for question in (*range(8), 20)]
    lines = ["Quiz,UserId,CorrectAnswer,QuestionId,AnswerValue,DateAnswered"]
    for student, question in pairs:
        # The UserId as the spreadsheet writes it: with a decimal place, or with spaces.
        written_id = f"{student}.0" if question % 2 else f" {student} "
        # Option 3 is right, but in the answer of student 7 to question 7 the file says option 4.
        correct_option = 4 if student == question == 7 else 3
        # The student answers on the days 3, 5 and 4 of January, in this order of the rows. The
        # value of each day is the option that the student chooses on this day.
        is_even = student % 2 == 0
        option_by_day = {3: 1 if is_even else 2, 5: 3 if is_even else 2, 4: 4}
        for day, option in option_by_day.items():
            date = f"2020-01-0{day} 10:00"
            lines.append(f'"a, b",{written_id},{correct_option},{question},{option},{date}')
        lines.append(f'"",{written_id},3,{question},1,')
    byte_order_mark = "\ufeff"
    return byte_order_mark + "\r\n".join(lines)


@pytest.fixture(scope="module")
def spreadsheet(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Make a data folder from the file of `write_spreadsheet`.

    At least 20 answers are required of each student and to each question.
    """
    return make(tmp_path_factory.mktemp("sheet"), write_spreadsheet(), [1], min_answers=20)


def test_notes_say_which_answers_are_left_out(spreadsheet: Made) -> None:
    notes = spreadsheet.notes
    assert "left out as earlier attempts: 1,344 rows; the latest answer of a" in notes[0]
    assert notes[1] == (
        "left out: 1 questions and 1 students with fewer than 20 answers, 28 answers in all "
        "(--min_answers)"
    )
    assert "more than one CorrectAnswer: 1, such as QuestionId '7'" in notes[2]


def test_ids_are_read_without_spaces_and_decimal_places(spreadsheet: Made) -> None:
    questions = read_own_ids(spreadsheet.data, "questions.csv")
    assert questions == [str(number) for number in range(20)]
    students = read_own_ids(spreadsheet.data, "students.csv")
    assert sorted(students, key=int) == [str(number) for number in range(21)]


def test_the_latest_answer_counts(spreadsheet: Made) -> None:
    students = read_own_ids(spreadsheet.data, "students.csv")
    train = read_parts(spreadsheet.data)[layout.TRAIN_TASK_1_2]
    own_id = train["UserId"].map(lambda number: int(students[number]))
    # The answers of 21 students to 20 questions count. Four fifths of them are for training.
    assert len(train) == 336
    # Every student has answered each question on several days, and the latest is day 5. On that
    # day, students with even ids chose option 3 and the others option 2.
    assert (train["AnswerValue"] == 3 - own_id % 2).all()


def test_a_class_with_too_few_answers_of_each_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="left after leaving out 21 questions and 22 stud"):
        make(tmp_path, write_spreadsheet(), [1], min_answers=own_answers.MIN_ANSWERS_OF_EACH)


# ---- Faults ------------------------------------------------------------------------------------

ROWS = draw_rows()


@pytest.mark.parametrize(
    ("rows", "tasks", "expected"),
    [
        pytest.param(
            ROWS,
            [1, 3],
            "task 3 needs experts' judgements",
            id="task 3",
        ),
        pytest.param(
            answer_all(50, 9),
            [1],
            "own.csv: holds 450 answers of 50 students to 9 questions, expected",
            id="few questions",
        ),
        pytest.param(
            [row._replace(AnswerValue=row.CorrectAnswer) for row in ROWS],
            [2],
            "own.csv: every answer is right",
            id="all right",
        ),
        pytest.param(
            [row._replace(AnswerValue=row.CorrectAnswer % 4 + 1) for row in ROWS],
            [1],
            "every answer is wrong",
            id="all wrong",
        ),
        pytest.param(
            answer_all(19, 30),
            [4],
            "own.csv: holds 19 students, 19 of them with 12 or more answers",
            id="few students for task 4",
        ),
        pytest.param(
            answer_all(30, 11),
            [4],
            "own.csv: holds 30 students, 0 of them with 12 or more answers",
            id="few answers for task 4",
        ),
        pytest.param(
            answer_all(20, 12),
            [1, 4],
            "own.csv: holds 192 answers of 16 students to 12 questions besides those of the "
            "students examined in task 4, expected at least 200, 10 and 10",
            id="few answers beside task 4",
        ),
        pytest.param(
            [*ROWS[:3], Row("q1", " ", 1, 1)],
            [1],
            "column 'UserId': row 5 is empty, expected text",
            id="no student",
        ),
        pytest.param(
            [Row("q1", "u", 9, 1), *ROWS],
            [1],
            "'AnswerValue': row 2 is '9', expected a whole number from 1 to 8",
            id="no such option",
        ),
    ],
)
def test_a_fault_is_told_in_one_line_and_nothing_is_written(
    rows: list[Row], tasks: list[int], expected: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError) as raised:
        make(tmp_path, to_csv(rows), tasks)
    assert expected in str(raised.value)
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("with_column", [False, True])
def test_questions_may_have_two_to_eight_options(tmp_path: Path, with_column: bool) -> None:
    """The column NumberOfOptions of the organiser's file is copied to every file.

    Without the column, every question counts as having 8 options, the highest in any answer.
    """
    n_questions = 21
    # The number of options of each question in the organiser's file: 2, 3, …, 8, 2, 3, …
    expected_by_own_id = np.resize(mixed_options.NUMBERS, n_questions)
    answers = mixed_options.simulate(30, n_questions).drop(columns="IsCorrect")
    if not with_column:
        answers = answers.drop(columns="NumberOfOptions")
        expected_by_own_id = np.full(n_questions, 8)

    made = make(tmp_path, answers.to_csv(index=False), (1, 2, 4))
    data = made.data
    build_templates(data, tmp_path / "templates")

    assert "questions have up to 8 options" in made.notes
    assert read_answers(data / "train_data" / "train_task_1_2.csv")["AnswerValue"].max() == 8
    # The files have new QuestionIds, 0, 1 and so on. For each new id, questions.csv holds the id in
    # the organiser's file. In this test, the organiser's ids are whole numbers too.
    own_id_by_new_id = [int(own_id) for own_id in read_own_ids(data, "questions.csv")]
    expected_by_new_id = expected_by_own_id[own_id_by_new_id]
    template = pd.read_csv(tmp_path / "templates" / "submission_task_1_2.csv")
    for table in (*read_parts(data).values(), template):
        expected = expected_by_new_id[table["QuestionId"]]
        assert table["NumberOfOptions"].tolist() == expected.tolist()


def test_questions_with_four_options_need_no_column(tmp_path: Path) -> None:
    made = make(tmp_path, to_csv(draw_rows()), (1, 2, 4))
    assert "options" not in " ".join(made.notes)
    for part in read_parts(made.data).values():
        assert "NumberOfOptions" not in part
