"""Reading and writing: typed CSV through pyarrow, atomic files, flat zips.

Readers tell the user exactly which file, column, row and value is wrong. Rows are counted as a
spreadsheet shows them: the header is row 1, the first data row is row 2.
"""

import csv
import difflib
import glob
import io
import os
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from common.errors import InputError, Report, stop
from common.layout import ROOT, where_to_get
from common.provenance import is_running
from common.schema import TEXT, Column

IntArray = npt.NDArray[np.integer[Any]]
Columns = dict[str, npt.NDArray[Any]]

# How many offending rows an error message shows.
SHOWN = 3
_LONGEST_HEADER = 1 << 16

# Larger than pyarrow's own megabyte: a large file then leaves fewer holes in the memory.
_BLOCK_SIZE = 4 << 20

# Stands in an array of whole numbers for a cell that was reported as faulty.
UNREADABLE = -1


@dataclass(frozen=True)
class Source:
    """A CSV file, on disk or inside a zip, that can be opened several times.

    Attributes
    ----------
    name
        How messages call it.
    open
        Opens it for reading bytes. Always one of pyarrow's own files: its threads read ahead, and
        one that calls into Python while the interpreter ends would abort the process.
    column_names
        Names of the columns, in order, of a file without a header; empty where row 1 is one.
    """

    name: str
    open: Callable[[], pa.NativeFile]
    column_names: tuple[str, ...] = ()

    @property
    def first_row(self) -> int:
        """Number of the first data row, as a spreadsheet shows it."""
        return 1 if self.column_names else 2


def require_file(path: Path) -> None:
    """Raise `InputError` unless a file is there, saying what is there or which command makes it."""
    if path.is_file():
        return
    if path.is_dir():
        raise InputError(f"{path}: is a folder, expected a file")
    how = where_to_get(path)
    if not path.parent.is_dir() and not path.is_relative_to(ROOT):
        # A slip in a flag: no command fills a folder that the user has named but not made.
        how = f"the folder {path.parent} does not exist"
    elif not how and path.parent.is_dir():
        present = sorted(entry.name for entry in path.parent.iterdir() if entry.suffix == ".csv")
        how = f"the folder holds {', '.join(present[:8]) or 'no CSV file'}"
    elif not how:
        how = f"the folder {path.parent} does not exist"
    raise InputError(f"{path}: file not found; {how}")


def file_source(path: Path, column_names: tuple[str, ...] = ()) -> Source:
    """Give a CSV file on disk as a source.

    Parameters
    ----------
    path
        The file.
    column_names
        Names of its columns, in order, if it has no header.

    Raises
    ------
    InputError
        If there is no such file.
    """
    require_file(path)
    return Source(str(path), lambda: pa.OSFile(str(path), "rb"), column_names)


def zip_source(path: Path, member: str, report: Report = stop) -> Source:
    """Give the only file of a zip as a source.

    Parameters
    ----------
    path
        The zip.
    member
        Name that the file inside must have; it must lie at the top level.
    report
        What to do with a fault that leaves one CSV to read.

    Raises
    ------
    InputError
        If the zip is damaged, holds another number of files, a folder, or another name.
    """
    require_file(path)
    if not zipfile.is_zipfile(path):
        raise InputError(f"{path}: is not a zip file, or is cut off")
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            damaged = archive.testzip()
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise InputError(f"{path}: is a damaged zip file ({error})") from None
    except (RuntimeError, NotImplementedError) as error:
        raise InputError(f"{path}: cannot be unpacked ({error})") from None
    if damaged is not None:
        raise InputError(f"{path}: the file {damaged} inside is damaged (wrong checksum)")
    if names != [member]:
        fault = f"{path}: {_zip_fault(names)}, expected only {member} at the top level"
        readable = [name for name in names if name.lower().endswith(".csv")]
        if len(readable) != 1:
            raise InputError(fault)
        report(fault)
        member = readable[0]
    return Source(f"{path}/{member}", lambda: _open_zip_member(path, member))


def _zip_fault(names: Sequence[str]) -> str:
    """Say what is wrong with what a zip holds."""
    nested = [name for name in names if name.lower().endswith(".zip")]
    folders = [name for name in names if "/" in name]
    if nested:
        return f"holds another zip ({nested[0]})"
    if folders:
        return f"holds a folder ({folders[0]})"
    if len(names) != 1:
        return f"holds {len(names)} files ({', '.join(names[:SHOWN]) or 'nothing'})"
    return f"holds {names[0]}"


def _open_zip_member(path: Path, member: str) -> pa.NativeFile:
    with zipfile.ZipFile(path) as archive:
        return pa.BufferReader(archive.read(member))


def read_header(source: Source) -> list[str]:
    """Read the column names of a CSV source; an unnamed column is an empty text.

    Raises
    ------
    InputError
        If the file is empty, not UTF-8 text, or names a column twice.
    """
    with source.open() as file:
        line = file.read(_LONGEST_HEADER).split(b"\n", 1)[0]
    if not line.strip():
        expected = "rows" if source.column_names else "a header with column names in row 1"
        raise InputError(f"{source.name}: is empty, expected {expected}")
    if source.column_names:
        return list(source.column_names)
    try:
        names = next(csv.reader([line.decode("utf-8-sig").strip("\r\n")]))
    except (UnicodeDecodeError, csv.Error):
        raise InputError(f"{source.name}: row 1 is not UTF-8 text, expected CSV") from None
    twice = [name for name in names if name and names.count(name) > 1]
    if twice:
        raise InputError(f"{source.name}: column '{twice[0]}' stands twice in row 1")
    return names


def require_columns(
    source: Source, header: Sequence[str], columns: Sequence[Column], report: Report = stop
) -> None:
    """Report every column that a header lacks."""
    for column in columns:
        if column.name not in header:
            found = ", ".join(name or "(unnamed)" for name in header)
            lower = {name.strip().lower(): name for name in header}
            close = difflib.get_close_matches(column.name.lower(), lower, 1, 0.7)
            hint = f"; is it '{lower[close[0]]}'?" if close else ""
            report(f"{source.name}: column '{column.name}' is missing, found: {found}{hint}")


def read_table(
    source: Source,
    columns: Sequence[Column],
    *,
    keep_others: bool = False,
    report: Report = stop,
) -> pa.Table:
    """Read columns of a CSV source, typed and checked.

    Tolerates CRLF line ends, a byte order mark, columns in any order, and whole numbers that are
    written as ``1.0``.

    Parameters
    ----------
    source
        What to read.
    columns
        The columns that must be there, with the types and ranges that their values must have.
    keep_others
        Whether to keep all further columns, as text exactly as it stands, in the file's order.
    report
        What to do with a column that is missing, a row that is cut off, or wrong values; if it
        does not raise, the cells are null in the table.

    Returns
    -------
    pyarrow.Table
        One row for each row of the file.

    Raises
    ------
    InputError
        If a column is missing, the file is cut off or holds no rows, or a value is wrong.
    """
    header = read_header(source)
    require_columns(source, header, columns, report)
    missing = [column for column in columns if column.name not in header]
    columns = [column for column in columns if column.name in header]
    types = {name: pa.string() for name in header}
    types.update({column.name: _arrow_type(column) for column in columns})
    wanted = header if keep_others or not columns else [column.name for column in columns]
    convert = pa_csv.ConvertOptions(
        column_types={name: types[name] for name in wanted},
        include_columns=wanted,
        null_values=[""],
        strings_can_be_null=False,
    )
    try:
        with source.open() as file:
            options = pa_csv.ReadOptions(block_size=_BLOCK_SIZE, column_names=source.column_names)
            table = pa_csv.read_csv(file, read_options=options, convert_options=convert)
    except pa.ArrowInvalid:
        table = None
    if table is None or not all(_is_valid(table[column.name], column) for column in columns):
        # Slowly, and with the row numbers at hand: find what is wrong, or read what is right but
        # unusually written.
        table = _read_with_care(source, header, wanted, columns, report)
    if table.num_rows == 0:
        raise InputError(f"{source.name}: holds a header but no rows")
    for column in columns:
        if column.dtype != TEXT:
            # In one piece, column by column, so that NumPy can later share the memory and no more
            # than one column exists twice at a time.
            index = table.column_names.index(column.name)
            table = table.set_column(index, column.name, table[column.name].combine_chunks())
            pa.default_memory_pool().release_unused()
    for column in missing:
        table = table.append_column(column.name, pa.nulls(table.num_rows, _arrow_type(column)))
    return table


def read_columns(path: Path, columns: Sequence[Column]) -> Columns:
    """Read columns of a CSV file into NumPy arrays, typed and checked.

    Parameters
    ----------
    path
        The file.
    columns
        The columns that must be there, with the types and ranges that their values must have.

    Returns
    -------
    dict
        For each column name an array of the column's type; text columns as object arrays.

    Raises
    ------
    InputError
        As `read_table`.
    """
    return to_arrays(read_table(file_source(path), columns), columns)


def to_arrays(table: pa.Table, columns: Sequence[Column]) -> Columns:
    """Give columns of a checked table as NumPy arrays.

    An empty number becomes NaN; a whole number that was reported as faulty, `UNREADABLE`.
    """

    def to_array(column: Column) -> npt.NDArray[Any]:
        values = table[column.name]
        if values.null_count and pa.types.is_integer(values.type):
            values = pc.fill_null(values, UNREADABLE)
        array: npt.NDArray[Any] = values.to_numpy()
        return array

    return {column.name: to_array(column) for column in columns}


def _arrow_type(column: Column) -> pa.DataType:
    return pa.string() if column.dtype == TEXT else pa.type_for_alias(column.dtype)


def _is_valid(values: pa.ChunkedArray, column: Column) -> bool:
    if column.dtype == TEXT:
        return column.may_be_empty or not pc.any(pc.equal(values, "")).as_py()
    if values.null_count and not column.may_be_empty:
        return False
    bounds = pc.min_max(values).as_py()
    if bounds["min"] is None:
        return True
    # NaN passes both comparisons of min_max, so it is looked for by itself.
    if pa.types.is_floating(values.type):
        if pc.any(pc.is_nan(values)).as_py():
            return False
        if column.whole and not pc.all(pc.equal(values, pc.round(values))).as_py():
            return False
    return bool(bounds["min"] >= column.low and bounds["max"] <= column.high)


def _read_with_care(
    source: Source,
    header: Sequence[str],
    wanted: Sequence[str],
    columns: Sequence[Column],
    report: Report,
) -> pa.Table:
    """Read a source as text, row by row; report the faults and convert what is valid."""
    crooked: list[tuple[int, int, str]] = []

    def note_crooked(row: Any) -> str:
        text = row.text[:60].strip() if len(crooked) < SHOWN else ""
        crooked.append((row.number or 0, row.actual_columns, text))
        return "skip"

    convert = pa_csv.ConvertOptions(
        column_types={name: pa.string() for name in header}, strings_can_be_null=False
    )
    try:
        with source.open() as file:
            table = pa_csv.read_csv(
                file,
                read_options=pa_csv.ReadOptions(
                    column_names=source.column_names, use_threads=False
                ),
                parse_options=pa_csv.ParseOptions(invalid_row_handler=note_crooked),
                convert_options=convert,
            )
    except pa.ArrowInvalid as error:
        reason = str(error).splitlines()[0]
        place = re.match(r"In CSV column #(\d+): Row #(\d+): .*UTF8", reason)
        if place:
            name = header[int(place[1])]
            reason = f"column '{name}': row {place[2]} is not UTF-8 text"
        else:
            reason = f"cannot be read as CSV: {reason}"
        raise InputError(f"{source.name}: {reason}") from None
    if crooked:
        number, found, text = crooked[0]
        count = f" ({len(crooked)} such rows)" if len(crooked) > 1 else ""
        report(
            f"{source.name}: row {number} has {found} columns, expected {len(header)}: "
            f"'{text}'{count}; is the file cut off?"
        )
        table = _with_gaps(table, [number - 2 for number, _, _ in crooked])
    for column in columns:
        values = table[column.name]
        index = table.column_names.index(column.name)
        converted = _convert(source, values, column, report)
        table = table.set_column(index, column.name, converted)
    return table.select(wanted)


def _with_gaps(table: pa.Table, gaps: Sequence[int]) -> pa.Table:
    """Put rows of nulls where rows were skipped, so that every other row keeps its number."""
    source_row = np.full(table.num_rows + len(gaps), UNREADABLE)
    kept = np.ones(len(source_row), bool)
    kept[list(gaps)] = False
    source_row[kept] = np.arange(table.num_rows)
    return table.take(pa.array(source_row, mask=~kept))


def _convert(
    source: Source, values: pa.ChunkedArray, column: Column, report: Report
) -> pa.ChunkedArray:
    """Convert a text column; report its faulty rows, which become null."""
    trimmed = pc.utf8_trim_whitespace(values)
    empty = pc.equal(trimmed, "")
    if column.dtype == TEXT:
        wrong = pc.and_(empty, not column.may_be_empty)
        converted = values
    else:
        is_number = pc.match_substring_regex(trimmed, r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$")
        numbers = pc.cast(pc.if_else(is_number, trimmed, None), pa.float64())
        valid = pc.and_(
            pc.greater_equal(numbers, float(column.low)), pc.less_equal(numbers, float(column.high))
        )
        if column.whole:
            valid = pc.and_(valid, pc.equal(numbers, pc.round(numbers)))
        valid = pc.fill_null(valid, False)
        wrong = pc.invert(pc.or_(valid, empty) if column.may_be_empty else valid)
        converted = pc.cast(pc.if_else(wrong, None, numbers), _arrow_type(column))
    # A null is the place of a row that was reported already.
    wrong = pc.and_(pc.fill_null(wrong, False), pc.is_valid(values))
    rows = np.flatnonzero(wrong.to_numpy())
    if len(rows):
        shown = [(row + source.first_row, values[int(row)].as_py()) for row in rows[:SHOWN]]
        found = "; ".join(f"row {row} is {repr(text) if text else 'empty'}" for row, text in shown)
        more = f" and {len(rows) - SHOWN} more rows" if len(rows) > SHOWN else ""
        report(f"{source.name}: column '{column.name}': {found}{more}, expected {column.expected}")
    return converted


@contextmanager
def atomic_write(*paths: Path) -> Iterator[list[BinaryIO]]:
    """Write files beside their destination; rename them all at the end, or none on any failure.

    A run that is killed, or a disk that fills up, leaves every previous file whole.

    Parameters
    ----------
    paths
        Destinations; missing folders are made.

    Yields
    ------
    list of binary files
        One for each destination, in order.
    """
    partial = [path.with_name(f".{path.name}.{os.getpid()}.partial") for path in paths]
    for path in paths:
        _sweep(path)
    try:
        with ExitStack() as stack:
            files: list[BinaryIO] = []
            for path, temporary in zip(paths, partial, strict=True):
                path.parent.mkdir(parents=True, exist_ok=True)
                files.append(stack.enter_context(temporary.open("wb")))
            yield files
        for path, temporary in zip(paths, partial, strict=True):
            temporary.replace(path)
    finally:
        for temporary in partial:
            temporary.unlink(missing_ok=True)


def _sweep(path: Path) -> None:
    """Remove what killed runs have left beside a file that they were writing."""
    for leftover in path.parent.glob(f".{glob.escape(path.name)}.*.partial"):
        owner = leftover.name.split(".")[-2]
        if owner.isdecimal() and not is_running(int(owner)):
            leftover.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically, as UTF-8 with LF line ends."""
    with atomic_write(path) as (file,):
        file.write(text.encode("utf-8"))


def write_csv(path: Path, columns: Mapping[str, Any] | pa.Table, *, header: bool = True) -> None:
    """Write columns as a CSV file, atomically.

    Parameters
    ----------
    path
        Destination.
    columns
        For each column name an array; NaN in a float column becomes an empty cell. Or a table.
    header
        Whether the column names stand in row 1.
    """
    with atomic_write(path) as (file,):
        write_csv_to(file, columns, header=header)


def write_csv_to(
    file: BinaryIO, columns: Mapping[str, Any] | pa.Table, *, header: bool = True
) -> None:
    """Write columns as CSV to an open binary file; as `write_csv`."""
    if not isinstance(columns, pa.Table):
        columns = pa.table(
            {name: pa.array(values, from_pandas=True) for name, values in columns.items()}
        )
    if header:
        names = io.StringIO()
        csv.writer(names, lineterminator="\n").writerow(columns.column_names)
        file.write(names.getvalue().encode("utf-8"))
    start = file.tell()
    options = pa_csv.WriteOptions(include_header=False, quoting_style="none")
    try:
        pa_csv.write_csv(columns, file, options)
    except pa.ArrowInvalid:
        # A text needs quotes; "needed" puts them around every text, so it is not the default.
        file.seek(start)
        file.truncate()
        options.quoting_style = "needed"
        pa_csv.write_csv(columns, file, options)


def write_zip_to(file: BinaryIO, members: Mapping[str, Path]) -> None:
    """Write a flat zip; the same input, the same bytes.

    Parameters
    ----------
    file
        Open binary file to write to.
    members
        For each name inside the zip the file whose bytes go into it.
    """
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in members.items():
            # A fixed date, so that the same submission always gives the same zip.
            info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o644 << 16
            # Level 1: a quarter of the default's time for a somewhat larger file. A member that is
            # described by itself does not take the archive's level, and Python 3.11 has no public
            # name for its own.
            info._compresslevel = 1  # type: ignore[attr-defined]
            # Weights may exceed what a zip without its extension for large files can hold.
            large = content.stat().st_size >= 1 << 31
            with content.open("rb") as source, archive.open(info, "w", force_zip64=large) as target:
                while block := source.read(1 << 20):
                    target.write(block)
