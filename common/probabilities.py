"""Predicted probabilities: what a model believes, beside the submission, which says right or wrong.

A file of compressed columns (Parquet), which pandas reads and writes: UserId, QuestionId, and
ProbabilityCorrect (task 1), ProbabilityOption1 to ProbabilityOption4 (task 2), or Mask and
ProbabilityCorrect (task 4). The challenge's score never depends on it; `local_evaluation.py
--probabilities FILE` of tasks 1 and 2 adds what it tells; that of task 4, which plays the entry,
writes it as well.

    write_probabilities(template, 1, p_right, path)     in a sample model
    p = read_probabilities(path, 1).at(reference)       in an evaluation
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from common import io, made, schema
from common.answers import IntArray, find_repeats, pair_keys
from common.errors import InputError, quote
from common.submission import Pairs, find_rows_of_pairs

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:  # Importing them takes time, which `--help` does without.
    import pandas as pd
    import pyarrow as pa

FloatArray = npt.NDArray[np.float32]

_CORRECT = ("ProbabilityCorrect",)
COLUMNS = {1: _CORRECT, 2: tuple(f"ProbabilityOption{o}" for o in schema.OPTIONS)}
# How far the probabilities of a row may sum to something else than 1; float32 adds up to 1e-7.
_SUM_TOLERANCE = 1e-3
# The key of the file's own metadata that says which command made it.
_ORIGIN = b"origin"


@dataclass(frozen=True)
class Probabilities:
    """What a file of probabilities of task 1 or 2 holds, in its order."""

    path: Path
    # UserId and QuestionId, int32, shape (rows,).
    student: IntArray
    question: IntArray
    # float32, shape (rows, categories): P(wrong) and P(right), or that of options 1 to 4.
    value: FloatArray
    # The command that made the file; None where it does not say.
    origin: made.Made | None

    def at(self, reference: Pairs) -> FloatArray:
        """Return the probabilities of the pairs of a reference, in its order; `InputError` if one
        is missing.
        """
        own = (self.student, self.question)
        rows, _ = find_rows_of_pairs(str(self.path), own, reference)
        return self.value[rows]


def write_probabilities(
    template: pd.DataFrame, task: int, probability: npt.NDArray[np.floating[Any]], path: Path | None
) -> None:
    """Write probabilities for every row of a template, atomically; nothing if no path is given.

    Parameters
    ----------
    template
        The pairs.
    task
        1 or 2.
    probability
        Task 1: P(right), shape (rows,). Task 2: that of options 1 to 4, shape (rows, 4).
    path
        What ``--probabilities`` names, or None.

    Raises
    ------
    InputError
        If they are not probabilities, or not as many as the template has rows.
    """
    if path is not None:
        ids = {name: template[name].to_numpy() for name in ("UserId", "QuestionId")}
        _write(path, COLUMNS[task], ids, probability)


def write_mask_probabilities(
    path: Path,
    masks: Sequence[str] | npt.NDArray[np.str_],
    student: IntArray,
    question: IntArray,
    p_right: npt.NDArray[np.floating[Any]],
) -> None:
    """Write what an entry of task 4 believes of every target of every mask, atomically.

    All arrays have the shape (targets of all masks,).
    """
    import pyarrow as pa

    mask = pa.array(masks, pa.string()).dictionary_encode()
    _write(path, _CORRECT, {"Mask": mask, "UserId": student, "QuestionId": question}, p_right)


def _write(
    path: Path,
    names: Sequence[str],
    keys: dict[str, Any],
    probability: npt.NDArray[np.floating[Any]],
) -> None:
    import pyarrow as pa
    from pyarrow import parquet as pq

    shape = (len(keys["UserId"]), len(names))
    value = np.asarray(probability, np.float32)
    value = value[:, None] if value.ndim == 1 else value
    if value.shape != shape:
        expected = shape if len(names) > 1 else shape[:1]
        raise InputError(
            f"{path}: probabilities have shape {np.shape(probability)}, expected {expected}, one "
            "row for each pair"
        )
    _require_valid(path, names, value)
    columns = {name: value[:, k] for k, name in enumerate(names)}
    origin = made.this_process(path.parent).as_json()
    table = pa.table({**keys, **columns}).replace_schema_metadata({_ORIGIN: origin})
    with io.atomic_write(path) as (file,):
        pq.write_table(table, file, compression="zstd")


def read_probabilities(path: Path, task: int) -> Probabilities:
    """Read a file of probabilities of task 1 or 2.

    Raises `InputError` if it is missing or no such file, lacks a column, holds anything but
    probabilities, names a pair twice, or its rows do not sum to 1 (task 2).
    """
    import pyarrow as pa
    from pyarrow import parquet as pq

    io.require_file(path)
    names = COLUMNS[task]
    wanted = ["UserId", "QuestionId", *names]
    try:
        table = pq.read_table(path)
    except (pa.ArrowException, OSError):
        raise InputError(
            f"{path}: is not a Parquet file, expected one with the columns {', '.join(wanted)}, as "
            f"sample models write with --probabilities"
        ) from None
    for name in wanted:
        if table.column_names.count(name) != 1:
            found = ", ".join(map(quote, table.column_names[:10])) or "none"
            raise InputError(
                f"{path}: column {quote(name)} is missing or there twice, expected the columns "
                f"{', '.join(wanted)}, found {found}"
            )
    if not table.num_rows:
        raise InputError(f"{path}: has no rows, expected a row for each pair")
    student, question = (_read_ids(path, table, name) for name in ("UserId", "QuestionId"))
    with np.errstate(over="ignore"):
        columns = [_read_numbers(path, table, name).astype(np.float32) for name in names]
    value = np.column_stack(columns)
    _require_valid(path, names, value)
    repeats = find_repeats(pair_keys(student, question))
    if len(repeats):
        row = int(repeats[0])
        raise InputError(
            f"{path}: row {row + 1} repeats UserId {student[row]} and QuestionId {question[row]} "
            f"({len(repeats)} such rows), expected each pair once"
        )
    if len(names) == 1:
        value = np.column_stack([1 - value, value])
    origin = made.parse((table.schema.metadata or {}).get(_ORIGIN, b""))
    return Probabilities(path, student, question, value, origin)


def _read_ids(path: Path, table: pa.Table, name: str) -> npt.NDArray[np.int32]:
    values = _read_numbers(path, table, name, whole=True)
    outside = (values < 0) | (values > schema.INT32_MAX)
    if outside.any():
        row = int(outside.argmax())
        raise InputError(
            f"{path}: column '{name}': row {row + 1} is {values[row]}, expected a whole number "
            f"from 0 to {schema.INT32_MAX}"
        )
    return values.astype(np.int32)


def _read_numbers(
    path: Path, table: pa.Table, name: str, *, whole: bool = False
) -> npt.NDArray[Any]:
    from pyarrow import types

    column = table[name]
    if column.null_count:
        row = int(np.argmax(column.is_null().to_numpy()))
        raise InputError(
            f"{path}: column '{name}': row {row + 1} is empty ({column.null_count} such rows), "
            "expected a value"
        )
    if not types.is_integer(column.type) and (whole or not types.is_floating(column.type)):
        expected = "whole numbers" if whole else "numbers"
        raise InputError(f"{path}: column '{name}' holds {column.type}, expected {expected}")
    values: npt.NDArray[Any] = column.to_numpy()
    return values


def _require_valid(path: Path, names: Sequence[str], value: FloatArray) -> None:
    # NaN fails every comparison, so it counts as invalid here.
    valid = (value >= 0) & (value <= 1)
    if not valid.all():
        row, place = (int(i) for i in np.argwhere(~valid)[0])
        raise InputError(
            f"{path}: column '{names[place]}': row {row + 1} is {value[row, place]} "
            f"({int((~valid).any(axis=1).sum())} such rows), expected a number from 0 to 1"
        )
    if len(names) > 1:
        total = value.sum(axis=1, dtype=np.float64)
        wrong = np.abs(total - 1) > _SUM_TOLERANCE
        if wrong.any():
            row = int(wrong.argmax())
            raise InputError(
                f"{path}: row {row + 1}: {names[0]} to {names[-1]} sum to {total[row]:.4f} "
                f"({int(wrong.sum())} such rows), expected 1"
            )
