"""Folds for cross-validation, kept in a file so that all models use the same ones.

The file has two columns, `id` and `fold`. A model predicts every fold after learning from the
others only; what it writes is scored as one submission.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from common import io, made, schema
from common.errors import InputError, Report, quote, stop
from common.schema import INT32, TEXT, Column

import numpy as np
import numpy.typing as npt

ID = Column("id", TEXT)
_FOLD = Column("fold", INT32, 0, 9_999)

IntArray = npt.NDArray[np.integer[Any]]
BoolArray = npt.NDArray[np.bool_]


def assign_folds(group: IntArray, n_folds: int, seed: int | Sequence[int]) -> npt.NDArray[np.int32]:
    """Assign examples to folds at random, of which each holds as many groups, give or take one.

    The group of every example is numbered from 0, and its fold too, int32; both have the shape
    (examples,). `InputError` if there are fewer groups than folds.
    """
    n_groups = int(group.max(initial=-1)) + 1
    if n_groups < 2:
        raise InputError(
            f"--folds is {n_folds}, but there is one example, or group of these, to deal out, "
            "expected several"
        )
    if not 2 <= n_folds <= n_groups:
        raise InputError(f"--folds is {n_folds}, expected a whole number from 2 to {n_groups}")
    fold_of_group = np.random.default_rng(seed).permutation(n_groups) % n_folds
    return np.asarray(fold_of_group[group], np.int32)


def write_folds(
    path: Path, ids: Sequence[str], fold: IntArray, made_from: Sequence[Path] = ()
) -> None:
    """Write the fold of every example, given its id, and a record that says what from."""
    with io.atomic_write(path, made.record_path(path)) as (csv_file, record):
        io.write_csv_to(csv_file, {ID.name: np.array(ids, object), _FOLD.name: fold})
        own = made.this_process(path.parent, {path.name: csv_file}, made_from)
        record.write(own.as_json())


def describe_folds(path: Path) -> str:
    """Say how folds were made: ``10 folds --by_question``; the user's own have a fingerprint."""
    n_folds = len(np.unique(io.read_columns(path, (_FOLD,))[_FOLD.name]))
    record = made.read(path)
    if record is None:
        return f"{n_folds} folds {made.digest(path):.8}"
    kept = {k: value for k, value in made.settings(record.options).items() if k != "folds"}
    return " ".join([f"{n_folds} folds", *made.flags_of(kept)])


def read_folds(path: Path, ids: Sequence[str]) -> npt.NDArray[np.int32]:
    """Read the fold of every example, shape (examples,); the file holds just these, once each."""
    made.require_current([path])
    columns = io.read_columns(path, (ID, _FOLD))
    rows = match_ids(path, columns[ID.name], ids, "the training examples")
    return np.asarray(columns[_FOLD.name][rows])


def splits(fold: IntArray) -> Iterator[tuple[BoolArray, BoolArray]]:
    """Yield for every fold which examples to learn from and which to predict, as booleans."""
    for number in np.unique(fold):
        yield fold != number, fold == number


def match_ids(
    path: Path,
    found: npt.NDArray[Any],
    expected: Sequence[str],
    expected_in: str,
    report: Report = stop,
) -> npt.NDArray[np.int64]:
    """Find the row of every expected id; there must be exactly these, each once.

    Of those found in a file, an empty one was reported before. `expected_in` says, for messages,
    where the expected ones come from; repeated, unknown and missing ids are one report each. Rows
    have the shape (expected,); -1 where the id was reported as missing.
    """
    known = set(expected)
    rows = [row for row, value in enumerate(found) if value]
    row_of = {found[row]: row for row in reversed(rows) if found[row] in known}
    repeated = [row for row in rows if row_of.get(found[row], row) != row]
    unknown = [row for row in rows if found[row] not in known]
    number = io.file_source(path).row_number
    for wrong, verb in ((repeated, "repeats"), (unknown, "is")):
        if wrong:
            value, more = found[wrong[0]], f" ({len(wrong)} such rows)" if len(wrong) > 1 else ""
            fault = f", which is not in {expected_in}{more}"
            if verb == "repeats":
                fault = f" of row {number(row_of[value])}{more}, expected each once"
            report(f"{path}: column 'id': row {number(wrong[0])} {verb} {quote(value)}{fault}")
    missing = [value for value in expected if value not in row_of]
    # If no id could be read at all, that has been reported already.
    if missing and (row_of or unknown):
        shown = ", ".join(quote(value) for value in missing[: io.SHOWN])
        report(
            f"{path}: {len(missing)} of {len(expected)} ids are missing, first {shown}, "
            f"expected every id of {expected_in}"
        )
    return np.array([row_of.get(value, schema.UNREADABLE) for value in expected], np.int64)
