"""What is known about the pairs scored in tasks 1 and 2, as columns: training answers and metadata.

None of it is needed for a score. Whatever is not there, or cannot be read, is left out, with the
reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from common import cli, io, layout, made, metadata, schema
from common.answers import IntArray, find_rows, number_ids, pair_keys
from common.errors import InputError
from common.evaluation.breakdown import AGE_ON

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:  # Importing it takes 0.2 s.
    import pandas as pd

# Places in `breakdown.QUIZZES`.
_QUIZ_KNOWN, _QUIZ_NEW, _NO_QUIZ = range(3)


class LeftOut(NamedTuple):
    """What a page leaves out, why, and whether that is a fault of a file that is there."""

    what: str
    why: str
    is_fault: bool


@dataclass
class PairFacts:
    """What is known about the pairs scored; a column is missing where nothing is known."""

    # A row for each pair: student_code (0 to n - 1); numbers of training answers, n_of_student and
    # n_of_question, share_right (NaN without any) and majority (IsCorrect or AnswerValue, as the
    # majority model predicts) of the latter, in task 2 correct_option (0 not known); quiz, a place
    # in `breakdown.QUIZZES`; gender, premium_pupil (-1 not known) and age (in years, NaN).
    pairs: pd.DataFrame
    # A row for each subject of each question: QuestionId, SubjectId, Name, Level, and Parent, the
    # name of the subject above.
    subjects: pd.DataFrame | None = None
    left_out: list[LeftOut] = field(default_factory=list)


class _MissingError(InputError):
    """A file is not there."""


def read_facts(
    student: IntArray, question: IntArray, task: int, *, reference: Path, train: Path, folder: Path
) -> PairFacts:
    """Read what is known about pairs of UserId and QuestionId, in the order of the reference.

    Looked at are the true answers, the training answers and the folder of the metadata.
    """
    import pandas as pd

    student_ids, student_code = number_ids(student)
    question_ids, question_code = number_ids(question)
    facts = PairFacts(pd.DataFrame({"student_code": student_code}))
    answers: io.Columns | None = None
    with _left_out(facts, "The majority, and accuracy by what is known of question and student"):
        answers = _read_training(train, folder, task)
        of_question = _count_by_question(answers, question_ids, task)
        for name, values in of_question.items():
            facts.pairs[name] = values[question_code]
        of_student = find_rows(student_ids, answers["UserId"]) + 1
        n_of_student = np.bincount(of_student, minlength=len(student_ids) + 1)[1:]
        facts.pairs["n_of_student"] = n_of_student[student_code]
    with _left_out(facts, "Accuracy by quiz"):
        path = _require(folder / layout.ANSWER_METADATA_TASK_1_2)
        facts.pairs["quiz"] = _find_known_quizzes(path, reference, answers, student)
    # The largest columns are no longer needed.
    answers = None
    with _left_out(facts, "Accuracy by subject"):
        path = _require(folder / layout.QUESTION_METADATA_TASK_1_2)
        tree = metadata.read_subject_tree(_require(folder / layout.SUBJECT_METADATA))
        found = metadata.read_question_subjects(path, question_ids, tree)
        # There is none above a root.
        tree["Parent"] = tree["parent"].map(tree["Name"]).fillna("")
        found["QuestionId"] = question_ids[found["row"]]
        columns = ["QuestionId", "SubjectId", "Name", "Level", "Parent"]
        facts.subjects = found.join(tree, on="subject")[columns]
    with _left_out(facts, "Accuracy by gender, pupil premium and age"):
        path = _require(folder / layout.STUDENT_METADATA_TASK_1_2)
        students = metadata.read_student_metadata(path, student_ids)
        birth = students["DateOfBirth"].to_numpy().astype("datetime64[M]")
        months = (AGE_ON.astype("datetime64[M]") - birth).astype(np.int64)
        age = np.where(np.isnat(birth), np.nan, months // 12)
        facts.pairs["gender"] = students["Gender"].to_numpy()[student_code]
        facts.pairs["premium_pupil"] = students["PremiumPupil"].to_numpy()[student_code]
        facts.pairs["age"] = age[student_code]
    return facts


@contextmanager
def _left_out(facts: PairFacts, what: str) -> Iterator[None]:
    """Note what is left out if a file is not there or cannot be read."""
    try:
        yield
    except InputError as fault:
        facts.left_out.append(LeftOut(what, str(fault), not isinstance(fault, _MissingError)))


def _require(path: Path) -> Path:
    if not io.is_there(path):
        raise _MissingError(f"{cli.show(path)} is not there")
    return path


def _read_training(path: Path, folder: Path, task: int) -> io.Columns:
    """Read the columns of the training answers that are needed."""
    made.require_current([_require(path)])
    columns = [schema.USER_ID, schema.QUESTION_ID, schema.IS_CORRECT]
    if task == 2:
        columns += [schema.CORRECT_ANSWER, schema.ANSWER_VALUE]
    has_metadata = io.is_there(folder / layout.ANSWER_METADATA_TASK_1_2)
    if has_metadata and schema.ANSWER_ID.name in io.read_header(io.file_source(path)):
        columns.append(schema.ANSWER_ID)
    return io.read_columns(path, columns)


def _count_by_question(
    answers: io.Columns, question_ids: IntArray, task: int
) -> dict[str, npt.NDArray[np.generic]]:
    """Count the training answers to each question scored; all columns that follow from that."""
    n_questions = len(question_ids)
    question = find_rows(question_ids, answers["QuestionId"])

    def count(name: str, low: int, high: int) -> npt.NDArray[np.int64]:
        """Count every value for every question; shape (questions, values)."""
        n_values = high - low + 1
        # Those of other questions, -1, go to a row of their own, which is dropped.
        cell = (question + 1) * np.int32(n_values) + (answers[name] - low)
        counts = np.bincount(cell, minlength=(n_questions + 1) * n_values)
        return counts.reshape(-1, n_values)[1:]

    rights = count("IsCorrect", 0, 1)
    n_of_question = rights.sum(axis=1)
    column = schema.PREDICTED_COLUMN[task]
    values = rights if task == 1 else count(column.name, column.low, column.high)
    overall = np.bincount(answers[column.name] - column.low, minlength=values.shape[1])
    # As the majority models do it: what most of all answers are where a question has none, or in
    # task 1 as many of one as of the other.
    undecided = values.sum(axis=1) == 0 if task == 2 else values[:, 0] == values[:, 1]
    majority = column.low + np.where(undecided[:, None], overall, values).argmax(axis=1)
    with np.errstate(invalid="ignore"):
        found = {
            "n_of_question": n_of_question,
            "share_right": rights[:, 1] / n_of_question,
            "majority": majority,
        }
    if task == 2:
        corrects = count("CorrectAnswer", 1, 4)
        known = corrects.sum(axis=1) > 0
        found["correct_option"] = np.where(known, 1 + corrects.argmax(axis=1), 0)
    return found


def _find_known_quizzes(
    path: Path, reference: Path, answers: io.Columns | None, student: IntArray
) -> IntArray:
    """Find whether other answers of the student in the quiz are known; see `breakdown.QUIZZES`."""
    name = schema.ANSWER_ID.name
    if answers is None:
        raise _MissingError("the training answers are not known")
    if name not in answers or name not in io.read_header(io.file_source(reference)):
        raise _MissingError(f"training and true answers do not both have a column {name}")
    own = io.to_ids(io.read_columns(reference, [schema.ANSWER_ID_OR_EMPTY])[name])
    n = len(answers[name])
    answer_id = np.concatenate([answers.pop(name), own])
    told = metadata.read_circumstances(path, answer_id, columns=[schema.QUIZ_ID])
    quiz = told["QuizId"].to_numpy()
    is_known = quiz[:n] >= 0
    known = pair_keys(answers.pop("UserId")[is_known], quiz[:n][is_known])
    found = are_among(pair_keys(student, quiz[n:]), known)
    return np.select([quiz[n:] < 0, found], [_NO_QUIZ, _QUIZ_KNOWN], _QUIZ_NEW)


def are_among(keys: npt.NDArray[np.int64], known: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Return whether each key is among known ones: `numpy.isin`, but faster for millions."""
    if not len(known):
        return np.zeros(len(keys), bool)
    known, order = np.sort(known), np.argsort(keys)
    # Sorted, as looking up millions of keys in random order takes ten times as long.
    keys = keys[order]
    place = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    found = np.empty(len(keys), bool)
    found[order] = known[place] == keys
    return found
