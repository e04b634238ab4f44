"""One's own answers: nothing lost, nothing hidden that shows elsewhere, faults named."""

import csv
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import own_answers
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from own_answers import make_data_folder
from sklearn.metrics import roc_auc_score

from common import layout
from common.adaptive.game import GameState, Rules, read_reference
from common.answers import read_answers
from common.errors import InputError
from common.templates import build_templates

Write = Callable[[str, str | bytes], Path]
Make = Callable[..., tuple[Path, list[str]]]
# QuestionId, UserId, AnswerValue, CorrectAnswer.
Row = tuple[str, str, int, int]
HEADER = "QuestionId,UserId,AnswerValue,CorrectAnswer"
ALL_TASKS = [(1,), (2,), (4,), (1, 2), (2, 4), (1, 2, 4)]


def draw_rows(seed: int = 0, n_students: int = 30, n_questions: int = 25) -> list[Row]:
    """Draw a class in which the last fifth of the students answered few questions."""
    rng = np.random.default_rng(seed)
    key = rng.integers(1, 5, n_questions)
    rows = []
    for student in range(n_students):
        n = rng.integers(14, n_questions + 1) if student < n_students * 4 // 5 else 6
        for question in rng.permutation(n_questions)[:n]:
            option = key[question] if rng.random() < 0.6 else rng.integers(1, 5)
            rows.append((f"q{question}", f"pupil {student}@x", int(option), int(key[question])))
    return rows


def as_text(rows: Sequence[Row]) -> str:
    return "\n".join([HEADER, *(",".join(map(str, row)) for row in rows)]) + "\n"


@pytest.fixture
def make(write: Write, tmp_path: Path) -> Make:
    """Return a function that makes the folder of a file, or of its rows."""

    def call(
        answers: Sequence[Row] | str | bytes,
        tasks: Sequence[int],
        name: str = "made",
        seed: int = 0,
    ) -> tuple[Path, list[str]]:
        text = answers if isinstance(answers, str | bytes) else as_text(answers)
        path, made = write("own.csv", text), tmp_path / name
        return made, make_data_folder(path, made, tasks, np.random.default_rng(seed))

    return call


def read_rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def read_own_ids(folder: Path, name: str) -> list[str]:
    """Return the own ids of numbers 0, 1, …"""
    rows = [[*row.values()] for row in read_rows(folder / "organiser" / name)]
    assert [row[0] for row in rows] == [str(number) for number in range(len(rows))]
    return [row[1] for row in rows]


def read_parts(folder: Path) -> dict[str, list[dict[str, str]]]:
    paths = sorted([*folder.glob("train_data/*"), *folder.glob("test_data/*")])
    return {path.name: read_rows(path) for path in paths}


def expected_names(tasks: Sequence[int]) -> set[str]:
    names = {
        layout.test_answers_name(task, phase)
        for task in (1, 2)
        if task in tasks
        for phase in layout.PHASES
    }
    if names:
        names.add(layout.TRAIN_TASK_1_2)
    if 4 in tasks:
        names |= {layout.TRAIN_TASK_3_4, *map(layout.test_masks_name, layout.PHASES)}
    return names


@settings(max_examples=20)
@given(
    seed=st.integers(0, 2**32),
    tasks=st.sampled_from(ALL_TASKS),
    n_students=st.integers(25, 45),
    n_questions=st.integers(18, 30),
    n_repeated=st.integers(0, 40),
)
def test_each_answer_is_in_one_part(
    seed: int, tasks: tuple[int, ...], n_students: int, n_questions: int, n_repeated: int
) -> None:
    rows = draw_rows(seed, n_students, n_questions)
    again = np.random.default_rng(seed).choice(len(rows), n_repeated, replace=False)
    # Second attempts, with another option.
    repeated = [(*rows[row][:2], rows[row][2] % 4 + 1, rows[row][3]) for row in again]
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "own.csv").write_text(as_text(rows + repeated), encoding="utf-8")
        rng = np.random.default_rng(seed)
        notes = make_data_folder(folder / "own.csv", folder / "made", tasks, rng)
        parts = read_parts(folder / "made")
        students = read_own_ids(folder / "made", "students.csv")
        questions = read_own_ids(folder / "made", "questions.csv")
        require_playable(folder / "made", tasks)
    assert set(parts) == expected_names(tasks)
    assert (f"later attempts: {n_repeated} rows" in " ".join(notes)) == (n_repeated > 0)
    assert len(set(students)) == len(students) and len(set(questions)) == len(questions)
    assert questions == sorted(questions, key=lambda own: (len(own), own))

    # The tasks learn from the same answers; tasks 1 and 2 hide the same ones.
    if {layout.TRAIN_TASK_1_2, layout.TRAIN_TASK_3_4} <= set(parts):
        assert parts[layout.TRAIN_TASK_1_2] == parts.pop(layout.TRAIN_TASK_3_4)
    for phase in layout.PHASES if {1, 2} <= set(tasks) else ():
        first = parts[layout.test_answers_name(1, phase)]
        second = parts.pop(layout.test_answers_name(2, phase))
        for one, two in zip(first, second, strict=True):
            assert one["AnswerId"] == two["AnswerId"]
            one["AnswerValue"] = two["AnswerValue"]

    known = {(question, student): (option, key) for question, student, option, key in rows}
    found: Counter[Row] = Counter()
    for part in parts.values():
        for row in part:
            question, student = questions[int(row["QuestionId"])], students[int(row["UserId"])]
            option, key = known[question, student]
            right = {"IsCorrect": int(option == key), "AnswerValue": option, "CorrectAnswer": key}
            assert all(row[name] == str(right[name]) for name in right if name in row)
            found[question, student, option, key] += 1
    assert found == Counter(rows)
    ids = sorted(int(row["AnswerId"]) for part in parts.values() for row in part)
    assert ids == list(range(len(rows)))


def require_playable(folder: Path, tasks: Sequence[int]) -> None:
    """Require what the kit's own reading and the rules of task 4 require; check the proportions."""
    for path in folder.glob("train_data/*"):
        read_answers(path, options=True, ids=True)
    if 4 not in tasks:
        learned = len(read_answers(folder / "train_data" / layout.TRAIN_TASK_1_2))
        parts = read_parts(folder)
        n_hidden = [len(parts[layout.test_answers_name(tasks[0], p)]) for p in layout.PHASES]
        n = learned + sum(n_hidden)
        assert learned == n * 4 // 5
        assert 0 <= n_hidden[1] - n_hidden[0] <= 1
        return
    answers = read_answers(folder / "train_data" / layout.TRAIN_TASK_3_4)
    learners = set(answers.student.tolist())
    n_students = len(read_own_ids(folder, "students.csv"))
    for phase in layout.PHASES:
        reference = read_reference(folder / "test_data" / layout.test_masks_name(phase))
        assert len(reference.student) == n_students // 10
        assert not learners & set(reference.student.tolist())
        learners |= set(reference.student.tolist())
        assert len(reference.targets) == 10
        n_answers = (reference.is_correct >= 0).sum(axis=1)
        for mask, targets in reference.targets.items():
            # Raises where a student cannot be asked ten questions.
            GameState(reference, mask, Rules(targets_queryable=False))
            assert (targets.sum(axis=1) == np.rint(0.2 * n_answers)).all()
    assert len(learners) <= n_students


def test_students_with_few_answers_are_not_examined(make: Make) -> None:
    # Two thirds of the students have too few answers.
    seen: Counter[str] = Counter()
    kept = []
    for row in draw_rows(n_students=60):
        seen[row[1]] += 1
        if int(row[1].split("@")[0].split()[1]) % 3 == 0 or seen[row[1]] <= 11:
            kept.append(row)
    able = {name for name, n in Counter(row[1] for row in kept).items() if n >= 12}
    made, _ = make(kept, [4])
    students, parts = read_own_ids(made, "students.csv"), read_parts(made)
    examined = {
        students[int(row["UserId"])]
        for phase in layout.PHASES
        for row in parts[layout.test_masks_name(phase)]
    }
    # Fewer than a tenth of the students in each phase, so that half of the able ones are left.
    assert examined < able
    assert (len(able), len(examined)) == (16, 8)


def test_targets_are_drawn_at_random() -> None:
    student = np.repeat([7, 3, 9], [1000, 500, 13])
    rng = np.random.default_rng(0)
    often = np.mean([own_answers.draw_targets(student, rng) for _ in range(500)], axis=0)
    # Every answer becomes a target as often as any other.
    assert abs(often[:1500] - 0.2).max() < 5 * np.sqrt(0.16 / 500)


def test_no_number_tells_the_outcome(make: Make) -> None:
    """Even if the file is sorted by outcome, and by student."""
    rows = draw_rows(n_students=200, n_questions=40)
    rows.sort(key=lambda row: (row[2] != row[3], row[1]))
    made, _ = make(rows, [1, 2, 4])
    parts = read_parts(made)
    build_templates(made, made / "templates")
    template = read_rows(made / "templates" / layout.TEMPLATE_TASK_1_2)
    assert list(template[0]) == ["", "QuestionId", "UserId", "AnswerId"]
    outcome = {
        row["AnswerId"]: row["IsCorrect"]
        for phase in layout.PHASES
        for row in parts[layout.test_answers_name(1, phase)]
    }
    in_template = [{**row, "IsCorrect": outcome[row["AnswerId"]]} for row in template]
    examined = layout.test_masks_name("public")
    for part in (in_template, parts[layout.TRAIN_TASK_1_2], parts[examined]):
        is_correct = np.array([int(row["IsCorrect"]) for row in part])
        ids = np.array([int(row["AnswerId"]) for row in part])
        for place in (np.arange(len(ids)), ids):
            assert abs(roc_auc_score(is_correct, place) - 0.5) < 0.05
    # The number of a student tells no phase, and does not follow the file.
    public, private = (
        {int(row["UserId"]) for row in parts[layout.test_masks_name(phase)]}
        for phase in layout.PHASES
    )
    assert max(public) > min(private) and max(private) > min(public)
    assert max(public | private) > 100
    first_row = {student: place for place, (_, student, *_) in reversed([*enumerate(rows)])}
    order = np.array([first_row[student] for student in read_own_ids(made, "students.csv")])
    assert abs(np.corrcoef(order, np.arange(len(order)))[0, 1]) < 0.2


def test_same_generator_same_bytes(make: Make) -> None:
    def contents(seed: int, name: str) -> dict[str, bytes]:
        made, _ = make(draw_rows(), [1, 2, 4], name, seed)
        return {file.name: file.read_bytes() for file in made.rglob("*.csv")}

    first, second, other = contents(1, "a"), contents(1, "b"), contents(2, "c")
    assert len(first) == 10
    assert first == second
    assert [name for name in first if first[name] == other[name]] == ["questions.csv"]


def test_forms_of_a_file(make: Make) -> None:
    """Whole-number ids, further columns in another order, spaces, CRLF, a byte order mark."""
    lines = ["Quiz,UserId,CorrectAnswer,QuestionId,AnswerValue"]
    for question, student, option, key in draw_rows():
        number = int(student.split("@")[0].split()[1]) + 100
        lines.append(f'"a, b", {number} ,{key},{int(question[1:]) * 3},{option}')
    made, _ = make(("\ufeff" + "\r\n".join(lines)).encode(), [4])
    assert read_own_ids(made, "questions.csv") == [str(3 * n) for n in range(25)]
    students = read_own_ids(made, "students.csv")
    assert sorted(students) == [str(100 + n) for n in range(30)]
    assert students != sorted(students)


def test_question_with_two_keys(make: Make) -> None:
    rows = draw_rows()
    place = next(place for place, row in enumerate(rows) if row[2] != row[3])
    question, student, option, _ = rows[place]
    rows[place] = (question, student, option, option)
    _, notes = make(rows, [2])
    assert f"more than one CorrectAnswer: 1, such as QuestionId '{question}'" in notes[0]


ROWS = draw_rows()


def grid(n_students: int, n_questions: int) -> list[Row]:
    """Return an answer of every student to every question."""
    return [(f"q{q}", f"u{s}", 1 + s % 2, 1) for s in range(n_students) for q in range(n_questions)]


@pytest.mark.parametrize(
    ("rows", "tasks", "expected"),
    [
        (ROWS, [1, 3], "task 3 needs experts' judgements"),
        (ROWS, [], "tasks: none, expected some of 1, 2, 4"),
        (ROWS, [5], "tasks: 5, expected some of 1, 2, 4"),
        (grid(8, 12), [1], "own.csv: holds 96 answers of 8 students to 12 questions, expected at "),
        (grid(8, 30), [1], "holds 240 answers of 8 students to 30 questions, expected at least"),
        (grid(50, 9), [1], "9 questions, expected at least 200, 10 and 10"),
        ([(q, s, key, key) for q, s, _, key in ROWS], [2], "own.csv: every answer is right"),
        ([(q, s, key % 4 + 1, key) for q, s, _, key in ROWS], [1], "every answer is wrong"),
        (grid(19, 30), [4], "own.csv: holds 19 students, 19 of them with 12 or more answers; "
         "task 4 expected at least 20, 8 of them with so many, or --tasks 1 2"),
        (grid(30, 11), [4], "own.csv: holds 30 students, 0 of them with 12 or more answers"),
        (grid(20, 12), [1, 4], "own.csv: holds 192 answers of 16 students to 12 questions "
         "beside the students examined in task 4, expected at least 200, 10 and 10"),
        ([*ROWS[:3], ("q1", " ", 1, 1)], [1], "column 'UserId': row 5 is empty, expected text"),
        ([("q1", "u", 5, 1), *ROWS], [1], "'AnswerValue': row 2 is '5', expected a whole number"),
        ("UserId,AnswerValue,CorrectAnswer\n1,2,3\n", [1], "column 'QuestionId' is missing"),
    ],
)  # fmt: skip
def test_faults(
    rows: list[Row] | str, tasks: list[int], expected: str, make: Make, tmp_path: Path
) -> None:
    with pytest.raises(InputError) as raised:
        make(rows, tasks)
    assert expected in str(raised.value)
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "made").exists()
