"""Whom was asked what, and under which circumstances: all that is known without any outcome."""

from dataclasses import dataclass, field
from pathlib import Path

from common import layout, metadata
from common.answer_context import contexts_of_pairs
from common.answer_features.nearest import similar_questions
from common.answers import number_ids, small_keys
from common.arrays import FloatArray, IntArray

import numpy as np
import pandas as pd

# Which subject of a question is meant, from general to specific; the root says nothing.
SUBJECT_LEVELS = ("subject_1", "subject_2", "subject_3")
# Minutes, more than there are in the four years that dates may span; the last one is no date.
MINUTES = 1 << 21
# Numbers of more pairs than this are kept only where several groups need them, to save memory.
_MANY = 5_000_000


@dataclass(frozen=True)
class Pairs:
    """Pairs of students and questions, one row for each: training answers, then the template."""

    # By row, from 0, int32, -1 unknown: student, question; if known subject_1 to 3, group, quiz, …
    numbers: dict[str, IntArray]
    n_students: int
    n_questions: int
    context: IntArray  # From `contexts_of_pairs`, shape (pairs, levels).
    neighbours: IntArray  # From `similar_questions`, as the next one.
    similarity: FloatArray
    students: pd.DataFrame | None = None  # One row for each student; None without metadata of them.
    circumstances: pd.DataFrame | None = None  # One row for each pair; None without metadata.
    _numbers: dict[tuple[str, ...], IntArray] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        """Count the pairs."""
        return len(self.numbers["student"])

    def number(self, *names: str) -> IntArray:
        """Number what rows share of one or two of `numbers`: int32, gaps possible, -1 unknown."""
        if len(names) == 1:
            return self.numbers[names[0]]
        if names not in self._numbers:
            first, second = (self.numbers[name] for name in names)
            is_known = (first >= 0) & (second >= 0)
            both = small_keys(first[is_known], second[is_known])
            highest = int(both.max(initial=0))
            if highest >= len(self):
                both = number_ids(both)[1] if highest < 4 * len(both) else pd.factorize(both)[0]
            number = np.full(len(self), -1, np.int32)
            number[is_known] = both
            if len(self) > _MANY and names != ("student", "quiz"):
                return number
            self._numbers[names] = number
        return self._numbers[names]

    def moments(self, *names: str) -> IntArray:
        """Return `number(*names)` · `MINUTES` + minute of each row, -1 where either is unknown."""
        assert self.circumstances is not None
        date = self.circumstances["DateAnswered"].to_numpy().astype("datetime64[m]", copy=False)
        number = self.number(*names)
        is_known = ~np.isnat(date) & (number >= 0)
        moment = date.astype(np.int64)
        moment -= moment.min(where=is_known, initial=np.iinfo(np.int64).max)
        # Dates further from the first one than any official one are all as late as can be.
        np.clip(moment, 0, MINUTES - 1, out=moment)
        moment += number * np.int64(MINUTES)
        moment[~is_known] = -1
        return moment


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
    if path := metadata.find(folder, layout.QUESTION_METADATA_TASK_1_2):
        above = metadata.find(folder, layout.SUBJECT_METADATA)
        tree = None if above is None else metadata.read_subject_tree(above)
        subjects = metadata.read_question_subjects(path, question_ids, tree)
        for level, name in enumerate(SUBJECT_LEVELS, start=1):
            chosen = _choose(subjects, tree, level)
            of_question = chosen.reindex(range(len(question_ids)), fill_value=-1)
            numbers[name] = of_question.to_numpy(np.int32)[question]
    students = circumstances = None
    if path := metadata.find(folder, layout.STUDENT_METADATA_TASK_1_2):
        students = metadata.read_student_metadata(path, student_ids)
    path = metadata.find(folder, layout.ANSWER_METADATA_TASK_1_2)
    if path and "AnswerId" in answers and "AnswerId" in template:
        circumstances = metadata.read_circumstances(path, join("AnswerId"))
        day = pd.factorize(circumstances["DateAnswered"].dt.normalize())[0]
        names = {"group": "GroupId", "quiz": "QuizId", "scheme": "SchemeOfWorkId"}
        numbers |= {name: circumstances[column].to_numpy() for name, column in names.items()}
        numbers["day"] = day.astype(np.int32)
    n_students, n_questions = len(student_ids), len(question_ids)
    similar = similar_questions(student, question, n_students, n_questions)
    context = contexts_of_pairs(student, question, len(answers), circumstances)
    return Pairs(numbers, n_students, n_questions, context, *similar, students, circumstances)


def _choose(subjects: pd.DataFrame, tree: pd.DataFrame | None, level: int) -> pd.Series:
    """Choose for each question with subjects of a level the last one, by its row."""
    if tree is not None:
        is_meant = subjects["subject"].map(tree["Level"]) == level
    else:
        # Lists go from the root down: the second subject, the one before the last, the last.
        place = subjects.groupby("row").cumcount()
        to_end = subjects.groupby("row").cumcount(ascending=False)
        is_meant = (place > 0) & [place == 1, to_end == 1, to_end == 0][level - 1]
    return subjects[is_meant].groupby("row")["subject"].last()
