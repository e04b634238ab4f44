"""Files of predicted probabilities. The challenge's score does not depend on them.

A file is Parquet, with the columns UserId and QuestionId. Further columns are ProbabilityCorrect in
task 1, Mask and ProbabilityCorrect in task 4, and ProbabilityOption1 to ProbabilityOption4 in task
2, or up to another number if questions have more or fewer options than four.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from common import answer_options, provenance, reading, schema, writing
from common.answers import find_repeats, pair_keys
from common.arrays import Array, FloatArray
from common.errors import InputError, quote
from common.schema import Column
from common.submission import find_pairs
from common.tasks import TASKS, Form, Task

import numpy as np
import pandas as pd

# `_probability_column(name)` describes a column of numbers from 0 to 1.
_probability_column = partial(Column, dtype=schema.FLOAT32, low=0, high=1, whole=False)
# The sum of a row's probabilities may differ from 1 by at most this. Rounding to float32 changes
# the sum by about 1e-7.
_SUM_TOLERANCE = 1e-3
# The record says how a file was made. It is stored in the Parquet table, in the attribute of this
# name.
_RECORD = "origin"


@dataclass(frozen=True)
class Probabilities:
    """The contents of a file of probabilities of task 1 or 2, in the order of its rows."""

    path: Path
    task: int
    # UserId and QuestionId.
    pairs: pd.DataFrame
    # A row for each pair. The columns are P(wrong) and P(right) in task 1, and the probabilities of
    # options 1, 2 and so on in task 2.
    value: FloatArray
    # The record of how the file was made; None if the file does not say.
    record: provenance.Provenance | None

    def at(self, wanted: pd.DataFrame, wanted_in: Path) -> FloatArray:
        """Return the rows of `value` for the wanted pairs, in the order of `wanted`.

        Error messages name `wanted_in`, the file that the wanted pairs come from. Raises
        `InputError` if this file of probabilities lacks a pair.
        """
        rows, _ = find_pairs(str(self.path), self.pairs, wanted, wanted_in)
        return self.value[rows]


def write_probabilities(
    template: pd.DataFrame, task: int, probability: FloatArray, path: Path | None
) -> None:
    """Write probabilities for every row of a template, atomically; if `path` is None, do nothing.

    Parameters
    ----------
    template
        The pairs of student and question to predict, with UserId and QuestionId. In task 4, the
        column Mask tells for which mask (a choice of answers to predict).
    task
        1, 2 or 4.
    probability
        In tasks 1 and 4, P(right), shape (rows,). In task 2, the probabilities of all options,
        shape (rows, n_options), in the challenge (rows, 4).
    path
        The file to write, or None.

    Raises
    ------
    InputError
        If the numbers are no probabilities, or there is not one row for each row of the template.
    """
    if path is None:
        return
    keys = template[["UserId", "QuestionId"]].astype(np.int32)
    # In task 4, a pair may occur several times: once for each mask (a choice of answers to predict)
    # that contains it.
    if TASKS[task].form is Form.ENTRY:
        keys.insert(0, "Mask", template["Mask"].astype("category"))
    value = np.asarray(probability, np.float32)
    names = TASKS[task].probability_columns(answer_options.count_options(template))
    shape = (len(keys), len(names)) if len(names) > 1 else (len(keys),)
    if value.shape != shape:
        raise InputError(
            f"{path}: probabilities have shape {value.shape}, expected {shape}, one row for each "
            "pair"
        )
    value = value.reshape(len(keys), len(names))
    for name, values in zip(names, value.T, strict=True):
        # The file is not written yet. So the message about a probability of 1.2, for instance, says
        # that a row "would be" 1.2.
        reading.require_valid(path, _probability_column(name), values, verb="would be")
    _require_sum(path, names, value)
    table = keys.assign(**dict(zip(names, value.T, strict=True)))
    table.attrs = {_RECORD: provenance.this_process(path.parent).as_json().decode()}
    with writing.atomic_write(path) as (file,):
        table.to_parquet(
            file, engine="pyarrow", compression="zstd", index=False, write_page_checksum=True
        )


def read_probabilities(path: Path, task: int | None = None) -> Probabilities:
    """Read and check a file of probabilities of task 1 or 2.

    If `task` is None, the columns of the file tell the task.
    """
    reading.require_file(path)
    try:
        table = pd.read_parquet(path, engine="pyarrow", page_checksum_verification=True)
    except Exception:
        # pyarrow raises many kinds of exceptions for a damaged file.
        raise InputError(
            f"{path}: is not a Parquet file, or a damaged one, expected one that a script has "
            "written with --probabilities"
        ) from None
    if task is None:
        columns_there = set(table)
        candidates = [
            number
            for number, candidate in TASKS.items()
            if candidate.form is Form.PREDICTIONS
            and columns_there.issuperset(_columns_in(table, candidate))
        ]
        # A file of task 4 has the same column of probabilities as a file of task 1. It is
        # recognised by its column Mask.
        if not candidates or "Mask" in columns_there:
            raise InputError(
                f"{path}: holds no probabilities of task 1 or 2, expected a file that a script "
                "has written with --probabilities"
            )
        task = candidates[0]
    names = _columns_in(table, TASKS[task])
    columns = [schema.USER_ID, schema.QUESTION_ID, *map(_probability_column, names)]
    expected = ", ".join(column.name for column in columns)
    for column in columns:
        if list(table).count(column.name) != 1:
            found = ", ".join(map(quote, list(table)[:10])) or "none"
            raise InputError(
                f"{path}: column '{column.name}' is missing or there twice, expected the columns "
                f"{expected}, found {found}"
            )
    if not len(table):
        raise InputError(f"{path}: has no rows, expected a row for each pair")
    student, question, *values = (_read_column(path, table[c.name], c) for c in columns)
    value = np.column_stack(values)
    _require_sum(path, names, value)
    repeats = find_repeats(pair_keys(student, question))
    if len(repeats):
        row = int(repeats[0])
        raise InputError(
            f"{path}: row {row + 1} repeats UserId {student[row]} and QuestionId {question[row]} "
            f"({len(repeats)} such rows), expected each pair once"
        )
    if len(names) == 1:
        value = np.column_stack([1 - value, value])
    record = provenance.parse(table.attrs.get(_RECORD, ""))
    pairs = pd.DataFrame({"UserId": student, "QuestionId": question})
    return Probabilities(path, task, pairs, value, record)


def _columns_in(table: pd.DataFrame, task: Task) -> tuple[str, ...]:
    """Return the names of the columns of probabilities that a file must have, one for each option.

    If the file has a column for option 5, for instance, and none for a higher option, it must have
    the columns of options 1 to 5.
    """
    numbers = schema.NUMBER_OF_OPTIONS.values
    n_options = [n for n in numbers if f"{task.probability_column}{n}" in table]
    return task.probability_columns(max(n_options, default=schema.N_OPTIONS))


def _read_column(path: Path, cells: pd.Series, column: Column) -> Array:
    """Return the values of a column, or raise `InputError` if one is not valid."""
    empty = cells.isna().to_numpy()
    if empty.any():
        raise InputError(
            f"{path}: column '{column.name}': row {int(empty.argmax()) + 1} is empty "
            f"({int(empty.sum())} such rows), expected a value"
        )
    # NumPy's kinds: i and u are signed and unsigned integers, f is a float.
    allowed_kinds = "iu" if column.whole else "iuf"
    if cells.dtype.kind not in allowed_kinds:
        expected = "whole numbers" if column.whole else "numbers"
        raise InputError(f"{path}: column '{column.name}' holds {cells.dtype}, expected {expected}")
    if column.whole:
        # Check whole numbers before they are converted, since conversion would change numbers that
        # are too large for the column's type.
        values = cells.to_numpy()
    else:
        # A float64 that is too large for float32 becomes inf, which `require_valid` reports.
        with np.errstate(over="ignore"):
            values = cells.to_numpy(column.dtype)
    reading.require_valid(path, column, values)
    return values.astype(column.dtype)


def _require_sum(path: Path, names: Sequence[str], value: FloatArray) -> None:
    """Raise `InputError` unless each row sums to 1; a single column of probabilities need not."""
    total = value.sum(axis=1, dtype=np.float64)
    wrong = np.abs(total - 1) > _SUM_TOLERANCE
    if len(names) > 1 and wrong.any():
        row = int(wrong.argmax())
        raise InputError(
            f"{path}: row {row + 1}: {names[0]} to {names[-1]} sum to {total[row]:.4f} "
            f"({int(wrong.sum())} such rows), expected 1"
        )
