"""Reading and writing: CSV files as pandas DataFrames, typed and checked; atomic files.

A file that pyarrow or `pandas.read_csv` refuses, or with a value out of range, is read again row by
row, to say where (the header is row 1), or to read what is valid but unusually written.
"""

from __future__ import annotations

import codecs
import csv
import difflib
import glob
import io
import os
import re
import shutil
import stat
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

from common.arrays import Array
from common.errors import InputError, Report, printable, quote, stop
from common.layout import ROOT
from common.lazy import pd
from common.made import is_running, this_process
from common.missing_files import where_to_get
from common.schema import DATE, FLOAT64, INT8, INT32, TEXT, Column

import numpy as np

Table: TypeAlias = "Mapping[str, Any] | pd.DataFrame"
# Some rows of the columns that are read, by their places.
_Part: TypeAlias = "Mapping[int, pd.Series | Array | list[Any]]"

SHOWN = 3
_LONGEST_HEADER = 1 << 16
# Rows that are read at once: few enough to leave no large holes in the memory.
_CHUNK = 1 << 16
_BLOCK = 1 << 22
# With these, read row by row: pyarrow takes 0x10 for a number, and readers differ on quotes.
_MARKS = (b'"', b"\0", b"x", b"X")
# Stands at the end of a file that is read row by row; no UTF-8 text holds half a surrogate pair.
_END = "\ud800"
# What bytes that are not UTF-8 are read as.
_NO_TEXT = re.compile("[\udc80-\udcff]")
csv.field_size_limit(sys.maxsize)


@dataclass(frozen=True)
class Source:
    """A CSV file, on disk or in a zip, by its name in messages; it can be opened several times."""

    name: str
    open: Callable[[], BinaryIO]
    # Of a file without a header; empty where row 1 is one.
    column_names: tuple[str, ...] = ()

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the number and the cells of every row, the header too; a blank line is no row."""
        with self.open() as file:
            lines = io.TextIOWrapper(file, "utf-8-sig", "surrogateescape", newline="")
            for number, row in enumerate(csv.reader(chain(lines, [_END])), start=1):
                if row == [_END]:
                    return
                if row and row[-1].endswith(_END):
                    raise InputError(
                        f"{self.name}: row {number} has a quotation mark that is not closed; is "
                        "the file cut off?"
                    )
                if row and (len(row) > 1 or not row[0].isspace()):
                    yield number, row

    def row_number(self, index: int) -> int:
        """Return the number of a data row, given its place from 0; this reads the file up to it."""
        place = index if self.column_names else index + 1
        return next((number for number, _ in islice(self.rows(), place, None)), place + 1)


def is_there(path: Path) -> bool:
    """Return whether there is a file, or a broken link, which is refused when it is read."""
    return os.path.lexists(path)


def require_file(path: Path) -> None:
    """Raise `InputError` unless a file can be read: say what is there, or what command makes it."""
    try:
        mode = path.stat().st_mode
        # Opening a pipe would wait for what writes to it.
        if stat.S_ISREG(mode):
            path.open("rb").close()
            return
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"{path}: {_why_missing(path)}") from None
    except OSError as error:
        # Links that lead in a circle, a name that is too long, what may not be entered or read.
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    kind = "a folder" if stat.S_ISDIR(mode) else "a pipe or a device"
    raise InputError(f"{path}: is {kind}, expected a file")


def require_place(path: Path) -> None:
    """Raise `InputError` if no file can be written at a place, by what is there or its folder."""
    if path.exists() and not path.is_file():
        kind = "a folder" if path.is_dir() else "a pipe or a device"
        raise InputError(f"{path}: is {kind}, expected the name of a file to write")
    require_folder(path.parent)


def require_folder(folder: Path) -> None:
    """Raise `InputError` if no file can be written in a folder, which may be still to be made."""
    above = next((place for place in (folder, *folder.parents) if is_there(place)), folder)
    if not above.is_dir():
        raise InputError(f"{above}: is no folder, expected one to write to")
    try:
        # On Linux this file has no name, and nothing shows that it was there.
        tempfile.TemporaryFile(dir=above).close()
    except OSError as error:
        raise InputError(
            f"{above}: cannot be written to ({error.strerror}), expected a folder to write to"
        ) from None


def _why_missing(path: Path) -> str:
    if path.is_symlink():
        return f"is a link to {path.readlink()}, which does not exist"
    how = where_to_get(path)
    if path.parent.is_dir():
        # Tables may be CSV or, with probabilities, Parquet; scripts and logs are looked for too.
        kind = path.suffix or ".csv"
        present = sorted(entry.name for entry in path.parent.iterdir() if entry.suffix == kind)
        how = how or f"the folder holds {', '.join(present[:8]) or f'no {kind} file'}"
    elif not how or not path.is_relative_to(ROOT):
        # Probably a mistyped flag: no command makes a folder outside the kit.
        how = f"the folder {path.parent} does not exist"
    return f"file not found; {how}"


def file_source(path: Path, column_names: tuple[str, ...] = ()) -> Source:
    """Return a CSV file on disk as a source; with the names of its columns if it has no header."""
    require_file(path)
    return Source(str(path), lambda: path.open("rb"), column_names)


def read_header(source: Source) -> list[str]:
    """Read the column names of a CSV source; an unnamed column is an empty text."""
    with source.open() as file:
        start = file.read(_LONGEST_HEADER)
    if len(start) == _LONGEST_HEADER and not re.search(rb"[\r\n]", start):
        raise InputError(f"{source.name}: row 1 is longer than {len(start):,} bytes, expected CSV")
    number, names = next(source.rows(), (0, []))
    if not names:
        expected = "rows" if source.column_names else "a header with column names in row 1"
        raise InputError(f"{source.name}: is empty, expected {expected}")
    if source.column_names:
        return list(source.column_names)
    _require_text(source, [], number, names)
    if number > 1 or not any(names):
        raise InputError(f"{source.name}: row 1 is blank, expected a header with column names")
    line = re.split(r"[\r\n]", start.decode("utf-8-sig", "replace"))[0]
    try:
        # A name has quotation marks around it or none; in cells, one may stand anywhere.
        next(csv.reader([line], strict=True))
    except csv.Error as error:
        raise InputError(f"{source.name}: row 1 cannot be read as CSV: {error}") from None
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
            found = printable(", ".join(name or "(unnamed)" for name in header), 300)
            lower = {name.strip().lower(): name for name in header}
            close = difflib.get_close_matches(column.name.lower(), lower, 1, 0.7)
            hint = f"; is it {quote(lower[close[0]])}?" if close else ""
            report(f"{source.name}: column '{column.name}' is missing, found: {found}{hint}")


def read_table(
    source: Source | Path,
    columns: Sequence[Column],
    *,
    keep_others: bool = False,
    report: Report = stop,
) -> pd.DataFrame:
    """Read columns of a CSV file, typed and checked, with `keep_others` all further ones, as text;
    a wrong cell is `Column.missing` if `report` does not raise. Any line ends, blank lines, a byte
    order mark, columns in any order, whole numbers like ``1.0`` and ``True`` for 1 are right.
    """
    source = source if isinstance(source, Source) else file_source(source)
    header = read_header(source)
    require_columns(source, header, columns, report)
    known = {column.name: column for column in columns}
    as_text = {name: Column(name, TEXT, may_be_empty=True) for name in header}
    read_as = as_text | known if keep_others else known
    wanted = {place: read_as[name] for place, name in enumerate(header) if name in read_as}
    # Where all columns are missing, the file is looked through nevertheless.
    wanted = wanted or {0: as_text[header[0]]}
    found: dict[int, pd.Series] = {}
    with suppress(ValueError, OverflowError, Warning), warnings.catch_warnings():
        warnings.simplefilter("error")
        found = _join(_read_quickly(source, header, wanted), wanted)
    if not found:
        found = _join(_read_with_care(source, header, wanted, report), wanted)
    n_rows = max(map(len, found.values()), default=0)
    if not n_rows:
        raise InputError(f"{source.name}: holds a header but no rows")
    data = {column.name: found[place] for place, column in wanted.items()}
    for column in columns:
        if column.name not in data:
            data[column.name] = _join([{0: [column.missing] * n_rows}], {0: column})[0]
    return pd.DataFrame({name: data[name] for name in read_as}, copy=False)


def _join(parts: Iterable[_Part], wanted: Mapping[int, Column]) -> dict[int, pd.Series]:
    """Return columns by their places; of numbers no part is kept, and none takes memory twice."""
    texts: dict[int, list[Any]] = {k: [] for k, column in wanted.items() if column.dtype == TEXT}
    numbers = {k: np.empty(0, column.dtype) for k, column in wanted.items() if k not in texts}
    n_rows = 0
    for part in parts:
        start, n_rows = n_rows, n_rows + len(next(iter(part.values())))
        for place, values in numbers.items():
            if n_rows > len(values):
                values.resize(n_rows + n_rows // 8, refcheck=False)
            values[start:n_rows] = part[place]
        for place, cells in texts.items():
            cells.append(pd.Series(part[place]))
    for values in numbers.values():
        values.resize(n_rows, refcheck=False)
    found = {place: pd.concat(cells, ignore_index=True) for place, cells in texts.items() if cells}
    return found | {place: pd.Series(values, copy=False) for place, values in numbers.items()}


def _read_quickly(
    source: Source, header: Sequence[str], wanted: Mapping[int, Column]
) -> Iterator[_Part]:
    """Yield the wanted columns by their places, in parts; raise an error if anything is unusual."""
    types = {place: column.dtype for place, column in wanted.items()}
    numbers = {place for place, dtype in types.items() if dtype not in (TEXT, DATE)}
    # Those of which some may be missing come as floats at first.
    types |= {place: FLOAT64 for place in numbers if wanted[place].may_be_empty}
    with source.open() as file:
        if not source.column_names and b"\r" in file.readline().rstrip(b"\r\n"):
            raise ValueError("other line ends")
        while block := file.read(_BLOCK):
            block += file.readline()
            # Both readers drop a byte order mark.
            if block.startswith(codecs.BOM_UTF8) or any(mark in block for mark in _MARKS):
                raise ValueError("a byte order mark, or what readers differ on")
            cells = _by_pyarrow(block, len(header), types)
            yield {place: _check(cells[str(place)], wanted[place]) for place in wanted}


def _by_pandas(block: bytes, n_columns: int, types: Mapping[int, str]) -> pd.DataFrame:
    """Return columns of these types of whole lines, named by their places: a name may be empty."""
    lines = block.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    text = np.frombuffer(lines.rstrip(b"\n") + b"\n", np.uint8)
    marks = text[(text == ord(",")) | (text == ord("\n"))]
    # Rows that are too short pandas fills, and it cuts off those that are too long.
    if (np.diff(np.flatnonzero(marks == ord("\n")), prepend=-1) != n_columns).any():
        raise ValueError("rows of another length")
    # Read into fewer bits, pandas 2 would cut off what does not fit.
    read_as = {TEXT: "str", DATE: "object", INT8: "int64", INT32: "int64"}
    return pd.read_csv(
        io.BytesIO(block),
        names=[str(place) for place in range(n_columns)],
        dtype={str(place): read_as.get(dtype, FLOAT64) for place, dtype in types.items()},
        na_values={str(place): [""] for place, dtype in types.items() if dtype == FLOAT64},
        keep_default_na=False,
        index_col=False,
        usecols=list(types),
        low_memory=False,
    )


def _by_pyarrow(block: bytes, n_columns: int, types: Mapping[int, str]) -> pd.DataFrame:
    """As `_by_pandas`, five times as fast, where pyarrow is installed."""
    try:
        import pyarrow as pa
        from pyarrow import csv
    except ImportError:
        return _by_pandas(block, n_columns, types)
    read_as = {TEXT: pa.string(), DATE: pa.timestamp("ms"), INT8: pa.int8(), INT32: pa.int32()}
    convert = csv.ConvertOptions(
        column_types={str(k): read_as.get(dtype, pa.float64()) for k, dtype in types.items()},
        include_columns=[str(place) for place in types],
        null_values=[""],
    )
    options = csv.ReadOptions(column_names=[str(place) for place in range(n_columns)])
    # Not the file itself: threads that read from one when the process ends would abort it.
    table = csv.read_csv(pa.BufferReader(block), options, convert_options=convert)
    cells: pd.DataFrame = table.to_pandas(split_blocks=True)
    for name in cells.select_dtypes("float"):
        if cells[name].isna().sum() != table[name].null_count:
            raise ValueError("the text NaN")
    return cells


def _check(cells: pd.Series, column: Column) -> pd.Series | Array:
    """Return cells, or their values, which the column may hold; raise ValueError if one is not."""
    if column.dtype == TEXT:
        if not column.may_be_empty and (cells.str.strip() == "").any():
            raise ValueError(column.name)
        return cells
    if column.dtype == DATE and cells.dtype.kind != "M":
        place, texts = pd.factorize(cells)
        dates = [column.parse(text) for text in texts]
        if any(date is None for date in dates):
            raise ValueError(column.name)
        return np.array(dates, DATE)[place]
    values = cells.to_numpy()
    if column.dtype != DATE:
        require_valid(column.name, column, values)
    return np.where(np.isnan(values), column.missing, values) if column.may_be_empty else values


def require_valid(
    name: object, column: Column, values: Array, first_row: int = 1, verb: str = "is"
) -> None:
    """Raise `InputError` if a column may not hold a number, row `first_row` first; NaN is empty."""
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


def _read_with_care(
    source: Source, header: Sequence[str], wanted: Mapping[int, Column], report: Report
) -> Iterator[_Part]:
    """Read every cell as text: report the faults, and convert what is valid, however written."""
    rows = source.rows()
    if not source.column_names:
        next(rows)
    parse = {place: lru_cache(_CHUNK)(column.parse) for place, column in wanted.items()}
    first_uneven, n_uneven = "", 0
    shown: dict[int, list[str]] = {place: [] for place in wanted}
    n_faults = Counter[int]()
    while block := list(islice(rows, _CHUNK)):
        part: dict[int, list[Any]] = {place: [] for place in wanted}
        for number, row in block:
            _require_text(source, header, number, row)
            is_even = len(row) == len(header)
            if not is_even:
                n_uneven += 1
                found = f"row {number} has {len(row)} columns, expected {len(header)}"
                first_uneven = first_uneven or f"{found}: {quote(','.join(row).strip())}"
            for place, column in wanted.items():
                value = parse[place](row[place]) if is_even else column.missing
                if value is None:
                    value = column.missing
                    n_faults[place] += 1
                    text = row[place].strip()
                    if n_faults[place] <= SHOWN:
                        shown[place].append(f"row {number} is {quote(text) if text else 'empty'}")
                part[place].append(value)
        yield part
    if n_uneven:
        count = f" ({n_uneven} such rows)" if n_uneven > 1 else ""
        report(f"{source.name}: {first_uneven}{count}; is the file cut off?")
    for place, n in sorted(n_faults.items()):
        column = wanted[place]
        report_cells(source, column.name, shown[place], n, column.expected, report)


def report_cells(
    source: Source, column: str, shown: Sequence[str], n: int, expected: str, report: Report
) -> None:
    """Report the wrong cells of a column in one line, of which the first are shown."""
    more = f" and {n - SHOWN} more rows" if n > SHOWN else ""
    report(f"{source.name}: column '{column}': {'; '.join(shown)}{more}, expected {expected}")


def _require_text(source: Source, header: Sequence[str], number: int, row: Sequence[str]) -> None:
    text = ",".join(row)
    if "\0" in text:
        raise InputError(f"{source.name}: row {number} holds a NUL byte: {quote(text)}")
    if not text.isascii() and _NO_TEXT.search(text):
        place = next(place for place, cell in enumerate(row) if _NO_TEXT.search(cell))
        column = f"column {quote(header[place])}: " if place < len(header) else ""
        raise InputError(f"{source.name}: {column}row {number} is not UTF-8 text")


@contextmanager
def atomic_write(*paths: Path) -> Iterator[list[BinaryIO]]:
    """Write files beside their places, and rename all at the end, or none on any failure."""
    for path in paths:
        require_place(path)
    partial = {path: partial_beside(path) for path in paths}
    try:
        with ExitStack() as stack:
            for path in paths:
                path.parent.mkdir(parents=True, exist_ok=True)
            yield [stack.enter_context(temporary.open("wb")) for temporary in partial.values()]
        for path, temporary in partial.items():
            temporary.replace(path)
    except OSError as error:
        # The error of a write to a full disk names no file.
        if error.errno is not None and error.filename is None:
            error.filename = str(paths[0])
        raise
    finally:
        for temporary in partial.values():
            temporary.unlink(missing_ok=True)


def partial_beside(path: Path) -> Path:
    """Return where to write what is to replace a path; remove what killed runs have left there."""
    for leftover in path.parent.glob(f".{glob.escape(path.name)}.*.partial"):
        owner = leftover.name.split(".")[-2]
        if owner.isdecimal() and not is_running(int(owner)):
            if leftover.is_dir():
                shutil.rmtree(leftover, ignore_errors=True)
            else:
                leftover.unlink(missing_ok=True)
    return path.with_name(f".{path.name}.{os.getpid()}.partial")


def write(
    contents: Mapping[Path, str | Table],
    *,
    header: bool = True,
    record: Path | None = None,
    made_from: Sequence[Path] | None = None,
    split: str = "",
) -> None:
    """Write texts, as UTF-8 with LF line ends, and tables, as CSV, NaN as an empty cell: all files
    or none; to `record` how this process made them, which then lie in one folder.
    """
    with atomic_write(*contents, *filter(None, [record])) as files:
        opened = dict(zip(contents, files, strict=False))
        for path, content in contents.items():
            if isinstance(content, str):
                opened[path].write(content.encode())
            else:
                write_csv_to(opened[path], content, header=header)
        if record:
            files[-1].write(this_process(record.parent, opened, made_from, split).as_json())


def write_csv_to(file: BinaryIO, columns: Table, *, header: bool = True) -> None:
    """Write columns, arrays by name or a table, as CSV to an open binary file; as `write`."""
    table = pd.DataFrame(columns)
    if header:
        table.head(0).to_csv(file, index=False, lineterminator="\n")
    start = file.tell()
    try:
        # Much faster, if pyarrow is installed and no text needs quotes.
        import pyarrow as pa
        from pyarrow import csv as pa_csv

        options = pa_csv.WriteOptions(include_header=False, quoting_style="none")
        pa_csv.write_csv(pa.Table.from_pandas(table, preserve_index=False), file, options)
    except (ImportError, ValueError, NotImplementedError, TypeError):
        file.seek(start)
        file.truncate()
        table.to_csv(file, index=False, header=False, lineterminator="\n")
