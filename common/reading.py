"""Read CSV files as pandas DataFrames whose columns are typed and checked.

A file is read in blocks by pyarrow or `pandas.read_csv`. If they refuse it, or a value is out of
range, the file is read again row by row. This slow reader names the faulty rows (the header is row
1), and it accepts unusual spellings of valid values, such as 1.0 for 1.
"""

from __future__ import annotations

import codecs
import csv
import difflib
import io
import os
import re
import stat
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

from common import file_formats, fingerprints, provenance, schema
from common.arrays import Array
from common.errors import InputError, Report, count_rows, printable, quote, stop
from common.layout import ROOT
from common.missing_files import where_to_get
from common.schema import DATE, FLOAT64, INT8, INT32, TEXT, UNKNOWN, Column

import numpy as np
import pandas as pd

# Consecutive rows of a file, as a mapping from columns to their values. A column is named by its
# position in the file, from 0.
_Part: TypeAlias = "Mapping[int, pd.Series | Array | list[Any]]"

# How many faulty rows a message shows.
SHOWN = 3
# How many names of files or folders beside a missing file a message shows.
_MAX_NAMES = 8
# A first row of at least this many bytes is no header.
_LONGEST_HEADER = 1 << 16
# The slow reader, which uses Python's `csv`, parses this many rows at a time. Larger lists would
# fragment the memory.
_ROWS_AT_ONCE = 1 << 16
# The quick reader, which uses pandas and pyarrow, reads about this many bytes at a time (a block).
_BLOCK_SIZE = 1 << 22
# Smaller blocks are parsed by pandas, because pyarrow starts threads: a short process that ends
# while these threads start may be aborted.
_MIN_BLOCK_OF_PYARROW = 1 << 20
# To find rows of empty cells, the quick reader looks at this many bytes at the end of a block.
_N_LAST = 1 << 12
# If a block has one of these bytes, the slow reader reads the file: pyarrow and pandas treat quotes
# and NUL differently, and pyarrow takes hexadecimal digits such as 0x10 or 0X10 for a number.
_AMBIGUOUS_BYTES = (b'"', b"\0", b"x", b"X")
# `Source.rows` appends the mark `_END` as a last line, to find a quotation mark that is not closed:
# then all following lines belong to one cell, and `_END` is not a line of its own. No file holds
# `_END`, since UTF-8 cannot encode half of a surrogate pair.
_END = "\ud800"
# The error handler "surrogateescape" decodes each byte that is not UTF-8 as one of the characters
# of this pattern.
_NOT_UTF8 = re.compile("[\udc80-\udcff]")
# Allow long cells: set the largest limit that works on Windows, where a C long has 32 bits.
csv.field_size_limit(2**31 - 1)


# ---- The file ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Source:
    """A CSV file, on disk or in a zip, which can be opened several times."""

    # Name of the file in messages.
    name: str
    # Opens the file from its beginning; called each time that the file is read.
    open: Callable[[], BinaryIO]
    # The column names of a file without a header; empty if row 1 is the header.
    column_names: tuple[str, ...] = ()

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the number and the cells of every row, also of the header; skip blank lines.

        Spreadsheets write rows of empty cells at the end of a file. These rows are skipped too.
        Raises `InputError` if a quotation mark is not closed.
        """
        # For each row of empty cells since the last row with content: the number of the row, and
        # the number of its cells.
        empty_rows: list[tuple[int, int]] = []
        with self.open() as file:
            lines = io.TextIOWrapper(file, "utf-8-sig", "surrogateescape", newline="")
            # Append the mark `_END`, which no file can hold, as a last line. If a quotation mark is
            # not closed, its cell holds the rest of the file and the mark.
            lines_and_mark = chain(lines, [_END])
            for number, row in enumerate(csv.reader(lines_and_mark), start=1):
                if row == [_END]:
                    return
                if row and row[-1].endswith(_END):
                    raise InputError(
                        f"{self.name}: row {number} has a quotation mark that is not closed; is "
                        "the file cut off?"
                    )
                is_blank = not row or (len(row) == 1 and row[0].isspace())
                if is_blank:
                    continue
                has_only_empty_cells = len(row) > 1 and not any(row)
                if has_only_empty_cells:
                    empty_rows.append((number, len(row)))
                    continue
                # A row that is not empty follows: the empty rows are not at the end.
                for empty_number, n_cells in empty_rows:
                    yield empty_number, [""] * n_cells
                empty_rows.clear()
                yield number, row

    def row_number(self, index: int) -> int:
        """Return the row number in the file of the data row `index`.

        Row numbers begin at 1, and count the header and blank lines. `index` begins at 0, and
        counts data rows only. This method reads the file up to the row.
        """
        n_rows_before = index if self.column_names else index + 1
        rows = islice(self.rows(), n_rows_before, None)
        # If another program has shortened the file, it may no longer have the row. Then return the
        # number that the row would have in a file without blank lines.
        if_absent = n_rows_before + 1
        return next((number for number, _ in rows), if_absent)


def file_source(path: Path, column_names: tuple[str, ...] = ()) -> Source:
    """Return a CSV file on disk as a source. Pass `column_names` if the file has no header.

    If a file that this process writes later gets a record, the record names this file as a source.
    """
    require_file(path)
    provenance.note_source(path)
    return text_source(str(path), lambda: path.open("rb"), column_names)


def text_source(
    name: str, opener: file_formats.Opener, column_names: tuple[str, ...] = ()
) -> Source:
    """Return a source for the CSV file that `opener` opens. It may be UTF-16 or packed by gzip.

    Raises `InputError` if the first bytes show that it is something else, such as a workbook.
    """
    return Source(name, file_formats.open_as_utf8(name, opener), column_names)


def unnoticed_source(path: Path) -> Source:
    """Return a CSV file on disk as a source, without noting that the process reads it."""
    return text_source(str(path), lambda: fingerprints.open_unnoticed(path))


def is_there(path: Path) -> bool:
    """Return whether a path exists. A broken symlink exists, so that reading it raises an error."""
    return os.path.lexists(path)


def require_file(path: Path) -> None:
    """Raise `InputError` unless a file can be read; name the command that makes a missing file."""
    try:
        mode = path.stat().st_mode
        # Opening a named pipe would wait for a writer.
        if stat.S_ISREG(mode):
            # This call only checks the file. Do not note the file as a source of the results.
            fingerprints.open_unnoticed(path).close()
            return
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"{path}: {_why_missing(path)}") from None
    except OSError as error:
        # For instance a loop of symlinks, a name that is too long, or no permission.
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    kind = "a folder" if stat.S_ISDIR(mode) else "a pipe or a device"
    raise InputError(f"{path}: is {kind}, expected a file")


def _why_missing(path: Path) -> str:
    """Say why there is no file: a broken symlink, a mistyped folder, or a command still to run."""
    if path.is_symlink():
        return f"is a link to {path.readlink()}, which does not exist"
    # The command that makes or fetches a file of this name; "" if there is none.
    advice = where_to_get(path)
    if path.parent.is_dir():
        advice = advice or f"the folder holds {_names_like(path)}"
    elif not advice or not path.is_relative_to(ROOT):
        # The folder is missing too. If a command makes the file in the kit, `advice` is enough.
        # Otherwise say that the folder is missing. This includes paths outside of the kit with a
        # name that a command makes: the user has probably mistyped the folder.
        advice = f"the folder {path.parent} does not exist"
    return f"file not found; {advice}"


def _names_like(path: Path) -> str:
    """Return the names of files beside a missing file that have its suffix, for a message.

    For a path without a suffix, return the names of folders. The names are separated by commas.
    Only the first `_MAX_NAMES` names are returned, or for instance "no .csv file" if there is none.
    """
    entries = sorted(path.parent.iterdir())
    if path.suffix:
        names = [entry.name for entry in entries if entry.suffix == path.suffix]
        kind = f"{path.suffix} file"
    else:
        folders = [entry for entry in entries if entry.is_dir()]
        # Leave out folders that users hardly look for, such as .git and __pycache__.
        names = [folder.name for folder in folders if folder.name[0] not in "._"]
        kind = "folder"
    return ", ".join(names[:_MAX_NAMES]) or f"no {kind}"


# ---- The header ----------------------------------------------------------------------------------


def read_header(source: Source) -> list[str]:
    """Return the column names of a CSV source; the name of an unnamed column is empty.

    The names stand in row 1 of the file, or in `source.column_names` if the file has no header.
    Raises `InputError` if the file is empty, or row 1 is no header.
    """
    with source.open() as file:
        start = file.read(_LONGEST_HEADER)
    if len(start) == _LONGEST_HEADER and not re.search(rb"[\r\n]", start):
        raise InputError(f"{source.name}: row 1 is longer than {len(start):,} bytes, expected CSV")
    # The number and the cells of the first row that is not blank. An empty file gives (0, []).
    number, names = next(source.rows(), (0, []))
    if not names:
        expected = "rows" if source.column_names else "a header with column names in row 1"
        raise InputError(f"{source.name}: is empty, expected {expected}")
    if source.column_names:
        return list(source.column_names)
    # Pass no column names: a message could not name a column, because this row holds the names.
    _require_text(source, header=[], number=number, row=names)
    _require_commas(source, names)
    # `Source.rows` skips blank rows, so the first row that it yields may have a larger number.
    is_row_1_blank = number > 1 or not any(names)
    if is_row_1_blank:
        raise InputError(f"{source.name}: row 1 is blank, expected a header with column names")
    line = re.split(r"[\r\n]", start.decode("utf-8-sig", "replace"))[0]
    try:
        # Parse the header again with strict=True, which refuses a quotation mark inside a column
        # name. In cells, quotation marks are allowed.
        next(csv.reader([line], strict=True))
    except csv.Error as error:
        raise InputError(f"{source.name}: row 1 cannot be read as CSV: {error}") from None
    duplicates = [name for name in names if name and names.count(name) > 1]
    if duplicates:
        raise InputError(f"{source.name}: column {quote(duplicates[0])} appears twice in row 1")
    return names


def _require_commas(source: Source, names: Sequence[str]) -> None:
    """Raise `InputError` if something else than commas separates the columns of a header."""
    # Excel takes "sep=," or "sep=;" in row 1 as a statement of the separator. The row has been
    # split at commas, so for "sep=," the first name is "sep=".
    if names[0].lower() in ("sep=", "sep=;"):
        raise InputError(
            f"{source.name}: row 1 is {quote(','.join(names))}, which only Excel reads, expected "
            "a header with column names; delete the row"
        )
    if len(names) > 1:
        return
    for separator, title in ((";", "semicolons"), ("\t", "tabs"), ("|", "bars")):
        if separator in names[0]:
            raise InputError(
                f"{source.name}: row 1 is {quote(names[0])}, with {title} between the columns, "
                "expected commas; save it as CSV with commas"
            )


def require_columns(
    source: Source, header: Sequence[str], columns: Sequence[Column], report: Report = stop
) -> None:
    """Report every column that a header lacks; suggest the most similar name in the header."""
    for column in columns:
        if column.name not in header:
            present = printable(", ".join(name or "(unnamed)" for name in header), 300)
            hint = _hint_at_similar(column.name, header)
            report(f"{source.name}: column '{column.name}' is missing, found: {present}{hint}")


def _hint_at_similar(missing: str, header: Sequence[str]) -> str:
    """Return the end of a message: which name in the header is similar to the missing name."""
    by_lower_case = {name.strip().lower(): name for name in header}
    same_letters = by_lower_case.get(missing.lower())
    if same_letters is not None:
        # The two names differ only in letter case or in blanks.
        return f"; rename the column {quote(same_letters)} to '{missing}'"
    close = difflib.get_close_matches(missing.lower(), by_lower_case, 1, 0.7)
    return f"; is it {quote(by_lower_case[close[0]])}?" if close else ""


# ---- The table -----------------------------------------------------------------------------------


def read_table(
    source: Source | Path,
    columns: Sequence[Column],
    *,
    keep_others: bool = False,
    report: Report = stop,
) -> pd.DataFrame:
    """Read columns of a CSV file, typed and checked.

    Line ends of any system, blank lines, a byte order mark, columns in any order, whole numbers
    written as ``1.0``, and ``True`` for 1 in a boolean column are accepted.

    Parameters
    ----------
    source
        The CSV file.
    columns
        The columns to read.
    keep_others
        Whether to read all further columns as well, as text.
    report
        Function that is called with every fault. By default the first fault raises `InputError`.

    Returns
    -------
    DataFrame
        A row for each data row, with the columns in the order of `columns`, or of the file if
        `keep_others`. If `report` does not raise, a faulty cell holds `Column.missing`.

    Raises
    ------
    InputError
        If the file cannot be read, or it has no rows, or `report` raises it.
    """
    source = source if isinstance(source, Source) else file_source(source)
    header = read_header(source)
    require_columns(source, header, columns, report)
    known_columns = {column.name: column for column in columns}
    text_columns = {name: Column(name, TEXT, may_be_empty=True) for name in header}
    # The columns of the result, in order. A column that is in both dicts keeps its place in the
    # file and gets its type from `known_columns`.
    by_name = (text_columns | known_columns) if keep_others else known_columns
    # The columns to read, by position in the file.
    wanted = {position: by_name[name] for position, name in enumerate(header) if name in by_name}
    # If the header has none of the columns, read the file's first column, so that the rows are
    # still checked.
    wanted = wanted or {0: text_columns[header[0]]}
    series = _read_columns(source, header, wanted, report)
    n_rows = max(map(len, series.values()), default=0)
    if not n_rows:
        raise InputError(f"{source.name}: holds a header but no rows")
    data = {column.name: series[position] for position, column in wanted.items()}
    for column in columns:
        if column.name not in data:
            # The header lacks the column, which has been reported.
            data[column.name] = _missing_values(column, n_rows)
    return pd.DataFrame({name: data[name] for name in by_name}, copy=False)


def _read_columns(
    source: Source, header: Sequence[str], wanted: Mapping[int, Column], report: Report
) -> dict[int, pd.Series]:
    """Read columns of a file with the quick reader or, if it raises or warns, with the slow one.

    The keys of `wanted` and of the result are the positions of the columns in the file.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return _join(_read_quickly(source, header, wanted), wanted)
    except file_formats.DamagedFileError:
        # The slow reader would fail in the same way.
        raise
    except (ValueError, OverflowError, Warning):
        # The quick reader has met something unusual or faulty. Read the file again by the slow
        # reader below, which can read unusual files and report faults.
        pass
    # Call the slow reader after the `except` block, not in it. At the end of the block, Python
    # frees the exception, whose traceback keeps the half-filled columns in memory. In the block, an
    # error message of the slow reader would also show the exception of the quick reader.
    return _join(_read_slowly(source, header, wanted, report), wanted)


def read_valid_rows(source: Source, columns: Sequence[Column]) -> pd.DataFrame:
    """Read columns of whole numbers, without the rows that hold a faulty value.

    Parameters
    ----------
    source
        The CSV file. This function does not report its faults, since another function does.
    columns
        The columns to read. A column of judgements, where NaN is a valid value, may be among them.

    Raises
    ------
    InputError
        If the file is no CSV file, or holds no rows.
    """

    def ignore(fault: str) -> None:
        """Report nothing: `read_table` then puts `UNKNOWN` in the place of the faulty value."""

    table = read_table(source, columns, report=ignore)
    is_valid = (table != UNKNOWN).all(axis=1)
    return table if is_valid.all() else table[is_valid]


def _missing_values(column: Column, n_rows: int) -> pd.Series:
    """Return a column whose cells are all missing."""
    if column.dtype == TEXT:
        return pd.Series([column.missing] * n_rows)
    return pd.Series(np.full(n_rows, column.missing, column.dtype))


def _join(parts: Iterable[_Part], wanted: Mapping[int, Column]) -> dict[int, pd.Series]:
    """Concatenate the parts of a file; return each wanted column, by its position in the file.

    A part holds consecutive rows: a mapping from the positions of the wanted columns to their
    values. Numbers are copied into one growing array for each column, so that no column of numbers
    is in memory twice.
    """
    texts: dict[int, list[Any]] = {}
    numbers: dict[int, Array] = {}
    for position, column in wanted.items():
        if column.dtype == TEXT:
            texts[position] = []
        else:
            numbers[position] = np.empty(0, column.dtype)
    n_rows = 0
    for part in parts:
        # All columns of a part have the same number of rows.
        any_column = next(iter(part.values()))
        start = n_rows
        n_rows += len(any_column)
        for position, values in numbers.items():
            # Grow by an eighth more than needed, so that few resizes suffice.
            if n_rows > len(values):
                values.resize(n_rows + n_rows // 8, refcheck=False)
            values[start:n_rows] = part[position]
        for position, cells in texts.items():
            cells.append(pd.Series(part[position]))
    series: dict[int, pd.Series] = {}
    for position, cells in texts.items():
        # A file without rows has no parts. `concat` would raise an error for an empty list.
        if cells:
            series[position] = pd.concat(cells, ignore_index=True)
    for position, values in numbers.items():
        values.resize(n_rows, refcheck=False)
        series[position] = pd.Series(values, copy=False)
    return series


# ---- The quick reader ----------------------------------------------------------------------------


def _read_quickly(
    source: Source, header: Sequence[str], wanted: Mapping[int, Column]
) -> Iterator[_Part]:
    """Yield the wanted columns in parts, which fast libraries parse; fail on an unusual file.

    If anything in the file is unusual or not valid, this function raises ValueError or
    OverflowError, or a library warns. `_read_columns` turns warnings into exceptions. After an
    exception, `_read_columns` drops the parts and calls the slow reader.
    """
    types = {position: column.dtype for position, column in wanted.items()}
    for position, dtype in types.items():
        # If a number may be missing, read it as a float first, because only floats can be NaN.
        if dtype not in (TEXT, DATE) and wanted[position].may_be_empty:
            types[position] = FLOAT64
    ambiguous_bytes = list(_AMBIGUOUS_BYTES)
    if FLOAT64 in types.values():
        # A spreadsheet may have shortened an id, for instance to 1.23457E+08. Read as a float, this
        # text would pass for the whole number 123457000. The slow reader reports the text.
        ambiguous_bytes.append(b"+")
    with source.open() as file:
        if not source.column_names:
            # Skip the header. In a file whose lines end with "\r", `readline` returns more than one
            # line. Leave such a file to the slow reader.
            header_line = file.readline()
            if b"\r" in header_line.rstrip(b"\r\n"):
                raise ValueError("other line ends")
        while block := file.read(_BLOCK_SIZE):
            # Read on to the end of the block's last line.
            block += file.readline()
            # Leave the file to the slow reader if the libraries could misread this block.
            _require_usual(block, ambiguous_bytes)
            if len(block) < _MIN_BLOCK_OF_PYARROW:
                cells = _parse_with_pandas(block, len(header), types)
            else:
                cells = _parse_with_pyarrow(block, len(header), types)
            # pandas and pyarrow have named the columns by position: "0", "1" and so on.
            # `_checked_values` raises ValueError if a value is not valid.
            yield {
                position: _checked_values(cells[str(position)], column)
                for position, column in wanted.items()
            }


def _require_usual(block: bytes, ambiguous_bytes: Iterable[bytes]) -> None:
    """Raise ValueError if pyarrow or pandas would read a block in another way than the slow reader.

    `ambiguous_bytes` are the bytes that pyarrow or pandas may read in another way.
    """
    # pyarrow and pandas drop a byte order mark at the start of a block. That is right only at the
    # start of the file; elsewhere the mark belongs to a cell. The slow reader does both correctly.
    if block.startswith(codecs.BOM_UTF8):
        raise ValueError("a byte order mark")
    # At the end of a file, a row of empty cells counts as a blank line, but only the slow reader
    # skips such a row. This block may be the last block of the file, so look at its last line, but
    # at most at `_N_LAST` bytes.
    end = block[-_N_LAST:].rstrip(b"\r\n")
    last_line = end[end.rfind(b"\n") + 1 :]
    if last_line and not last_line.strip(b","):
        raise ValueError("a row of empty cells")
    if any(mark in block for mark in ambiguous_bytes):
        raise ValueError("bytes that the readers treat differently")


def _parse_with_pandas(block: bytes, n_columns: int, types: Mapping[int, str]) -> pd.DataFrame:
    """Parse a block of whole lines; the columns of the result are named "0", "1" and so on.

    `types` gives the types of the columns to read, by position.
    """
    # pandas reads 1.23457E+08 as the integer 123457000. But a spreadsheet may have shortened an id
    # to this text, and then the integer is not the id. Leave the file to the slow reader.
    if b"+" in block:
        raise ValueError("a plus sign")
    # pandas would pad short rows and truncate long ones.
    _require_cells_in_each_row(block, n_columns)
    # Read integers as int64, and check their range later (`require_valid`): pandas 2 would truncate
    # integers that do not fit int8 or int32. Read dates as texts ("object"); `_checked_values`
    # parses them later. Columns of a type that is not in `read_as` are read as float64.
    read_as = {TEXT: "str", DATE: "object", INT8: "int64", INT32: "int64"}
    dtypes: dict[str, Any] = {}
    texts_of_nan: dict[str, list[str]] = {}
    for position, dtype in types.items():
        name = str(position)
        dtypes[name] = read_as.get(dtype, FLOAT64)
        if dtype == FLOAT64:
            # An empty cell is NaN.
            texts_of_nan[name] = [""]
    return pd.read_csv(
        io.BytesIO(block),
        names=[str(position) for position in range(n_columns)],
        dtype=dtypes,
        na_values=texts_of_nan,
        keep_default_na=False,
        index_col=False,
        usecols=list(types),
        low_memory=False,
    )


def _require_cells_in_each_row(block: bytes, n_columns: int) -> None:
    """Raise ValueError unless every line of a block has `n_columns` cells; cells are not quoted."""
    lines = block.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    characters = np.frombuffer(lines.rstrip(b"\n") + b"\n", np.uint8)
    # One separator follows each cell: a comma, or the end of the line. So a line has as many
    # separators as cells.
    separators = characters[(characters == ord(",")) | (characters == ord("\n"))]
    line_ends = np.flatnonzero(separators == ord("\n"))
    # `line_ends` has the positions of line ends in `separators`. The distance between neighbouring
    # positions is the number of separators of a line. The first line begins after the position −1.
    n_cells = np.diff(line_ends, prepend=-1)
    if (n_cells != n_columns).any():
        raise ValueError("rows with too few or too many cells")


def _parse_with_pyarrow(block: bytes, n_columns: int, types: Mapping[int, str]) -> pd.DataFrame:
    """Parse a block of whole lines with pyarrow, which is five times as fast as pandas.

    The columns of the result are named "0", "1" and so on, by position. `types` gives the types of
    the columns to read, by position. If pyarrow is not installed, pandas parses the block.
    """
    try:
        import pyarrow as pa
        from pyarrow import csv
    except ImportError:
        return _parse_with_pandas(block, n_columns, types)
    # Columns of a type that is not in `read_as` are read as float64.
    read_as = {TEXT: pa.string(), DATE: pa.timestamp("ms"), INT8: pa.int8(), INT32: pa.int32()}
    convert = csv.ConvertOptions(
        column_types={
            str(position): read_as.get(dtype, pa.float64()) for position, dtype in types.items()
        },
        include_columns=[str(position) for position in types],
        null_values=[""],
    )
    options = csv.ReadOptions(column_names=[str(position) for position in range(n_columns)])
    # Give pyarrow the bytes of a block, not a file: pyarrow reads a file in threads, which may
    # abort the process when it ends.
    table = csv.read_csv(pa.BufferReader(block), options, convert_options=convert)
    cells: pd.DataFrame = table.to_pandas(split_blocks=True)
    # pyarrow reads an empty cell as null, and the text "nan" as NaN. Both become NaN in pandas, but
    # only the empty cell is valid. If a column has more NaNs than nulls, it has such a text.
    for name in cells.select_dtypes("float"):
        if cells[name].isna().sum() != table[name].null_count:
            raise ValueError("the text NaN")
    return cells


def _checked_values(cells: pd.Series, column: Column) -> pd.Series | Array:
    """Return the values of a column; raise ValueError if a cell is not valid."""
    if column.dtype == TEXT:
        if not column.may_be_empty and (cells.str.strip() == "").any():
            raise ValueError(column.name)
        return cells
    if column.dtype == DATE:
        # pyarrow has parsed the dates; pandas has left texts.
        return cells.to_numpy() if cells.dtype.kind == "M" else _parse_dates(cells, column)
    values = cells.to_numpy()
    require_valid(column.name, column, values)
    if column.may_be_empty:
        # An empty cell was read as NaN.
        return np.where(np.isnan(values), column.missing, values)
    return values


def _parse_dates(cells: pd.Series, column: Column) -> Array:
    """Parse dates, each distinct text once; raise ValueError if a text is no date."""
    index, texts = pd.factorize(cells)
    dates = [column.parse(text) for text in texts]
    if any(date is None for date in dates):
        raise ValueError(column.name)
    return np.array(dates, DATE)[index]


def require_valid(
    name: object, column: Column, values: Array, first_row: int = 1, verb: str = "is"
) -> None:
    """Raise `InputError` if a number is not valid in a column; NaN stands for an empty cell.

    Parameters
    ----------
    name
        The file, or another name for the beginning of the message.
    column
        The column and its valid values.
    values
        Numbers, shape (n,).
    first_row
        Number of the row that holds ``values[0]``, for the message.
    verb
        Verb of the message: "is" for a value in a file, as in "row 7 is 3". "would be" for a value
        in a file that is not written yet.

    Raises
    ------
    InputError
        With the first row that is not valid, and how many there are.
    """
    valid = (values >= column.low) & (values <= column.high)
    if values.dtype.kind == "f":
        if column.whole:
            valid &= values == np.round(values)
        if column.may_be_empty:
            valid |= np.isnan(values)
    if not valid.all():
        row = int(valid.argmin())
        raise InputError(
            f"{name}: column '{column.name}': row {row + first_row} {verb} {values[row]} "
            f"({int((~valid).sum())} such rows), expected {column.expected}"
        )


# ---- The slow reader -----------------------------------------------------------------------------


def _read_slowly(
    source: Source, header: Sequence[str], wanted: Mapping[int, Column], report: Report
) -> Iterator[_Part]:
    """Yield the wanted columns in parts, parsed cell by cell; then report all faulty rows."""
    rows = source.rows()
    if not source.column_names:
        # Skip the header.
        next(rows)
    # The values of a column repeat: cache the result for each text.
    parsers = {
        position: lru_cache(_ROWS_AT_ONCE)(column.parse) for position, column in wanted.items()
    }
    faults = _Faults()
    while block := list(islice(rows, _ROWS_AT_ONCE)):
        part: dict[int, list[Any]] = {position: [] for position in wanted}
        for number, row in block:
            _require_text(source, header, number, row)
            if len(row) != len(header):
                # Report the length of the row as its only fault, and not its cells as well.
                faults.add_row(number, row, expected_length=len(header))
                for position, column in wanted.items():
                    part[position].append(column.missing)
                continue
            for position, column in wanted.items():
                # The value is None if the text is not valid.
                value = parsers[position](row[position])
                if value is None:
                    faults.add_cell(number, position, row[position])
                    value = column.missing
                part[position].append(value)
        yield part
    faults.report_all(source, wanted, report)


class _Faults:
    """The faulty rows and cells that the slow reader has found: how many, and the first ones."""

    def __init__(self) -> None:
        self._n_rows = 0
        self._first_row_message = ""
        # For each column position: the number of faulty cells, and messages on the first ones.
        self._n_cells = Counter[int]()
        self._first_cells: dict[int, list[str]] = {}

    def add_row(self, number: int, row: Sequence[str], expected_length: int) -> None:
        """Note a row that has too few or too many cells; `number` is the number of the row."""
        self._n_rows += 1
        if not self._first_row_message:
            fault = f"row {number} has {len(row)} columns, expected {expected_length}"
            self._first_row_message = f"{fault}: {quote(','.join(row).strip())}"

    def add_cell(self, number: int, position: int, cell: str) -> None:
        """Note a cell that is not valid, in the row `number` and the column at `position`."""
        self._n_cells[position] += 1
        if self._n_cells[position] <= SHOWN:
            text = cell.strip()
            shown = quote(text) if text else "empty"
            self._first_cells.setdefault(position, []).append(f"row {number} is {shown}")

    def report_all(self, source: Source, columns: Mapping[int, Column], report: Report) -> None:
        """Report all faults: one message for rows of wrong lengths, one for each faulty column."""
        if self._n_rows:
            count = count_rows(self._n_rows)
            report(f"{source.name}: {self._first_row_message}{count}; is the file cut off?")
        for position, n in sorted(self._n_cells.items()):
            column = columns[position]
            first_cells = self._first_cells[position]
            report_cells(source, column.name, first_cells, n, column.expected, report)


def report_cells(
    source: Source, column: str, shown: Sequence[str], n: int, expected: str, report: Report
) -> None:
    """Report the `n` faulty cells of a column in one message.

    `shown` describes the first faulty cells, at most `SHOWN`, for example "row 7 is '1.23457E+11'".
    """
    more = f" and {n - SHOWN} more rows" if n > SHOWN else ""
    cells = "; ".join(shown)
    advice = ""
    if any(map(schema.is_shortened, shown)):
        advice = "; a spreadsheet has shortened the numbers: save the column with all digits"
    report(f"{source.name}: column '{column}': {cells}{more}, expected {expected}{advice}")


def _require_text(source: Source, header: Sequence[str], number: int, row: Sequence[str]) -> None:
    """Raise `InputError` if a row holds a NUL byte or bytes that are not UTF-8."""
    text = ",".join(row)
    if "\0" in text:
        raise InputError(f"{source.name}: row {number} holds a NUL byte: {quote(text)}")
    if not text.isascii() and _NOT_UTF8.search(text):
        position = next(k for k, cell in enumerate(row) if _NOT_UTF8.search(cell))
        column = f"column {quote(header[position])}: " if position < len(header) else ""
        raise InputError(f"{source.name}: {column}row {number} is not UTF-8 text; save it in UTF-8")
