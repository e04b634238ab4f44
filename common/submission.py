"""Submissions: fill a template, write the CSV and the zip to upload, read and check a CSV or a zip.

The checks are those of the challenge's scorer. A check calls `report` with every fault. An
evaluation stops at the first fault; `tools.check_submission` collects all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from common import answer_options, answers, provenance, reading, schema, writing, zips
from common.arrays import Array, BoolArray, IntArray
from common.errors import InputError, Report, quote, stop
from common.schema import Column
from common.tasks import TASK_3, TASKS

import numpy as np
import numpy.typing as npt
import pandas as pd

# A submission's zip may unpack to _MAX_UNPACKED bytes, or to _MAX_RATIO times the size of the file
# that lists the pairs to predict, whichever is larger. A zip that unpacks to more is refused as a
# zip bomb.
_MAX_UNPACKED = 128 << 20
_MAX_RATIO = 20


# ---- For models: read a template, write a submission ---------------------------------------------


def read_template(path: Path) -> pd.DataFrame:
    """Read a template of tasks 1 and 2.

    Returns
    -------
    DataFrame
        All columns of the file, in its row order. UserId, QuestionId and, if the file has it,
        AnswerId are int32; AnswerId is -1 where it is empty. NumberOfOptions is int8. Further
        columns are text, to be passed through unchanged.

    Raises
    ------
    InputError
        If the file is missing, lacks UserId or QuestionId, holds a pair of UserId and QuestionId
        twice, holds an invalid AnswerId, or the data files from which the template was built have
        changed since.
    """
    provenance.require_current([path])
    source = reading.file_source(path)
    columns = [schema.USER_ID, schema.QUESTION_ID]
    header = reading.read_header(source)
    if schema.ANSWER_ID.name in header:
        columns.append(schema.ANSWER_ID_OR_EMPTY)
    if schema.NUMBER_OF_OPTIONS.name in header:
        columns.append(schema.NUMBER_OF_OPTIONS)
    template = reading.read_table(source, columns, keep_others=True)
    answers.require_distinct_pairs(source, template)
    return template


def read_ranking_template(path: Path) -> IntArray:
    """Read the QuestionIds that a ranking of task 3 must hold, in the template's order, int32."""
    provenance.require_current([path])
    source = reading.file_source(path)
    question = reading.read_table(source, [schema.QUESTION_ID])["QuestionId"].to_numpy()
    answers.require_distinct(source, "QuestionId", question)
    return question


def write_predictions(
    template: pd.DataFrame,
    task: int,
    value: Array,
    path: Path,
    *,
    name: str = "",
    made_from: Sequence[Path] | None = None,
) -> None:
    """Write a submission of task 1 or 2, a CSV and its zip: the template with one column filled in.

    Parameters
    ----------
    template
        The template. Its row order and its further columns are kept.
    task
        1 or 2. It determines the column to fill in, which is appended if the template lacks it, and
        the name of the CSV in the zip.
    value
        A prediction for every row of the template, shape (rows,).
    path
        The path of the CSV. The zip is written beside the CSV.
    name
        Name of the model for the scoreboard, which a notebook should give. By default it is the
        name of the script.
    made_from
        The files that the model has learned from, which a notebook should give. By default these
        are all files that the script has read. The record beside the submission names them.

    Raises
    ------
    InputError
        If there is not exactly one valid prediction for every row.
    """
    table = template.copy(deep=False)
    answer_id = schema.ANSWER_ID.name
    if answer_id in table:
        # An empty AnswerId was read as -1: make it an empty cell again.
        table[answer_id] = table[answer_id].astype("Int32").mask(table[answer_id] < 0)
    column = answer_options.column_for(template, TASKS[task].column)
    _write(table, column, value, path, task, name, made_from)


def rank_by_quality(question: IntArray, quality: Array) -> IntArray:
    """Rank questions by their quality, the highest quality first.

    Returns ranks from 1, int64, shape (questions,). Questions of equal quality are ranked by
    QuestionId. Questions whose quality is NaN come last.
    """
    if np.shape(quality) != question.shape:
        raise InputError(
            f"quality has shape {np.shape(quality)}, expected {question.shape}, one for each "
            "question of the template"
        )
    # `lexsort` sorts by its last key first: by quality, highest first, then by QuestionId. It puts
    # NaN after every number.
    order = np.lexsort((question, -np.asarray(quality, np.float64)))
    # order[k] is the position of the question with rank k + 1. We need the inverse, the rank of the
    # question at each position. The argsort of a permutation is its inverse.
    return np.argsort(order) + 1


def write_ranking(
    question: IntArray,
    quality: Array,
    path: Path,
    *,
    name: str = "",
    made_from: Sequence[Path] | None = None,
) -> None:
    """Write a submission of task 3 and its zip: the questions, ranked by `rank_by_quality`.

    Parameters
    ----------
    question
        QuestionIds, shape (questions,).
    quality
        A number for each question; higher is better, NaN ranks last.
    path
        The path of the CSV. The zip is written beside the CSV.
    name
        Name of the model for the scoreboard, which a notebook should give. By default it is the
        name of the script.
    made_from
        The files that the ranking was made from, which a notebook should give. By default these are
        all files that the script has read.

    Raises
    ------
    InputError
        If there is not one quality for each question.
    """
    ranking = rank_by_quality(question, quality)
    table = pd.DataFrame({"QuestionId": question})
    _write(table, schema.RANKING, ranking, path, TASK_3.number, name, made_from)


def files_of(path: Path) -> list[Path]:
    """Return the files of a submission: its CSV, its zip, and the record of how it was made."""
    beside = [path.with_suffix(".zip"), path.with_suffix(".json")]
    # The CSV must not have the name of its zip or of its record.
    if path.suffix.lower() in (other.suffix for other in beside):
        raise InputError(
            f"{path}: is the name of the CSV, expected one that ends in .csv; the zip is written "
            "beside it"
        )
    return [path, *beside]


def _write(
    table: pd.DataFrame,
    column: Column,
    value: Array,
    path: Path,
    task: int,
    name: str,
    made_from: Sequence[Path] | None,
) -> None:
    """Fill a column of a table with predictions, and write the submission's CSV, zip and record.

    `path` is the path of the CSV; the zip and the record are written beside it. The record says how
    the submission was made: `name` is the name of its model, by default that of the script, and
    `made_from` are the files that the model has learned from, by default all that were read.
    Raises `InputError` if there is not exactly one valid prediction, a number, for every row.
    """
    # Accept a list or a tensor as well.
    value = np.asarray(value)
    if value.shape != (len(table),):
        raise InputError(
            f"{path}: predictions have shape {value.shape}, expected ({len(table)},), one for "
            f"each row of the template"
        )
    # These letters are NumPy's kinds boolean, integer, unsigned integer and float.
    if value.dtype.kind not in "biuf":
        raise InputError(
            f"{path}: predictions are of type {value.dtype}, the first is {quote(str(value[0]))}, "
            f"expected {column.expected}"
        )
    # The message is like "row 7 would be 5, expected 0 or 1". Row 1 of the file is the header, so
    # the first prediction is in row 2.
    reading.require_valid(path, column, value, first_row=2, verb="would be")
    table[column.name] = value.astype(column.dtype)
    csv_path, zip_path, record_path = files_of(path)
    with writing.atomic_write(csv_path, zip_path, record_path) as (csv_file, zip_file, record_file):
        writing.write_csv_to(csv_file, table)
        # `write_zip_to` reads the CSV from the disk.
        csv_file.flush()
        zips.write_zip_to(zip_file, {TASKS[task].submission: Path(csv_file.name)})
        files = {csv_path: csv_file, zip_path: zip_file}
        record = provenance.this_process(path.parent, files, made_from, name=name)
        record_file.write(record.as_json())


# ---- For evaluations: read and check a submission ------------------------------------------------


def submission_source(
    path: Path, task: int, listed_in: Path, report: Report = stop
) -> reading.Source:
    """Return a `Source` that reads the CSV of a submission; `path` is the CSV, or a zip with it.

    A zip must hold only the CSV, with the file name of the task's submission. `listed_in` is the
    file that lists what to predict. Its size determines how large the CSV in a zip may be.
    """
    if path.suffix.lower() != ".zip":
        return reading.file_source(path)
    reading.require_file(listed_in)
    max_size = max(_MAX_UNPACKED, _MAX_RATIO * listed_in.stat().st_size)
    return zips.zip_source(path, TASKS[task].submission, max_size, report)


def read_predictions(path: Path, task: int, template: Path, report: Report = stop) -> pd.DataFrame:
    """Read a submission of task 1 or 2, which must hold all pairs of the template and no others.

    `report` is called with each fault. By default, the first fault raises `InputError`. If `report`
    does not raise, the result also holds the rows with faults. The result is the table that
    `read_pair_values` returns.
    """
    source = submission_source(path, task, template, report)
    wanted = read_template(template)
    # The column to predict. In task 2, its highest value is the template's number of options.
    column = answer_options.column_for(wanted, TASKS[task].column)
    predictions = read_pair_values(source, column, report)
    _, is_extra = find_pairs(source.name, predictions, wanted, template, report)
    if is_extra.any():
        report(f"{source.name}: {describe_extra(source, predictions, is_extra, template)}")
    return predictions


def read_pair_values(source: reading.Source, column: Column, report: Report = stop) -> pd.DataFrame:
    """Read UserId, QuestionId and one further column, from a submission or a file of true answers.

    `report` is called with each fault of the file. By default, the first fault raises `InputError`.
    Both ids of a row become -1 if an id is unreadable, or if an earlier row has the same pair.
    """
    pairs = reading.read_table(source, (schema.USER_ID, schema.QUESTION_ID, column), report=report)
    ids = [schema.USER_ID.name, schema.QUESTION_ID.name]
    # `read_table` has reported each unreadable id as a fault, and put UNKNOWN (-1) in its place.
    # The default `report`, `stop`, raises an error at the first fault. Any other `report` may
    # return, so the table may hold UNKNOWN. Then set both ids of the row to UNKNOWN.
    if report is not stop:
        is_unreadable = (pairs[ids] == schema.UNKNOWN).any(axis=1)
        pairs.loc[is_unreadable, ids] = schema.UNKNOWN
    repeats = answers.require_distinct_pairs(source, pairs, report)
    # Set the ids of repeated pairs to -1. Otherwise `find_pairs` would find these rows too many,
    # and they would be reported a second time.
    pairs.loc[repeats, ids] = schema.UNKNOWN
    return pairs


def find_pairs(
    name: str, pairs: pd.DataFrame, wanted: pd.DataFrame, wanted_in: Path, report: Report = stop
) -> tuple[IntArray, BoolArray]:
    """Find the wanted pairs in a table, and report the pairs that are missing.

    Parameters
    ----------
    name
        The file of the table, for messages.
    pairs
        A table with UserId and QuestionId. Both are -1 in a row whose pair is unreadable or a
        repeat.
    wanted
        A table with the pairs to find.
    wanted_in
        The file of the wanted pairs, for messages.
    report
        Called with the fault if pairs are missing. The default raises `InputError`.

    Returns
    -------
    rows : array of int, shape (wanted pairs,)
        The row in `pairs` of each wanted pair; -1 if the pair is missing.
    is_extra : array of bool, shape (pairs,)
        Whether a row of `pairs` holds a readable pair that is not wanted.
    """
    # The key of a pair is a single number that stands for both ids.
    keys = answers.pair_keys(pairs["UserId"], pairs["QuestionId"])
    wanted_keys = answers.pair_keys(wanted["UserId"], wanted["QuestionId"])
    # Usually both tables hold the same pairs in the same order. Then no search is needed.
    if np.array_equal(keys, wanted_keys):
        rows: IntArray = np.arange(len(keys))
    else:
        rows = answers.find_rows(keys, wanted_keys)
    missing = np.flatnonzero(rows < 0)
    # A row whose ids could not be read, or whose pair is a repeat, has the ids -1. Its key is
    # negative.
    is_readable = keys >= 0
    # If no row has valid ids, each row has been reported already. Do not report all wanted pairs as
    # missing too.
    if len(missing) and is_readable.any():
        report(
            f"{name}: {len(missing)} of {len(wanted)} pairs are missing, first "
            f"{_name_pairs(wanted, missing)}, expected every pair of {wanted_in}"
        )
    is_extra = is_readable.copy()
    is_extra[rows[rows >= 0]] = False
    return rows, is_extra


def describe_extra(
    source: reading.Source, pairs: pd.DataFrame, is_extra: BoolArray, wanted_in: str | Path
) -> str:
    """Return a text that says how many rows hold a pair that is not wanted, and names the first."""
    rows = np.flatnonzero(is_extra)
    return (
        f"{len(rows)} rows hold pairs that are not in {wanted_in}, first row "
        f"{source.row_number(int(rows[0]))} with {_name_pairs(pairs, rows)}"
    )


def _name_pairs(pairs: pd.DataFrame, rows: npt.NDArray[np.int64]) -> str:
    first = pairs.iloc[rows[: reading.SHOWN]]
    shown = zip(first["UserId"], first["QuestionId"], strict=True)
    return "; ".join(f"UserId {student} and QuestionId {question}" for student, question in shown)


def read_ranking(path: Path, template: Path, report: Report = stop) -> pd.Series:
    """Read a ranking of task 3, which must give each question of the template a rank.

    Returns the ranks with QuestionIds as index. Each rank from 1 to the number of questions must
    appear once. A rank or an id that was reported as unreadable is -1.
    """
    expected = read_ranking_template(template)
    source = submission_source(path, TASK_3.number, template, report)
    columns = (schema.QUESTION_ID, schema.RANKING)
    table = reading.read_table(source, columns, report=report).to_numpy()
    question = table[:, 0]
    ranking = table[:, 1]
    answers.match_ids(source, "QuestionId", question, expected.tolist(), "the template", report)
    _require_all_ranks(source, ranking, len(expected), report)
    return pd.Series(ranking, question)


def _require_all_ranks(
    source: reading.Source, ranking: IntArray, n_ranks: int, report: Report
) -> None:
    """Report ranks outside of 1 to `n_ranks`, and ranks that appear twice."""
    ranks = np.arange(1, n_ranks + 1)
    # An unreadable rank is UNKNOWN. It has been reported already, so it does not count as outside.
    outside = np.flatnonzero(~np.isin(ranking, [schema.UNKNOWN, *ranks]))
    repeats = answers.find_repeats(ranking)
    unused = np.setdiff1d(ranks, ranking)
    expected = f"expected every rank from 1 to {n_ranks} once"
    start = f"{source.name}: column 'ranking': row"
    if len(outside):
        row = int(outside[0])
        report(
            f"{start} {source.row_number(row)} is {ranking[row]} ({len(outside)} such rows), "
            f"{expected}"
        )
    if len(repeats):
        row = int(repeats[0])
        missing = f" and rank {unused[0]} is missing" if len(unused) else ""
        report(
            f"{start} {source.row_number(row)} repeats rank {ranking[row]} "
            f"({len(repeats)} such rows){missing}, {expected}"
        )
