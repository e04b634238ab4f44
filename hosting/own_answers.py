"""One's own answers: from one file of them a folder laid out like the official data.

The file has a row for each answer and the columns QuestionId, UserId, AnswerValue (the option
chosen, 1 to 4) and CorrectAnswer; further columns are passed over. An id is any text, such as 17 or
anna@school; spaces around it do not count. Where a student answered a question several times, the
first row counts: sort an export by date before.

    train_data/   train_task_1_2.csv, train_task_3_4.csv
    test_data/    test_public_answers_task_1.csv and so on, test_public_task_4_more_splits.csv
    organiser/    students.csv, questions.csv: which of one's own ids each number stands for

Only the files of the tasks asked for are there. organiser/ and test_data/ are not for participants.

- Tasks 1 and 2: the answers are split at random, 80 % to learn from, 10 % public, 10 % private.
- Task 4: students are split at random, 10 % public, 10 % private, the others to learn from. Those
  examined are drawn from the students with at least twelve answers, so that with every mask ten
  questions may be asked beside the targets, a fifth of the answers of each; half of these students
  or more are left to learn from.
- Task 4 and another one: first the students of task 4 are set aside, then the answers of the others
  are split. All tasks learn from the same answers: a larger file for task 4 would hold the answers
  that tasks 1 and 2 hide.

Students get random numbers and answers random AnswerIds, and the rows are in random order, so that
none of them tells who a student is or how an answer turned out. Questions are numbered in the order
of their own ids, shorter ones first: 2 before 10, q2 before q10.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import io, layout, schema
from common.adaptive.game import N_ROUNDS
from common.answers import IntArray, find_repeats
from common.errors import InputError, quote

import numpy as np
import numpy.typing as npt
import pandas as pd
from competition import N_MASKS, ORGANISER_DIR
from tqdm import tqdm

STUDENTS_NAME, QUESTIONS_NAME = "students.csv", "questions.csv"

_QUESTION_ID = schema.Column(schema.QUESTION_ID.name, schema.TEXT)
_USER_ID = schema.Column(schema.USER_ID.name, schema.TEXT)
_OWN_COLUMNS = (_QUESTION_ID, _USER_ID, schema.ANSWER_VALUE, schema.CORRECT_ANSWER)

# What is needed at least: too little for a fair competition, enough to try everything.
MIN_ANSWERS, MIN_STUDENTS, MIN_QUESTIONS = 200, 10, 10
MIN_STUDENTS_TASK_4, MIN_EXAMINABLE = 20, 8
# The smallest number that leaves N_ROUNDS beside the targets, see `count_targets`.
MIN_ANSWERS_OF_EXAMINED = N_ROUNDS + 2
# Students examined in a phase, times questions: an entry gets three arrays of 8 bytes for each.
_MAX_CELLS = 10_000_000

Tables = dict[str, Mapping[str, Any]]


@dataclass(frozen=True)
class OwnAnswers:
    """The answers of a file, renumbered.

    Attributes
    ----------
    path
        The file.
    answers
        One for each pair of student and question, in the order of the file; students and questions
        numbered from 0 without gaps.
    students, questions
        Their own ids, text, by number.
    notes
        What the organiser should know about the file.
    """

    path: Path
    answers: pd.DataFrame
    students: pd.Index[Any]
    questions: pd.Index[Any]
    notes: list[str]


def make_data_folder(
    path: Path, folder: Path, tasks: Sequence[int], rng: np.random.Generator
) -> list[str]:
    """Write training files, test files and lists of ids from a file of answers; all or none.

    Parameters
    ----------
    path
        CSV with QuestionId, UserId, AnswerValue, CorrectAnswer, as described above.
    folder
        Where they go; made if missing.
    tasks
        Some of 1, 2 and 4.
    rng
        Draws the splits, the targets and the numbers; without it they cannot be found again.

    Returns
    -------
    list of str
        What the organiser should know: how large the parts are, what was left out.

    Raises
    ------
    InputError
        If another task is asked for; a column is missing, or a value wrong; every answer is right,
        or every answer wrong; there are too few answers, students or questions.
    """
    _require_tasks(tasks)
    own = read_own_answers(path, rng)
    notes = list(own.notes)
    # From here on nothing depends on the order of the file.
    order = rng.permutation(len(own.answers))
    learned = own.answers.iloc[order].reset_index(drop=True)
    tables: Tables = {}
    if 4 in tasks:
        learned = _set_students_aside(own, learned, rng, tables, notes)
    if 1 in tasks or 2 in tasks:
        learned = _set_answers_aside(own, learned, tasks, tables, notes)
        tables[f"{layout.TRAIN_DIR.name}/{layout.TRAIN_TASK_1_2}"] = _columns(learned)
    if 4 in tasks:
        tables[f"{layout.TRAIN_DIR.name}/{layout.TRAIN_TASK_3_4}"] = _columns(learned)
    for name, id_name, ids in (
        (STUDENTS_NAME, schema.USER_ID.name, own.students),
        (QUESTIONS_NAME, schema.QUESTION_ID.name, own.questions),
    ):
        numbers = np.arange(len(ids), dtype=np.int32)
        tables[f"{ORGANISER_DIR}/{name}"] = {id_name: numbers, f"Own{id_name}": ids}
    _write(folder, tables)
    return notes


def _require_tasks(tasks: Sequence[int]) -> None:
    if 3 in tasks:
        raise InputError(
            "task 3 needs experts' judgements of pairs of questions, which a file of answers does "
            "not hold; expected some of tasks 1, 2, 4"
        )
    if not tasks or not {1, 2, 4}.issuperset(tasks):
        found = ", ".join(map(str, tasks)) or "none"
        raise InputError(f"tasks: {found}, expected some of 1, 2, 4")


def read_own_answers(path: Path, rng: np.random.Generator) -> OwnAnswers:
    """Read a file of answers with any ids; number students at random, questions in order.

    Parameters
    ----------
    path
        CSV with QuestionId, UserId, AnswerValue, CorrectAnswer.
    rng
        Draws the numbers of students and the AnswerIds.

    Raises
    ------
    InputError
        As `make_data_folder`, for what the file holds.
    """
    table = io.read_table(path, _OWN_COLUMNS)
    student, students = _encode(table[_USER_ID.name])
    question, questions = _encode(table[_QUESTION_ID.name])
    option = table[schema.ANSWER_VALUE.name].to_numpy()
    key = table[schema.CORRECT_ANSWER.name].to_numpy()
    later = find_repeats(student.astype(np.int64) * len(questions) + question)
    notes = []
    if len(later):
        notes.append(
            f"left out as later attempts: {len(later):,} rows; the first row of a student and a "
            "question counts"
        )
    first = np.ones(len(table), bool)
    first[later] = False
    student, question, option, key = (part[first] for part in (student, question, option, key))
    _require_enough(path, len(student), len(students), len(questions))

    is_correct = (option == key).astype(np.int8)
    if is_correct.min() == is_correct.max():
        outcome, relation = ("right", "equals") if is_correct[0] else ("wrong", "differs from")
        raise InputError(
            f"{path}: every answer is {outcome} (AnswerValue {relation} CorrectAnswer in every "
            "row), expected right and wrong ones"
        )
    keys = np.bincount(question * 4 + (key - 1), minlength=4 * len(questions)).reshape(-1, 4)
    mended = np.flatnonzero((keys > 0).sum(axis=1) > 1)
    if len(mended):
        notes.append(
            f"questions with more than one CorrectAnswer: {len(mended):,}, such as QuestionId "
            f"{quote(questions[int(mended[0])])}; each answer is right or wrong by its own row"
        )
    number_of_student = rng.permutation(len(students)).astype(np.int32)
    order = np.lexsort((questions, questions.str.len()))
    number_of_question = np.argsort(order).astype(np.int32)
    answers = pd.DataFrame(
        {
            "QuestionId": number_of_question[question],
            "UserId": number_of_student[student],
            "AnswerId": rng.permutation(len(student)).astype(np.int32),
            "IsCorrect": is_correct,
            "CorrectAnswer": key,
            "AnswerValue": option,
        }
    )
    return OwnAnswers(
        path, answers, students.take(np.argsort(number_of_student)), questions.take(order), notes
    )


def _encode(texts: pd.Series[str]) -> tuple[npt.NDArray[np.int32], pd.Index[Any]]:
    """Number the distinct texts of a column by their first appearance, spaces around them apart.

    Returns
    -------
    array of int32, shape (rows,)
        Number of the text in every row.
    Index
        The distinct texts, by number.
    """
    number, distinct = texts.str.strip().factorize()
    return number.astype(np.int32), pd.Index(distinct)


def _require_enough(
    path: Path, n_answers: int, n_students: int, n_questions: int, where: str = ""
) -> None:
    if n_answers < MIN_ANSWERS or n_students < MIN_STUDENTS or n_questions < MIN_QUESTIONS:
        raise InputError(
            f"{path}: holds {n_answers:,} answers of {n_students:,} students to {n_questions:,} "
            f"questions{where}, expected at least {MIN_ANSWERS}, {MIN_STUDENTS} and {MIN_QUESTIONS}"
        )


def _set_students_aside(
    own: OwnAnswers,
    answers: pd.DataFrame,
    rng: np.random.Generator,
    tables: Tables,
    notes: list[str],
) -> pd.DataFrame:
    """Add the test files of task 4; return the answers of the students who are not examined."""
    counts = np.bincount(answers["UserId"].to_numpy())
    examinable = np.flatnonzero(counts >= MIN_ANSWERS_OF_EXAMINED)
    if len(counts) < MIN_STUDENTS_TASK_4 or len(examinable) < MIN_EXAMINABLE:
        raise InputError(
            f"{own.path}: holds {len(counts):,} students, {len(examinable):,} of them with "
            f"{MIN_ANSWERS_OF_EXAMINED} or more answers; task 4 expected at least "
            f"{MIN_STUDENTS_TASK_4}, {MIN_EXAMINABLE} of them with so many, or --tasks 1 2"
        )
    n = min(len(counts) // 10, len(examinable) // 4, _MAX_CELLS // len(own.questions))
    phase_of_student = np.full(len(counts), -1)
    chosen = rng.permutation(examinable)[: 2 * n]
    phase_of_student[chosen] = np.arange(2 * n) // n
    phase = phase_of_student[answers["UserId"].to_numpy()]
    for number, name in enumerate(layout.PHASES):
        examined = answers[phase == number]
        student = examined["UserId"].to_numpy()
        masks = {
            f"{schema.IS_TARGET}_{mask}": draw_targets(student, rng).astype(np.int8)
            for mask in range(N_MASKS)
        }
        path = f"{layout.TEST_DIR.name}/{layout.test_masks_name(name)}"
        tables[path] = _columns(examined) | masks
        notes.append(
            f"task 4, {name}: {n:,} students with {len(examined):,} answers, "
            f"{int(masks[f'{schema.IS_TARGET}_0'].sum()):,} of them targets of a mask"
        )
    others: pd.DataFrame = answers[phase == -1].reset_index(drop=True)
    return others


def count_targets(n_answers: IntArray) -> IntArray:
    """Count the targets of students with so many answers: a fifth of them, rounded."""
    return (2 * n_answers + 5) // 10


def draw_targets(student: IntArray, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
    """Draw a fifth of the answers of each student at random.

    Parameters
    ----------
    student
        UserId of every answer, shape (answers,).
    rng
        Draws them.

    Returns
    -------
    array of bool, shape (answers,)
        True for the targets.
    """
    _, number, counts = np.unique(student, return_inverse=True, return_counts=True)
    order = np.lexsort((rng.random(len(student)), number))
    place = np.empty(len(student), np.int64)
    # Place of each answer among those of its student.
    place[order] = np.arange(len(student)) - np.repeat(np.cumsum(counts) - counts, counts)
    is_target: npt.NDArray[np.bool_] = place < count_targets(counts)[number]
    return is_target


def _set_answers_aside(
    own: OwnAnswers, answers: pd.DataFrame, tasks: Sequence[int], tables: Tables, notes: list[str]
) -> pd.DataFrame:
    """Add the test files of tasks 1 and 2; return the answers to learn from.

    The answers are in random order.
    """
    _require_enough(
        own.path,
        len(answers),
        len(np.unique(answers["UserId"].to_numpy())),
        len(np.unique(answers["QuestionId"].to_numpy())),
        " beside the students examined in task 4",
    )
    n = len(answers)
    n_train = n * 4 // 5
    middle = n_train + (n - n_train) // 2
    wanted = [task for task in (1, 2) if task in tasks]
    label = "tasks 1 and 2" if len(wanted) == 2 else f"task {wanted[0]}"
    for phase, rows in zip(layout.PHASES, (slice(n_train, middle), slice(middle, n)), strict=True):
        hidden = _columns(answers[rows])
        for task in wanted:
            names = ("QuestionId", "UserId", "AnswerId", schema.PREDICTED_COLUMN[task].name)
            path = f"{layout.TEST_DIR.name}/{layout.test_answers_name(task, phase)}"
            tables[path] = {name: hidden[name] for name in names}
        n_hidden = len(hidden["AnswerId"])
        notes.append(
            f"{label}, {phase}: {n_hidden:,} answers; a score has a standard error of at least "
            f"about {0.5 / np.sqrt(n_hidden):.3f}"
        )
    return answers[:n_train]


def _columns(answers: pd.DataFrame) -> dict[str, npt.NDArray[Any]]:
    """Return the six official columns."""
    return {column.name: answers[column.name].to_numpy() for column in schema.ANSWER_COLUMNS}


def _write(folder: Path, tables: Tables) -> None:
    paths = [folder / name for name in tables]
    with io.atomic_write(*paths) as files:
        bar = tqdm(tables.values(), desc="own answers", unit="file", disable=None)
        for file, columns in zip(files, bar, strict=True):
            io.write_csv_to(file, columns)
