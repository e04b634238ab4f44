"""The answers of students to questions, as columns of small integers."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from common import io, schema
from common.errors import InputError, Report, printable, stop

IntArray = io.IntArray

# Ids up to here, or up to four times the number of answers, are numbered by a lookup table.
_SMALL_TABLE = 10_000_000


@dataclass(frozen=True)
class Answers:
    """Answers, one row each, as equally long columns; 15.9 million of them take 175 MB.

    Attributes
    ----------
    student
        UserId, int32.
    question
        QuestionId, int32.
    is_correct
        1 right, 0 wrong, int8.
    option
        AnswerValue, the option chosen, 1 to 4, int8; None where it is not known.
    correct_option
        CorrectAnswer, the right option, 1 to 4, int8; None where it is not known.
    answer_id
        AnswerId, int32, by which `common.metadata` finds what is known about the answer; None
        where it was not read or is not there.
    """

    student: IntArray
    question: IntArray
    is_correct: IntArray
    option: IntArray | None = None
    correct_option: IntArray | None = None
    answer_id: IntArray | None = None

    def __len__(self) -> int:
        """Count the answers."""
        return len(self.student)

    def take(self, rows: npt.NDArray[np.bool_] | IntArray) -> "Answers":
        """Return some of the answers.

        Parameters
        ----------
        rows
            Row numbers, or a boolean for every answer.
        """
        columns: dict[str, Any] = {
            name: None if column is None else column[rows] for name, column in vars(self).items()
        }
        return Answers(**columns)


def read_answer_table(
    path: Path, *, options: bool | None = None, ids: bool = True, masks: bool = False
) -> pa.Table:
    """Read and check a file of answers as a table with the official column names.

    Parameters
    ----------
    path
        CSV with UserId, QuestionId, IsCorrect and usually AnswerId, CorrectAnswer, AnswerValue.
    options
        Whether to read the options. True: they must be there; False: they are not read even if
        present; None: they are read if present.
    ids
        Whether to read AnswerId if present.
    masks
        Whether to read the target masks of task 4, at least one of which must be there: IsTarget,
        or IsTarget_0 and so on.

    Raises
    ------
    InputError
        If a value is wrong, a (student, question) pair appears twice, or IsCorrect contradicts
        the options.
    """
    source = io.file_source(path)
    header = io.read_header(source)
    columns = [schema.QUESTION_ID, schema.USER_ID, schema.IS_CORRECT]
    if ids and schema.ANSWER_ID.name in header:
        columns.insert(2, schema.ANSWER_ID)
    option_columns = [schema.CORRECT_ANSWER, schema.ANSWER_VALUE]
    if options or (options is None and any(column.name in header for column in option_columns)):
        columns += option_columns
    if masks:
        names = [name for name in header if schema.is_target_name(name)]
        if not names:
            raise InputError(
                f"{source.name}: column '{schema.IS_TARGET}' is missing (or several, numbered: "
                f"'{schema.IS_TARGET}_0' and so on), found: {printable(', '.join(header), 300)}"
            )
        columns += [schema.is_target(name) for name in names]
    table = io.read_table(source, columns)
    data = io.to_arrays(table, columns)
    require_distinct_pairs(source, data["UserId"], data["QuestionId"])
    if "AnswerValue" in data:
        contradiction = (data["AnswerValue"] == data["CorrectAnswer"]) != data["IsCorrect"]
        if contradiction.any():
            row = int(contradiction.argmax())
            raise InputError(
                f"{source.name}: row {source.row_number(row)}: column 'IsCorrect' is "
                f"{data['IsCorrect'][row]}, but AnswerValue is {data['AnswerValue'][row]} and "
                f"CorrectAnswer is {data['CorrectAnswer'][row]} ({int(contradiction.sum())} such "
                "rows)"
            )
    return table


def read_answers(path: Path, *, options: bool | None = None, ids: bool = False) -> Answers:
    """Read and check a file of answers into arrays; as `read_answer_table`."""
    return as_answers(read_answer_table(path, options=options, ids=ids))


def read_students(files: list[Path]) -> Answers:
    """Read right and wrong answers of different students from several files.

    Parameters
    ----------
    files
        As for `read_answers`; at least one.

    Raises
    ------
    InputError
        If a student appears in two files, and as for `read_answers`.
    """
    parts = [read_answers(file, options=False) for file in files]
    seen = np.unique(parts[0].student)
    for part, file in zip(parts[1:], files[1:], strict=True):
        students = np.unique(part.student)
        twice = np.intersect1d(seen, students)
        if len(twice):
            raise InputError(
                f"{file}: UserId {twice[0]} appears in another training file as well, expected "
                "different students"
            )
        seen = np.union1d(seen, students)
    student, question, is_correct = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("student", "question", "is_correct")
    )
    return Answers(student, question, is_correct)


def as_answers(table: pa.Table) -> Answers:
    """Convert a table with the official column names to `Answers`."""

    def column(name: str) -> IntArray | None:
        return io.to_array(table[name]) if name in table.column_names else None

    return Answers(
        student=io.to_array(table["UserId"]),
        question=io.to_array(table["QuestionId"]),
        is_correct=io.to_array(table["IsCorrect"]),
        option=column("AnswerValue"),
        correct_option=column("CorrectAnswer"),
        answer_id=column("AnswerId"),
    )


def number_ids(ids: IntArray) -> tuple[IntArray, npt.NDArray[np.int32]]:
    """Number the distinct ids from 0.

    Returns
    -------
    distinct : array of int, shape (distinct ids,)
        In increasing order.
    number : array of int32, shape (ids,)
        Place of each given id in `distinct`.
    """
    if ids.max() < 4 * len(ids) + _SMALL_TABLE:
        # Much faster than sorting, if the ids are dense enough for a table.
        present = np.zeros(int(ids.max()) + 1, bool)
        present[ids] = True
        number = np.cumsum(present, dtype=np.int32) - np.int32(1)
        return np.flatnonzero(present).astype(np.int32), number[ids]
    distinct, place = np.unique(ids, return_inverse=True)
    return distinct, place.astype(np.int32)


def find_ids(distinct: IntArray, ids: IntArray) -> npt.NDArray[np.int32]:
    """Find ids among sorted distinct ones; `len(distinct)` for an id that is not there."""
    place = np.searchsorted(distinct, ids)
    found = distinct[np.minimum(place, len(distinct) - 1)] == ids
    return np.where(found, place, len(distinct)).astype(np.int32)


def find_rows(ids: IntArray, wanted: IntArray) -> npt.NDArray[np.int32]:
    """Find the row that holds each wanted id; -1 for an id that is not there, or is -1 itself.

    Parameters
    ----------
    ids
        In any order; each at most once, apart from -1, which stands for an unknown id.
    wanted
        Ids, shape (n,).
    """
    highest = int(ids.max(initial=-1))
    if highest < 4 * len(ids) + _SMALL_TABLE:
        row = np.full(highest + 2, -1, np.int32)
        row[ids] = np.arange(len(ids), dtype=np.int32)
        # The last element is that of -1, and of ids that are too high.
        row[-1] = -1
        return row[np.minimum(wanted, highest + 1)]
    order = np.argsort(ids)
    place = find_ids(ids[order], wanted)
    found = (place < len(ids)) & (wanted >= 0)
    return np.where(found, order[np.where(found, place, 0)], -1).astype(np.int32)


def pair_keys(student: IntArray, question: IntArray) -> npt.NDArray[np.int64]:
    """Encode every (student, question) pair as one number; equal pairs get equal numbers."""
    return (student.astype(np.int64) << 31) | question


def find_repeats(keys: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Find the rows whose key appears in an earlier row, in order.

    Negative keys, which stand for rows that could not be read, never count as repeated.
    """
    ordered = np.sort(keys)
    if not (ordered[1:] == ordered[:-1]).any():
        return np.empty(0, np.int64)
    order = np.argsort(keys, kind="stable")
    rows = order[1:][keys[order[1:]] == keys[order[:-1]]]
    return np.sort(rows[keys[rows] >= 0])


def _any_pair_repeats(student: IntArray, question: IntArray) -> bool:
    """Return whether any pair appears twice, in little memory and without finding out where."""
    width = int(question.max(initial=0)) + 1
    highest = int(student.max(initial=0)) * width + width
    dtype = np.uint32 if highest < 2**32 else np.uint64
    keys = student.astype(dtype)
    np.multiply(keys, width, out=keys)
    np.add(keys, question.astype(dtype, copy=False), out=keys)
    keys.sort()
    return bool((keys[1:] == keys[:-1]).any())


def require_distinct_pairs(
    source: io.Source, student: IntArray, question: IntArray, report: Report = stop
) -> None:
    """Report if a (student, question) pair appears twice in a file."""
    if not _any_pair_repeats(student, question):
        return
    keys = pair_keys(student, question)
    repeats = find_repeats(keys)
    if len(repeats):
        row = int(repeats[0])
        first = int(np.flatnonzero(keys == keys[row])[0])
        report(
            f"{source.name}: row {source.row_number(row)} repeats row {source.row_number(first)}: "
            f"UserId {student[row]} and QuestionId {question[row]} ({len(repeats)} repeated rows), "
            "expected each pair once"
        )
