"""The pairs of students and questions, with everything that is known about them but outcomes."""

from dataclasses import dataclass, field
from pathlib import Path

from common import layout, metadata
from common.answer_context import number_contexts
from common.answer_features.similar_questions import similar_questions
from common.answers import number_ids, small_keys
from common.arrays import FloatArray, IntArray

import numpy as np
import pandas as pd

# Keys of `Pairs.numbers`. The values are a question's subjects at three levels of the subject tree,
# from general to specific. The root is left out, since all questions have it.
SUBJECT_LEVELS = ("subject_1", "subject_2", "subject_3")
# A moment is one integer that combines a number and a minute. The minute is the one in which an
# answer was given. The number may stand, for instance, for the answer's student and quiz. The
# moment is number · MINUTES_PER_NUMBER + minute (`Pairs.moments`), so moments sort by number, then
# by minute. MINUTES_PER_NUMBER is nearly four years in minutes. The official dates span less time;
# `Pairs.moments` clips later dates.
MINUTES_PER_NUMBER = 1 << 21
# With more pairs than this, `Pairs.combined_number` caches only the result for `_ALWAYS_CACHED`, to
# save memory. Several groups of features need this result.
_MAX_PAIRS_TO_CACHE_ALL = 5_000_000
_ALWAYS_CACHED = ("student", "quiz")


@dataclass(frozen=True)
class Pairs:
    """Pairs of students and questions: a row for each training answer, then the template's rows."""

    # The student, question, quiz and so on of each pair, as integers. `numbers["student"]`, for
    # instance, holds 0 for all pairs of the first student, 1 for those of the second: int32, shape
    # (pairs,), -1 where unknown. There are always "student" and "question"; with question metadata
    # the names in `SUBJECT_LEVELS`; with answer metadata "group" (the class), "quiz", "scheme" (of
    # work) and "day".
    numbers: dict[str, IntArray]
    n_students: int
    n_questions: int
    # The contexts of each pair as numbers, from `number_contexts`: shape (pairs, levels). A context
    # is a quiz, for instance. The levels go from large contexts to small ones: each context of a
    # level is a part of one context of the level before.
    context: IntArray
    # For each question, the most similar questions and their similarities, from
    # `similar_questions`: shape (questions, neighbours).
    neighbours: IntArray
    similarity: FloatArray
    # The metadata of each student; None without student metadata.
    students: pd.DataFrame | None = None
    # The answer metadata of each pair, such as the date of the answer; None without answer
    # metadata.
    circumstances: pd.DataFrame | None = None
    # Cached results of `combined_number`, by its arguments, such as ("student", "quiz").
    _combined_numbers: dict[tuple[str, ...], IntArray] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        """Count the pairs."""
        return len(self.numbers["student"])

    def combined_number(self, *names: str) -> IntArray:
        """Return one number for each pair, which stands for its values in one or two of `numbers`.

        Pairs have the same number if and only if they agree in all named values. The numbers of
        ``combined_number("student", "quiz")``, for instance, are equal for all pairs of one student
        in one quiz. Returns int32, shape (pairs,), with numbers from 0, some of which may be
        unused. The number is -1 if a value is unknown.

        Results are cached. If there are many pairs, only the result for `_ALWAYS_CACHED` is cached,
        to save memory.
        """
        if len(names) == 1:
            return self.numbers[names[0]]
        if names in self._combined_numbers:
            return self._combined_numbers[names]
        first = self.numbers[names[0]]
        second = self.numbers[names[1]]
        is_known = (first >= 0) & (second >= 0)
        # `small_keys` encodes the two values of a pair as one key, which may be too large for
        # int32. `_shorten_keys` makes the keys fit.
        key = self._shorten_keys(small_keys(first[is_known], second[is_known]))
        number = np.full(len(self), -1, np.int32)
        number[is_known] = key
        if len(self) <= _MAX_PAIRS_TO_CACHE_ALL or names == _ALWAYS_CACHED:
            self._combined_numbers[names] = number
        return number

    def _shorten_keys(self, key: IntArray) -> IntArray:
        """Replace keys by numbers from 0 that fit into int32; equal keys get the same number.

        A key is an integer that encodes two values of a pair. Some numbers may be unused.
        """
        highest = int(key.max(initial=0))
        # If all keys are below the number of pairs, they fit into int32 already.
        if highest < len(self):
            return key
        # `number_ids` makes a lookup table with an element for each number up to `highest`. If this
        # table has fewer than 4 elements for each key, it is faster than the hash table of
        # `factorize`.
        if highest < 4 * len(key):
            return number_ids(key)[1]
        return pd.factorize(key)[0]

    def moments(self, *names: str) -> IntArray:
        """Return a sort key for each pair, which sorts by the named `numbers`, then by minute.

        If pairs are sorted by ``moments("student", "quiz")``, for instance, the pairs of a student
        in a quiz follow each other, from the first minute to the last. Each moment is a whole
        number, int64: `combined_number(*names)` · `MINUTES_PER_NUMBER` + minute. Minutes count from
        the first date of all pairs. The moment of a pair is -1 if the combined number or the date
        is unknown.
        """
        assert self.circumstances is not None
        date = self.circumstances["DateAnswered"].to_numpy().astype("datetime64[m]", copy=False)
        number = self.combined_number(*names)
        is_known = ~np.isnat(date) & (number >= 0)
        minute = date.astype(np.int64)
        # Count the minutes from the first known date. If no date is known, `min` returns `initial`,
        # and all moments become -1 below.
        first_minute = minute.min(where=is_known, initial=np.iinfo(np.int64).max)
        minute -= first_minute
        # The minutes of the official dates are below `MINUTES_PER_NUMBER`. A later date gets the
        # largest of these minutes.
        np.clip(minute, 0, MINUTES_PER_NUMBER - 1, out=minute)
        moment = np.multiply(number, MINUTES_PER_NUMBER, dtype=np.int64)
        moment += minute
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
        # The index of this Series holds numbers of questions, which are positions in
        # `question_ids`.
        chosen_subject = _choose_subject(subjects, tree, level)
        # Questions without a subject of this level get -1.
        subject_of_question = chosen_subject.reindex(range(len(question_ids)), fill_value=-1)
        subject_by_level[name] = subject_of_question.to_numpy(np.int32)
    return subject_by_level


def _choose_subject(subjects: pd.DataFrame, tree: pd.DataFrame | None, level: int) -> pd.Series:
    """Choose one subject of a level, 1 to 3, for each question that has a subject of this level.

    `subjects` has a line for each subject of each question, with two columns: "row" holds the
    number of the question, "subject" the subject. Returns a Series of the chosen subjects, indexed
    by the number of the question. If a question has several subjects of the level, the last one is
    chosen.
    """
    if tree is not None:
        is_chosen = subjects["subject"].map(tree["Level"]) == level
    else:
        # Without the tree, the level of a subject is unknown. Assume that the subjects of a
        # question are a path down the tree, from the root to level 3. So the first subject is the
        # root, which is never chosen, and the second subject is of level 1. The last subject but
        # one is of level 2, and the last subject is of level 3. `position` and `position_from_end`
        # are the places of a subject among the subjects of its question.
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
