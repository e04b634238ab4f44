"""Read answers of students to questions, and look up their ids.

Answers are a DataFrame. 15.9 million answers take 175 MB.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from common import answer_options, reading, schema
from common.arrays import Array, IntArray
from common.errors import InputError, Report, count_rows, printable, quote, stop
from common.tasks import Task

import numpy as np
import numpy.typing as npt
import pandas as pd

# A lookup table with an element for each possible id is fast. It is used if the highest id is below
# _TABLE_SIZE + _TABLE_SIZE_PER_ID × (number of ids).
_TABLE_SIZE = 10_000_000
_TABLE_SIZE_PER_ID = 4


def read_answers(
    path: Path, *, options: bool | None = None, ids: bool = False, masks: bool = False
) -> pd.DataFrame:
    """Read and check a file of answers.

    Parameters
    ----------
    path
        CSV with UserId, QuestionId, IsCorrect and usually AnswerId, CorrectAnswer, AnswerValue.
        Without AnswerId, questions may have more or fewer than four options (`answer_options`).
    options
        Whether to read CorrectAnswer and AnswerValue. If True, both columns must be there. If None,
        they are read if the file has them.
    ids
        Whether to read AnswerId if the file has it. `common.metadata` finds the metadata of an
        answer by its AnswerId.
    masks
        Whether to read the target masks of task 4: IsTarget, or IsTarget_0, IsTarget_1 and so on.
        At least one must be there.

    Returns
    -------
    DataFrame
        UserId and QuestionId (int32), IsCorrect (int8). If they are read, also AnswerId (int32),
        CorrectAnswer, AnswerValue and the masks (int8). With options, also NumberOfOptions (int8);
        if this column is not there, all questions have four options. Convert an int8 column
        (`astype`) before summing it by group: `groupby().sum()` may return int8.

    Raises
    ------
    InputError
        If a value is wrong, a (student, question) pair appears twice, or IsCorrect contradicts
        the options.
    """
    source = reading.file_source(path)
    header = reading.read_header(source)
    columns = [schema.QUESTION_ID, schema.USER_ID]
    if ids and schema.ANSWER_ID.name in header:
        columns.append(schema.ANSWER_ID)
    columns.append(schema.IS_CORRECT)
    if options or (options is None and any(name in header for name in answer_options.OPTION_NAMES)):
        columns += answer_options.columns_of_answers(header)
    if masks:
        mask_columns = [column for column in map(schema.target_column, header) if column]
        if not mask_columns:
            raise InputError(
                f"{source.name}: column '{schema.IS_TARGET}' is missing (or several, numbered: "
                f"'{schema.IS_TARGET}_0' and so on), found: {printable(', '.join(header), 300)}"
            )
        columns += mask_columns
    answers = reading.read_table(source, columns)
    require_distinct_pairs(source, answers)
    if "AnswerValue" not in answers:
        return answers
    _require_agreement(source, answers)
    return answer_options.add_number_of_options(source, answers, header)


def read_right_or_wrong(path: Path) -> pd.DataFrame:
    """Read answers for task 1, which does not need the options.

    Returns the table of `read_answers`, with AnswerId and options if the file has them. Options are
    faulty if they cannot be read, or if IsCorrect contradicts them. In a file of the challenge's
    form (`answer_options.is_of_challenge`), faulty options raise `InputError`. In any other file,
    faulty options are left out, and a note is printed.
    """
    try:
        return read_answers(path, ids=True)
    except InputError as fault:
        if answer_options.is_of_challenge(reading.read_header(reading.file_source(path))):
            raise
        # Read the file again, without the options. If the fault was not in the options, this call
        # raises the same error.
        answers = read_answers(path, options=False, ids=True)
        print(f"note: {fault}; task 1 goes on without the options")
        return answers


def read_for_task(path: Path, task: Task) -> pd.DataFrame:
    """Read answers for a model of a task, with AnswerId if the file has it.

    Task 2 needs the options. For the other tasks, `read_right_or_wrong` reads the answers.
    """
    if task.needs_options:
        return read_answers(path, options=True, ids=True)
    return read_right_or_wrong(path)


def _require_agreement(source: reading.Source, answers: pd.DataFrame) -> None:
    """Raise `InputError` if IsCorrect contradicts the option chosen and the right option."""
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


def read_students(files: list[Path]) -> pd.DataFrame:
    """Read right and wrong answers from several files, each with other students.

    Raises `InputError` if a student is in two of the files.
    """
    tables = [read_answers(file, options=False) for file in files]
    for first, second in combinations(range(len(files)), 2):
        shared = np.intersect1d(tables[first]["UserId"], tables[second]["UserId"])
        if len(shared):
            raise InputError(
                f"{files[second]}: UserId {shared[0]} appears in another training file as well, "
                "expected different students"
            )
    return pd.concat(tables, ignore_index=True)


# ---- Look up ids -------------------------------------------------------------------------------


def number_ids(ids: IntArray | pd.Series) -> tuple[IntArray, npt.NDArray[np.int32]]:
    """Number the distinct ids from 0.

    Returns
    -------
    distinct : array of int, shape (distinct ids,)
        The ids without repeats, in increasing order.
    number : array of int32, shape (ids,)
        The position in `distinct` of each of `ids`.
    """
    ids = np.asarray(ids)
    highest = int(ids.max(initial=0))
    if _fits_lookup_table(highest, len(ids)):
        is_present = np.zeros(highest + 1, bool)
        is_present[ids] = True
        # `number` has an element for each possible id. Element i is the count of the present ids
        # from 0 to i, minus 1. For a present id, this is its position in `distinct`.
        number = np.cumsum(is_present, dtype=np.int32) - np.int32(1)
        distinct = np.flatnonzero(is_present).astype(np.int32)
        return distinct, number[ids]
    distinct, position = np.unique(ids, return_inverse=True)
    return distinct, position.astype(np.int32)


def find_ids(distinct: IntArray, ids: IntArray | pd.Series) -> npt.NDArray[np.int32]:
    """Find the position of each id in `distinct`, which holds sorted ids without repeats.

    An id that is not in `distinct` gets the position `len(distinct)`. Returns int32, shape (ids,).
    """
    # If there are many ids, `find_rows` with its lookup table is faster; if there are few, a binary
    # search.
    if len(distinct) <= len(ids):
        row = find_rows(distinct, ids)
        return np.where(row < 0, np.int32(len(distinct)), row)
    position = np.searchsorted(distinct, ids)
    is_found = distinct[np.minimum(position, len(distinct) - 1)] == ids
    return np.where(is_found, position, len(distinct)).astype(np.int32)


def find_rows(ids: IntArray | pd.Series, wanted: IntArray | pd.Series) -> npt.NDArray[np.int32]:
    """Find the row in `ids` of each wanted id; -1 if it is not there.

    `ids` are distinct, in any order. In both arrays, -1 stands for an unknown id, which has no row.
    Returns int32, shape (wanted,).
    """
    ids = np.asarray(ids)
    wanted = np.asarray(wanted)
    highest = int(ids.max(initial=-1))
    if _fits_lookup_table(highest, len(ids)):
        return _look_up_rows(ids, wanted, highest)
    # Search for the wanted ids in the sorted ids. Sort the wanted ids too: a search for millions of
    # ids in random order takes ten times as long.
    order = np.argsort(ids)
    wanted_order = np.argsort(wanted)
    # The positions of the wanted ids in the sorted ids; `len(ids)` for wanted ids above the
    # highest.
    position = np.searchsorted(ids[order], wanted[wanted_order])
    row = np.empty(len(wanted), np.int32)
    row[wanted_order] = order[np.minimum(position, len(ids) - 1)]
    is_missing = (ids[row] != wanted) | (wanted < 0)
    row[is_missing] = -1
    return row


def _look_up_rows(ids: IntArray, wanted: IntArray, highest: int) -> npt.NDArray[np.int32]:
    """Find the row in `ids` of each wanted id like `find_rows`, with a lookup table.

    `highest` is the highest of `ids`.
    """
    # Element i + 1 of the table holds the row of id i. Element 0 stands for the unknown id -1, and
    # the last element for all ids above the highest. Both hold -1: no row.
    table = np.full(highest + 3, -1, np.int32)
    row_of_id = table[1:]
    row_of_id[ids] = np.arange(len(ids), dtype=np.int32)
    # If `ids` holds -1, NumPy has taken it as the index of the last element, and has written a row
    # there. Set the last element to -1 again.
    table[-1] = -1
    # An id above the highest has an index past the end of the table: "clip" turns it into the index
    # of the last element.
    return table.take(wanted + 1, mode="clip")


def _fits_lookup_table(highest: int, n_ids: int) -> bool:
    """Return whether a lookup table with an element for each id up to the highest may be used."""
    return highest < _TABLE_SIZE_PER_ID * n_ids + _TABLE_SIZE


# ---- Keys of pairs, and repeats ----------------------------------------------------------------


def pair_keys(
    student: IntArray | pd.Series, question: IntArray | pd.Series
) -> npt.NDArray[np.int64]:
    """Encode every (student, question) pair as one number; equal pairs get equal numbers."""
    # Ids are below 2**31: the lowest 31 bits hold the question, and the bits above them the
    # student.
    keys: npt.NDArray[np.int64] = np.asarray(student).astype(np.int64) << 31
    keys |= np.asarray(question)
    return keys


def small_keys(first: IntArray, second: IntArray) -> IntArray:
    """Encode each pair of two non-negative numbers as one key: uint32 if all keys fit, else int64.

    The key is first · (largest second + 1) + second. So keys of one call cannot be compared with
    keys of another call, unlike the keys of `pair_keys`.
    """
    width = int(second.max(initial=0)) + 1
    is_small = (int(first.max(initial=0)) + 1) * width <= 1 << 32
    keys: IntArray = first.astype(np.uint32 if is_small else np.int64)
    np.multiply(keys, width, out=keys)
    np.add(keys, second, out=keys, casting="unsafe")
    return keys


def find_repeats(keys: IntArray) -> npt.NDArray[np.int64]:
    """Find the rows whose key appears in an earlier row.

    Negative keys never count: they stand for values that could not be read.
    """
    # Usually there are no repeats. To find that out, sorting is ten times as fast as `duplicated`.
    ordered = np.sort(keys)
    if not ((ordered[1:] == ordered[:-1]) & (ordered[1:] >= 0)).any():
        return np.empty(0, np.int64)
    return np.flatnonzero(pd.Series(keys).duplicated().to_numpy() & (keys >= 0))


def require_distinct_pairs(
    source: reading.Source, pairs: pd.DataFrame, report: Report = stop
) -> npt.NDArray[np.int64]:
    """Report the pairs of UserId and QuestionId that appear more than once in a file.

    `report` is called with the message; by default, it raises `InputError`. Returns the rows whose
    pair appears in an earlier row.
    """
    student = pairs["UserId"].to_numpy()
    question = pairs["QuestionId"].to_numpy()
    # A key is a number that stands for a pair. Usually there are no repeats. Check this first with
    # the keys of `small_keys`, which usually take half as much memory as those of `pair_keys`.
    ordered_keys = small_keys(student, question)
    ordered_keys.sort()
    if not (ordered_keys[1:] == ordered_keys[:-1]).any():
        return np.empty(0, np.int64)
    keys = pair_keys(student, question)
    # An id that could not be read is -1. `find_repeats` leaves out the pairs with such an id, so it
    # may find no repeats in spite of the equal keys above.
    repeats = find_repeats(keys)
    if len(repeats):
        row = int(repeats[0])
        first = int(np.flatnonzero(keys == keys[row])[0])
        report(
            f"{source.name}: row {source.row_number(row)} repeats row {source.row_number(first)}: "
            f"UserId {student[row]} and QuestionId {question[row]} ({len(repeats)} repeated rows), "
            f"expected each pair once{_hint_at_rounding(student[repeats], question[repeats])}"
        )
    return repeats


def _hint_at_rounding(student: IntArray, question: IntArray) -> str:
    """Return a hint for a message on repeated pairs if their ids look rounded, else "".

    `student` and `question` are the ids of the repeated pairs.
    """
    for name, ids in (("UserIds", student), ("QuestionIds", question)):
        # By chance, one long id in a hundred ends in two zeros, but three different ids all end in
        # two zeros only once in a million times. So such ids are probably rounded.
        is_rounded = (ids >= 1_000_000) & (ids % 100 == 0)
        if len(np.unique(ids)) >= 3 and is_rounded.all():
            return (
                f"; all these {name} end in zeros: if a spreadsheet has rounded long numbers, save "
                "the column with all digits"
            )
    return ""


def require_distinct(
    source: reading.Source, column: str, ids: Array, report: Report = stop
) -> None:
    """Call `report` with a message if an id appears twice in a column of a file.

    Ids are texts or numbers. "" and negative numbers stand for ids that could not be read, and may
    appear more than once.
    """
    keys = ids
    if ids.dtype == object:
        # `find_repeats` needs numbers: number the texts. It ignores negative numbers: give "" the
        # number -1.
        keys = np.where(ids == "", -1, pd.factorize(ids)[0])
    repeats = find_repeats(keys)
    if len(repeats):
        repeat = int(repeats[0])
        first = int(np.flatnonzero(ids == ids[repeat])[0])
        report(
            f"{source.name}: column '{column}': row {source.row_number(repeat)} repeats "
            f"{_for_message(ids[repeat])} of row {source.row_number(first)}"
            f"{count_rows(len(repeats))}, expected each once"
        )


def match_ids(
    source: reading.Source,
    column: str,
    ids: Array,
    expected: Sequence[Any],
    expected_in: str,
    report: Report = stop,
) -> npt.NDArray[np.int64]:
    """Find the row of each expected id in a column of a file.

    Parameters
    ----------
    source
        The file.
    column
        The column's name.
    ids
        The column's values. "" and `schema.UNKNOWN` stand for ids that could not be read, which
        the reader of the file has reported.
    expected
        The ids that should be there, each once, in any order.
    expected_in
        Where the expected ids come from, for messages.
    report
        Called for ids that are repeated, unexpected or missing.

    Returns
    -------
    array of int64, shape (expected ids,)
        Rows from 0, the first one of a repeated id; -1 where an expected id is missing.
    """
    require_distinct(source, column, ids, report)
    row_by_id = pd.Series(np.arange(len(ids)), ids)
    row_by_id = row_by_id[~row_by_id.index.isin(["", schema.UNKNOWN])]
    unknown = row_by_id[~row_by_id.index.isin(expected)]
    if len(unknown):
        number = source.row_number(unknown.iloc[0])
        value = _for_message(unknown.index[0])
        report(
            f"{source.name}: column '{column}': row {number} is {value}, which is not in "
            f"{expected_in}{count_rows(len(unknown))}"
        )
    first_rows = row_by_id[~row_by_id.index.duplicated()]
    rows = first_rows.reindex([*expected], fill_value=-1)
    missing = rows.index[rows < 0]
    # If no id of the file could be read, this has been reported already: do not report that all ids
    # are missing.
    if len(missing) and len(row_by_id):
        shown = ", ".join(map(_for_message, missing[: reading.SHOWN]))
        report(
            f"{source.name}: {len(missing)} of {len(expected)} {column}s are missing, first "
            f"{shown}, expected every {column} of {expected_in}"
        )
    return rows.to_numpy()


def _for_message(value: object) -> str:
    """Return an id for a message: a text in quotes, a number as it is."""
    return quote(value) if isinstance(value, str) else str(value)
