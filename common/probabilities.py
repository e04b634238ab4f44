"""Predicted probabilities: what a model believes; the challenge's score never depends on it.

A file of compressed columns (Parquet): UserId, QuestionId, and ProbabilityCorrect (task 1, and with
Mask task 4) or ProbabilityOption1 to ProbabilityOption4 (task 2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from common import provenance, reading, schema, writing
from common.answers import find_repeats, pair_keys
from common.arrays import Array, FloatArray
from common.errors import InputError, quote
from common.schema import Column
from common.submission import find_pairs
from common.tasks import TASKS, Form

import numpy as np
import pandas as pd

_column = partial(Column, dtype=schema.FLOAT32, low=0, high=1, whole=False)
# How far the probabilities of a row may sum to something else than 1; float32 adds up to 1e-7.
_SUM_TOLERANCE = 1e-3
# Of what pandas keeps beside a table: the record of how the file was made.
_ORIGIN = "origin"


@dataclass(frozen=True)
class Probabilities:
    """What a file of probabilities of task 1 or 2 holds, in its order."""

    path: Path
    task: int
    pairs: pd.DataFrame
    # Shape (rows, categories): P(wrong) and P(right), or that of options 1 to 4.
    value: FloatArray
    # The command that made the file; None where it does not say.
    origin: provenance.Provenance | None

    def at(self, wanted: pd.DataFrame, wanted_in: Path) -> FloatArray:
        """Return the probabilities of the pairs of a file; `InputError` if one is missing."""
        rows, _ = find_pairs(str(self.path), self.pairs, wanted, wanted_in)
        return self.value[rows]


def write_probabilities(
    template: pd.DataFrame, task: int, probability: FloatArray, path: Path | None
) -> None:
    """Write probabilities for every row of a template, atomically; nothing if no path is given.

    Parameters
    ----------
    template
        The pairs; in task 4 the targets, with the column Mask.
    task
        1, 2 or 4.
    probability
        Tasks 1 and 4: P(right), shape (rows,). Task 2: that of options 1 to 4, shape (rows, 4).
    path
        What ``--probabilities`` names, or None.

    Raises
    ------
    InputError
        If they are not probabilities, or not as many as the template has rows.
    """
    if path is None:
        return
    keys = template[["UserId", "QuestionId"]].astype(np.int32)
    if TASKS[task].form is Form.ENTRY:
        keys.insert(0, "Mask", template["Mask"].astype("category"))
    value = np.asarray(probability, np.float32)
    names = TASKS[task].probability_columns
    shape = (len(keys), len(names)) if len(names) > 1 else (len(keys),)
    if value.shape != shape:
        raise InputError(
            f"{path}: probabilities have shape {value.shape}, expected {shape}, one row for each "
            "pair"
        )
    value = value.reshape(len(keys), len(names))
    for name, values in zip(names, value.T, strict=True):
        reading.require_valid(path, _column(name), values, verb="would be")
    _require_sum(path, names, value)
    table = keys.assign(**dict(zip(names, value.T, strict=True)))
    table.attrs = {_ORIGIN: provenance.this_process(path.parent).as_json().decode()}
    with writing.atomic_write(path) as (file,):
        table.to_parquet(
            file, engine="pyarrow", compression="zstd", index=False, write_page_checksum=True
        )


def read_probabilities(path: Path, task: int | None = None) -> Probabilities:
    """Read and check probabilities of task 1 or 2, by default of that which its columns tell."""
    reading.require_file(path)
    try:
        table = pd.read_parquet(path, engine="pyarrow", page_checksum_verification=True)
    except Exception:  # Of a damaged file the reader raises whatever its parts do.
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
            and columns_there.issuperset(candidate.probability_columns)
        ]
        # A file of task 4 has the column of task 1, once for each mask.
        if not candidates or "Mask" in columns_there:
            raise InputError(
                f"{path}: holds no probabilities of task 1 or 2, expected a file that a script "
                "has written with --probabilities"
            )
        task = candidates[0]
    names = TASKS[task].probability_columns
    columns = [schema.USER_ID, schema.QUESTION_ID, *map(_column, names)]
    for column in columns:
        if list(table).count(column.name) != 1:
            found = ", ".join(map(quote, list(table)[:10])) or "none"
            raise InputError(
                f"{path}: column '{column.name}' is missing or there twice, expected the columns "
                f"{', '.join(own.name for own in columns)}, found {found}"
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
    origin = provenance.parse(table.attrs.get(_ORIGIN, ""))
    pairs = pd.DataFrame({"UserId": student, "QuestionId": question})
    return Probabilities(path, task, pairs, value, origin)


def _read_column(path: Path, cells: pd.Series, column: Column) -> Array:
    empty = cells.isna().to_numpy()
    if empty.any():
        raise InputError(
            f"{path}: column '{column.name}': row {int(empty.argmax()) + 1} is empty "
            f"({int(empty.sum())} such rows), expected a value"
        )
    if cells.dtype.kind not in ("iu" if column.whole else "iuf"):
        expected = "whole numbers" if column.whole else "numbers"
        raise InputError(f"{path}: column '{column.name}' holds {cells.dtype}, expected {expected}")
    with np.errstate(over="ignore"):
        values = cells.to_numpy() if column.whole else cells.to_numpy(column.dtype)
    reading.require_valid(path, column, values)
    return values.astype(column.dtype)


def _require_sum(path: Path, names: Sequence[str], value: FloatArray) -> None:
    total = value.sum(axis=1, dtype=np.float64)
    wrong = np.abs(total - 1) > _SUM_TOLERANCE
    if len(names) > 1 and wrong.any():
        row = int(wrong.argmax())
        raise InputError(
            f"{path}: row {row + 1}: {names[0]} to {names[-1]} sum to {total[row]:.4f} "
            f"({int(wrong.sum())} such rows), expected 1"
        )
