"""One's own answers: from one file of them a folder laid out like the official data.

`hosting/README.md` says what the file holds, which answers count and how they are split. All tasks
learn from the same answers: a larger file for task 4 would hold what the others hide. Students get
random numbers, answers random AnswerIds and places, so that none of them tells who a student is or
how an answer turned out. Questions are numbered in the order of their own ids, shorter ones first:
2 before 10, q2 before q10. The folder organiser/ says which own id each number stands for.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from common import layout, reading, schema, writing
from common.adaptive.game import N_ROUNDS
from common.arrays import BoolArray, IntArray
from common.errors import InputError, quote
from common.tasks import TASK_3, TASK_4, TASKS, Form

import leaderboard
import numpy as np
import pandas as pd
from competition import N_MASKS, ORGANISER_DIR

_LISTS = {"UserId": "students.csv", "QuestionId": "questions.csv"}
_IDS = list(_LISTS)
_OWN_COLUMNS = (
    *(schema.Column(name, schema.TEXT) for name in _IDS), schema.ANSWER_VALUE, schema.CORRECT_ANSWER
)  # fmt: skip
# A whole number with decimal places, as spreadsheets write it where a cell of the column is empty.
_WHOLE = r"^(\d+)\.0+$"

# What is needed at least: too little for a fair competition, enough to try everything.
MIN_ANSWERS, MIN_STUDENTS, MIN_QUESTIONS = 200, 10, 10
MIN_STUDENTS_TASK_4, MIN_EXAMINABLE = 20, 8
# The smallest number that leaves N_ROUNDS beside the targets, see `draw_targets`.
MIN_ANSWERS_OF_EXAMINED = N_ROUNDS + 2
# Of each question and student, unless the organiser wants fewer: section 2.1 of the guide.
MIN_ANSWERS_OF_EACH = 50
# Students examined in a phase, times questions: an entry gets three arrays of 8 bytes for each.
_MAX_CELLS = 10_000_000

# What is to be written, by name below the folder.
Tables = dict[str, pd.DataFrame]


def make_data_folder(
    path: Path, folder: Path, tasks: Sequence[int], rng: np.random.Generator, min_answers: int
) -> list[str]:
    """Write all files made of a file of answers, or none; return notes for the organiser."""
    if TASK_3.number in tasks:
        raise InputError(
            "task 3 needs experts' judgements of pairs of questions, which a file of answers does "
            "not hold; expected some of tasks 1, 2, 4"
        )
    notes: list[str] = []
    answers = _read(path, min_answers, notes)
    students, questions = (pd.Series(answers[name].unique()) for name in _IDS)
    students = students.iloc[np.argsort(rng.permutation(len(students)))]
    questions = questions.iloc[np.lexsort((questions, questions.str.len()))]
    tables: Tables = {}
    for name, own in zip(_IDS, (students, questions), strict=True):
        number = np.arange(len(own))
        answers[name] = answers[name].map(pd.Series(number, own))
        listed = pd.DataFrame({name: number, f"Own{name}": own.map(leaderboard.safe)})
        tables[f"{ORGANISER_DIR}/{_LISTS[name]}"] = listed
    answers["AnswerId"] = rng.permutation(len(answers))
    # From here on nothing depends on the order of the file.
    columns = [column.name for column in schema.ANSWER_COLUMNS]
    answers = answers[columns].iloc[rng.permutation(len(answers))]
    if TASK_4.number in tasks:
        answers = _set_students_aside(path, answers, rng, tables, notes)
    with_pairs = [number for number in tasks if TASKS[number].form is Form.PREDICTIONS]
    if wanted := sorted(with_pairs):
        _require_enough(path, answers, " beside the students examined in task 4")
        answers = _set_answers_aside(answers, wanted, tables, notes)
    for task in sorted(tasks):
        tables[f"{layout.TRAIN_DIR.name}/{TASKS[task].data.train}"] = answers
    writing.write_files({folder / name: table for name, table in tables.items()})
    return notes


def _read(path: Path, min_answers: int, notes: list[str]) -> pd.DataFrame:
    """Read one answer of each student to each question, with ids as text, and IsCorrect."""
    has_dates = schema.DATE_ANSWERED.name in reading.read_header(reading.file_source(path))
    table = reading.read_table(
        path, [*_OWN_COLUMNS, *([schema.DATE_ANSWERED] if has_dates else [])]
    )
    for name in _IDS:
        table[name] = table[name].str.strip().str.replace(_WHOLE, r"\1", regex=True)
    others, counted = ("earlier", "latest answer") if has_dates else ("later", "first row")
    if has_dates:
        # Rows without a date first, so that a dated one counts.
        table = table.sort_values("DateAnswered", kind="stable", na_position="first")
    every = table.drop_duplicates(_IDS, keep="last" if has_dates else "first").sort_index()
    if n_repeated := len(table) - len(every):
        counts = f"the {counted} of a student and a question counts"
        notes.append(f"left out as {others} attempts: {n_repeated:,} rows; {counts}")

    # Questions and students with few answers go, until all that are left have enough.
    answers, n_before = every, len(every) + 1
    while len(answers) < n_before:
        n_before = len(answers)
        n_of = [answers.groupby(name)[name].transform("size") for name in _IDS]
        answers = answers[(n_of[0] >= min_answers) & (n_of[1] >= min_answers)]
    n_students, n_questions = (every[name].nunique() - answers[name].nunique() for name in _IDS)
    left_out = (
        f"{n_questions:,} questions and {n_students:,} students with fewer than {min_answers} "
        f"answers, {len(every) - len(answers):,} answers in all"
    )
    if not len(answers):
        raise InputError(
            f"{path}: nothing is left without {left_out}; expected more, or a smaller "
            "--min_answers, 0 to leave out none"
        )
    if len(answers) < len(every):
        notes.append(f"left out: {left_out} (--min_answers)")
    _require_enough(path, answers)
    is_correct = (answers["AnswerValue"] == answers["CorrectAnswer"]).astype(np.int8)
    if is_correct.min() == is_correct.max():
        outcome, relation = ("right", "equals") if is_correct.all() else ("wrong", "differs from")
        raise InputError(
            f"{path}: every answer is {outcome} (AnswerValue {relation} CorrectAnswer in every "
            "row), expected right and wrong ones"
        )
    n_keys = answers.groupby("QuestionId", sort=False)["CorrectAnswer"].nunique()
    several = n_keys.index[n_keys > 1]
    if len(several):
        notes.append(
            f"questions with more than one CorrectAnswer: {len(several):,}, such as QuestionId "
            f"{quote(several[0])}; each answer is right or wrong by its own row"
        )
    return answers.assign(IsCorrect=is_correct)


def _require_enough(path: Path, answers: pd.DataFrame, where: str = "") -> None:
    n_students, n_questions = answers["UserId"].nunique(), answers["QuestionId"].nunique()
    if len(answers) < MIN_ANSWERS or n_students < MIN_STUDENTS or n_questions < MIN_QUESTIONS:
        raise InputError(
            f"{path}: holds {len(answers):,} answers of {n_students:,} students to "
            f"{n_questions:,} questions{where}, expected at least {MIN_ANSWERS}, {MIN_STUDENTS} "
            f"and {MIN_QUESTIONS}"
        )


def _set_students_aside(
    path: Path, answers: pd.DataFrame, rng: np.random.Generator, tables: Tables, notes: list[str]
) -> pd.DataFrame:
    """Add the test files of task 4; return the answers of the students who are not examined."""
    counts = np.bincount(answers["UserId"])
    examinable = np.flatnonzero(counts >= MIN_ANSWERS_OF_EXAMINED)
    if len(counts) < MIN_STUDENTS_TASK_4 or len(examinable) < MIN_EXAMINABLE:
        raise InputError(
            f"{path}: holds {len(counts):,} students, {len(examinable):,} of them with "
            f"{MIN_ANSWERS_OF_EXAMINED} or more answers; task 4 expected at least "
            f"{MIN_STUDENTS_TASK_4}, {MIN_EXAMINABLE} of them with so many, or --tasks 1 2"
        )
    n_questions = answers["QuestionId"].nunique()
    n = min(len(counts) // 10, len(examinable) // 4, _MAX_CELLS // n_questions)
    chosen = rng.permutation(examinable)[: 2 * n]
    for phase, students in zip(layout.PHASES, (chosen[:n], chosen[n:]), strict=True):
        masked = answers[answers["UserId"].isin(students)]
        for mask in range(N_MASKS):
            targets = draw_targets(masked["UserId"].to_numpy(), rng)
            masked = masked.assign(**{f"{schema.IS_TARGET}_{mask}": targets.astype(np.int8)})
        tables[f"{layout.TEST_DIR.name}/{TASK_4.answers_name(phase)}"] = masked
        n_targets = masked[f"{schema.IS_TARGET}_0"].sum()
        answered = f"{n:,} students with {len(masked):,} answers"
        notes.append(f"task 4, {phase}: {answered}, {n_targets:,} of them targets of a mask")
    return answers[~answers["UserId"].isin(chosen)]


def draw_targets(student: IntArray, rng: np.random.Generator) -> BoolArray:
    """Draw a fifth of the answers of each student at random, rounded; a boolean for each answer."""
    drawn = pd.Series(rng.random(len(student))).groupby(student)
    n_targets = (2 * drawn.transform("size") + 5) // 10
    return (drawn.rank(method="first") <= n_targets).to_numpy()


def _set_answers_aside(
    answers: pd.DataFrame, tasks: Sequence[int], tables: Tables, notes: list[str]
) -> pd.DataFrame:
    """Add the test files of tasks 1 and 2; return the answers, in random order, to learn from."""
    n_train = len(answers) * 4 // 5
    middle = (n_train + len(answers)) // 2
    label = "tasks 1 and 2" if len(tasks) == 2 else f"task {tasks[0]}"
    parts = answers[n_train:middle], answers[middle:]
    for phase, hidden in zip(layout.PHASES, parts, strict=True):
        for task in tasks:
            columns = ["QuestionId", "UserId", "AnswerId", TASKS[task].column.name]
            name = TASKS[task].answers_name(phase)
            tables[f"{layout.TEST_DIR.name}/{name}"] = hidden[columns]
        error = f"a standard error of at least about {0.5 / np.sqrt(len(hidden)):.3f}"
        notes.append(f"{label}, {phase}: {len(hidden):,} answers; a score has {error}")
    return answers[:n_train]
