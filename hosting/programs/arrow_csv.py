"""What the kit's evaluation needs of `pyarrow.csv`: strict reading, a block of rows at a time.

`stand_ins.py` says why this exists.
"""

import csv
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import TextIOWrapper
from itertools import islice
from typing import Any, BinaryIO

import numpy as np
from arrow import ArrowInvalid, ChunkedArray, DataType, Table, array, chunked_array

_BLOCK_ROWS = 1 << 16
# Python's reader takes a cell of 128 KiB only, unless it is told otherwise.
csv.field_size_limit(64 << 20)


@dataclass(frozen=True)
class ReadOptions:
    """How to read; a file without a header needs names. The rest has no meaning here."""

    column_names: Sequence[str] = ()
    block_size: int = 0
    use_threads: bool = True


@dataclass(frozen=True)
class InvalidRow:
    """A row with too many or too few cells; the header, if there is one, is row 1.

    Its text is without quotation marks, which pyarrow keeps.
    """

    number: int
    actual_columns: int
    text: str


@dataclass(frozen=True)
class ParseOptions:
    """What to do with an invalid row: ``skip`` it if the handler says so, or else refuse all."""

    newlines_in_values: bool = False
    invalid_row_handler: Callable[[InvalidRow], str] = lambda _: "error"


@dataclass(frozen=True)
class ConvertOptions:
    """Types of the columns, and which to return; all if none are named."""

    column_types: Mapping[str, DataType] = field(default_factory=dict)
    include_columns: Sequence[str] = ()
    null_values: Sequence[str] = ("",)
    strings_can_be_null: bool = False


def read_csv(
    file: BinaryIO, read: ReadOptions, parse: ParseOptions, convert: ConvertOptions
) -> Table:
    """Read a CSV file.

    Raises
    ------
    ArrowException
        If it is no UTF-8 text, a row has too many or too few cells, or a cell is not of its
        column's type as pyarrow would accept it.
    """
    # The header's byte order mark is no part of a name.
    text = TextIOWrapper(file, encoding="utf-8-sig", newline="")
    rows = csv.reader(text)
    try:
        names = list(read.column_names)
        n_before = 0
        if not names:
            names = next((row for row in rows if row), [])
            n_before = 1
        wanted = list(convert.include_columns) or names
        place = {name: number for number, name in enumerate(names)}
        parts: dict[str, list[ChunkedArray]] = {name: [] for name in wanted}
        for block in _blocks(rows, len(names), n_before, parse.invalid_row_handler):
            cells = list(zip(*block, strict=True))
            for name in wanted:
                parts[name].append(_convert(cells[place[name]], convert.column_types[name]))
    except (UnicodeDecodeError, csv.Error) as error:
        raise ArrowInvalid(str(error)) from None
    finally:
        text.detach()
    columns = {
        name: chunked_array(pieces) if pieces else array([], convert.column_types[name])
        for name, pieces in parts.items()
    }
    return Table(columns, sum(len(piece) for piece in parts[wanted[0]]))


def _blocks(
    rows: Iterator[list[str]], width: int, n_before: int, handler: Callable[[InvalidRow], str]
) -> Iterator[list[list[str]]]:
    """Yield rows in blocks, without blank lines and without those that the handler skips."""
    number = n_before
    while lines := list(islice(rows, _BLOCK_ROWS)):
        block = [row for row in lines if row]
        if any(len(row) != width for row in block):
            kept = []
            for place, row in enumerate(block, number + 1):
                if len(row) == width:
                    kept.append(row)
                elif handler(InvalidRow(place, len(row), ",".join(row))) != "skip":
                    raise ArrowInvalid(f"row {place} has {len(row)} columns, expected {width}")
            number += len(block)
            block = kept
        else:
            number += len(block)
        if block:
            yield block


_PATTERNS = {
    "i": re.compile(r"(?:-?\d{1,18})?(?:\n(?:-?\d{1,18})?)*", re.ASCII),
    "f": re.compile(
        r"(?:-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)?"
        r"(?:\n(?:-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)?)*",
        re.ASCII,
    ),
    "M": re.compile(
        r"(?:\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?)?)?"
        r"(?:\n(?:\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?)?)?)*",
        re.ASCII,
    ),
}
_BLANK = {"i": "0", "f": "nan", "M": "NaT"}


def _convert(cells: Sequence[str], type: DataType) -> ChunkedArray:
    """Convert cells to a type; an empty one is missing, but for text."""
    if type.name == "string":
        return array(list(cells), type)
    dtype: np.dtype[Any] = np.dtype(type.dtype)
    if not _PATTERNS[dtype.kind].fullmatch("\n".join(cells)):
        raise ArrowInvalid(f"not all are {type.name}")
    texts = np.array(cells)
    valid = texts != ""
    texts = np.where(valid, texts, _BLANK[dtype.kind])
    try:
        values = texts.astype(np.int64 if dtype.kind == "i" else dtype)
    except ValueError as error:
        raise ArrowInvalid(str(error)) from None
    if dtype.kind == "i":
        limits = np.iinfo(dtype)
        if ((values < limits.min) | (values > limits.max)).any():
            raise ArrowInvalid(f"not all fit into {type.name}")
    return ChunkedArray(values.astype(dtype), valid, type)
