"""What is known about the pairs scored in tasks 1 and 2; what cannot be read is left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from common import cli, io, layout, made, metadata, schema
from common.answers import find_rows, number_ids, pair_keys
from common.arrays import Array, IntArray
from common.errors import InputError
from common.lazy import pd
from common.tasks import TASKS

import numpy as np
import numpy.typing as npt

# Amid the challenge's answers (2018 to 2020); in English schools it divides the school years.
_AGE_ON = np.datetime64("2019-09-01")
# Names of columns, which are titles on the page too.
QUIZ = "By known or unknown quiz"
OF_STUDENTS = ("Gender", "Pupil premium", f"Age in years on {_AGE_ON}")
_NOT_KNOWN = "not known"
# Numbers of answers from which a group begins; the next one ends it.
_COUNTS = (0, 1, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)


class PairFacts(NamedTuple):
    """What is known about the pairs scored: `pairs`, a row for each, has student_code (0 to n - 1),
    majority, as the majority model predicts, and facts, categories by title; `subjects`, a row for
    each subject of each question, has QuestionId, SubjectId, Name, Level and Parent, a name; and
    what the page leaves out, why, and whether that is_fault of a file that is there.
    """

    pairs: pd.DataFrame
    subjects: pd.DataFrame | None
    left_out: list[dict[str, Any]]


def read_facts(
    pairs: pd.DataFrame, task: int, *, reference: Path, train: Path, folder: Path
) -> PairFacts:
    """Read what is known about pairs of UserId and QuestionId, in the order of the reference."""
    student = pairs["UserId"].to_numpy()
    student_ids, student_code = number_ids(student)
    question_ids, question_code = number_ids(pairs["QuestionId"])
    pairs = pd.DataFrame({"student_code": student_code})
    subjects = answers = None
    left_out: list[dict[str, Any]] = []

    @contextmanager
    def part(what: str) -> Iterator[None]:
        try:
            yield
        except (FileNotFoundError, InputError) as fault:
            is_fault = isinstance(fault, InputError)
            left_out.append({"what": what, "why": str(fault), "is_fault": is_fault})

    def require(path: Path) -> Path:
        if not io.is_there(path):
            raise FileNotFoundError(f"{cli.show(path)} is not there")
        return path

    with part("The majority, and accuracy by what is known of question and student"):
        made.require_current([require(train)])
        columns = [schema.USER_ID, schema.QUESTION_ID, schema.IS_CORRECT]
        if TASKS[task].needs_options:
            columns += [schema.CORRECT_ANSWER, schema.ANSWER_VALUE]
        has_ids = schema.ANSWER_ID.name in io.read_header(io.file_source(train))
        if has_ids and io.is_there(folder / layout.ANSWER_METADATA_TASK_1_2):
            columns.append(schema.ANSWER_ID)
        answers = io.read_table(train, columns)
        row = find_rows(student_ids, answers["UserId"]) + 1
        n_of_student = np.bincount(row, minlength=len(student_ids) + 1)[1:]
        for title, of_question in _count_by_question(answers, question_ids, task).items():
            pairs[title] = of_question[question_code]
        title = "By number of known answers of the student"
        pairs.insert(3, title, pd.Series(_by_count(n_of_student)[student_code]))
    with part("Accuracy by quiz"):
        path = require(folder / layout.ANSWER_METADATA_TASK_1_2)
        if answers is None:
            raise FileNotFoundError("the training answers are not known")
        name = schema.ANSWER_ID.name
        if name not in answers or name not in io.read_header(io.file_source(reference)):
            raise FileNotFoundError(f"training and true answers do not both have a column {name}")
        own = io.read_table(reference, [schema.ANSWER_ID_OR_EMPTY])[name]
        answer_id = np.concatenate([answers.pop(name), own])
        told = metadata.read_circumstances(path, answer_id, columns=[schema.QUIZ_ID])
        known, quiz = np.split(told["QuizId"].to_numpy(), [len(answer_id) - len(own)])
        keys = pair_keys(answers.pop("UserId")[known >= 0], known[known >= 0])
        is_known = pd.Series(pair_keys(student, quiz)).isin(keys)
        names = "other answers in the quiz known", "no other answer in the quiz known"
        place = np.where(quiz < 0, -1, np.where(is_known, 0, 1))
        pairs[QUIZ] = _named(place, *names, "quiz not known")
    answers = None
    with part("Accuracy by subject"):
        path = require(folder / layout.QUESTION_METADATA_TASK_1_2)
        tree = metadata.read_subject_tree(require(folder / layout.SUBJECT_METADATA))
        found = metadata.read_question_subjects(path, question_ids, tree)
        # There is none above a root.
        tree["Parent"] = tree["parent"].map(tree["Name"]).fillna("")
        found["QuestionId"] = question_ids[found["row"]]
        columns_of_subjects = ["QuestionId", "SubjectId", "Name", "Level", "Parent"]
        subjects = found.join(tree, on="subject")[columns_of_subjects]
    with part("Accuracy by gender, pupil premium and age"):
        path = require(folder / layout.STUDENT_METADATA_TASK_1_2)
        students = metadata.read_student_metadata(path, student_ids)
        birth = students["DateOfBirth"].to_numpy().astype("datetime64[M]")
        months = (_AGE_ON.astype("datetime64[M]") - birth).astype(np.int64)
        ages = ["up to 10", *map(str, range(11, 18)), "from 18"]
        genders = "unspecified", "female", "male", "other", "not listed"
        grouped = (
            _named(students["Gender"], *genders),
            _named(students["PremiumPupil"], "not entitled", "entitled", _NOT_KNOWN),
            _cut(np.where(np.isnat(birth), np.nan, months // 12), [0, *range(11, 19)], ages),
        )
        for title, groups in zip(OF_STUDENTS, grouped, strict=True):
            pairs[title] = groups[student_code]
    return PairFacts(pairs, subjects, left_out)


def _count_by_question(answers: pd.DataFrame, question_ids: IntArray, task: int) -> dict[str, Any]:
    """Return for each question scored the majority of the training answers, and groups by title."""
    question = find_rows(question_ids, answers["QuestionId"])

    def count(name: str, low: int, high: int) -> npt.NDArray[np.int64]:
        """Count every value for every question; shape (questions, values)."""
        n_values = high - low + 1
        # Those of other questions, -1, go to a row of their own, which is dropped.
        cell = (question + 1) * np.int32(n_values) + (answers[name] - low)
        counts = np.bincount(cell, minlength=(len(question_ids) + 1) * n_values)
        return counts.reshape(-1, n_values)[1:]

    rights = count("IsCorrect", 0, 1)
    n = rights.sum(axis=1)
    column = TASKS[task].column
    values = count(column.name, column.low, column.high)
    overall = np.bincount(answers[column.name] - column.low, minlength=values.shape[1])
    # As the majority models do it: of a question without answers, or (task 1) a tie, most of all.
    is_tied = values[:, 0] == values[:, 1]
    undecided = is_tied if column is schema.IS_CORRECT else n == 0
    majority = column.low + np.where(undecided[:, None], overall, values).argmax(axis=1)
    share_right = rights[:, 1] / np.where(n, n, np.nan)
    tenths = [f"{10 * k} to {10 * k + 10} %" for k in range(10)]
    found = {
        "majority": majority,
        "By difficulty of the question": _cut(share_right, [k / 10 for k in range(10)], tenths),
        "By number of known answers to the question": _by_count(n),
    }
    if TASKS[task].needs_options:
        corrects = count("CorrectAnswer", 1, 4)
        option = np.where(n > 0, 1 + corrects.argmax(axis=1), 0)
        names = [f"option {option}" for option in schema.OPTIONS]
        found["By which option is right"] = _named(option, _NOT_KNOWN, *names)
    return found


def _by_count(count: Array) -> pd.Categorical[str]:
    between = [f"{low:,} to {high - 1:,}" for low, high in pairwise(_COUNTS[1:])]
    return _cut(count, _COUNTS, ["none", *between, f"from {_COUNTS[-1]:,}"])


def _cut(values: Array, starts: Sequence[float], names: Sequence[str]) -> pd.Categorical[str]:
    """Return groups of numbers by where each begins, and a last one of what is not known, NaN."""
    place = np.searchsorted(starts, values, side="right") - 1
    return _named(np.where(np.isnan(values), -1, place), *names, _NOT_KNOWN)


def _named(place: npt.ArrayLike, *names: str) -> pd.Categorical[str]:
    """Return groups by the places of their names; -1 is the last one."""
    place = np.asarray(place)
    return pd.Categorical.from_codes(np.where(place < 0, len(names) - 1, place), pd.Index(names))
