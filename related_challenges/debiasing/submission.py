"""Read a submission as the organisers' script reads it.

The script splits each line at its commas and reads each cell with Python's `int`. Therefore blanks
around an id, negative ids and ids of any length are accepted. 55.0, "55", 1e2 and a byte order mark
are not.
"""

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from common import reading
from common.arrays import IntArray
from common.errors import Report, count_rows, quote, stop

import numpy as np

N_RECOMMENDED = 50
COLUMNS = ("user_id", *(f"item_{n}" for n in range(1, N_RECOMMENDED + 1)))
EXPECTED_CELL = "a whole number such as 55, without .0, quotation marks or byte order mark"
# This number stands for an item that is never right: a cell that could not be read, a missing user,
# or an id of more than 64 bits. Item ids in the answers are at least 0.
NO_ITEM = -1
_INT64 = np.iinfo(np.int64)

# The items recommended to each user, in the file's order.
Recommendations = dict[int, list[int]]


@dataclass
class _Faults:
    """The faults of a submission: a text for each, each list in the order of the rows."""

    wrong_length: list[str] = field(default_factory=list)
    # Descriptions of the faulty cells in each column; the key is the position of the column.
    cells: dict[int, list[str]] = field(default_factory=dict)
    repeated_users: list[str] = field(default_factory=list)
    repeated_items: list[str] = field(default_factory=list)


def read_recommendations(path: Path, report: Report = stop) -> Recommendations:
    """Read and check a submission.

    Parameters
    ----------
    path : Path
        The submission.
    report : callable
        Called with the message about each fault; by default it raises `InputError`.

    Returns
    -------
    dict of int to list of int
        The fifty items recommended to each user, in the file's order. If `report` does not raise,
        a faulty cell holds `NO_ITEM`, and the first row of a repeated user counts.
    """
    source = reading.file_source(path)
    faults = _Faults()
    recommended: Recommendations = {}
    row_of_user: dict[int, int] = {}
    is_empty = True
    for row, cells in _rows(source):
        is_empty = False
        if len(cells) != len(COLUMNS):
            faults.wrong_length.append(
                f"row {row} has {len(cells)} columns, expected {len(COLUMNS)}: "
                f"{quote(','.join(cells))}"
            )
            continue
        # `_parse_row` returns None for a cell that is no number, and adds the cell to `faults`.
        user, *items = _parse_row(row, cells, faults)
        if user is None:
            continue
        if user in recommended:
            faults.repeated_users.append(f"row {row} repeats {user} of row {row_of_user[user]}")
            continue
        row_of_user[user] = row
        recommended[user] = [NO_ITEM if item is None else item for item in items]
        n_repeated = _count_repeated(items)
        if n_repeated:
            n_different = N_RECOMMENDED - n_repeated
            faults.repeated_items.append(
                f"row {row}: user {user} has only {n_different} different items"
            )
    if is_empty:
        report(f"{path}: is empty, expected a row for each test user")
    _report_faults(source, faults, report)
    return recommended


def _rows(source: reading.Source) -> Iterator[tuple[int, list[str]]]:
    """Yield the number, counted from 1, and the cells of each line that is not blank."""
    with source.open() as file:
        # With "surrogateescape", a byte that is not UTF-8 raises no error here. It becomes a
        # character that `int` refuses later, so only the cell with this byte is faulty.
        lines = io.TextIOWrapper(file, "utf-8", "surrogateescape")
        for row, line in enumerate(lines, start=1):
            text = line.strip()
            if text:
                yield row, text.split(",")


def _parse_row(row: int, cells: Sequence[str], faults: _Faults) -> list[int | None]:
    """Return the ids in a row; a faulty cell becomes None and is added to `faults`."""
    ids: list[int | None] = []
    for position, cell in enumerate(cells):
        try:
            ids.append(int(cell))
        except ValueError:
            ids.append(None)
            text = quote(cell) if cell.strip() else "empty"
            faults.cells.setdefault(position, []).append(f"row {row} is {text}")
    return ids


def _count_repeated(items: Sequence[int | None]) -> int:
    """Return how many items are equal to an earlier one; faulty cells do not count."""
    valid_items = [item for item in items if item is not None]
    return len(valid_items) - len(set(valid_items))


def _report_faults(source: reading.Source, faults: _Faults, report: Report) -> None:
    """Report the faults of a submission, with one message for each kind of fault.

    A message shows the first fault of its kind. Faulty cells are the exception: there is a message
    for each column with such cells, and it shows several of them.
    """
    if faults.wrong_length:
        first = faults.wrong_length[0]
        number = count_rows(len(faults.wrong_length))
        report(f"{source.name}: {first}{number}; is the file cut off?")
    for position, cells in sorted(faults.cells.items()):
        shown = cells[: reading.SHOWN]
        column = COLUMNS[position]
        reading.report_cells(source, column, shown, len(cells), EXPECTED_CELL, report)
    if faults.repeated_users:
        first = faults.repeated_users[0]
        number = count_rows(len(faults.repeated_users))
        report(f"{source.name}: column '{COLUMNS[0]}': {first}{number}, expected each once")
    if faults.repeated_items:
        first = faults.repeated_items[0]
        number = count_rows(len(faults.repeated_items))
        report(f"{source.name}: {first}{number}, expected {N_RECOMMENDED}")


def select_users(
    path: Path, recommended: Recommendations, wanted: IntArray, report: Report = stop
) -> IntArray:
    """Return the items recommended to some users; rows of other users are ignored.

    Parameters
    ----------
    path : Path
        The submission, for messages.
    recommended : dict of int to list of int
        Items by user; see `read_recommendations`.
    wanted : ndarray of int64, shape (users,)
        Ids of the users.
    report : callable
        Called with the message about missing users; by default it raises `InputError`.

    Returns
    -------
    ndarray of int64, shape (users, 50)
        Ids of items, `NO_ITEM` for a missing user.
    """
    users = wanted.tolist()
    missing = sorted(set(users) - recommended.keys())
    if missing:
        shown = ", ".join(map(str, missing[: reading.SHOWN]))
        report(
            f"{path}: {len(missing)} of {len(users)} test users are missing, the first with "
            f"user_id {shown}, expected a row for each"
        )
    items = np.full((len(users), N_RECOMMENDED), NO_ITEM)
    for row, user in enumerate(users):
        if user in recommended:
            # The array holds integers of 64 bits. An id that needs more bits becomes `NO_ITEM`.
            items[row] = list(map(_fit_into_64_bits, recommended[user]))
    return items


def _fit_into_64_bits(item: int) -> int:
    """Return an item's id, or `NO_ITEM` if the id needs more than 64 bits."""
    return item if _INT64.min <= item <= _INT64.max else NO_ITEM
