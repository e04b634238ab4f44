"""The answers of students to questions: DataFrames; 15.9 million answers take 175 MB."""

from __future__ import annotations

from collections.abc import Sequence, Sized
from itertools import combinations
from pathlib import Path
from typing import Any

from common import reading, schema
from common.arrays import Array, IntArray
from common.errors import InputError, Report, printable, quote, stop

import numpy as np
import numpy.typing as npt
import pandas as pd

# Ids up to here, or up to four times the number of answers, are numbered by a lookup table.
_SMALL_TABLE = 10_000_000


def read_answers(
    path: Path, *, options: bool | None = None, ids: bool = False, masks: bool = False
) -> pd.DataFrame:
    """Read and check a file of answers.

    Parameters
    ----------
    path
        CSV with UserId, QuestionId, IsCorrect and usually AnswerId, CorrectAnswer, AnswerValue.
    options
        Whether to read CorrectAnswer and AnswerValue: True, they must be there; None, if present.
    ids
        Whether to read AnswerId if present, by which `common.metadata` finds what is known about an
        answer.
    masks
        Whether to read the target masks of task 4, at least one of which must be there: IsTarget,
        or IsTarget_0 and so on.

    Returns
    -------
    DataFrame
        UserId and QuestionId (int32), IsCorrect (int8); with AnswerId (int32), CorrectAnswer,
        AnswerValue and masks (int8) as asked. pandas returns sums of int8 by group as int8 where
        they fit: convert them (`astype`) before computing with them.

    Raises
    ------
    InputError
        If a value is wrong, a (student, question) pair appears twice, or IsCorrect contradicts
        the options.
    """
    source = reading.file_source(path)
    header = reading.read_header(source)
    columns = [schema.QUESTION_ID, schema.USER_ID, schema.IS_CORRECT]
    if ids and schema.ANSWER_ID.name in header:
        columns.insert(2, schema.ANSWER_ID)
    option_columns = [schema.CORRECT_ANSWER, schema.ANSWER_VALUE]
    if options or (options is None and any(column.name in header for column in option_columns)):
        columns += option_columns
    if masks:
        targets = [column for column in map(schema.target_column, header) if column]
        if not targets:
            raise InputError(
                f"{source.name}: column '{schema.IS_TARGET}' is missing (or several, numbered: "
                f"'{schema.IS_TARGET}_0' and so on), found: {printable(', '.join(header), 300)}"
            )
        columns += targets
    answers = reading.read_table(source, columns)
    require_distinct_pairs(source, answers)
    if "AnswerValue" in answers:
        is_right = answers["AnswerValue"] == answers["CorrectAnswer"]
        contradiction = (is_right != answers["IsCorrect"]).to_numpy()
        if contradiction.any():
            row = int(contradiction.argmax())
            raise InputError(
                f"{source.name}: row {source.row_number(row)}: column 'IsCorrect' is "
                f"{answers['IsCorrect'][row]}, but AnswerValue is {answers['AnswerValue'][row]} "
                f"and CorrectAnswer is {answers['CorrectAnswer'][row]} "
                f"({int(contradiction.sum())} such rows)"
            )
    return answers


def read_students(files: list[Path]) -> pd.DataFrame:
    """Read right and wrong answers from several files; `InputError` if two share a student."""
    parts = [read_answers(file, options=False) for file in files]
    for (part, _), (other, file) in combinations(zip(parts, files, strict=True), 2):
        twice = np.intersect1d(part["UserId"], other["UserId"])
        if len(twice):
            raise InputError(
                f"{file}: UserId {twice[0]} appears in another training file as well, expected "
                "different students"
            )
    return pd.concat(parts, ignore_index=True)


def number_ids(ids: IntArray | pd.Series) -> tuple[IntArray, npt.NDArray[np.int32]]:
    """Number the distinct ids from 0.

    Returns
    -------
    distinct : array of int, shape (distinct ids,)
        In increasing order.
    number : array of int32, shape (ids,)
        Place of each given id in `distinct`.
    """
    ids = np.asarray(ids)
    highest = int(ids.max(initial=0))
    if highest < 4 * len(ids) + _SMALL_TABLE:
        present = np.zeros(highest + 1, bool)
        present[ids] = True
        number = np.cumsum(present, dtype=np.int32) - np.int32(1)
        return np.flatnonzero(present).astype(np.int32), number[ids]
    distinct, place = np.unique(ids, return_inverse=True)
    return distinct, place.astype(np.int32)


def find_ids(distinct: IntArray, ids: IntArray | pd.Series) -> npt.NDArray[np.int32]:
    """Find the place of ids among sorted distinct ones; `len(distinct)` if it is not there."""
    if len(distinct) <= len(ids):
        row = find_rows(distinct, ids)
        return np.where(row < 0, np.int32(len(distinct)), row)
    place = np.searchsorted(distinct, ids)
    found = distinct[np.minimum(place, len(distinct) - 1)] == ids
    return np.where(found, place, len(distinct)).astype(np.int32)


def find_rows(ids: IntArray | pd.Series, wanted: IntArray | pd.Series) -> npt.NDArray[np.int32]:
    """Find the row of each wanted id, -1 if there is none; ids are distinct, unknown ones -1."""
    ids, wanted = np.asarray(ids), np.asarray(wanted)
    highest = int(ids.max(initial=-1))
    if highest < 4 * len(ids) + _SMALL_TABLE:
        # Its first element is that of unknown ids, its last one that of all that are too high.
        row = np.full(highest + 3, -1, np.int32)
        row[1:][ids] = np.arange(len(ids), dtype=np.int32)
        # An unknown id, -1, has written there.
        row[-1] = -1
        return row.take(wanted + 1, mode="clip")
    # Both sorted: looking up millions of ids in random order takes ten times as long.
    order, wanted_order = np.argsort(ids), np.argsort(wanted)
    place = np.searchsorted(ids[order], wanted[wanted_order])
    row = np.empty(len(wanted), np.int32)
    row[wanted_order] = order[np.minimum(place, len(ids) - 1)]
    row[(ids[row] != wanted) | (wanted < 0)] = -1
    return row


def pair_keys(
    student: IntArray | pd.Series, question: IntArray | pd.Series
) -> npt.NDArray[np.int64]:
    """Encode every (student, question) pair as one number; equal pairs get equal numbers."""
    keys: npt.NDArray[np.int64] = np.asarray(student).astype(np.int64) << 31
    keys |= np.asarray(question)
    return keys


def small_keys(first: IntArray, second: IntArray) -> IntArray:
    """Encode pairs of numbers from 0 as one number each, which takes as little memory as it can."""
    width = int(second.max(initial=0)) + 1
    is_small = (int(first.max(initial=0)) + 1) * width <= 1 << 32
    keys: IntArray = first.astype(np.uint32 if is_small else np.int64)
    np.multiply(keys, width, out=keys)
    np.add(keys, second, out=keys, casting="unsafe")
    return keys


def find_repeats(keys: IntArray) -> npt.NDArray[np.int64]:
    """Find rows whose key appears in an earlier row; negative keys, of faulty rows, never count."""
    # Sorting them finds out that there are none in a tenth of the time.
    ordered = np.sort(keys)
    if not ((ordered[1:] == ordered[:-1]) & (ordered[1:] >= 0)).any():
        return np.empty(0, np.int64)
    return np.flatnonzero(pd.Series(keys).duplicated().to_numpy() & (keys >= 0))


def require_distinct_pairs(
    source: reading.Source, pairs: pd.DataFrame, report: Report = stop
) -> npt.NDArray[np.int64]:
    """Report if a pair of UserId and QuestionId appears twice in a file; return the later rows."""
    student, question = pairs["UserId"].to_numpy(), pairs["QuestionId"].to_numpy()
    # To find out that there are none takes little memory.
    small = small_keys(student, question)
    small.sort()
    if not (small[1:] == small[:-1]).any():
        return np.empty(0, np.int64)
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
    return repeats


def require_distinct(
    source: reading.Source, column: str, ids: Array, report: Report = stop
) -> None:
    """Report if an id, a text or a number, appears twice; what could not be read does not count."""
    is_text = ids.dtype == object
    rows = find_repeats(np.where(ids == "", -1, pd.factorize(ids)[0]) if is_text else ids)
    if len(rows):
        again = int(rows[0])
        first = int(np.flatnonzero(ids == ids[again])[0])
        report(
            f"{source.name}: column '{column}': row {source.row_number(again)} repeats "
            f"{_show(ids[again])} of row {source.row_number(first)}{_count(rows)}, "
            "expected each once"
        )


def match_ids(
    source: reading.Source,
    column: str,
    found: Array,
    expected: Sequence[Any],
    expected_in: str,
    report: Report = stop,
) -> npt.NDArray[np.int64]:
    """Find the row of each expected id, -1 where missing; "" and -1 have been reported before."""
    require_distinct(source, column, found, report)
    rows = pd.Series(np.arange(len(found)), found)
    rows = rows[~rows.index.isin(["", schema.UNREADABLE])]
    unknown = rows[~rows.index.isin(expected)]
    if len(unknown):
        number, value = source.row_number(unknown.iloc[0]), unknown.index[0]
        report(
            f"{source.name}: column '{column}': row {number} is {_show(value)}, which is not in "
            f"{expected_in}{_count(unknown)}"
        )
    places = rows[~rows.index.duplicated()].reindex([*expected], fill_value=schema.UNREADABLE)
    missing = places.index[places < 0]
    # If no id could be read at all, that has been reported already.
    if len(missing) and len(rows):
        shown = ", ".join(map(_show, missing[: reading.SHOWN]))
        report(
            f"{source.name}: {len(missing)} of {len(expected)} {column}s are missing, first "
            f"{shown}, expected every {column} of {expected_in}"
        )
    return places.to_numpy()


def _show(value: object) -> str:
    return quote(value) if isinstance(value, str) else str(value)


def _count(wrong: Sized) -> str:
    return f" ({len(wrong)} such rows)" if len(wrong) > 1 else ""
