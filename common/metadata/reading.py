"""Reading a file of metadata, and finding the rows of given ids in it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common import io
from common.answers import IntArray, find_repeats, find_rows
from common.errors import InputError
from common.schema import Column

import numpy as np
import numpy.typing as npt


def find(folder: Path | None, name: str) -> Path | None:
    """Return the path of a file of metadata, or None where it is not there.

    Parameters
    ----------
    folder
        The folder of the metadata; None where none belong to the answers at hand, as
        `common.cli.SampleModelPaths.metadata` may be.
    name
        Name of the file, one of `common.layout`.
    """
    if folder is None or not io.is_there(folder / name):
        return None
    return folder / name


def read_whole(
    path: Path, columns: Sequence[Column], optional: Sequence[Column] = ()
) -> io.Columns:
    """Read columns of a file that must end with a line end, as all official ones do.

    A file cut off in its last cell would otherwise look complete: any part of a text is a valid
    one, and so is an empty cell.

    Parameters
    ----------
    path
        The file.
    columns
        Columns that must be there.
    optional
        Columns that are read if they are there.

    Returns
    -------
    dict
        For each column that is there an array, as `io.read_columns` returns it.

    Raises
    ------
    InputError
        If the file is not as expected, or has none of the optional columns.
    """
    source = io.file_source(path)
    header = io.read_header(source)
    present = [column for column in optional if column.name in header]
    if optional and not present:
        io.require_columns(source, header, optional)
    columns = [*columns, *present]
    data = io.read_columns(source, columns)
    with source.open() as file:
        file.seek(-1, 2)
        if file.read(1) not in b"\r\n":
            row = source.row_number(len(data[columns[0].name]) - 1)
            raise InputError(f"{path}: row {row} has no line end; is the file cut off?")
    return data


def require_distinct(path: Path, column: Column, ids: IntArray) -> None:
    """Raise `InputError` if a file names an id twice; -1, an unknown one, may be there often."""
    ordered = np.sort(ids)
    if not ((ordered[1:] == ordered[:-1]) & (ordered[1:] >= 0)).any():
        return
    repeats = find_repeats(ids.astype(np.int64))
    source, row = io.file_source(path), int(repeats[0])
    first = int(np.flatnonzero(ids == ids[row])[0])
    raise InputError(
        f"{path}: column '{column.name}': row {source.row_number(row)} repeats {ids[row]} of row "
        f"{source.row_number(first)} ({len(repeats)} such rows), expected each once"
    )


def find_described(
    path: Path, column: Column, described: IntArray, wanted: IntArray
) -> npt.NDArray[np.int32]:
    """Find the row of a file that describes each wanted id; -1 where none does.

    Parameters
    ----------
    path
        The file.
    column
        The column of the ids.
    described
        The ids in it, -1 where empty.
    wanted
        Ids asked for, -1 where unknown, in any order and as often as you like.

    Raises
    ------
    InputError
        If the file describes an id twice, or none of those asked for.
    """
    require_distinct(path, column, described)
    rows = find_rows(described, wanted)
    if len(rows) and (rows < 0).all():
        raise InputError(
            f"{path}: column '{column.name}': holds none of the {len(rows):,} asked for; "
            "the file belongs to other data"
        )
    return rows


def take(values: npt.NDArray[Any], rows: npt.NDArray[np.int32], missing: Any) -> npt.NDArray[Any]:
    """Return the value of every row, and a value for missing ones where the row is -1."""
    if not len(values):
        return np.full(len(rows), missing, values.dtype)
    taken = values[rows]
    taken[rows < 0] = missing
    return taken
