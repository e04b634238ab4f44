"""Reading and writing: typed CSV through pyarrow, JSON, atomic files.

Errors name exactly the file, column, row and value that is wrong. Rows are counted as a
spreadsheet shows them: the header is row 1, the first data row is row 2.
"""

import codecs
import csv
import difflib
import glob
import io
import json
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO

from common.errors import InputError, Report, printable, quote, stop
from common.layout import ROOT, where_to_get
from common.made import is_running
from common.schema import DATE, TEXT, Column

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

IntArray = npt.NDArray[np.integer[Any]]
Columns = dict[str, npt.NDArray[Any]]

# How many offending rows an error message shows.
SHOWN = 3
_LONGEST_HEADER = 1 << 16
_SHOWN_HEADER = 300
_LINE_END = re.compile(rb"[\r\n]")

# Larger than pyarrow's own megabyte: a large file then leaves fewer holes in the memory.
_BLOCK_SIZE = 4 << 20
# A row must fit into a block.
_LONGEST_ROW = 1 << 20
# Small enough for a block to stay in the processor's cache.
_SURVEY_SIZE = 1 << 18

# Replaces a cell that was reported as faulty in an array of whole numbers.
UNREADABLE = -1


@dataclass(frozen=True)
class Source:
    """A CSV file, on disk or inside a zip, that can be opened several times.

    Attributes
    ----------
    name
        Its name in messages.
    open
        Opens it for reading bytes. Always one of pyarrow's own files: its threads read ahead, and
        one that called into Python while the interpreter ends would abort the process.
    column_names
        Names of the columns, in order, of a file without a header; empty where row 1 is one.
    """

    name: str
    open: Callable[[], pa.NativeFile]
    column_names: tuple[str, ...] = ()

    def row_number(self, index: int) -> int:
        """Return the number of a data row as a spreadsheet shows it, for messages.

        This reads the file up to that row: a blank line is not a data row, but has a number.

        Parameters
        ----------
        index
            Place among the data rows, from 0.
        """
        place = index if self.column_names else index + 1
        return next((row[0] for row in islice(_number_rows(self), place, None)), place + 1)


def is_there(path: Path) -> bool:
    """Return whether there is a file, or a broken link, which is refused when it is read."""
    return os.path.lexists(path)


def require_file(path: Path) -> None:
    """Raise `InputError` unless a file is there; say what is there, or which command makes it."""
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"{path}: {_why_missing(path)}") from None
    except OSError as error:
        # Links that lead in a circle, a name that is too long, a folder that may not be entered.
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    if stat.S_ISDIR(mode):
        raise InputError(f"{path}: is a folder, expected a file")
    if not stat.S_ISREG(mode):
        raise InputError(f"{path}: is a pipe or a device, expected a file")


def require_place(path: Path) -> None:
    """Raise `InputError` if no file can be written at a place: a folder is there, or above it none.

    A script calls this before long work; `atomic_write` does so as well.
    """
    if path.is_dir():
        raise InputError(f"{path}: is a folder, expected the name of a file to write")
    above = next((folder for folder in path.parents if is_there(folder)), None)
    if above is not None and not above.is_dir():
        raise InputError(f"{above}: is no folder, expected one to write {path.name} to")


def _why_missing(path: Path) -> str:
    if path.is_symlink():
        return f"is a link to {path.readlink()}, which does not exist"
    how = where_to_get(path)
    if not path.parent.is_dir() and not path.is_relative_to(ROOT):
        # Probably a mistyped flag: no command makes a folder outside the kit.
        how = f"the folder {path.parent} does not exist"
    elif not how and path.parent.is_dir():
        # Tables may be CSV or, with probabilities, Parquet; scripts and logs are looked for too.
        kind = path.suffix or ".csv"
        present = sorted(entry.name for entry in path.parent.iterdir() if entry.suffix == kind)
        how = f"the folder holds {', '.join(present[:8]) or f'no {kind} file'}"
    elif not how:
        how = f"the folder {path.parent} does not exist"
    return f"file not found; {how}"


def file_source(path: Path, column_names: tuple[str, ...] = ()) -> Source:
    """Return a CSV file on disk as a source.

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
    return Source(str(path), lambda: _open_file(path), column_names)


def _open_file(path: Path) -> pa.NativeFile:
    try:
        return pa.OSFile(str(path), "rb")
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else error
        raise InputError(f"{path}: cannot be read ({reason})") from None


def read_header(source: Source) -> list[str]:
    """Read the column names of a CSV source; an unnamed column is an empty text.

    Raises
    ------
    InputError
        If the file is empty, not UTF-8 text, or names a column twice.
    """
    with source.open() as file:
        start = file.read(_LONGEST_HEADER)
    if not start.strip():
        expected = "rows" if source.column_names else "a header with column names in row 1"
        raise InputError(f"{source.name}: is empty, expected {expected}")
    if source.column_names:
        return list(source.column_names)
    line = _LINE_END.split(start, 1)[0]
    if len(line) == _LONGEST_HEADER:
        raise InputError(f"{source.name}: row 1 is longer than {len(line):,} bytes, expected CSV")
    try:
        names = next(csv.reader([line.decode("utf-8-sig")], strict=True), [])
    except UnicodeDecodeError:
        raise InputError(f"{source.name}: row 1 is not UTF-8 text, expected CSV") from None
    except csv.Error as error:
        raise InputError(f"{source.name}: row 1 cannot be read as CSV: {error}") from None
    if not any(names):
        raise InputError(f"{source.name}: row 1 is blank, expected a header with column names")
    twice = [name for name in names if name and names.count(name) > 1]
    if twice:
        raise InputError(f"{source.name}: column {quote(twice[0])} appears twice in row 1")
    return names


def require_columns(
    source: Source, header: Sequence[str], columns: Sequence[Column], report: Report = stop
) -> None:
    """Report every column that a header lacks."""
    for column in columns:
        if column.name not in header:
            found = printable(", ".join(name or "(unnamed)" for name in header), _SHOWN_HEADER)
            lower = {name.strip().lower(): name for name in header}
            close = difflib.get_close_matches(column.name.lower(), lower, 1, 0.7)
            hint = f"; is it {quote(lower[close[0]])}?" if close else ""
            report(f"{source.name}: column '{column.name}' is missing, found: {found}{hint}")


def read_table(
    source: Source,
    columns: Sequence[Column],
    *,
    keep_others: bool = False,
    report: Report = stop,
) -> pa.Table:
    """Read columns of a CSV source, typed and checked.

    Tolerates CR and CRLF line ends, blank lines, a byte order mark, columns in any order, whole
    numbers that are written as ``1.0``, and ``True`` and ``False`` in a column that may hold them.

    Parameters
    ----------
    source
        What to read.
    columns
        The columns that must be there, with the types and ranges that their values must have.
    keep_others
        Whether to keep all further columns, as unchanged text, in the file's order.
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
    survey = _survey(source)
    parse = pa_csv.ParseOptions(newlines_in_values=survey.has_quotes)
    table = None
    if not survey.is_odd:
        try:
            with source.open() as file:
                options = pa_csv.ReadOptions(
                    block_size=_BLOCK_SIZE, column_names=source.column_names
                )
                table = pa_csv.read_csv(file, options, parse, convert)
        except pa.ArrowException:
            pass
    if table is None or not all(_is_valid(table[column.name], column) for column in columns):
        # Slower, but with row numbers: find what is wrong, or read what is valid but unusually
        # written.
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


def read_columns(path: Path, columns: Sequence[Column], report: Report = stop) -> Columns:
    """Read columns of a CSV file into NumPy arrays, typed and checked.

    Parameters
    ----------
    path
        The file.
    columns
        The columns that must be there, with the types and ranges that their values must have.
    report
        As in `read_table`.

    Returns
    -------
    dict
        For each column name an array of the column's type; text columns as object arrays.

    Raises
    ------
    InputError
        As `read_table`.
    """
    return to_arrays(read_table(file_source(path), columns, report=report), columns)


def to_arrays(table: pa.Table, columns: Sequence[Column]) -> Columns:
    """Return columns of a checked table as NumPy arrays.

    An empty number becomes NaN, an empty date NaT; a whole number that was reported as faulty,
    `UNREADABLE`.
    """

    def values(column: Column) -> npt.NDArray[Any]:
        values = table[column.name]
        if values.null_count and pa.types.is_integer(values.type):
            values = pc.fill_null(values, UNREADABLE)
        array = to_array(values)
        return array.astype(DATE) if column.dtype == DATE else array

    return {column.name: values(column) for column in columns}


def to_ids(numbers: npt.NDArray[np.floating[Any]]) -> npt.NDArray[np.int32]:
    """Return ids that were read as floats, because some are empty, as int32; -1 where empty."""
    return np.where(np.isnan(numbers), UNREADABLE, numbers).astype(np.int32)


def to_array(values: pa.ChunkedArray) -> npt.NDArray[Any]:
    """Return a column of a table as an array that may be written to.

    Numbers in one piece, as `read_table` returns them, share the table's memory: writing to the
    array changes the table.
    """
    array: npt.NDArray[Any] = values.to_numpy()
    if array.flags.writeable:
        return array
    # pyarrow returns a read-only array, even where nobody else uses the memory.
    piece = values.chunk(0)
    memory = piece.buffers()[1]
    if not memory.is_mutable:
        return array.copy()
    return np.frombuffer(memory, array.dtype, len(piece), piece.offset * array.itemsize)


def _arrow_type(column: Column) -> pa.DataType:
    if column.dtype == TEXT:
        return pa.string()
    # pyarrow reads a fraction of a second only into a type that has room for it.
    return pa.timestamp("ms") if column.dtype == DATE else pa.type_for_alias(column.dtype)


def _is_valid(values: pa.ChunkedArray, column: Column) -> bool:
    if column.dtype == TEXT:
        blank = pc.equal(pc.utf8_trim_whitespace(values), "")
        return column.may_be_empty or not pc.any(blank).as_py()
    if values.null_count and not column.may_be_empty:
        return False
    if column.dtype == DATE:
        return True
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


@dataclass(frozen=True)
class _Survey:
    """What the bytes of a file show before it is parsed.

    Attributes
    ----------
    is_odd
        Whether there is something that pyarrow would silently accept: a NUL byte, an "x" as in a
        hexadecimal number, a quotation mark that is not closed.
    has_quotes
        Whether there are quotation marks.
    """

    is_odd: bool
    has_quotes: bool


def _survey(source: Source) -> _Survey:
    """Look through the bytes of a source below its header."""
    is_odd, n_quotes = False, 0
    with source.open() as file:
        start = file.read(_LONGEST_HEADER)
        if not source.column_names:
            start = _LINE_END.split(start, 1)[-1]
        for block in chain([start], iter(lambda: file.read(_SURVEY_SIZE), b"")):
            is_odd = is_odd or b"x" in block or b"X" in block or b"\0" in block
            # Counting takes four times as long as looking whether there are any.
            if b'"' in block:
                n_quotes += block.count(b'"')
    return _Survey(is_odd or n_quotes % 2 == 1, n_quotes > 0)


def _number_rows(source: Source) -> Iterator[tuple[int, str, bool]]:
    """Number the rows of a CSV source as a spreadsheet shows them, the header included.

    Yields
    ------
    number : int
        From 1; a blank line has a number, but is not a row.
    text : str
        The row, each byte as the character of its number.
    is_closed : bool
        Whether every quotation mark is closed; only those of the last row may not be.
    """
    number, text, in_quotes = 0, "", False
    with source.open() as file:
        for line in io.TextIOWrapper(file, encoding="latin-1"):
            if not in_quotes:
                number, text = number + 1, ""
            text += line
            in_quotes = _ends_in_quotes(line, in_quotes)
            if not in_quotes and text != "\n":
                yield number, text.removesuffix("\n"), True
    if in_quotes:
        yield number, text, False


def _ends_in_quotes(line: str, in_quotes: bool) -> bool:
    """Return whether the end of a line belongs to a quoted cell, given whether its start does."""
    if '"' not in line:
        return in_quotes
    # What a quotation mark means depends on what comes before it: the start of a cell, a quoted
    # part of it, the end of one (a second mark stands for the character itself), other characters.
    before = "quoted" if in_quotes else "start"
    for character in line:
        if before == "quoted":
            before = "end" if character == '"' else "quoted"
        elif character == '"' and before in ("start", "end"):
            before = "quoted"
        else:
            before = "start" if character == "," else "other"
    return before == "quoted"


def _is_text(source: Source) -> bool:
    """Return whether a source is UTF-8 text."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        with source.open() as file:
            while block := file.read(_SURVEY_SIZE):
                decoder.decode(block)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _find_damage(source: Source, header: Sequence[str]) -> str:
    """Describe which row of a source cannot be read as text, and why; empty if all can."""
    for number, text, is_closed in _number_rows(source):
        if "\0" in text:
            return f"row {number} holds a NUL byte: {quote(text)}"
        if not is_closed:
            return f"row {number} has a quotation mark that is not closed; is the file cut off?"
        if len(text) > _LONGEST_ROW:
            return f"row {number} is longer than {_LONGEST_ROW:,} bytes: {quote(text)}"
        try:
            text.encode("latin-1").decode()
        except UnicodeDecodeError as error:
            place = len(next(csv.reader([text[: error.start] + "."]))) - 1
            column = f"column {quote(header[place])}: " if place < len(header) else ""
            return f"{column}row {number} is not UTF-8 text"
    return ""


def _read_with_care(
    source: Source,
    header: Sequence[str],
    wanted: Sequence[str],
    columns: Sequence[Column],
    report: Report,
) -> pa.Table:
    """Read a source as text, row by row; report the faults and convert what is valid."""
    survey = _survey(source)
    if survey.is_odd or not _is_text(source):
        damage = _find_damage(source, header)
        if damage:
            raise InputError(f"{source.name}: {damage}")
    n_headers = 0 if source.column_names else 1
    ragged: list[tuple[int, int, str]] = []

    def collect_ragged(row: Any) -> str:
        # pyarrow numbers the rows from 1, the header too, and blank lines not.
        text = row.text if not ragged else ""
        ragged.append((row.number - 1 - n_headers, row.actual_columns, text))
        return "skip"

    try:
        with source.open() as file:
            table = pa_csv.read_csv(
                file,
                pa_csv.ReadOptions(
                    block_size=_BLOCK_SIZE, column_names=source.column_names, use_threads=False
                ),
                pa_csv.ParseOptions(
                    newlines_in_values=survey.has_quotes, invalid_row_handler=collect_ragged
                ),
                pa_csv.ConvertOptions(
                    column_types={name: pa.string() for name in header}, strings_can_be_null=False
                ),
            )
    except pa.ArrowException as error:
        reason = _find_damage(source, header) or f"cannot be read as CSV: {error}"
        raise InputError(f"{source.name}: {printable(reason.splitlines()[0])}") from None
    if ragged:
        index, found, text = ragged[0]
        count = f" ({len(ragged)} such rows)" if len(ragged) > 1 else ""
        report(
            f"{source.name}: row {source.row_number(index)} has {found} columns, expected "
            f"{len(header)}: {quote(text.strip())}{count}; is the file cut off?"
        )
        table = _with_gaps(table, [index for index, _, _ in ragged])
    for column in columns:
        values = table[column.name]
        index = table.column_names.index(column.name)
        converted = _convert(source, values, column, report)
        table = table.set_column(index, column.name, converted)
    return table.select(wanted)


def _with_gaps(table: pa.Table, gaps: Sequence[int]) -> pa.Table:
    """Put rows of nulls where rows were skipped, so that every other row keeps its place."""
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
    elif column.dtype == DATE:
        converted = _to_dates(trimmed)
        wrong = pc.is_null(converted)
        wrong = pc.and_(wrong, pc.invert(empty)) if column.may_be_empty else wrong
    else:
        if column.is_boolean:
            words = pc.utf8_lower(trimmed)
            trimmed = pc.if_else(pc.equal(words, "true"), "1", trimmed)
            trimmed = pc.if_else(pc.equal(words, "false"), "0", trimmed)
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
    # A null marks a row that was reported already.
    wrong = pc.and_(pc.fill_null(wrong, False), pc.is_valid(values))
    rows = np.flatnonzero(wrong.to_numpy())
    if len(rows):
        shown = [
            (source.row_number(int(row)), values[int(row)].as_py().strip()) for row in rows[:SHOWN]
        ]
        found = "; ".join(f"row {row} is {quote(text) if text else 'empty'}" for row, text in shown)
        more = f" and {len(rows) - SHOWN} more rows" if len(rows) > SHOWN else ""
        report(f"{source.name}: column '{column.name}': {found}{more}, expected {column.expected}")
    return converted


def _to_dates(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Convert texts to dates; null where a text is none."""
    is_date = pc.match_substring_regex(
        values, r"^\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?)?$"
    )
    # Each different text once: without the fraction, which not all of Python's versions read.
    texts = pc.if_else(is_date, pc.utf8_slice_codeunits(values, 0, 19), None).dictionary_encode()
    texts = texts.unify_dictionaries().combine_chunks()
    dates = pa.array([_to_date(text) for text in texts.dictionary.to_pylist()], pa.timestamp("ms"))
    return pa.chunked_array([dates.take(texts.indices)])


def _to_date(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def parse_json(text: str) -> Any:
    """Read JSON from a text of unknown origin.

    Raises
    ------
    ValueError
        If it is no JSON, nests too deeply, or holds a number too long to read.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nests too deeply") from None


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

    Raises
    ------
    InputError
        If a destination is a folder, or lies in what is none; nothing is written then.
    """
    for path in paths:
        require_place(path)
    partial = [partial_beside(path) for path in paths]
    try:
        with ExitStack() as stack:
            files: list[BinaryIO] = []
            for path, temporary in zip(paths, partial, strict=True):
                path.parent.mkdir(parents=True, exist_ok=True)
                files.append(stack.enter_context(temporary.open("wb")))
            yield files
        for path, temporary in zip(paths, partial, strict=True):
            temporary.replace(path)
    except OSError as error:
        # The error of a write to a full disk names no file.
        if error.errno is not None and error.filename is None:
            error.filename = str(paths[0])
        raise
    finally:
        for temporary in partial:
            temporary.unlink(missing_ok=True)


def partial_beside(path: Path) -> Path:
    """Return where to write what is to replace a path; remove what killed runs have left there."""
    for leftover in path.parent.glob(f".{glob.escape(path.name)}.*.partial"):
        owner = leftover.name.split(".")[-2]
        if not owner.isdecimal() or is_running(int(owner)):
            continue
        if leftover.is_dir():
            shutil.rmtree(leftover, ignore_errors=True)
        else:
            leftover.unlink(missing_ok=True)
    return path.with_name(f".{path.name}.{os.getpid()}.partial")


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
        Whether to write the column names in row 1.
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
