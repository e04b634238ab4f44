"""Whom was asked what, and under which circumstances: all that is known without any outcome."""

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from common import layout, metadata
from common.answer_context import contexts_of_pairs
from common.answer_features.nearest import similar_questions
from common.answers import IntArray, number_ids

import numpy as np
import numpy.typing as npt
import pandas as pd

FloatArray = npt.NDArray[np.floating[Any]]

# Which subject of a question is meant, from general to specific; the root says nothing.
SUBJECT_LEVELS = ("subject_1", "subject_2", "subject_3")
# Minutes, more than there are in the four years that dates may span; the last one is no date.
MINUTES = 1 << 21


@dataclass(frozen=True)
class Pairs:
    """Pairs of students and questions, one row for each: training answers, then the template.

    Attributes
    ----------
    numbers
        For each row what it belongs to, numbered from 0, int32, -1 where unknown: student,
        question, and, where the files tell, subject_1 to subject_3, group, quiz, scheme, day.
    n_students, n_questions
        How many there are.
    context
        From `contexts_of_pairs`, shape (pairs, levels).
    neighbours, similarity
        From `similar_questions`.
    students, circumstances
        One row for each row of the pairs; None without metadata of students, or of answers.
    """

    numbers: dict[str, IntArray]
    n_students: int
    n_questions: int
    context: IntArray
    neighbours: IntArray
    similarity: FloatArray
    students: pd.DataFrame | None = None
    circumstances: pd.DataFrame | None = None
    _together: dict[tuple[str, ...], IntArray] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        """Count the pairs."""
        return len(self.numbers["student"])

    def number(self, *names: str) -> IntArray:
        """Number what rows have in common: equal where one or two of `numbers` are equal.

        From 0, int32, -1 where any of these is unknown; kept for the next call.
        """
        if len(names) == 1:
            return self.numbers[names[0]]
        if names not in self._together:
            first, second = (self.numbers[name] for name in names)
            is_known = (first >= 0) & (second >= 0)
            both = first[is_known].astype(np.int64) * (int(second.max(initial=0)) + 1)
            both += second[is_known]
            number = np.full(len(self), -1, np.int32)
            if len(both):
                number[is_known] = number_ids(both)[1]
            self._together[names] = number
        return self._together[names]

    @cached_property
    def minutes(self) -> npt.NDArray[np.datetime64]:
        """When each row was answered."""
        assert self.circumstances is not None
        return self.circumstances["DateAnswered"].to_numpy().astype("datetime64[m]")

    @cached_property
    def moment(self) -> npt.NDArray[np.int64]:
        """Order of the rows by student and quiz, and within these by minute; -1 if unknown."""
        return self._with_minutes(self.number("student", "quiz"))

    @cached_property
    def in_order(self) -> IntArray:
        """Rows with a moment, in this order."""
        has_moment = np.flatnonzero(self.moment >= 0)
        return has_moment[np.argsort(self.moment[has_moment], kind="stable")]

    @cached_property
    def moment_of_student(self) -> npt.NDArray[np.int64]:
        """Order of the rows by student, and within these by minute; -1 if unknown."""
        return self._with_minutes(self.numbers["student"])

    @cached_property
    def ordered_moments_of_students(self) -> npt.NDArray[np.int64]:
        """The known ones of these, increasing."""
        return np.sort(self.moment_of_student[self.moment_of_student >= 0])

    def _with_minutes(self, number: IntArray) -> npt.NDArray[np.int64]:
        """Join a number and the minute of the answer to one number; -1 where either is missing."""
        date = self.minutes
        is_missing = np.isnat(date) | (number < 0)
        minute = date.astype(np.int64)
        first = int(minute[~is_missing].min(initial=np.iinfo(np.int64).max))
        # Dates further from the first one than any official one are all as late as can be.
        later = np.clip(minute - first, 0, MINUTES - 1)
        return np.where(is_missing, -1, number.astype(np.int64) * MINUTES + later)


def read_pairs(answers: pd.DataFrame, template: pd.DataFrame, folder: Path | None) -> Pairs:
    """Join the training answers and the template to the metadata of tasks 1 and 2.

    Parameters
    ----------
    answers
        Training answers; read with ``ids=True`` if the answer metadata are to be used.
    template
        What is to be predicted.
    folder
        With the official files, of which any may be missing; None: no metadata.

    Raises
    ------
    InputError
        If a file of metadata is not as expected, or belongs to other data.
    """

    def join(name: str) -> IntArray:
        return np.concatenate([answers[name], template[name]])

    student_ids, student = number_ids(join("UserId"))
    question_ids, question = number_ids(join("QuestionId"))
    numbers: dict[str, IntArray] = {"student": student, "question": question}
    path = metadata.find(folder, layout.QUESTION_METADATA_TASK_1_2)
    if path is not None:
        above = metadata.find(folder, layout.SUBJECT_METADATA)
        tree = None if above is None else metadata.read_subject_tree(above)
        subjects = metadata.read_question_subjects(path, question_ids, tree)
        for level, name in enumerate(SUBJECT_LEVELS, start=1):
            chosen = _choose(subjects, tree, level)
            of_question = chosen.reindex(range(len(question_ids)), fill_value=-1)
            numbers[name] = of_question.to_numpy(np.int32)[question]
    path = metadata.find(folder, layout.STUDENT_METADATA_TASK_1_2)
    students = None
    if path is not None:
        students = metadata.read_student_metadata(path, student_ids).iloc[student]
    path = metadata.find(folder, layout.ANSWER_METADATA_TASK_1_2)
    circumstances = None
    if path is not None and "AnswerId" in answers and "AnswerId" in template:
        circumstances = metadata.read_circumstances(path, join("AnswerId"))
        numbers |= {
            "group": circumstances["GroupId"].to_numpy(),
            "quiz": circumstances["QuizId"].to_numpy(),
            "scheme": circumstances["SchemeOfWorkId"].to_numpy(),
            "day": _number_days(circumstances["DateAnswered"].to_numpy()),
        }
    n_students, n_questions = len(student_ids), len(question_ids)
    similar = similar_questions(student, question, n_students, n_questions)
    context = contexts_of_pairs(student, question, len(answers), circumstances)
    return Pairs(numbers, n_students, n_questions, context, *similar, students, circumstances)


def _choose(subjects: pd.DataFrame, tree: pd.DataFrame | None, level: int) -> pd.Series:
    """Choose one subject of a level for each question that has one, by its row.

    Of several on the level the last one listed; without a tree that tells the levels, the second
    one, the one before the last, and the last: lists go from the root down.
    """
    if tree is not None:
        is_meant = subjects["subject"].map(tree["Level"]) == level
    else:
        place = subjects.groupby("row").cumcount()
        to_end = subjects.groupby("row").cumcount(ascending=False)
        is_meant = (place > 0) & [place == 1, to_end == 1, to_end == 0][level - 1]
    return subjects[is_meant].groupby("row")["subject"].last()


def _number_days(date: npt.NDArray[np.datetime64]) -> IntArray:
    """Number the days from the first one, int32; -1 where the date is missing."""
    day = date.astype("datetime64[D]").astype(np.int64)
    is_missing = np.isnat(date)
    first = day[~is_missing].min(initial=np.iinfo(np.int64).max)
    return np.where(is_missing, -1, day - first).astype(np.int32)
