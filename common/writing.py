"""Write files completely or not at all, and check before any work that they can be written."""

from __future__ import annotations

import glob
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

from common import provenance
from common.errors import InputError
from common.reading import is_there

import pandas as pd

# Columns of equal length by name, or a DataFrame.
Table: TypeAlias = "Mapping[str, Any] | pd.DataFrame"


def require_writable(path: Path) -> None:
    """Raise `InputError` unless a file can be written to `path`.

    The path must not be a folder, and its parent folder must be writable.
    """
    if path.exists() and not path.is_file():
        kind = "a folder" if path.is_dir() else "a pipe or a device"
        raise InputError(f"{path}: is {kind}, expected the name of a file to write")
    require_writable_folder(path.parent)


def require_writable_folder(folder: Path) -> None:
    """Raise `InputError` unless a file can be written in a folder, or the folder can be made."""
    # The folder itself if it exists, otherwise the nearest path above it that exists.
    existing = next((place for place in (folder, *folder.parents) if is_there(place)), folder)
    if not existing.is_dir():
        raise InputError(f"{existing}: is no folder, expected one to write to")
    try:
        # Try to make a file, which is removed at once.
        tempfile.TemporaryFile(dir=existing).close()
    except OSError as error:
        raise InputError(
            f"{existing}: cannot be written to ({error.strerror}), expected a folder to write to"
        ) from None


@contextmanager
def atomic_write(*paths: Path) -> Iterator[list[BinaryIO]]:
    """Open temporary files for writing; at the end of the `with` block, move them to the paths.

    If the block or writing fails, the temporary files are removed, and the files at the paths stay
    as they are.

    Parameters
    ----------
    *paths
        The files to write. Their folders are made if necessary.

    Yields
    ------
    list of binary files
        An open file for each path, in the same order.

    Raises
    ------
    InputError
        If a path cannot be written, before anything is written.
    OSError
        If writing fails. The error always names a file.
    """
    for path in paths:
        require_writable(path)
    partial_by_path = {path: partial_beside(path) for path in paths}
    try:
        with ExitStack() as stack:
            for path in paths:
                path.parent.mkdir(parents=True, exist_ok=True)
            yield [stack.enter_context(partial.open("wb")) for partial in partial_by_path.values()]
        # All files are complete and closed.
        for path, partial in partial_by_path.items():
            partial.replace(path)
    except OSError as error:
        # The error of a full disk names no file. Add the name of the first path.
        if error.errno is not None and error.filename is None:
            error.filename = str(paths[0])
        raise
    finally:
        for partial in partial_by_path.values():
            partial.unlink(missing_ok=True)


def partial_beside(path: Path) -> Path:
    """Return a temporary path beside `path`.

    The function also removes temporary files and folders that killed processes have left for this
    path.
    """
    for leftover in path.parent.glob(f".{glob.escape(path.name)}.*.partial"):
        # The name is .<name>.<process id>.partial.
        process_id = leftover.name.split(".")[-2]
        if process_id.isdecimal() and not _is_running(int(process_id)):
            if leftover.is_dir():
                shutil.rmtree(leftover, ignore_errors=True)
            else:
                leftover.unlink(missing_ok=True)
    return path.with_name(f".{path.name}.{os.getpid()}.partial")


def _is_running(process: int) -> bool:
    """Return whether a process with this number runs; on Windows always True."""
    try:
        # On Windows, `os.kill` would end the process.
        if os.name != "nt":
            os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass
    return True


def write_files(
    contents: Mapping[Path, str | Table],
    *,
    header: bool = True,
    record: Path | None = None,
    made_from: Sequence[Path] | None = None,
    split: str = "",
) -> None:
    """Write files, all or none.

    Parameters
    ----------
    contents
        The content of each file, by path: a text (written as UTF-8 with LF line ends) or a table
        (written as CSV).
    header
        Whether a table's first row holds its column names.
    record
        Path of the record of how the files were made, see `common.provenance`. The files must then
        be in the folder of the record. By default there is no record.
    made_from
        The source files that the record names. By default all files that this process has read.
    split
        Description of the folds, see `Provenance.split`.
    """
    paths = list(contents) if record is None else [*contents, record]
    with atomic_write(*paths) as files:
        file_of = dict(zip(paths, files, strict=True))
        for path, content in contents.items():
            if isinstance(content, str):
                file_of[path].write(content.encode())
            else:
                write_csv_to(file_of[path], content, header=header)
        if record is not None:
            # The record describes all files except its own file, so take this file out of
            # `file_of`.
            record_file = file_of.pop(record)
            origin = provenance.this_process(record.parent, file_of, made_from, split)
            record_file.write(origin.as_json())


def write_csv_to(file: BinaryIO, columns: Table, *, header: bool = True) -> None:
    """Write a table as CSV to an open binary file; NaN is an empty cell."""
    table = pd.DataFrame(columns)
    if header:
        # pyarrow would put the column names in quotation marks.
        table.head(0).to_csv(file, index=False, lineterminator="\n")
    start = file.tell()
    try:
        # pyarrow is much faster than pandas. It may not be installed, and it fails if a text needs
        # quotation marks.
        import pyarrow as pa
        from pyarrow import csv as pa_csv

        options = pa_csv.WriteOptions(include_header=False, quoting_style="none")
        pa_csv.write_csv(pa.Table.from_pandas(table, preserve_index=False), file, options)
    except (ImportError, ValueError, NotImplementedError, TypeError):
        # Remove what pyarrow may have written, and write all rows with pandas.
        file.seek(start)
        file.truncate()
        table.to_csv(file, index=False, header=False, lineterminator="\n")
