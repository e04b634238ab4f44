"""Collect facts about the pairs scored in tasks 1 and 2, from training answers and metadata.

Facts from a file that is missing or wrong are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from common import answer_options, cli, metadata, provenance, reading, schema
from common.answers import find_rows, number_ids, pair_keys
from common.arrays import Array, IntArray
from common.errors import InputError
from common.evaluation import groupings
from common.evaluation.groupings import AGE_DAY
from common.layout import SUBJECT_METADATA
from common.schema import Column
from common.tasks import Task

import numpy as np
import numpy.typing as npt
import pandas as pd

_NOT_KNOWN = "not known"
# Questions and students are grouped by their numbers of answers: 0, 1 to 4, 5 to 9 and so on. These
# are the lowest numbers of the groups.
_COUNT_STARTS = (0, 1, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)


@dataclass(frozen=True)
class LeftOut:
    """A part of the page that is left out."""

    # Name of the part of the page.
    what: str
    # The error, as a sentence.
    why: str
    # True if a file is wrong, False if a file is missing.
    is_fault: bool


@dataclass(frozen=True)
class PairFacts:
    """Facts about each scored pair of a student and a question, such as the question's subjects."""

    # A row for each pair, in the order of the true answers. The column student_code numbers the
    # students from 0. If the facts are known, there are also the column majority, the prediction of
    # the majority model, and a categorical column for each grouping in `groupings`, named by its
    # key.
    pairs: pd.DataFrame
    # A row for each subject of each question: QuestionId, SubjectId, Name, Level and Parent (the
    # name of the subject above, or ""). None if the subjects are not known.
    subjects: pd.DataFrame | None
    left_out: list[LeftOut]


def read_facts(
    pairs: pd.DataFrame, task: Task, *, reference: Path, train: Path, folder: Path
) -> PairFacts:
    """Read facts about each scored pair of a student and a question, to group the pairs by them.

    Such facts are the number of training answers of the student, and the subjects of the question.

    Parameters
    ----------
    pairs
        UserId and QuestionId, in the order of `reference`.
    task
        Task 1 or 2.
    reference
        File of the true answers.
    train
        File of the training answers, which may be missing.
    folder
        Folder of the metadata, of which any file may be missing.
    """
    student = pairs["UserId"].to_numpy()
    student_ids, student_code = number_ids(student)
    question_ids, question_code = number_ids(pairs["QuestionId"])
    facts = pd.DataFrame({"student_code": student_code})
    answers = None
    subjects = None
    left_out: list[LeftOut] = []

    with _skip_if_missing(
        left_out, "The majority, and accuracy by what is known of question and student"
    ):
        answers = _read_training_answers(task, train, folder)
        for key, by_question in _describe_questions(answers, question_ids, task).items():
            facts[key] = by_question[question_code]
        student_row = find_rows(student_ids, answers["UserId"])
        # `find_rows` returns -1 for a student without scored answers.
        is_scored = student_row >= 0
        n_by_student = np.bincount(student_row[is_scored], minlength=len(student_ids))
        facts[groupings.ANSWERS_OF_STUDENT.key] = _group_counts(n_by_student)[student_code]
    with _skip_if_missing(left_out, "Accuracy by quiz"):
        path = _require_file(folder / task.data.answer_metadata)
        if answers is None:
            raise _NotKnownError("the training answers are not known")
        facts[groupings.QUIZ.key] = _group_by_quiz(student, answers, reference, path)
    # The training answers are large, and no longer needed.
    answers = None
    with _skip_if_missing(left_out, "Accuracy by subject"):
        subjects = _read_subjects(question_ids, task, folder)
    with _skip_if_missing(left_out, "Accuracy by gender, pupil premium and age"):
        path = _require_file(folder / task.data.student_metadata)
        for key, by_student in _group_students(student_ids, path).items():
            facts[key] = by_student[student_code]
    return PairFacts(facts, subjects, left_out)


class _NotKnownError(Exception):
    """A fact is not known, since a file or a column is missing."""


@contextmanager
def _skip_if_missing(left_out: list[LeftOut], what: str) -> Iterator[None]:
    """End the `with` block, without an error, if it finds a file missing or wrong.

    The block computes a part of the page, and `what` is the name of this part. If the block ends
    early, the part is added to `left_out`.
    """
    try:
        yield
    except (FileNotFoundError, _NotKnownError, InputError) as error:
        left_out.append(LeftOut(what, str(error), is_fault=isinstance(error, InputError)))


def _require_file(path: Path) -> Path:
    """Return a path; raise `_NotKnownError` if there is no such file."""
    if not reading.is_there(path):
        raise _NotKnownError(f"{cli.show(path)} is not there")
    return path


# ---- Training answers ----------------------------------------------------------------------------


def _read_training_answers(task: Task, train: Path, metadata_dir: Path) -> pd.DataFrame:
    """Read the training answers, with AnswerIds if there are answer metadata.

    If the task needs options, the answers also have the options. If they lack the column
    NumberOfOptions, all questions have four options.
    """
    _require_file(train)
    # Refuse a training file that has changed since it was made, or whose sources have changed.
    provenance.require_current([train])
    columns = [schema.USER_ID, schema.QUESTION_ID, schema.IS_CORRECT]
    source = reading.file_source(train)
    header = reading.read_header(source)
    if task.needs_options:
        # The options chosen, the right options and, if the file has it, NumberOfOptions.
        columns += answer_options.columns_of_answers(header)
    has_ids = schema.ANSWER_ID.name in header
    if has_ids and reading.is_there(metadata_dir / task.data.answer_metadata):
        columns.append(schema.ANSWER_ID)
    answers = reading.read_table(source, columns)
    if task.needs_options:
        # Add the column NumberOfOptions if the file lacks it. If all questions have four options,
        # the column is not needed, and is not added.
        answers = answer_options.add_number_of_options(source, answers, header)
    return answers


def _describe_questions(
    answers: pd.DataFrame, question_ids: IntArray, task: Task
) -> dict[str, Array]:
    """Return what the training answers tell about each question.

    "majority" is what the majority model predicts for the question. The other arrays are the groups
    of the questions by difficulty, by number of answers and, in task 2, by right option. Their keys
    are those of the groupings in `groupings.py`. All arrays have the shape (questions,).
    """
    n_questions = len(question_ids)
    question = find_rows(question_ids, answers["QuestionId"])
    n_wrong_and_right = _count_values(answers, schema.IS_CORRECT, question, n_questions)
    n_right = n_wrong_and_right[:, 1]
    n = n_wrong_and_right.sum(axis=1)
    # The share is NaN for a question without answers.
    share_right = n_right / np.where(n > 0, n, np.nan)
    tenth_starts = [k / 10 for k in range(10)]
    tenth_names = [f"{10 * k} to {10 * k + 10} %" for k in range(10)]
    # The group of a question by difficulty is the range in which its share of right answers lies.
    # Its group by number of answers is the range in which this number lies.
    facts: dict[str, Any] = {
        "majority": _predict_majority(answers, question, n_questions, task),
        groupings.DIFFICULTY.key: _group_by_starts(share_right, tenth_starts, tenth_names),
        groupings.ANSWERS_TO_QUESTION.key: _group_counts(n),
    }
    if task.needs_options:
        # All answers to a question should name the same right option. If they do not, use the
        # option that most answers name.
        n_options = answer_options.count_options(answers)
        right_column = replace(schema.CORRECT_ANSWER, high=n_options)
        n_right_option = _count_values(answers, right_column, question, n_questions)
        names = task.name_values(right_column)
        # A group is a position among the names below. A question without answers is in group 0,
        # "not known"; a question with the right option k is in group k.
        group = np.where(n > 0, 1 + n_right_option.argmax(axis=1), 0)
        facts[groupings.RIGHT_OPTION.key] = _categorical(group, _NOT_KNOWN, *names)
    return facts


def _predict_majority(
    answers: pd.DataFrame, question: IntArray, n_questions: int, task: Task
) -> IntArray:
    """Return what the sample model `majority` of the task predicts for each question.

    The model predicts the most frequent value of a question. For a question without answers, it
    predicts the value that is most frequent in all answers. If several values of a question are
    most frequent, the model of task 1 predicts the value that is most frequent in all answers, and
    the model of task 2 predicts the smallest of the most frequent options.

    `question` holds for each answer the index of its question, -1 if the question is not scored.
    """
    column = task.column
    if task.needs_options:
        # The largest value to count is the largest number of options of any question.
        n_options = answer_options.count_options(answers)
        column = replace(column, high=n_options)
    # Column i of `counts` belongs to the value column.low + i.
    counts = _count_values(answers, column, question, n_questions)
    overall_counts = np.bincount(answers[column.name] - column.low, minlength=counts.shape[1])
    if task.needs_options:
        has_no_answers = counts.sum(axis=1) == 0
        uses_overall = has_no_answers
    else:
        # In task 1, `counts` has two columns: the numbers of wrong and of right answers. A question
        # without answers counts as tied too, with 0 wrong and 0 right answers.
        is_tied = counts[:, 0] == counts[:, 1]
        uses_overall = is_tied
    counts_to_use = np.where(uses_overall[:, None], overall_counts, counts)
    # `argmax` returns the first of several largest counts.
    majority: IntArray = column.low + counts_to_use.argmax(axis=1)
    return majority


def _count_values(
    answers: pd.DataFrame, column: Column, question: IntArray, n_questions: int
) -> npt.NDArray[np.int64]:
    """Count every value of a column for every question, shape (questions, values).

    `question` holds for each answer the index of its question, -1 if the question is not scored.
    """
    n_values = column.high - column.low + 1
    # Questions that are not scored are counted in row 0, which is dropped.
    cell = (question + 1) * np.int32(n_values) + (answers[column.name] - column.low)
    counts = np.bincount(cell, minlength=(n_questions + 1) * n_values)
    return counts.reshape(-1, n_values)[1:]


def _group_by_quiz(
    student: IntArray, answers: pd.DataFrame, reference: Path, answer_metadata: Path
) -> pd.Categorical[str]:
    """Group the scored answers by whether the student has training answers in the same quiz.

    `student` holds the UserIds of the scored answers, and `reference` is their file. `answers` are
    the training answers. To save memory, this function removes their columns AnswerId and UserId.

    Raises `_NotKnownError` if one of the two files has no AnswerIds, by which quizzes are found.
    """
    name = schema.ANSWER_ID.name
    header = reading.read_header(reading.file_source(reference))
    if name not in answers or name not in header:
        raise _NotKnownError(f"training and true answers do not both have a column {name}")
    scored_ids = reading.read_table(reference, [schema.ANSWER_ID_OR_EMPTY])[name]
    # Read the quizzes of the training answers and of the scored answers in one go. `pop` removes a
    # column from `answers`: the column is large, and not needed any more.
    answer_id = np.concatenate([answers.pop(name), scored_ids])
    circumstances = metadata.read_circumstances(
        answer_metadata, answer_id, columns=[schema.QUIZ_ID]
    )
    # -1 stands for an unknown quiz.
    quiz_of_all = circumstances["QuizId"].to_numpy()
    n_train = len(answer_id) - len(scored_ids)
    train_quiz = quiz_of_all[:n_train]
    scored_quiz = quiz_of_all[n_train:]
    # A key encodes a pair of a student and a quiz. `train_keys` are the keys of all pairs for which
    # there is a training answer.
    has_quiz = train_quiz >= 0
    train_student = answers.pop("UserId")
    train_keys = pair_keys(train_student[has_quiz], train_quiz[has_quiz])
    has_training_answers = pd.Series(pair_keys(student, scored_quiz)).isin(train_keys)
    # The group of each scored answer, as a position among the three names below.
    group = np.where(has_training_answers, 0, 1)
    group[scored_quiz < 0] = 2
    return _categorical(
        group,
        "other answers in the quiz known",
        "no other answer in the quiz known",
        "quiz not known",
    )


# ---- Metadata ------------------------------------------------------------------------------------


def _read_subjects(question_ids: IntArray, task: Task, folder: Path) -> pd.DataFrame:
    """Read the subjects of the questions, as in `PairFacts.subjects`."""
    path = _require_file(folder / task.data.question_metadata)
    tree = metadata.read_subject_tree(_require_file(folder / SUBJECT_METADATA))
    subjects = metadata.read_question_subjects(path, question_ids, tree)
    # A root of the subject tree has no parent: use "" as the name of the parent.
    tree["Parent"] = tree["parent"].map(tree["Name"]).fillna("")
    subjects["QuestionId"] = question_ids[subjects["row"]]
    columns = ["QuestionId", "SubjectId", "Name", "Level", "Parent"]
    return subjects.join(tree, on="subject")[columns]


def _group_students(student_ids: IntArray, path: Path) -> dict[str, pd.Categorical[str]]:
    """Group the students by gender, pupil premium and age; keys are those of the groupings.

    The age is the number of completed years on `AGE_DAY`, the first day of a school year.
    """
    students = metadata.read_student_metadata(path, student_ids)
    birth_month = students["DateOfBirth"].to_numpy().astype("datetime64[M]")
    months = (AGE_DAY.astype("datetime64[M]") - birth_month).astype(np.int64)
    # NaN stands for an unknown age.
    years = np.where(np.isnat(birth_month), np.nan, months // 12)
    # There is a group for each age from 11 to 17, a group of younger students, and a group of older
    # students.
    age_starts = [0, 11, 12, 13, 14, 15, 16, 17, 18]
    age_names = ["up to 10", "11", "12", "13", "14", "15", "16", "17", "from 18"]
    # The metadata hold the values 0, 1 and so on, which stand for the first name, the second name
    # and so on. They hold -1 where the value is not known, which stands for the last name.
    genders = ("unspecified", "female", "male", "other", "not listed")
    premiums = ("not entitled", "entitled", _NOT_KNOWN)
    return {
        groupings.GENDER.key: _categorical(students["Gender"], *genders),
        groupings.PUPIL_PREMIUM.key: _categorical(students["PremiumPupil"], *premiums),
        groupings.AGE.key: _group_by_starts(years, age_starts, age_names),
    }


# ---- Groups --------------------------------------------------------------------------------------


def _group_counts(count: Array) -> pd.Categorical[str]:
    """Return, for each number of answers, the group that it falls into, such as "5 to 9"."""
    between = [f"{low:,} to {high - 1:,}" for low, high in pairwise(_COUNT_STARTS[1:])]
    names = ["none", *between, f"from {_COUNT_STARTS[-1]:,}"]
    return _group_by_starts(count, _COUNT_STARTS, names)


def _group_by_starts(
    values: Array, starts: Sequence[float], names: Sequence[str]
) -> pd.Categorical[str]:
    """Return the group of each value.

    `starts` are the lowest values of the groups, increasing, and `names` the groups' names. NaN
    belongs to a last group, "not known".
    """
    index = np.searchsorted(starts, values, side="right") - 1
    return _categorical(np.where(np.isnan(values), -1, index), *names, _NOT_KNOWN)


def _categorical(index: npt.ArrayLike, *names: str) -> pd.Categorical[str]:
    """Return, for each index, the name at this position in `names`; -1 stands for the last."""
    codes = np.asarray(index)
    codes = np.where(codes < 0, len(names) - 1, codes)
    return pd.Categorical.from_codes(codes, pd.Index(names))
