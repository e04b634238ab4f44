"""One's own answers: nothing lost, nothing hidden that shows elsewhere, faults named."""

from collections.abc import Sequence
from itertools import chain, product
from pathlib import Path

from common import layout
from common.adaptive.game import GameState, Rules, read_reference
from common.answers import read_answers
from common.errors import InputError
from common.tasks import TASKS
from tools.templates import build_templates

import numpy as np
import own_answers
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

# QuestionId, UserId, AnswerValue, CorrectAnswer.
Row = tuple[str, str, int, int]
HEADER = "QuestionId,UserId,AnswerValue,CorrectAnswer"


def draw_rows(seed: int = 0, n_students: int = 30, n_questions: int = 25) -> list[Row]:
    """Draw a class in which the last fifth of the students answered few questions."""
    rng = np.random.default_rng(seed)
    key = rng.integers(1, 5, n_questions)
    rows = []
    for student in range(n_students):
        n = rng.integers(14, n_questions + 1) if student < n_students * 4 // 5 else 6
        for question in rng.permutation(n_questions)[:n]:
            option = key[question] if rng.random() < 0.6 else rng.integers(1, 5)
            rows.append((f"=q{question}", f"@{student} x", int(option), int(key[question])))
    return rows


def make(
    folder: Path,
    answers: Sequence[Row] | str,
    tasks: Sequence[int],
    seed: int = 0,
    min_answers: int = 0,
) -> tuple[Path, list[str]]:
    """Make the folder of a file, or of its rows; return it with what the organiser is told."""
    if not isinstance(answers, str):
        answers = "\n".join([HEADER, *(",".join(map(str, row)) for row in answers)])
    folder.mkdir(exist_ok=True)
    path, made = folder / "own.csv", folder / "made"
    path.write_text(answers, encoding="utf-8", newline="")
    rng = np.random.default_rng(seed)
    return made, own_answers.make_data_folder(path, made, tasks, rng, min_answers)


def read_own_ids(folder: Path, name: str) -> list[str]:
    """Return the own ids of numbers 0, 1, …"""
    own = pd.read_csv(folder / "organiser" / name, dtype=str, index_col=0).iloc[:, 0]
    assert own.index.tolist() == [str(number) for number in range(len(own))]
    # A spreadsheet must not take them for formulas.
    assert not own.str.match("[=@]").any()
    return own.str.removeprefix("'").to_list()


def read_parts(folder: Path) -> dict[str, pd.DataFrame]:
    return {path.name: pd.read_csv(path) for path in folder.glob("t*_data/*")}


@pytest.mark.parametrize("tasks", [(1,), (2,), (4,), (1, 2), (2, 4), (1, 2, 4)])
def test_each_answer_is_in_one_part(tasks: tuple[int, ...], tmp_path: Path) -> None:
    """So that no hidden answer is in a training file."""
    rows = draw_rows(sum(tasks), 45, 18)
    repeated = [(*row[:2], row[2] % 4 + 1, row[3]) for row in rows[::20]]
    made, notes = make(tmp_path, rows + repeated, tasks)
    assert f"left out as later attempts: {len(repeated)} rows" in notes[0]
    parts = read_parts(made)
    expected = {TASKS[task].answers_name(phase) for task in tasks for phase in layout.PHASES}
    expected |= {layout.TRAIN_TASK_3_4 if task == 4 else layout.TRAIN_TASK_1_2 for task in tasks}
    assert set(parts) == expected
    # The tasks learn from the same answers; tasks 1 and 2 hide the same ones.
    apart = {frozenset(part["AnswerId"]) for part in parts.values()}
    assert len(apart) == 1 + 2 * (tasks != (4,)) + 2 * (4 in tasks)
    assert sorted(chain(*apart)) == list(range(len(rows)))

    students, questions = (read_own_ids(made, f"{of}.csv") for of in ("students", "questions"))
    assert questions == sorted({row[0] for row in rows}, key=lambda own: (len(own), own))
    found = pd.concat(parts.values())
    found["QuestionId"] = np.array(questions)[found["QuestionId"]]
    found["UserId"] = np.array(students)[found["UserId"]]
    known = pd.DataFrame(rows, columns=HEADER.split(","))
    known["IsCorrect"] = known["AnswerValue"] == known["CorrectAnswer"]
    both = found.merge(known, on=["QuestionId", "UserId"], validate="many_to_one")
    assert set(both["AnswerId"]) == set(range(len(rows))) and len(both) == len(found)
    for name in ("IsCorrect", "AnswerValue", "CorrectAnswer"):
        written = both[f"{name}_x"].dropna()
        assert (written == both[f"{name}_y"][written.index]).all()

    # What the kit's own reading and the rules of task 4 require, and the proportions.
    (train, *_) = [read_answers(p, options=True, ids=True) for p in made.glob("train_data/*")]
    if 4 not in tasks:
        n_hidden = [len(parts[TASKS[tasks[0]].answers_name(p)]) for p in layout.PHASES]
        assert len(train) == len(rows) * 4 // 5 and 0 <= n_hidden[1] - n_hidden[0] <= 1
        return
    seen = set(train["UserId"])
    for phase in layout.PHASES:
        reference = read_reference(made / "test_data" / TASKS[4].answers_name(phase))
        assert len(reference.student) == 4 and not seen & set(reference.student.tolist())
        seen |= set(reference.student.tolist())
        assert len({targets.tobytes() for targets in reference.targets.values()}) == 10
        n_answers = (reference.is_correct >= 0).sum(axis=1)
        for mask, targets in reference.targets.items():
            # Raises where a student cannot be asked ten questions.
            GameState(reference, mask, Rules(targets_queryable=False)).require_askable(10)
            assert (targets.sum(axis=1) == np.rint(0.2 * n_answers)).all()


def test_no_number_tells_the_outcome(tmp_path: Path) -> None:
    """Even if the file is sorted by outcome, and by student."""
    rows = draw_rows(n_students=200, n_questions=40)
    rows.sort(key=lambda row: (row[2] != row[3], row[1]))
    made, _ = make(tmp_path, rows, [1, 2, 4])
    parts = read_parts(made)
    build_templates(made, made / "templates")
    template = pd.read_csv(made / "templates" / layout.TEMPLATE_TASK_1_2)
    assert list(template) == ["Unnamed: 0", "QuestionId", "UserId", "AnswerId"]
    hidden = pd.concat(parts[TASKS[1].answers_name(phase)] for phase in layout.PHASES)
    in_template = template.merge(hidden[["AnswerId", "IsCorrect"]], validate="one_to_one")
    assert len(in_template) == len(template)
    examined = parts[TASKS[4].answers_name("public")]
    for part in (in_template, parts[layout.TRAIN_TASK_1_2], examined):
        # By chance an AUC of n answers, half right, has a standard error of 1 / √(3 n): 0.016
        # for the 1,300 hidden ones. What is drawn is the same on every machine.
        for place in (np.arange(len(part)), part["AnswerId"]):
            assert abs(roc_auc_score(part["IsCorrect"], place) - 0.5) < 0.05
    # The number of a student does not follow the file: 200 students, a standard error of 0.07.
    first_row = {student: place for place, (_, student, *_) in reversed([*enumerate(rows)])}
    order = [first_row[student] for student in read_own_ids(made, "students.csv")]
    assert abs(np.corrcoef(order, np.arange(len(order)))[0, 1]) < 0.2
    # The same generator makes the same bytes, another one others.
    for seed in (0, 1):
        again, _ = make(tmp_path / f"{seed}", rows, [1, 2, 4], seed)
        pairs = [(path, made / path.relative_to(again)) for path in again.rglob("*.csv")]
        changed = [path.name for path, old in pairs if path.read_bytes() != old.read_bytes()]
        assert len(changed) == 9 * seed and "questions.csv" not in changed


def test_what_counts_of_a_file(tmp_path: Path) -> None:
    """Ids as a spreadsheet writes them, the latest answers; who and what has too few goes."""
    # Student 21 answers 9 questions only, so that of question 20, which only it and 19 others
    # answer, too few are left.
    pairs = [*product(range(21), range(20)), *((student, 20) for student in range(19))]
    pairs += [(21, question) for question in (*range(8), 20)]
    lines = ["Quiz,UserId,CorrectAnswer,QuestionId,AnswerValue,DateAnswered"]
    for student, question in pairs:
        own = f"{student}.0" if question % 2 else f" {student} "
        # One row has another key than the other answers to its question.
        key = 4 if student == question == 7 else 3
        for day, option in ((3, 1 + student % 2), (5, 3 - student % 2), (4, 4)):
            lines.append(f'"a, b",{own},{key},{question},{option},2020-01-0{day} 10:00')
        lines.append(f'"",{own},3,{question},1,')
    text = "\ufeff" + "\r\n".join(lines)
    made, notes = make(tmp_path, text, [1], min_answers=20)
    assert "left out as earlier attempts: 1,344 rows; the latest answer of a" in notes[0]
    gone = "1 questions and 1 students with fewer than 20 answers, 28 answers in all"
    assert notes[1] == f"left out: {gone} (--min_answers)"
    assert "more than one CorrectAnswer: 1, such as QuestionId '7'" in notes[2]
    assert read_own_ids(made, "questions.csv") == [str(n) for n in range(20)]
    students = read_own_ids(made, "students.csv")
    assert sorted(students, key=int) == [str(n) for n in range(21)]
    train = read_parts(made)[layout.TRAIN_TASK_1_2]
    own = train["UserId"].map(lambda number: int(students[number]))
    assert len(train) == 336 and (train["AnswerValue"] == 3 - own % 2).all()
    with pytest.raises(InputError, match="left after leaving out 21 questions and 22 stud"):
        make(tmp_path, text, [1], min_answers=own_answers.MIN_ANSWERS_OF_EACH)


ROWS = draw_rows()


def grid(n_students: int, n_questions: int) -> list[Row]:
    """Return an answer of every student to every question."""
    return [(f"q{q}", f"u{s}", 1 + s % 2, 1) for s in range(n_students) for q in range(n_questions)]


@pytest.mark.parametrize(
    ("rows", "tasks", "expected"),
    [
        (ROWS, [1, 3], "task 3 needs experts' judgements"),
        (grid(50, 9), [1], "own.csv: holds 450 answers of 50 students to 9 questions, expected"),
        ([(q, s, key, key) for q, s, _, key in ROWS], [2], "own.csv: every answer is right"),
        ([(q, s, key % 4 + 1, key) for q, s, _, key in ROWS], [1], "every answer is wrong"),
        (grid(19, 30), [4], "own.csv: holds 19 students, 19 of them with 12 or more answers"),
        (grid(30, 11), [4], "own.csv: holds 30 students, 0 of them with 12 or more answers"),
        (grid(20, 12), [1, 4], "own.csv: holds 192 answers of 16 students to 12 questions "
         "besides those of the students examined in task 4, expected at least 200, 10 and 10"),
        ([*ROWS[:3], ("q1", " ", 1, 1)], [1], "column 'UserId': row 5 is empty, expected text"),
        ([("q1", "u", 5, 1), *ROWS], [1], "'AnswerValue': row 2 is '5', expected a whole number"),
    ],
)  # fmt: skip
def test_faults(rows: list[Row], tasks: list[int], expected: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as raised:
        make(tmp_path, rows, tasks)
    assert expected in str(raised.value) and "\n" not in str(raised.value)
    assert not (tmp_path / "made").exists()
