"""What is known about answers, students and questions besides the answers themselves.

    circumstances = read_circumstances(path, answer_ids)       date, confidence, class, quiz
    students = read_student_metadata(path, students)           gender, date of birth, need
    tree = read_subject_tree(path)                             the tree of subjects
    subjects = read_question_subjects(path, questions, tree)   the subjects of questions

Each reader takes ids and returns one row for each of them, in their order, with a stated value
where nothing is known: -1 for a whole number, NaN for a number, NaT for a date. `find` says whether
a file is there at all. A column that is not there is not known either, apart from the ids.

Ids of tasks 1/2 have nothing to do with those of tasks 3/4: each has metadata of its own.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import io, schema
from common.answers import IntArray, find_repeats, find_rows
from common.errors import InputError, quote
from common.schema import Column

import numpy as np
import numpy.typing as npt

_CIRCUMSTANCES = (
    schema.DATE_ANSWERED,
    schema.CONFIDENCE,
    schema.GROUP_ID,
    schema.QUIZ_ID,
    schema.SCHEME_ID,
)
_OF_STUDENTS = (schema.GENDER, schema.DATE_OF_BIRTH, schema.PREMIUM_PUPIL)
# The challenge's answers were given at school from September 2018 to May 2020. Who was younger than
# four or older than twenty at the end of 2018 has given a wrong date of birth, as teachers do who
# try a quiz: 2.6 % of the official dates, which reach from 1756 to 9999.
_FIRST_BIRTH, _LAST_BIRTH = np.datetime64("1998-01-01"), np.datetime64("2014-12-31")

# At most nine digits: a number that fits into 32 bits.
_LIST = re.compile(r"\[\d{1,9}(, *\d{1,9})*\]", re.ASCII)
_PARENT = re.compile(r"\d{1,9}(\.0*)?", re.ASCII)
_NO_PARENT = ("NULL", "")


@dataclass(frozen=True)
class Circumstances:
    """How answers came about, one row for each answer asked for, as equally long columns.

    Attributes
    ----------
    date_answered
        DateAnswered, datetime64[m], to the minute, no time zone is stated; NaT where missing.
    confidence
        Confidence, 0 to 100, float32; NaN where the student stated none.
    group, quiz, scheme
        GroupId, QuizId and SchemeOfWorkId, int32; -1 where missing.
    """

    date_answered: npt.NDArray[np.datetime64]
    confidence: npt.NDArray[np.float32]
    group: npt.NDArray[np.int32]
    quiz: npt.NDArray[np.int32]
    scheme: npt.NDArray[np.int32]

    def take(self, rows: npt.NDArray[np.bool_] | IntArray | slice) -> "Circumstances":
        """Return those of some answers: row numbers, a boolean for every answer, or a slice."""
        return Circumstances(**{name: column[rows] for name, column in vars(self).items()})


@dataclass(frozen=True)
class StudentMetadata:
    """Who students are, one row for each student asked for, as equally long columns.

    Attributes
    ----------
    gender
        0 unspecified, 1 female, 2 male, 3 other, int8; -1 for a student who is not listed.
    date_of_birth
        DateOfBirth, first of a month, datetime64[D]; NaT where missing or nonsense, that is before
        1998 or after 2014.
    premium_pupil
        1 entitled to pupil premium (financial need), 0 not, int8; -1 where missing.
    """

    gender: npt.NDArray[np.int8]
    date_of_birth: npt.NDArray[np.datetime64]
    premium_pupil: npt.NDArray[np.int8]


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


def find(folder: Path | None, name: str) -> Path | None:
    """Return the path of a file of metadata; None where it, or the folder, is not there."""
    return None if folder is None or not io.is_there(folder / name) else folder / name


def read_circumstances(
    path: Path, answer_id: IntArray, *, columns: Sequence[Column] | None = None
) -> Circumstances:
    """Read the answer metadata of given answers.

    Rows without an AnswerId are skipped, as the official files have some. A file of official size
    takes seconds: read it once for all answers (`np.concatenate`), and `take` them apart.

    Parameters
    ----------
    path
        An `answer_metadata_task_….csv`.
    answer_id
        AnswerIds, shape (n,), -1 where unknown: the column AnswerId of answers read with
        ``ids=True``, or of a template.
    columns
        The columns of `common.schema` to read beside AnswerId, which must be there. None: those
        that are there. What is not read is missing for every answer.

    Returns
    -------
    Circumstances
        n rows, in the order of `answer_id`; all values missing for an answer that is not listed.

    Raises
    ------
    InputError
        If the file is not as expected, names an AnswerId twice, or describes none of the answers.
    """
    found = _read_described(path, schema.ANSWER_ID_OR_EMPTY, answer_id, _CIRCUMSTANCES, columns)
    date, confidence, *ids = found
    return Circumstances(date, confidence, *map(io.to_ids, ids))


def read_student_metadata(path: Path, student_id: IntArray) -> StudentMetadata:
    """Read the metadata of given students.

    Parameters
    ----------
    path
        A `student_metadata_task_….csv`. Gender, DateOfBirth and PremiumPupil may be left out, but
        not all three.
    student_id
        UserIds, shape (n,), in any order; the same one may be there often.

    Returns
    -------
    StudentMetadata
        n rows, in the order of `student_id`; all values missing for one who is not listed.

    Raises
    ------
    InputError
        If the file is not as expected, names a student twice, or describes none of the students.
    """
    gender, birth, premium = _read_described(path, schema.USER_ID, student_id, _OF_STUDENTS)
    birth = birth.astype("datetime64[D]")
    # NaT fails both comparisons.
    birth[~((birth >= _FIRST_BIRTH) & (birth <= _LAST_BIRTH))] = np.datetime64("NaT")
    return StudentMetadata(gender, birth, io.to_ids(premium).astype(np.int8))


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
    data = _read_whole(
        path, [schema.SUBJECT_ID, schema.SUBJECT_NAME, schema.PARENT_ID, schema.LEVEL]
    )
    ids, level = data["SubjectId"], data["Level"]
    _require_distinct(path, schema.SUBJECT_ID, ids)
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
    data = _read_whole(path, [schema.QUESTION_ID, schema.SUBJECT_LIST])
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
    rows = _find_described(path, schema.QUESTION_ID, question, question_id)
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


# ---- The steps of all readers: read, check the ids, find the rows asked for ----------------------


def _read_described(
    path: Path,
    id_column: Column,
    wanted: IntArray,
    known: Sequence[Column],
    needed: Sequence[Column] | None = None,
) -> list[npt.NDArray[Any]]:
    """Return an array for each known column, shape (wanted ids,); missing where it is not read.

    Those needed are read; where none are named, those that are there.
    """
    source = io.file_source(path)
    header = io.read_header(source)
    present = [column for column in known if column.name in header]
    if needed is None and not present:
        io.require_columns(source, header, known)
    data = _read_whole(path, [id_column, *(present if needed is None else needed)])
    rows = _find_described(path, id_column, io.to_ids(data.pop(id_column.name)), wanted)
    found = []
    for column in known:
        values = np.full(len(rows), column.missing, column.dtype)
        if column.name in data:
            is_listed = rows >= 0
            # The file's own column is no longer needed: it may be large.
            values[is_listed] = data.pop(column.name)[rows[is_listed]]
        found.append(values)
    return found


def _read_whole(path: Path, columns: Sequence[Column]) -> io.Columns:
    """Read columns of a file that must end with a line end, as all official ones do.

    A file cut off in its last cell would otherwise look complete: any part of a text is a valid
    one, and so is an empty cell.
    """
    source = io.file_source(path)
    data = io.read_columns(source, columns)
    with source.open() as file:
        file.seek(-1, 2)
        if file.read(1) not in b"\r\n":
            row = source.row_number(len(data[columns[0].name]) - 1)
            raise InputError(f"{path}: row {row} has no line end; is the file cut off?")
    return data


def _require_distinct(path: Path, column: Column, ids: IntArray) -> None:
    """Raise `InputError` if a file names an id twice; -1, an unknown one, may be there often."""
    repeats = find_repeats(ids)
    if len(repeats):
        source, row = io.file_source(path), int(repeats[0])
        first = int(np.flatnonzero(ids == ids[row])[0])
        raise InputError(
            f"{path}: column '{column.name}': row {source.row_number(row)} repeats {ids[row]} of "
            f"row {source.row_number(first)} ({len(repeats)} such rows), expected each once"
        )


def _find_described(
    path: Path, column: Column, described: IntArray, wanted: IntArray
) -> npt.NDArray[np.int32]:
    """Return the row of a file that describes each wanted id; -1 where none does, shape (wanted,).

    Ids are -1 where unknown; those wanted may be there in any order and as often as you like.
    """
    _require_distinct(path, column, described)
    rows = find_rows(described, wanted)
    if len(rows) and (rows < 0).all():
        raise InputError(
            f"{path}: column '{column.name}': holds none of the {len(rows):,} asked for; "
            "the file belongs to other data"
        )
    return rows
