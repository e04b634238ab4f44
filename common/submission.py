"""Submissions: fill a template, write the CSV and the zip to upload, read and check either.

A small .json beside both says which command made them; it is not uploaded.

Everything is checked on the user's machine as the challenge's scorer would check it, and messages
name the first wrong rows; an incomplete submission never passes. The evaluations, which stop at the
first fault, and `tools.check_submission`, which collects all, use the same checks: each takes
`report`, a function that it calls with the message of a fault.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common import io, layout, made, schema, zips
from common.answers import IntArray, find_repeats, pair_keys, require_distinct_pairs
from common.errors import InputError, Report, quote, stop
from common.schema import Column

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:  # Importing it takes 0.4 s, which `--help` does without.
    import pandas as pd

# A zip may unpack to so many bytes, or to so many times the size of the file that lists what is to
# be predicted: further columns and the rows of both phases are valid; more is a zip bomb.
_MAX_UNPACKED, _MAX_RATIO = 128 << 20, 20


@dataclass(frozen=True)
class Pairs:
    """The (student, question) pairs of a file, each once: UserId and QuestionId of its rows, int32.

    Both are -1 in a row that was reported as faulty.
    """

    source: io.Source
    student: IntArray
    question: IntArray

    @property
    def name(self) -> str:
        """Name of the file in messages."""
        return self.source.name


@dataclass(frozen=True)
class PairValues(Pairs):
    """One value for each pair of a file: IsCorrect or AnswerValue, int8, -1 where it was faulty."""

    value: IntArray


def read_template(path: Path) -> pd.DataFrame:
    """Read a template of tasks 1 and 2.

    Returns
    -------
    DataFrame
        All columns of the file, in its row order: UserId, QuestionId and, if it is there, AnswerId
        int32 (-1 where it is empty); further columns as text, to be passed through unchanged.

    Raises
    ------
    InputError
        If it is missing, has no UserId or QuestionId, names a pair twice, has an AnswerId that is
        none, or was built from other data than now lie there.
    """
    made.require_current([path])
    source = io.file_source(path)
    columns = [schema.USER_ID, schema.QUESTION_ID]
    if schema.ANSWER_ID.name in io.read_header(source):
        columns.append(schema.ANSWER_ID_OR_EMPTY)
    template = io.read_table(source, columns, keep_others=True)
    require_distinct_pairs(source, template["UserId"].to_numpy(), template["QuestionId"].to_numpy())
    if schema.ANSWER_ID.name in template:
        template[schema.ANSWER_ID.name] = io.to_ids(template[schema.ANSWER_ID.name].to_numpy())
    return template


def read_pairs(path: Path) -> Pairs:
    """Read which pairs a template wants, to find them in other files; as `read_template`."""
    template = read_template(path)
    student, question = (template[name].to_numpy() for name in ("UserId", "QuestionId"))
    return Pairs(io.file_source(path), student, question)


def read_ranking_template(path: Path) -> IntArray:
    """Read the QuestionIds that a ranking of task 3 must hold, in the template's order, int32."""
    made.require_current([path])
    source = io.file_source(path)
    question = io.read_columns(source, [schema.QUESTION_ID])["QuestionId"]
    _require_distinct(source, schema.QUESTION_ID, question)
    return question


def write_predictions(
    template: pd.DataFrame, task: int, value: npt.NDArray[Any], path: Path
) -> None:
    """Write a submission of task 1 or 2: the template with one column filled in, and its zip.

    Parameters
    ----------
    template
        What to fill in; its row order and further columns are kept.
    task
        1 or 2, which says what column to fill in, or to append where the template lacks it, and
        the name of the CSV inside the zip.
    value
        A prediction for every row of the template, shape (rows,).
    path
        Where the CSV goes; the zip goes beside it.

    Raises
    ------
    InputError
        If there is not exactly one valid prediction for every row.
    """
    table, name = template.copy(deep=False), schema.ANSWER_ID.name
    if name in table:
        # An unknown id becomes an empty cell.
        table[name] = table[name].astype("Int32").mask(table[name] < 0)
    _write(table, schema.PREDICTED_COLUMN[task], value, path, layout.submission_name(task))


def rank_by_quality(question: IntArray, quality: npt.NDArray[Any]) -> IntArray:
    """Rank questions, the best first; equal quality by QuestionId, unknown quality (NaN) last.

    Parameters
    ----------
    question
        QuestionIds, shape (questions,).
    quality
        A number for each question; higher is better.

    Returns
    -------
    array of int64, shape (questions,)
        Rank of each question, 1 the best, every rank once.

    Raises
    ------
    InputError
        If there is not one quality for each question.
    """
    if np.shape(quality) != question.shape:
        raise InputError(
            f"quality has shape {np.shape(quality)}, expected {question.shape}, one for each "
            "question of the template"
        )
    # lexsort puts NaN after every number.
    order = np.lexsort((question, -np.asarray(quality, np.float64)))
    ranking = np.empty(len(order), np.int64)
    ranking[order] = np.arange(1, len(order) + 1)
    return ranking


def write_ranking(question: IntArray, ranking: IntArray, path: Path, zip_member: str) -> None:
    """Write a submission of task 3 and its zip.

    Parameters
    ----------
    question
        QuestionIds, shape (questions,).
    ranking
        Rank of each, 1 the best, every rank once.
    path
        Where the CSV goes; the zip goes beside it.
    zip_member
        Name of the CSV inside the zip.

    Raises
    ------
    InputError
        If the ranks are not 1 to n, each once.
    """
    if not np.array_equal(np.sort(ranking), np.arange(1, len(ranking) + 1)):
        raise InputError(f"{path}: the ranks are not 1 to {len(ranking)}, each once")
    import pandas as pd

    _write(pd.DataFrame({"QuestionId": question}), schema.RANKING, ranking, path, zip_member)


def files_of(path: Path) -> list[Path]:
    """Return the files of a submission: the CSV at this path, its zip, and what made it."""
    beside = [path.with_suffix(".zip"), path.with_suffix(".json")]
    if path.suffix.lower() in (other.suffix for other in beside):
        raise InputError(
            f"{path}: is the name of the CSV, expected one that ends in .csv; the zip is written "
            "beside it"
        )
    return [path, *beside]


def _write(
    table: pd.DataFrame, column: Column, value: npt.NDArray[Any], path: Path, zip_member: str
) -> None:
    # A list or a tensor will do as well.
    value = np.asarray(value)
    if value.shape != (len(table),):
        raise InputError(
            f"{path}: predictions have shape {value.shape}, expected ({len(table)},), one for "
            f"each row of the template"
        )
    if value.dtype.kind not in "biuf":
        raise InputError(
            f"{path}: predictions are of type {value.dtype}, the first is {quote(str(value[0]))}, "
            f"expected {column.expected}"
        )
    # NaN fails every comparison, so it counts as invalid here.
    valid = (value >= column.low) & (value <= column.high) & (value == np.round(value))
    if not valid.all():
        row = int(np.argmin(valid))
        raise InputError(
            f"{path}: column '{column.name}' row {row + 2} would be {value[row]} "
            f"({int((~valid).sum())} such rows), expected {column.expected}"
        )
    table[column.name] = value.astype(column.dtype)
    with io.atomic_write(*files_of(path)) as (csv_file, zip_file, origin_file):
        io.write_csv_to(csv_file, table)
        csv_file.flush()
        zips.write_zip_to(zip_file, {zip_member: Path(csv_file.name)})
        names = (file.name for file in files_of(path))
        files = dict(zip(names, (csv_file, zip_file), strict=False))
        origin_file.write(made.this_process(path.parent, files).as_json())


def submission_source(
    path: Path, zip_member: str, listed_in: Path, report: Report = stop
) -> io.Source:
    """Open a submission, a CSV or a zip that holds it under the name that the challenge wants.

    The zip may not unpack to much more than the file that lists what is to be predicted, such as
    the template. What is reported leaves one CSV that can still be read.
    """
    if path.suffix.lower() != ".zip":
        return io.file_source(path)
    io.require_file(listed_in)
    max_size = max(_MAX_UNPACKED, _MAX_RATIO * listed_in.stat().st_size)
    return zips.zip_source(path, zip_member, max_size, report)


def read_pair_values(source: io.Source, column: Column, report: Report = stop) -> PairValues:
    """Read predictions, or the answers to score them with; each pair must be there once."""
    columns = (schema.USER_ID, schema.QUESTION_ID, column)
    student, question, value = io.read_columns(source, columns, report).values()
    if report is not stop:
        faulty = (student == schema.UNREADABLE) | (question == schema.UNREADABLE)
        student[faulty] = question[faulty] = schema.UNREADABLE
    require_distinct_pairs(source, student, question, report)
    if report is not stop:
        # Repeats have been reported; they must not count as extra rows as well.
        repeats = find_repeats(pair_keys(student, question))
        student[repeats] = question[repeats] = schema.UNREADABLE
    return PairValues(source, student, question, value)


def find_pairs(
    submission: Pairs, reference: Pairs, report: Report = stop
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Find every pair of the reference in a submission, and report those that are missing.

    Returns the row of the submission for each row of the reference, and which rows of the
    submission, bool, are not in the reference.
    """
    own = (submission.student, submission.question)
    return find_rows_of_pairs(submission.name, own, reference, report)


def find_rows_of_pairs(
    name: str, own: tuple[IntArray, IntArray], reference: Pairs, report: Report = stop
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """As `find_pairs`, given the name of a file and the UserId and QuestionId of its rows."""
    keys = pair_keys(*own)
    wanted = pair_keys(reference.student, reference.question)
    rows = _find(keys, wanted)
    found = keys[rows] == wanted
    missing = np.flatnonzero(~found)
    # If no row could be read at all, that has been reported already.
    if len(missing) and (keys >= 0).any():
        report(
            f"{name}: {len(missing)} of {len(wanted)} pairs are missing, first "
            f"{_name_pairs(reference, missing)}, expected every pair of {reference.name}"
        )
    extra = keys >= 0
    extra[rows[found]] = False
    return rows, extra


def _find(keys: npt.NDArray[np.int64], wanted: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the position of each wanted key among the keys; arbitrary if it is not there."""
    if np.array_equal(keys, wanted):
        return np.arange(len(keys))
    # Both sorted: looking up millions of keys in random order takes ten times as long.
    order, wanted_order = np.argsort(keys), np.argsort(wanted)
    place = np.searchsorted(keys[order], wanted[wanted_order])
    rows = np.empty(len(wanted), np.int64)
    rows[wanted_order] = order[np.minimum(place, len(keys) - 1)]
    return rows


def require_no_extra(
    submission: Pairs,
    extra: npt.NDArray[np.bool_],
    expected_in: str,
    report: Report = stop,
) -> None:
    """Report the rows of a submission that are not in a file of this name, bool (rows,), if any."""
    if extra.any():
        report(f"{submission.name}: {name_extra(submission, extra, expected_in)}")


def name_extra(submission: Pairs, extra: npt.NDArray[np.bool_], expected_in: str) -> str:
    """Describe how many rows of a submission were not asked for, and name the first."""
    rows = np.flatnonzero(extra)
    return (
        f"{len(rows)} rows hold pairs that are not in {expected_in}, first row "
        f"{submission.source.row_number(int(rows[0]))} with {_name_pairs(submission, rows)}"
    )


def _name_pairs(pairs: Pairs, rows: npt.NDArray[np.int64]) -> str:
    return "; ".join(
        f"UserId {pairs.student[row]} and QuestionId {pairs.question[row]}"
        for row in rows[: io.SHOWN]
    )


def read_ranking(
    source: io.Source, expected: IntArray, report: Report = stop
) -> tuple[IntArray, IntArray]:
    """Read question and rank, 1 the best, from a submission of task 3, in the file's order, int32.

    A cell that was reported as faulty is -1. Reported are questions that are missing, unknown or
    repeated, and ranks that are not 1 to n, each once.
    """
    columns = (schema.QUESTION_ID, schema.RANKING)
    question, ranking = io.read_columns(source, columns, report).values()
    _require_distinct(source, schema.QUESTION_ID, question, report)
    missing = np.setdiff1d(expected, question)
    if len(missing) and (question != schema.UNREADABLE).any():
        shown = ", ".join(map(str, missing[: io.SHOWN]))
        report(
            f"{source.name}: {len(missing)} of {len(expected)} questions are missing, first "
            f"QuestionId {shown}"
        )
    unknown = np.flatnonzero(~np.isin(question, expected) & (question != schema.UNREADABLE))
    _report_rows(
        source, "QuestionId", unknown, question, "is {}, which is not in the template", report
    )
    n = len(expected)
    each_once = f", expected every rank from 1 to {n} once"
    outside = np.flatnonzero(~((ranking >= 1) & (ranking <= n)) & (ranking != schema.UNREADABLE))
    _report_rows(source, "ranking", outside, ranking, "is {}", report, each_once)
    unused = np.setdiff1d(np.arange(1, n + 1), ranking)
    also = f" and rank {unused[0]} is missing" if len(unused) else ""
    repeats = find_repeats(ranking)
    _report_rows(source, "ranking", repeats, ranking, "repeats rank {}", report, also + each_once)
    return question, ranking


def _require_distinct(
    source: io.Source, column: Column, value: IntArray, report: Report = stop
) -> None:
    end = ", expected each once"
    _report_rows(source, column.name, find_repeats(value), value, "repeats {}", report, end)


def _report_rows(
    source: io.Source,
    column: str,
    rows: IntArray,
    value: IntArray,
    fault: str,
    report: Report,
    expected: str = "",
) -> None:
    """Report the first of some rows, if there are any, with its value, and how many there are."""
    if len(rows):
        row = int(rows[0])
        report(
            f"{source.name}: column '{column}': row {source.row_number(row)} "
            f"{fault.format(value[row])} ({len(rows)} such rows){expected}"
        )
