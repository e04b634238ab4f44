"""Submissions: fill a template, write the CSV and the zip to upload, read and check either.

Checks are those of the challenge's scorer. Each calls `report` with the message of a fault, at
which an evaluation stops, and which `tools.check_submission` collects.
"""

from __future__ import annotations

from pathlib import Path

from common import answers, provenance, reading, schema, writing, zips
from common.arrays import Array, BoolArray, IntArray
from common.errors import InputError, Report, quote, stop
from common.schema import Column
from common.tasks import TASKS

import numpy as np
import numpy.typing as npt
import pandas as pd

# A zip may unpack to so many bytes, or so many times the list of what to predict; else a bomb.
_MAX_UNPACKED, _MAX_RATIO = 128 << 20, 20


# ---- What an entry reads and writes --------------------------------------------------------------


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
    provenance.require_current([path])
    source = reading.file_source(path)
    columns = [schema.USER_ID, schema.QUESTION_ID]
    if schema.ANSWER_ID.name in reading.read_header(source):
        columns.append(schema.ANSWER_ID_OR_EMPTY)
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


def write_predictions(template: pd.DataFrame, task: int, value: Array, path: Path) -> None:
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
    _write(table, TASKS[task].column, value, path, task)


def rank_by_quality(question: IntArray, quality: Array) -> IntArray:
    """Return ranks, int64, 1 for the highest quality; equals go by QuestionId, NaN goes last."""
    if np.shape(quality) != question.shape:
        raise InputError(
            f"quality has shape {np.shape(quality)}, expected {question.shape}, one for each "
            "question of the template"
        )
    # lexsort puts NaN after every number.
    order = np.lexsort((question, -np.asarray(quality, np.float64)))
    return np.argsort(order) + 1


def write_ranking(question: IntArray, quality: Array, path: Path) -> None:
    """Write a submission of task 3 and its zip: the questions, ranked by `rank_by_quality`.

    Parameters
    ----------
    question
        QuestionIds, shape (questions,).
    quality
        A number for each question; higher is better, NaN ranks last.
    path
        Where the CSV goes; the zip goes beside it.

    Raises
    ------
    InputError
        If there is not one quality for each question.
    """
    ranking = rank_by_quality(question, quality)
    _write(pd.DataFrame({"QuestionId": question}), schema.RANKING, ranking, path, task=3)


def files_of(path: Path) -> list[Path]:
    """Return the files of a submission: the CSV at this path, its zip, and what made it."""
    beside = [path.with_suffix(".zip"), path.with_suffix(".json")]
    if path.suffix.lower() in (other.suffix for other in beside):
        raise InputError(
            f"{path}: is the name of the CSV, expected one that ends in .csv; the zip is written "
            "beside it"
        )
    return [path, *beside]


def _write(table: pd.DataFrame, column: Column, value: Array, path: Path, task: int) -> None:
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
    reading.require_valid(path, column, value, first_row=2, verb="would be")
    table[column.name] = value.astype(column.dtype)
    paths = files_of(path)
    with writing.atomic_write(*paths) as (csv_file, zip_file, record):
        writing.write_csv_to(csv_file, table)
        csv_file.flush()
        zips.write_zip_to(zip_file, {TASKS[task].submission: Path(csv_file.name)})
        files = dict(zip(paths, (csv_file, zip_file), strict=False))
        record.write(provenance.this_process(path.parent, files).as_json())


# ---- What checks a submission --------------------------------------------------------------------


def submission_source(
    path: Path, task: int, listed_in: Path, report: Report = stop
) -> reading.Source:
    """Open a submission, a CSV or a zip, which must hold it alone and under the task's name."""
    if path.suffix.lower() != ".zip":
        return reading.file_source(path)
    reading.require_file(listed_in)
    max_size = max(_MAX_UNPACKED, _MAX_RATIO * listed_in.stat().st_size)
    return zips.zip_source(path, TASKS[task].submission, max_size, report)


def read_predictions(path: Path, task: int, template: Path, report: Report = stop) -> pd.DataFrame:
    """Read a submission as `read_pair_values` does: predictions of a template, and no others."""
    source = submission_source(path, task, template, report)
    wanted = read_template(template)
    found = read_pair_values(source, TASKS[task].column, report)
    _, extra = find_pairs(source.name, found, wanted, template, report)
    if extra.any():
        report(f"{source.name}: {name_extra(source, found, extra, template)}")
    return found


def read_pair_values(source: reading.Source, column: Column, report: Report = stop) -> pd.DataFrame:
    """Read predictions, or the answers to score them with; both ids are -1 in a row reported."""
    pairs = reading.read_table(source, (schema.USER_ID, schema.QUESTION_ID, column), report=report)
    ids = [schema.USER_ID.name, schema.QUESTION_ID.name]
    if report is not stop:
        pairs.loc[(pairs[ids] == schema.UNREADABLE).any(axis=1), ids] = schema.UNREADABLE
    # Repeats have been reported; they must not count as extra rows as well.
    pairs.loc[answers.require_distinct_pairs(source, pairs, report), ids] = schema.UNREADABLE
    return pairs


def find_pairs(
    name: str, found: pd.DataFrame, wanted: pd.DataFrame, wanted_in: Path, report: Report = stop
) -> tuple[IntArray, BoolArray]:
    """Return rows of wanted pairs, -1 if missing, which is reported; and which rows are extra."""
    keys = answers.pair_keys(found["UserId"], found["QuestionId"])
    wanted_keys = answers.pair_keys(wanted["UserId"], wanted["QuestionId"])
    # Mostly both files have one order: no need to sort them.
    same_order = np.array_equal(keys, wanted_keys)
    rows = np.arange(len(keys)) if same_order else answers.find_rows(keys, wanted_keys)
    missing = np.flatnonzero(rows < 0)
    extra = keys >= 0
    # If no row could be read at all, that has been reported already.
    if len(missing) and extra.any():
        report(
            f"{name}: {len(missing)} of {len(wanted)} pairs are missing, first "
            f"{_name_pairs(wanted, missing)}, expected every pair of {wanted_in}"
        )
    extra[rows[rows >= 0]] = False
    return rows, extra


def name_extra(
    source: reading.Source, found: pd.DataFrame, extra: BoolArray, wanted_in: str | Path
) -> str:
    """Describe how many rows of a submission were not asked for, and name the first."""
    rows = np.flatnonzero(extra)
    return (
        f"{len(rows)} rows hold pairs that are not in {wanted_in}, first row "
        f"{source.row_number(int(rows[0]))} with {_name_pairs(found, rows)}"
    )


def _name_pairs(pairs: pd.DataFrame, rows: npt.NDArray[np.int64]) -> str:
    first = pairs.iloc[rows[: reading.SHOWN]]
    shown = zip(first["UserId"], first["QuestionId"], strict=True)
    return "; ".join(f"UserId {student} and QuestionId {question}" for student, question in shown)


def read_ranking(path: Path, template: Path, report: Report = stop) -> pd.Series:
    """Read the ranks of a template's QuestionIds, 1 to n, each once; -1 was reported as faulty."""
    expected = read_ranking_template(template)
    source = submission_source(path, 3, template, report)
    columns = (schema.QUESTION_ID, schema.RANKING)
    question, ranking = reading.read_table(source, columns, report=report).to_numpy().T
    answers.match_ids(source, "QuestionId", question, expected.tolist(), "the template", report)
    ranks = np.arange(1, len(expected) + 1)
    outside = np.flatnonzero(~np.isin(ranking, [schema.UNREADABLE, *ranks]))
    unused = np.setdiff1d(ranks, ranking)
    also = f" and rank {unused[0]} is missing" if len(unused) else ""
    repeats = answers.find_repeats(ranking)
    for rows, verb, more in ((outside, "is", ""), (repeats, "repeats rank", also)):
        for row in rows[:1].tolist():
            report(
                f"{source.name}: column 'ranking': row {source.row_number(row)} {verb} "
                f"{ranking[row]} ({len(rows)} such rows){more}, expected every rank from 1 to "
                f"{len(ranks)} once"
            )
    return pd.Series(ranking, question)
