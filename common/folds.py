"""Folds for cross-validation, kept in a file so that all models use the same ones.

The file has two columns, `id` and `fold`. A model predicts every fold after learning from the
others only; what it writes is scored as one submission.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from common import io
from common.errors import InputError, quote
from common.schema import INT32, TEXT, Column

ID = Column("id", TEXT)
FOLD = Column("fold", INT32, 0, 9_999)

IntArray = npt.NDArray[np.integer[Any]]
BoolArray = npt.NDArray[np.bool_]


def assign_folds(group: IntArray, n_folds: int, seed: int | Sequence[int]) -> npt.NDArray[np.int32]:
    """Assign examples to folds at random; a group stays together.

    Parameters
    ----------
    group
        Group of every example, shape (examples,), numbered from 0; if nothing belongs together,
        each example is a group of its own.
    n_folds
        How many folds; they hold equally many groups, give or take one.
    seed
        The same seed, a number or several, gives the same folds.

    Returns
    -------
    array of int32, shape (examples,)
        Fold of every example, from 0.

    Raises
    ------
    InputError
        If there are fewer groups than folds.
    """
    n_groups = int(group.max(initial=-1)) + 1
    if not 2 <= n_folds <= n_groups:
        raise InputError(f"--folds is {n_folds}, expected a whole number from 2 to {n_groups}")
    fold_of_group = np.random.default_rng(seed).permutation(n_groups) % n_folds
    return np.asarray(fold_of_group[group], np.int32)


def write_folds(path: Path, ids: Sequence[str], fold: IntArray) -> None:
    """Write the fold of every example, atomically."""
    io.write_csv(path, {ID.name: np.array(ids, object), FOLD.name: fold})


def read_folds(path: Path, ids: Sequence[str]) -> npt.NDArray[np.int32]:
    """Read the fold of every example.

    Parameters
    ----------
    path
        The file.
    ids
        The examples, in the order wanted.

    Returns
    -------
    array of int32, shape (examples,)
        Fold of every example.

    Raises
    ------
    InputError
        If the file does not hold exactly these examples, each once.
    """
    columns = io.read_columns(path, (ID, FOLD))
    rows = match_ids(path, columns[ID.name], ids, "the training examples")
    return np.asarray(columns[FOLD.name][rows])


def splits(fold: IntArray) -> Iterator[tuple[BoolArray, BoolArray]]:
    """Yield for every fold which examples to learn from and which to predict, as booleans."""
    for number in np.unique(fold):
        yield fold != number, fold == number


def match_ids(
    path: Path, found: npt.NDArray[Any], expected: Sequence[str], expected_in: str
) -> npt.NDArray[np.int64]:
    """Find the row of every expected id; there must be exactly these, each once.

    Parameters
    ----------
    path
        The file that was read.
    found
        Its ids, in its order; compared as text.
    expected
        The ids in the order wanted.
    expected_in
        Where they come from, for messages.

    Returns
    -------
    array of int64, shape (expected,)
        Row of each.

    Raises
    ------
    InputError
        If an id is missing, unknown, or appears twice.
    """
    row_of: dict[str, int] = {}
    known = set(expected)
    for row, value in enumerate(found):
        if value in row_of:
            number = io.file_source(path).row_number
            raise InputError(
                f"{path}: column 'id': row {number(row)} repeats {quote(value)} of row "
                f"{number(row_of[value])}, expected each once"
            )
        if value not in known:
            raise InputError(
                f"{path}: column 'id': row {io.file_source(path).row_number(row)} is "
                f"{quote(value)}, which is not in {expected_in}"
            )
        row_of[value] = row
    missing = [value for value in expected if value not in row_of]
    if missing:
        shown = ", ".join(quote(value) for value in missing[: io.SHOWN])
        raise InputError(
            f"{path}: {len(missing)} of {len(expected)} ids are missing, first {shown}, "
            f"expected every id of {expected_in}"
        )
    return np.array([row_of[value] for value in expected], np.int64)
