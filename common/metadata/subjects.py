"""What questions are about: the tree of subjects, and the subjects of each question."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from common import io, schema
from common.answers import IntArray, find_rows
from common.errors import InputError, quote
from common.metadata.reading import find_described, read_whole, require_distinct

import numpy as np
import numpy.typing as npt

# At most nine digits: a number that fits into 32 bits.
_LIST = re.compile(r"\[\d{1,9}(, *\d{1,9})*\]", re.ASCII)
_PARENT = re.compile(r"\d{1,9}(\.0*)?", re.ASCII)
_NO_PARENT = ("NULL", "")


@dataclass(frozen=True)
class SubjectTree:
    """The subjects, by increasing SubjectId.

    Attributes
    ----------
    ids
        SubjectIds, int32, increasing: a *place* is a row number of these columns.
    names
        Their names.
    parent
        Place of the subject above, int32; -1 for a root.
    level
        0 for a root, one more for each step down, int8; to 3 in the official file.
    """

    ids: npt.NDArray[np.int32]
    names: Sequence[str]
    parent: npt.NDArray[np.int32]
    level: npt.NDArray[np.int8]


@dataclass(frozen=True)
class QuestionSubjects:
    """The subjects of questions, one row for each question asked for, of different lengths.

    Attributes
    ----------
    start
        Row i has the subjects ``subject[start[i] : start[i + 1]]``, none where the question is not
        listed; int64, shape (n + 1,).
    subject
        SubjectIds, int32, as the file lists them: from the root down, along all branches. With a
        tree, the places of the subjects in it instead.
    """

    start: npt.NDArray[np.int64]
    subject: npt.NDArray[np.int32]

    @property
    def count(self) -> npt.NDArray[np.int64]:
        """How many subjects every question has, shape (n,)."""
        return np.diff(self.start)

    @property
    def row(self) -> npt.NDArray[np.int64]:
        """For each element of `subject` the row of its question."""
        return np.repeat(np.arange(len(self.start) - 1), self.count)


def read_subject_tree(path: Path) -> SubjectTree:
    """Read the tree of subjects.

    Parameters
    ----------
    path
        `subject_metadata.csv`.

    Raises
    ------
    InputError
        If the file is not as expected, names a subject twice, or gives one a parent that is not
        there or not one level above.
    """
    data = read_whole(
        path, [schema.SUBJECT_ID, schema.SUBJECT_NAME, schema.PARENT_ID, schema.LEVEL]
    )
    ids, level = data["SubjectId"], data["Level"]
    require_distinct(path, schema.SUBJECT_ID, ids)
    texts = [text.strip() for text in data["ParentId"].tolist()]

    def refuse(row: int, column: str, found: str, expected: str) -> InputError:
        number = io.file_source(path).row_number(row)
        return InputError(f"{path}: column '{column}': row {number} is {found}, {expected}")

    for row, text in enumerate(texts):
        if text not in _NO_PARENT and not _PARENT.fullmatch(text):
            raise refuse(row, "ParentId", quote(text), "expected a SubjectId or NULL")
    parent_id = np.array([-1 if text in _NO_PARENT else int(float(text)) for text in texts])
    parent = find_rows(ids, parent_id)
    for row in np.flatnonzero((parent_id >= 0) & (parent < 0))[:1].tolist():
        raise refuse(row, "ParentId", str(parent_id[row]), "which is no SubjectId of this file")
    # Levels that increase by one cannot lead in a circle.
    expected_level = np.where(parent < 0, 0, level[parent] + 1)
    for row in np.flatnonzero(level != expected_level)[:1].tolist():
        above = "a root" if parent[row] < 0 else f"one below SubjectId {parent_id[row]}"
        raise refuse(row, "Level", str(level[row]), f"expected {expected_level[row]} for {above}")
    order = np.argsort(ids)
    names = data["Name"][order].tolist()
    return SubjectTree(ids[order], names, find_rows(ids[order], parent_id[order]), level[order])


def read_question_subjects(
    path: Path, question_id: IntArray, tree: SubjectTree | None = None
) -> QuestionSubjects:
    """Read the subjects of given questions.

    Parameters
    ----------
    path
        A `question_metadata_task_….csv`, whose SubjectId is a list in text, ``[3, 71, 98, 209]``.
    question_id
        QuestionIds, shape (n,), in any order.
    tree
        If given, every subject of the file must be in it, and is returned as its place there.

    Returns
    -------
    QuestionSubjects
        n rows, in the order of `question_id`; no subjects for a question that is not listed.

    Raises
    ------
    InputError
        If the file is not as expected, names a question twice, has a subject that is not in the
        tree, or describes none of the questions.
    """
    data = read_whole(path, [schema.QUESTION_ID, schema.SUBJECT_LIST])
    question, texts = data["QuestionId"], data["SubjectId"].tolist()
    for row, text in enumerate(texts):
        if not _LIST.fullmatch(text.strip()):
            number = io.file_source(path).row_number(row)
            raise InputError(
                f"{path}: column 'SubjectId': row {number} is {quote(text)}, expected a list such "
                "as '[3, 71, 98, 209]'"
            )
    lists = [[int(number) for number in re.findall(r"\d+", text)] for text in texts]
    length = np.array([len(subjects) for subjects in lists])
    subject = np.array([subject for subjects in lists for subject in subjects], np.int32)
    rows = find_described(path, schema.QUESTION_ID, question, question_id)
    if tree is not None:
        place = find_rows(tree.ids, subject)
        for unknown in np.flatnonzero(place < 0)[:1].tolist():
            row = int(np.searchsorted(np.cumsum(length), unknown, "right"))
            number = io.file_source(path).row_number(row)
            raise InputError(
                f"{path}: column 'SubjectId': row {number} holds {subject[unknown]}, which is not "
                "in the tree of subjects"
            )
        subject = place
    # Row i of the result has the elements from `first[i]` on, `count[i]` of them.
    count = np.where(rows < 0, 0, length[rows])
    first = (np.cumsum(length) - length)[rows]
    start = np.concatenate([[0], np.cumsum(count)])
    element = np.arange(start[-1]) + np.repeat(first - start[:-1], count)
    return QuestionSubjects(start, subject[element])


def name_subjects(questions: Path, subjects: Path, question_id: IntArray) -> list[str]:
    """Name the most specific subjects of questions.

    Parameters
    ----------
    questions
        A `question_metadata_task_….csv`.
    subjects
        `subject_metadata.csv`.
    question_id
        QuestionIds, shape (n,).

    Returns
    -------
    list of str, length n
        Names, joined by commas; empty for a question that is not listed.

    Raises
    ------
    InputError
        As `read_question_subjects` and `read_subject_tree`.
    """
    tree = read_subject_tree(subjects)
    found = read_question_subjects(questions, question_id, tree)
    names = []
    for start, stop in zip(found.start[:-1], found.start[1:], strict=True):
        own = found.subject[start:stop]
        deepest = own[tree.level[own] == tree.level[own].max(initial=0)]
        names.append(", ".join(tree.names[place] for place in deepest))
    return names
