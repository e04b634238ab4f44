"""Who was asked what, and when: everything that is known about answers without any outcome."""

from dataclasses import dataclass, field
from pathlib import Path

from common import layout, metadata
from common.answer_context import number_contexts
from common.answer_features.similar_questions import similar_questions
from common.answers import number_ids, small_keys
from common.arrays import FloatArray, IntArray

import numpy as np
import pandas as pd

# Names in `Pairs.numbers` of a question's subjects at three levels of the tree, from general to
# specific. The root is left out, since all questions have it.
SUBJECT_LEVELS = ("subject_1", "subject_2", "subject_3")
# `Pairs.moments` packs a number and a minute into one integer: number · this + minute. This is
# nearly four years in minutes. The official dates span less; `moments` clips later dates.
MINUTES_PER_NUMBER = 1 << 21
# With more pairs than this, `Pairs.number` caches only the combination `_ALWAYS_CACHED`, to save
# memory. Several groups of features need this combination.
_MAX_PAIRS_TO_CACHE_ALL = 5_000_000
_ALWAYS_CACHED = ("student", "quiz")


@dataclass(frozen=True)
class Pairs:
    """Pairs of students and questions: a row for each training answer, then the template's rows."""

    # For each name, the number of each pair's student, question, and so on: int32, shape (pairs,),
    # from 0; -1 where it is unknown. The names are "student" and "question". With question metadata
    # also `SUBJECT_LEVELS`. With answer metadata also "group", "quiz", "scheme" and "day".
    numbers: dict[str, IntArray]
    n_students: int
    n_questions: int
    # The labels of contexts, such as quizzes, from `number_contexts`, shape (pairs, levels).
    context: IntArray
    # The nearest questions and similarities of `similar_questions`, shape (questions, neighbours).
    neighbours: IntArray
    similarity: FloatArray
    # A row for each student; None without student metadata.
    students: pd.DataFrame | None = None
    # A row for each pair; None without answer metadata.
    circumstances: pd.DataFrame | None = None
    # Cached results of `number`, by the two names.
    _numbers_of_two: dict[tuple[str, ...], IntArray] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        """Count the pairs."""
        return len(self.numbers["student"])

    def number(self, *names: str) -> IntArray:
        """Return a number for each pair that says which values it has in one or two of `numbers`.

        ``number("student", "quiz")``, for instance, is equal for pairs of the same student in the
        same quiz. Returns int32, shape (pairs,), from 0, with gaps; -1 where a value is unknown.
        """
        if len(names) == 1:
            return self.numbers[names[0]]
        if names in self._numbers_of_two:
            return self._numbers_of_two[names]
        first = self.numbers[names[0]]
        second = self.numbers[names[1]]
        is_known = (first >= 0) & (second >= 0)
        key = self._shorten_keys(small_keys(first[is_known], second[is_known]))
        number = np.full(len(self), -1, np.int32)
        number[is_known] = key
        if len(self) <= _MAX_PAIRS_TO_CACHE_ALL or names == _ALWAYS_CACHED:
            self._numbers_of_two[names] = number
        return number

    def _shorten_keys(self, key: IntArray) -> IntArray:
        """Give equal keys an equal number from 0, small enough for int32; gaps are possible."""
        highest = int(key.max(initial=0))
        # Keys below the number of pairs are small enough to be the numbers.
        if highest < len(self):
            return key
        # `number_ids` is fast as long as its lookup table of `highest` elements is small.
        if highest < 4 * len(key):
            return number_ids(key)[1]
        # With a large lookup table, hashing is faster.
        return pd.factorize(key)[0]

    def moments(self, *names: str) -> IntArray:
        """Return a number for each row that orders rows by `number(*names)`, then by minute.

        The moment is number · `MINUTES_PER_NUMBER` + minute, int64, where minutes count from the
        first date. It is -1 where the number or the date is unknown.
        """
        assert self.circumstances is not None
        date = self.circumstances["DateAnswered"].to_numpy().astype("datetime64[m]", copy=False)
        number = self.number(*names)
        is_known = ~np.isnat(date) & (number >= 0)
        moment = date.astype(np.int64)
        moment -= moment.min(where=is_known, initial=np.iinfo(np.int64).max)
        # Official dates span fewer minutes. Later dates count as the last minute.
        np.clip(moment, 0, MINUTES_PER_NUMBER - 1, out=moment)
        moment += number * np.int64(MINUTES_PER_NUMBER)
        moment[~is_known] = -1
        return moment


def read_pairs(answers: pd.DataFrame, template: pd.DataFrame, folder: Path | None) -> Pairs:
    """Join the training answers and the template to the metadata of tasks 1 and 2.

    Parameters
    ----------
    answers
        Training answers, read with ``ids=True`` if the answer metadata are to be used.
    template
        The pairs to be predicted.
    folder
        Folder of the official metadata files, any of which may be missing. None for no metadata.

    Returns
    -------
    Pairs
        A row for each training answer, then for each row of the template.

    Raises
    ------
    InputError
        If a metadata file is not as expected, or belongs to other data.
    """

    def join(name: str) -> IntArray:
        return np.concatenate([answers[name], template[name]])

    student_ids, student = number_ids(join("UserId"))
    question_ids, question = number_ids(join("QuestionId"))
    numbers: dict[str, IntArray] = {"student": student, "question": question}
    for level, subject_of_question in _read_subjects(folder, question_ids).items():
        numbers[level] = subject_of_question[question]
    students = None
    if path := metadata.find(folder, layout.STUDENT_METADATA_TASK_1_2):
        students = metadata.read_student_metadata(path, student_ids)
    circumstances = None
    path = metadata.find(folder, layout.ANSWER_METADATA_TASK_1_2)
    if path and "AnswerId" in answers and "AnswerId" in template:
        circumstances = metadata.read_circumstances(path, join("AnswerId"))
        numbers["group"] = circumstances["GroupId"].to_numpy()
        numbers["quiz"] = circumstances["QuizId"].to_numpy()
        numbers["scheme"] = circumstances["SchemeOfWorkId"].to_numpy()
        day = pd.factorize(circumstances["DateAnswered"].dt.normalize())[0]
        numbers["day"] = day.astype(np.int32)
    n_students = len(student_ids)
    n_questions = len(question_ids)
    neighbours, similarity = similar_questions(student, question, n_students, n_questions)
    return Pairs(
        numbers=numbers,
        n_students=n_students,
        n_questions=n_questions,
        context=number_contexts(student, question, len(answers), circumstances),
        neighbours=neighbours,
        similarity=similarity,
        students=students,
        circumstances=circumstances,
    )


def _read_subjects(folder: Path | None, question_ids: IntArray) -> dict[str, IntArray]:
    """Read the subject of each question at each of `SUBJECT_LEVELS`: int32, -1 where unknown.

    Returns an empty dict if there are no question metadata.
    """
    path = metadata.find(folder, layout.QUESTION_METADATA_TASK_1_2)
    if path is None:
        return {}
    tree_path = metadata.find(folder, layout.SUBJECT_METADATA)
    tree = None if tree_path is None else metadata.read_subject_tree(tree_path)
    subjects = metadata.read_question_subjects(path, question_ids, tree)
    subject_by_level = {}
    for level, name in enumerate(SUBJECT_LEVELS, start=1):
        subject_by_row = _choose_subject(subjects, tree, level)
        complete = subject_by_row.reindex(range(len(question_ids)), fill_value=-1)
        subject_by_level[name] = complete.to_numpy(np.int32)
    return subject_by_level


def _choose_subject(subjects: pd.DataFrame, tree: pd.DataFrame | None, level: int) -> pd.Series:
    """Choose one subject of a level, 1 to 3, for each question that has any.

    The index of the Series is the question's number. If a question has several subjects of the
    level, the last one counts.
    """
    if tree is not None:
        is_chosen = subjects["subject"].map(tree["Level"]) == level
    else:
        # Without the tree, take a question's list of subjects as the path from the root, which is
        # at position 0: level 1 comes next, level 2 is the last but one, and level 3 the last.
        position = subjects.groupby("row").cumcount()
        position_from_end = subjects.groupby("row").cumcount(ascending=False)
        if level == 1:
            is_chosen = position == 1
        elif level == 2:
            is_chosen = position_from_end == 1
        else:
            is_chosen = position_from_end == 0
        is_chosen &= position > 0
    return subjects[is_chosen].groupby("row")["subject"].last()
